/* report.html: the page's template with its style, scripts and data put in. One file, no network; a content security
 * policy with a random nonce lets exactly these scripts and styles run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/json_memory.h"
#include "report/report_int.h"

enum { NONCE_BYTES = 18 };

enum { TITLE_COLUMNS = 200, HEADLINE_COLUMNS = 1000 };

struct page {
    const char *kind;                   /* "profile", "trace", "tune", "forget", "simulate", "compare" or "live": which sections and scripts it has */
    const char *title, *headline;
    json_t *data;                       /* NULL: no memory */
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
    char *json = page->data ? json_memory_dump(page->data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12)) : NULL;
    if (!json)
        return error_set(err, CANNOT, "out of memory for the page's data");
    put_json_in_script(to, json);
    free(json);
    return OK;
}

static const struct asset *find_asset(const char *name)
{
    for (const struct asset *a = report_assets; a->name; a++)
        if (!strcmp(a->name, name))
            return a;
    return NULL;
}

static void put_html_cut(FILE *to, const char *text, size_t columns)
{
    char *t = report_cut(text, columns);
    report_put_html(to, t);
    free(t);
}

/* What stands for {{slot}} in the template: a value of this page, an asset of that name, or one of the page's kind:
 * {{sections.html}} is profile-sections.html in the page of a profile. */
static enum status put_slot(const struct page *page, const char *slot, FILE *to, struct error *err)
{
    char of_kind[64];
    snprintf(of_kind, sizeof of_kind, "%s-%s", page->kind, slot);
    const struct asset *asset = find_asset(slot) ? find_asset(slot) : find_asset(of_kind);
    if (asset)
        fwrite(asset->data, 1, asset->size, to);
    else if (!strcmp(slot, "nonce"))
        fputs(page->nonce, to);
    else if (!strcmp(slot, "kind"))
        fputs(page->kind, to);
    else if (!strcmp(slot, "connect"))
        fputs(!strcmp(page->kind, "live") ? " connect-src 'self';" : "", to);
    else if (!strcmp(slot, "title"))
        put_html_cut(to, page->title, TITLE_COLUMNS);
    else if (!strcmp(slot, "headline"))
        put_html_cut(to, page->headline, HEADLINE_COLUMNS);
    else if (!strcmp(slot, "data"))
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
        if (close) {
            char slot[32];
            snprintf(slot, sizeof slot, "%.*s", (int)(close - open - 2), open + 2);
            st = put_slot(page, slot, to, err);
        }
        at = close ? close + 2 : end;
    }
    return st;
}

/* Releases the page's data. */
static enum status put_page(struct page *page, FILE *to, struct error *err)
{
    enum status st = make_nonce(page->nonce, err);
    if (st == OK)
        st = fill(page, find_asset("page.html"), to, err);
    json_decref(page->data);
    return st;
}

enum status report_write_html(const struct profile *p, FILE *to, struct error *err)
{
    struct page page = {.kind = "profile", .title = p->name, .headline = p->headline, .data = report_document(p)};
    return put_page(&page, to, err);
}

enum status report_trace_write_html(const struct diagnosis *d, FILE *to, struct error *err)
{
    char title[TITLE_MOST];
    struct page page = {.kind = "trace", .title = report_trace_title(d, title), .headline = d->headline, .data = report_trace_document(d)};
    return put_page(&page, to, err);
}

/* A page whose data are a report.json that was made elsewhere. */
static enum status put_document(const char *kind, const json_t *document, FILE *to, struct error *err)
{
    json_t *data = json_copy((json_t *)document);   /* shallow: it counts its references */
    struct page page = {.kind = kind, .title = json_string_value(json_object_get(document, "name")),
                        .headline = json_string_value(json_object_get(document, "headline")), .data = data};
    return put_page(&page, to, err);
}

enum status report_tune_write_html(const json_t *tune, FILE *to, struct error *err) { return put_document("tune", tune, to, err); }
enum status report_forget_write_html(const json_t *forget, FILE *to, struct error *err) { return put_document("forget", forget, to, err); }
enum status report_simulate_write_html(const json_t *simulated, FILE *to, struct error *err) { return put_document("simulate", simulated, to, err); }
enum status report_live_write_html(const json_t *run, FILE *to, struct error *err) { return put_document("live", run, to, err); }
enum status report_compare_write_html(const json_t *compared, FILE *to, struct error *err) { return put_document("compare", compared, to, err); }
