/* report.html: the page's template with its style, scripts and data put in. One file, no network; a content security
 * policy with a random nonce lets exactly these scripts and styles run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "report/report_int.h"

enum { NONCE_BYTES = 18 };

struct page {
    const struct profile *profile;
    char nonce[2 * NONCE_BYTES + 1];
};

static enum status make_nonce(char out[2 * NONCE_BYTES + 1], struct error *err)
{
    unsigned char bytes[NONCE_BYTES];
    ssize_t n;
    do
        n = getrandom(bytes, sizeof bytes, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof bytes)
        return error_errno(err, "cannot get random bytes for the page's content security policy");
    for (int i = 0; i < NONCE_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return OK;
}

/* JSON inside a script element: nothing in it may end the element, open a comment, or be read as markup. The document is
 * ASCII (U+2028 and the like are escaped already), and these three occur only inside its strings. */
static void put_json_in_script(FILE *to, const char *json)
{
    for (const char *c = json; *c; c++)
        if (*c == '<' || *c == '>' || *c == '&')
            fprintf(to, "\\u%04x", *c);
        else
            fputc(*c, to);
}

static enum status put_data(const struct page *page, FILE *to, struct error *err)
{
    json_t *document = report_document(page->profile);
    char *json = document ? json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(document);
    if (!json)
        return error_set(err, CANNOT, "out of memory for the page's data");
    put_json_in_script(to, json);
    free(json);
    return OK;
}

static const struct asset *find_asset(const char *name, size_t length)
{
    for (const struct asset *a = report_assets; a->name; a++)
        if (strlen(a->name) == length && !memcmp(a->name, name, length))
            return a;
    return NULL;
}

/* What stands for {{name}} in the template: a value of this page, or an asset of that name. */
static enum status put_slot(const struct page *page, const char *name, size_t length, FILE *to, struct error *err)
{
    const struct asset *asset = find_asset(name, length);
    if (asset)
        fwrite(asset->data, 1, asset->size, to);
    else if (!strncmp(name, "nonce", length))
        fputs(page->nonce, to);
    else if (!strncmp(name, "title", length))
        report_put_html(to, page->profile->name);
    else if (!strncmp(name, "headline", length))
        report_put_html(to, page->profile->headline);
    else if (!strncmp(name, "data", length))
        return put_data(page, to, err);
    return OK;
}

static enum status fill(const struct page *page, const struct asset *template, FILE *to, struct error *err)
{
    const char *at = (const char *)template->data, *end = at + template->size;
    enum status st = OK;
    while (st == OK && at < end) {
        const char *open = memmem(at, (size_t)(end - at), "{{", 2);
        const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
        fwrite(at, 1, (size_t)((close ? open : end) - at), to);
        if (close)
            st = put_slot(page, open + 2, (size_t)(close - open - 2), to, err);
        at = close ? close + 2 : end;
    }
    return st;
}

enum status report_write_html(const struct profile *p, FILE *to, struct error *err)
{
    struct page page = {.profile = p};
    const enum status st = make_nonce(page.nonce, err);
    return st == OK ? fill(&page, find_asset("page.html", strlen("page.html")), to, err) : st;
}
