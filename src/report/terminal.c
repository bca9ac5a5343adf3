/* The first screen in a terminal: what bounds the step, its numbers, where the time went, what to do. With colours and
 * bars, or plain. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_int.h"

enum { BAR = 24, TOP_KINDS = 6, TOP_FINDINGS = 4, NAME_COLUMNS = 20, INDENT = 13, LINE = 100 };

struct screen {
    FILE *to;
    bool color;
};

static const char *style(const struct screen *s, const char *code) { return s->color ? code : ""; }

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define BLUE "\033[34m"
#define OFF "\033[0m"

/* Cleaned text in exactly `columns`, cut with an ellipsis. */
static void put_padded(FILE *to, const char *text, size_t columns)
{
    char *t = report_clean(text);
    const size_t n = report_columns(t);
    size_t shown = 0;
    for (const char *c = t; *c; c++) {
        shown += ((unsigned char)*c & 0xC0) != 0x80;
        if (n > columns && shown == columns)
            break;
        fputc(*c, to);
    }
    if (n > columns)
        fputs("…", to);
    for (size_t i = n; i < columns; i++)
        fputc(' ', to);
    free(t);
}

/* Cleaned text in lines of LINE columns at most where its words allow it, all but the first indented; ends the line. */
static void put_wrapped(FILE *to, const char *text)
{
    char *t = report_clean(text), *rest = t;
    size_t used = INDENT;
    for (const char *word; (word = strsep(&rest, " "));) {
        const size_t n = report_columns(word);
        const bool first = word == t, fits = used + n + 1 <= LINE;
        if (!first && fits)
            fputc(' ', to);
        else if (!first)
            fprintf(to, "\n%*s", INDENT, "");
        used = (first || fits ? used + !first : INDENT) + n;
        fputs(word, to);
    }
    fputc('\n', to);
    free(t);
}

/* A number right-aligned in columns; its text may have characters of several bytes (µ, ×, –). */
static void put_right(FILE *to, const char *text, size_t columns)
{
    for (size_t i = report_columns(text); i < columns; i++)
        fputc(' ', to);
    fputs(text, to);
}

/* A bar of eighths, only where there are colours. */
static void put_bar(const struct screen *s, double part, int width, const char *code)
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

static void put_label(const struct screen *s, const char *label)
{
    fprintf(s->to, "  %s%-11s%s", style(s, DIM), label, style(s, OFF));
}

static void put_heading(const struct screen *s, const char *text, const char *more)
{
    fprintf(s->to, "\n%s%s%s%s%s%s\n", style(s, BOLD), text, style(s, OFF), style(s, DIM), more, style(s, OFF));
}

static void put_title(const struct screen *s, const struct profile *p)
{
    number_text n;
    fputs(style(s, DIM), s->to);
    report_put_text(s->to, p->name);
    fputs(" · ", s->to);
    report_put_text(s->to, p->arch);
    fprintf(s->to, ", %s parameters, batch %lld × %lld", report_show_count((double)p->parameters, n),
            (long long)p->batch, (long long)p->seq);
    if (p->accumulate > 1)
        fprintf(s->to, " × %lld accumulated", (long long)p->accumulate);
    fputs(" · ", s->to);
    report_put_text(s->to, p->device);
    fprintf(s->to, ", %d thread%s%s\n", p->threads, p->threads == 1 ? "" : "s", style(s, OFF));
    fputs(style(s, BOLD), s->to);
    report_put_text(s->to, p->headline);
    fprintf(s->to, "%s\n\n", style(s, OFF));
}

static void put_numbers(const struct screen *s, const struct profile *p)
{
    number_text a, b, c;
    put_label(s, "step");
    fprintf(s->to, "%s (%s to %s, p10 to p90 of %d steps", report_show_us(p->step_us, a),
            report_show_us(p->step_p10_us, b), report_show_us(p->step_p90_us, c), p->steps);
    if (isfinite(report_overhead_percent(p)))
        fprintf(s->to, "; recording %+.1f %%", report_overhead_percent(p));
    fputs(")\n", s->to);
    put_label(s, "speed");
    fprintf(s->to, "%s samples/s, %s tokens/s\n", report_show_count(p->samples_per_s, a),
            report_show_count(p->tokens_per_s, b));
    put_label(s, "MFU");
    put_bar(s, p->mfu_percent / 100, BAR, BLUE);
    fprintf(s->to, "%s of %s FLOP/s", report_show_percent(p->mfu_percent / 100, a),
            report_show_count(p->peaks.gemm_gflops * 1e9, b));
    if (p->mfu_band) {
        fputs(", band ", s->to);
        report_put_text(s->to, p->mfu_band);
    }
    fputc('\n', s->to);
    put_label(s, "memory");
    if (p->available_bytes > 0)
        put_bar(s, report_ratio(p->rss_peak_bytes, p->available_bytes), BAR, BLUE);
    fprintf(s->to, "%s at the peak of a step, process %s", report_show_bytes(p->peak_bytes, a),
            report_show_bytes(p->rss_peak_bytes, b));
    if (p->available_bytes > 0)
        fprintf(s->to, " of %s", report_show_bytes(p->available_bytes, c));
    fputc('\n', s->to);
}

static void put_part(const struct screen *s, const char *name, double us, double whole, const char *code)
{
    number_text n;
    fputs("  ", s->to);
    put_padded(s->to, name, NAME_COLUMNS);
    put_bar(s, report_ratio(us, whole), BAR, code);
    put_right(s->to, report_show_us(us, n), 9);
    put_right(s->to, report_show_percent(report_ratio(us, whole), n), 9);
}

static void put_split(const struct screen *s, const struct profile *p)
{
    if (!p->n_split)
        return;
    put_heading(s, "Iteration", "");
    for (int i = 0; i < p->n_split; i++) {
        put_part(s, p->split[i].name, p->split[i].us, report_split_us(p), BLUE);
        fputc('\n', s->to);
    }
    if (report_gaps_us(p) > 0)
        put_heading(s, "Not op work", ", within the above");
    for (int i = 0; i < p->n_gaps; i++) {
        if (p->gaps[i].us <= 0)
            continue;
        put_part(s, p->gaps[i].name, p->gaps[i].us, p->recorded_us, YELLOW);
        fputc('\n', s->to);
    }
}

static void put_kinds(const struct screen *s, const struct profile *p)
{
    if (!p->n_kinds)
        return;
    number_text n;
    put_heading(s, "Top operations", "");
    fprintf(s->to, "  %s%-*s%*s%9s%9s%7s%9s%9s%10s%s\n", style(s, DIM), NAME_COLUMNS, "kind", s->color ? BAR + 2 : 0, "",
            "self", "share", "ops", "GFLOP/s", "GB/s", "roofline", style(s, OFF));
    for (int i = 0; i < p->n_kinds && i < TOP_KINDS; i++) {
        const struct profile_kind *k = &p->kinds[i];
        put_part(s, k->kind, k->self_us, p->recorded_us, BLUE);
        fprintf(s->to, "%7d", k->count);
        put_right(s->to, report_show_number(report_gflops(k->flops, k->self_us), n), 9);
        put_right(s->to, report_show_number(report_gb_per_s(k->bytes, k->self_us), n), 9);
        put_right(s->to, report_show_percent(report_ratio(k->floor_us, k->self_us), n), 10);
        fputc('\n', s->to);
    }
    if (p->n_kinds > TOP_KINDS)
        fprintf(s->to, "  %sand %d more kinds%s\n", style(s, DIM), p->n_kinds - TOP_KINDS, style(s, OFF));
}

static const char *severity_style(const struct screen *s, enum severity severity)
{
    return style(s, severity >= SEVERITY_HIGH ? RED : severity == SEVERITY_MEDIUM ? YELLOW : DIM);
}

static void put_finding(const struct screen *s, const struct finding *f)
{
    number_text a, b, c, d;
    fprintf(s->to, "  %s%-11s%s", severity_style(s, f->severity), severity_name(f->severity), style(s, OFF));
    put_padded(s->to, f->rule, NAME_COLUMNS + 2);
    fprintf(s->to, "%s of the step, expected %s (%s to %s), %s effort\n%*s", report_show_percent(f->share, a),
            report_show_speedup(f->speedup, b), report_show_speedup(f->speedup_low, c),
            report_show_speedup(f->speedup_high, d), effort_name(f->effort), INDENT, "");
    put_wrapped(s->to, f->fix);
}

static void put_findings(const struct screen *s, const struct profile *p)
{
    put_heading(s, "Largest bottlenecks", "");
    if (!p->n_findings)
        fputs("  no rule found time to win\n", s->to);
    for (int i = 0; i < p->n_findings && i < TOP_FINDINGS; i++)
        put_finding(s, &p->findings[i]);
    if (p->n_findings > TOP_FINDINGS)
        fprintf(s->to, "  %sand %d more%s\n", style(s, DIM), p->n_findings - TOP_FINDINGS, style(s, OFF));
}

static void put_answer(const struct screen *s, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    put_label(s, label);
    put_wrapped(s->to, text);
}

void report_print_terminal(const struct profile *p, FILE *to, bool color)
{
    const struct screen s = {to, color};
    put_title(&s, p);
    put_numbers(&s, p);
    put_split(&s, p);
    put_kinds(&s, p);
    put_findings(&s, p);
    fputc('\n', to);
    put_answer(&s, "bound by", p->bound_by);
    put_answer(&s, "largest", p->largest);
    put_answer(&s, "do first", p->first_action);
    put_answer(&s, "realistic", p->realistic_gain);
}
