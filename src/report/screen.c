/* Drawing in a terminal: text in columns, wrapped text, bars. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/terminal_int.h"

const char *screen_style(const struct screen *s, const char *code) { return s->color ? code : ""; }

const char *screen_severity_style(const struct screen *s, enum severity severity)
{
    return screen_style(s, severity >= SEVERITY_HIGH ? RED : severity == SEVERITY_MEDIUM ? YELLOW : DIM);
}

const char *screen_kernel_name(const char *name)
{
    static const char *const heads[] = {"void ", "at::native::", "(anonymous namespace)::"};
    for (size_t i = 0; name && i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(name, heads[i], strlen(heads[i])))
            name += strlen(heads[i]);
    return name;
}

/* Puts at most so many columns of cleaned text; the rest is an ellipsis. Returns the columns used. */
static size_t put_cut(FILE *to, const char *text, size_t columns)
{
    char *t = report_clean(text);
    size_t n = report_columns(t);
    if (n > columns) {
        t[report_within(t, columns - 1) - t] = '\0';
        n = report_columns(t) + 1;
        fprintf(to, "%s…", t);
    } else
        fputs(t, to);
    free(t);
    return n;
}

void screen_put_cut(const struct screen *s, const char *text, size_t columns) { put_cut(s->to, text, columns); }

void screen_put_padded(const struct screen *s, const char *text, size_t columns)
{
    for (size_t i = put_cut(s->to, text, columns); i < columns; i++)
        fputc(' ', s->to);
}

void screen_put_right(const struct screen *s, const char *text, size_t columns)
{
    for (size_t i = report_columns(text); i < columns; i++)
        fputc(' ', s->to);
    fputs(text, s->to);
}

/* A word at column `used`, broken wherever a line is full. Returns the column after it. */
static size_t put_word(FILE *to, const char *word, size_t used, size_t indent)
{
    for (const char *c = word, *next = word; *c; c = next) {
        const size_t n = report_next_columns(&next);
        if (used + n > SCREEN_COLUMNS) {
            fprintf(to, "\n%*s", (int)indent, "");
            used = indent;
        }
        fwrite(c, 1, (size_t)(next - c), to);
        used += n;
    }
    return used;
}

/* The next word; a number and the % behind it are one. */
static char *next_word(char **rest)
{
    char *word = strsep(rest, " ");
    if (*rest && **rest == '%') {
        (*rest)[-1] = ' ';
        strsep(rest, " ");
    }
    return word;
}

void screen_put_wrapped(const struct screen *s, const char *text, size_t indent)
{
    char *t = report_clean(text), *rest = t;
    size_t used = indent;
    for (const char *word; (word = next_word(&rest));) {
        const bool first = word == t, fits = used + report_columns(word) + 1 <= SCREEN_COLUMNS;
        if (!first && fits) {
            fputc(' ', s->to);
            used++;
        } else if (!first) {
            fprintf(s->to, "\n%*s", (int)indent, "");
            used = indent;
        }
        used = put_word(s->to, word, used, indent);
    }
    fputc('\n', s->to);
    free(t);
}

void screen_put_bar(const struct screen *s, double part, int width, const char *code)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!s->color)
        return;
    const double bounded = isfinite(part) ? fmin(fmax(part, 0), 1) : 0;
    const int n = (int)lround(bounded * width * 8);
    int used = n / 8 + (n % 8 > 0);
    fputs(code, s->to);
    for (int i = 0; i < n / 8; i++)
        fputs("█", s->to);
    fputs(eighths[n % 8], s->to);
    for (; used < width; used++)
        fputc(' ', s->to);
    fputs(OFF "  ", s->to);
}

void screen_put_label(const struct screen *s, const char *label)
{
    fprintf(s->to, "  %s%-*s%s", screen_style(s, DIM), SCREEN_INDENT - 2, label, screen_style(s, OFF));
}

void screen_put_heading(const struct screen *s, const char *text, const char *more)
{
    fprintf(s->to, "\n%s%s%s%s%s%s\n", screen_style(s, BOLD), text, screen_style(s, OFF), screen_style(s, DIM), more,
            screen_style(s, OFF));
}

void screen_put_answer(const struct screen *s, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    screen_put_label(s, label);
    screen_put_wrapped(s, text, SCREEN_INDENT);
}

void screen_put_part(const struct screen *s, const char *name, double us, double whole, const char *code)
{
    number_text n;
    fputs("  ", s->to);
    screen_put_padded(s, name, SCREEN_NAME);
    screen_put_bar(s, report_ratio(us, whole), SCREEN_BAR, code);
    screen_put_right(s, report_show_us(us, n), 9);
    screen_put_right(s, report_show_percent(report_ratio(us, whole), n), 9);
}

void report_put_blocks(FILE *to, const double *numbers, int n, int columns)
{
    static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = NAN, high = NAN;
    for (int i = 0; i < n; i++) {
        low = fmin(low, numbers[i]);
        high = fmax(high, numbers[i]);
    }
    for (int c = 0; c < columns; c++) {
        const double x = n ? numbers[(int64_t)c * n / columns] : NAN;
        fputs(isfinite(x) ? block[high > low ? (int)lround(7 * ((x - low) / (high - low))) : 0] : " ", to);
    }
}
