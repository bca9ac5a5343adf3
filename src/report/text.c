/* Text from elsewhere made safe to show, and numbers for people. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clean.h"
#include "report/report_int.h"

#define ELLIPSIS "…"

char *report_clean(const char *text) { return text_clean(text); }
char *report_utf8(const char *text) { return text_utf8(text); }

char *report_cut(const char *text, size_t columns)
{
    char *t = report_clean(text);
    const char *c = report_within(t, columns);
    if (!*c)
        return t;
    char *cut = xcalloc((size_t)(c - t) + sizeof ELLIPSIS, 1);
    memcpy(mempcpy(cut, t, (size_t)(c - t)), ELLIPSIS, sizeof ELLIPSIS);
    free(t);
    return cut;
}

char *report_cut_middle(const char *text, size_t columns, size_t end)
{
    char *t = report_clean(text), *out;
    const char *c = t;
    if (report_columns(t) <= columns)
        return t;
    for (size_t left = report_columns(t); left > end;)
        left -= report_next_columns(&c);
    char *start = report_cut(t, columns - end - 1);
    out = xcalloc(strlen(start) + strlen(c) + 1, 1);
    stpcpy(stpcpy(out, start), c);
    free(start);
    free(t);
    return out;
}

void report_put_cut(FILE *to, const char *text, size_t columns)
{
    char *t = report_cut(text, columns);
    fputs(t, to);
    free(t);
}

void report_put_padded(FILE *to, const char *text, size_t columns)
{
    char *t = report_clean(text);
    fputs(t, to);
    for (size_t n = report_columns(t); n < columns; n++)
        fputc(' ', to);
    free(t);
}

void report_put_text(FILE *to, const char *text) { text_put(to, text); }

void report_put_html(FILE *to, const char *text)
{
    char *t = report_clean(text);
    for (const char *c = t; *c; c++)
        if (strchr("<>&\"'`", *c))
            fprintf(to, "&#%d;", *c);
        else
            fputc(*c, to);
    free(t);
}

static bool is_word(char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9'); }

/* What Markdown, or an issue tracker (@name, #12, a bare address), could read as something else, escaped so that the
 * source still reads well. `before` is the character before c, or 0. */
static void put_markdown_char(FILE *to, char before, const char *c)
{
    const bool in_word = is_word(before) && is_word(c[1]);
    if (strchr("<>&@$", *c) || (*c == '#' && is_word(c[1])) || (*c == '/' && before == ':'))
        fprintf(to, "&#%d;", *c);
    else if (strchr("`*[]|\\~", *c) || (*c == '_' && !in_word))
        fprintf(to, "\\%c", *c);
    else
        fputc(*c, to);
}

void report_put_markdown(FILE *to, const char *text)
{
    char *t = report_clean(text);
    for (const char *c = t; *c; c++)
        put_markdown_char(to, c > t ? c[-1] : 0, c);
    free(t);
}

void report_put_markdown_cut(FILE *to, const char *text, size_t columns)
{
    char *t = report_cut(text, columns);
    report_put_markdown(to, t);
    free(t);
}

const char *report_show_us(double us, number_text out) { return show_us(us, out); }
const char *report_show_bytes(double bytes, number_text out) { return show_bytes(bytes, out); }
const char *report_show_count(double n, number_text out) { return show_count(n, out); }
const char *report_show_number(double x, number_text out) { return show_number(x, out); }

const char *report_show_percent(double part, number_text out)
{
    if (!isfinite(part))
        return strcpy(out, "–");
    snprintf(out, NUMBER_TEXT, fabs(part) < 10 ? "%.1f %%" : "%.3g %%", 100 * part);
    return out;
}

const char *report_show_rank(int rank, number_text out)
{
    if (rank < 0)
        return strcpy(out, "–");
    snprintf(out, NUMBER_TEXT, "%d", rank);
    return out;
}

const char *report_show_speedup(double x, number_text out)
{
    if (!isfinite(x))
        return strcpy(out, "–");
    snprintf(out, NUMBER_TEXT, "%.*f×", x < 9.995 ? 2 : 1, x);
    return out;
}
