/* What report.md of a profile and of a trace have in common: the top, bars, curves, code. Names and sentences are
 * cut where they are longer than a table or a list bears; report.json has them whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "report/report_int.h"

enum { BAR = 20, CURVE = 60, CODE_COLUMNS = 160, NAME_COLUMNS = 120, SENTENCE_COLUMNS = 700 };

static void put_answer(FILE *to, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(to, "- **%s** ", label);
    report_put_markdown_cut(to, text, SENTENCE_COLUMNS);
    fputc('\n', to);
}

void report_markdown_top(FILE *to, const char *what, const char *name, const struct answers *a, const struct plan *plan)
{
    char counts[COUNTS_MOST];
    fprintf(to, "# %s ", what);
    report_put_markdown_cut(to, name, NAME_COLUMNS);
    fputs("\n\n**", to);
    report_put_markdown_cut(to, a->headline && *a->headline ? a->headline : "No headline.", SENTENCE_COLUMNS);
    fputs("**\n\n", to);
    if (a->warning && *a->warning) {
        fputs("> **Warning:** ", to);
        report_put_markdown_cut(to, a->warning, SENTENCE_COLUMNS);
        fputs("\n\n", to);
    }
    put_answer(to, "Bound by:", a->bound_by);
    put_answer(to, "Largest bottleneck:", a->largest);
    put_answer(to, "Do first:", a->first_action);
    put_answer(to, "Realistic gain:", a->realistic_gain);
    put_answer(to, "Found:", report_counts(plan, counts));
}

void report_markdown_bar(FILE *to, double part)
{
    const int n = isfinite(part) ? (int)lround(fmin(fmax(part, 0), 1) * BAR) : 0;
    for (int i = 0; i < BAR; i++)
        fputs(i < n ? "█" : "░", to);
}

void report_markdown_part(FILE *to, const struct profile_part *part, double whole)
{
    number_text a, b;
    fputs("| ", to);
    report_put_markdown_cut(to, part->name, NAME_COLUMNS);
    fprintf(to, " | %s | %s | ", report_show_us(part->us, a), report_show_percent(report_ratio(part->us, whole), b));
    report_markdown_bar(to, report_ratio(part->us, whole));
    fputs(" |\n", to);
}

void report_markdown_fact(FILE *to, const char *label, const char *text)
{
    fprintf(to, "| %s | ", label);
    report_put_markdown_cut(to, text && *text ? text : "–", NAME_COLUMNS);
    fputs(" |\n", to);
}

/* One character per stretch of values, its height the largest in it. */
void report_markdown_curve(FILE *to, const double *values, int n, const char *words)
{
    static const char *const height[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const int columns = n < CURVE ? n : CURVE;
    double top = 0;
    for (int i = 0; i < n; i++)
        top = fmax(top, values[i]);
    fputs("    ", to);
    for (int c = 0; c < columns; c++) {
        double most = 0;
        for (int i = (int)((int64_t)n * c / columns); i < (int64_t)n * (c + 1) / columns; i++)
            most = fmax(most, values[i]);
        fputs(height[top > 0 ? (int)fmin(7, most / top * 8) : 0], to);
    }
    fprintf(to, "  %s\n\n", words);
}

/* Backticks enough that none in the code ends the block. */
static int fence_of(const char *code)
{
    int longest = 2, run = 0;
    for (const char *c = code; *c; c++) {
        run = *c == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest + 1;
}

static void put_fence(FILE *to, int indent, int fence, const char *language)
{
    fprintf(to, "%*s", indent, "");
    for (int i = 0; i < fence; i++)
        fputc('`', to);
    fprintf(to, "%s\n", language);
}

void report_markdown_code(FILE *to, const char *code, int indent, int lines)
{
    struct arena lines_of = {0};
    char *rest = arena_printf(&lines_of, "%s", code), *cut[64];
    int n = 0, fence = 3;
    for (char *line; n < lines && n < 64 && (line = strsep(&rest, "\n")) && (rest || *line); n++) {
        cut[n] = report_cut(line, CODE_COLUMNS);
        fence = fence_of(cut[n]) > fence ? fence_of(cut[n]) : fence;
    }
    put_fence(to, indent, fence, "python");
    for (int i = 0; i < n; i++) {
        fprintf(to, "%*s%s\n", *cut[i] ? indent : 0, "", cut[i]);
        free(cut[i]);
    }
    if (rest && *rest)
        fprintf(to, "%*s# more in report.json\n", indent, "");
    put_fence(to, indent, fence, "");
    arena_release(&lines_of);
}
