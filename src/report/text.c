/* Text from elsewhere made safe to show, and numbers for people. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "report/report_int.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define ELLIPSIS "…"

/* The length of the UTF-8 sequence at s, which ends with a NUL; 0 when it is overlong, a surrogate, cut off or beyond
 * U+10FFFF. */
static size_t sequence(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    const size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    const bool wrong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
                       (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F);
    return wrong ? 0 : n;
}

/* C0, DEL, C1, line and paragraph separators, and the marks that turn the direction of text around. */
static bool is_control(const unsigned char *s, size_t n)
{
    if (n == 1)
        return s[0] < 0x20 || s[0] == 0x7F;
    if (n == 2)
        return s[0] == 0xC2 && s[1] < 0xA0;
    const bool general = n == 3 && s[0] == 0xE2 && s[1] == 0x80, isolate = n == 3 && s[0] == 0xE2 && s[1] == 0x81;
    return (general && s[2] >= 0xA8 && s[2] <= 0xAE) || (isolate && s[2] >= 0xA6 && s[2] <= 0xA9);
}

static char *clean(const char *text, bool keep_control)
{
    const unsigned char *s = (const unsigned char *)(text ? text : "");
    char *out = xcalloc(strlen((const char *)s) * 3 + 1, 1), *to = out;
    while (*s) {
        const size_t n = sequence(s);
        if (n == 1 && strchr("\t\n\v\f\r", *s) && !keep_control)
            *to++ = ' ';
        else if (n && (keep_control || !is_control(s, n)))
            to = mempcpy(to, s, n);
        else
            to = mempcpy(to, REPLACEMENT, 3);
        s += n ? n : 1;
    }
    return out;
}

char *report_clean(const char *text) { return clean(text, false); }
char *report_utf8(const char *text) { return clean(text, true); }

char *report_cut(const char *text, size_t columns)
{
    char *start = strndup(text ? text : "", 4 * (columns + 1));         /* no character has more than four bytes */
    char *t = report_clean(start), *c = t;
    free(start);
    for (size_t n = 0; *c; c++)
        if (((unsigned char)*c & 0xC0) != 0x80 && n++ == columns)
            break;
    if (!*c)
        return t;
    char *cut = xcalloc((size_t)(c - t) + sizeof ELLIPSIS, 1);
    memcpy(mempcpy(cut, t, (size_t)(c - t)), ELLIPSIS, sizeof ELLIPSIS);
    free(t);
    return cut;
}

void report_put_text(FILE *to, const char *text)
{
    char *t = report_clean(text);
    fputs(t, to);
    free(t);
}

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

size_t report_columns(const char *clean_text)
{
    size_t n = 0;
    for (const char *c = clean_text; *c; c++)
        n += ((unsigned char)*c & 0xC0) != 0x80;
    return n;
}

static const char *three_digits(double x, const char *unit, number_text out)
{
    const double a = fabs(x);
    const char *format = a >= 1e6 ? "%.*e%s%s" : a > 0 && a < 0.01 ? "%.*g%s%s" : "%.*f%s%s";
    const int digits = a < 99.95 && a >= 9.995 ? 1 : a == 0 || (a >= 99.95 && a < 1e6) ? 0 : 2;
    snprintf(out, NUMBER_TEXT, format, digits, x, *unit ? " " : "", unit);
    return out;
}

static const char *with_unit(double x, const char *const *units, number_text out)
{
    if (!isfinite(x))
        return strcpy(out, "–");
    int i = 0;
    for (; fabs(x) >= 999.5 && units[i + 1]; i++)
        x /= 1000;
    if (i > 0 || x != floor(x))
        return three_digits(x, units[i], out);
    snprintf(out, NUMBER_TEXT, "%.0f%s%s", x, *units[i] ? " " : "", units[i]);
    return out;
}

const char *report_show_us(double us, number_text out)
{
    return with_unit(us, (const char *const[]){"µs", "ms", "s", NULL}, out);
}

const char *report_show_bytes(double bytes, number_text out)
{
    return with_unit(bytes, (const char *const[]){"B", "kB", "MB", "GB", "TB", NULL}, out);
}

const char *report_show_count(double n, number_text out)
{
    return with_unit(n, (const char *const[]){"", "k", "M", "G", "T", "P", NULL}, out);
}

const char *report_show_percent(double part, number_text out)
{
    if (!isfinite(part))
        return strcpy(out, "–");
    snprintf(out, NUMBER_TEXT, fabs(part) < 10 ? "%.1f %%" : "%.3g %%", 100 * part);
    return out;
}

const char *report_show_number(double x, number_text out)
{
    return isfinite(x) ? three_digits(x, "", out) : strcpy(out, "–");
}

const char *report_show_speedup(double x, number_text out)
{
    if (!isfinite(x))
        return strcpy(out, "–");
    snprintf(out, NUMBER_TEXT, "%.*f×", x < 9.995 ? 2 : 1, x);
    return out;
}
