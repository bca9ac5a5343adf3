/* What goes out: JSON documents, and text from elsewhere made safe for a terminal (core/clean.h). */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/clean.h"

const char *shown(const char *text)
{
    enum { AT_ONCE = 16 };
    static char *kept[AT_ONCE];
    static int next;
    char **slot = &kept[next++ % AT_ONCE];
    free(*slot);
    return *slot = text_clean(text);
}

const char *shown_argument(const char *text)
{
    static char quoted[4 * 1024 + 8];
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=,:@%/";
    size_t n = 0;
    const char *safe = shown(text);
    if (*safe && !safe[strspn(safe, plain)])
        return safe;
    quoted[n++] = '\'';
    for (; *safe && n + 8 < sizeof quoted; safe++)
        if (*safe == '\'')
            n += (size_t)sprintf(quoted + n, "'\\''");
        else
            quoted[n++] = *safe;
    strcpy(quoted + n, "'");
    return quoted;
}

static char *document_text(json_t *document, size_t digits)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = document ? open_memstream(&text, &size) : NULL;
    int failed = !to || text_put_json(to, document, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
    failed |= to && fputc('\n', to) == EOF;
    failed |= to && fclose(to) != 0;                /* also when something failed before */
    json_decref(document);
    if (!failed)
        return text;
    free(text);
    return NULL;
}

char *document_written(document_writer *write, const json_t *document)
{
    char *text = NULL;
    size_t size = 0;
    struct error ignored;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    const enum status st = write(document, f, &ignored);
    if (fclose(f) == 0 && st == OK)
        return text;
    free(text);
    return NULL;
}

char *json_lines(json_t *document) { return document_text(document, 12); }

enum status print_document(json_t *document, int digits, struct error *err)
{
    char *text = document_text(document, (size_t)digits);
    if (!text)
        return error_set(err, CANNOT, "out of memory for the JSON");
    fputs(text, stdout);
    free(text);
    return OK;
}

enum status refuse_json_program(bool json, bool print, struct error *err)
{
    return json && print ? error_set(err, BAD_INPUT, "--json is of a result, and --print-program ends before there is one; leave out one of them") : OK;
}
