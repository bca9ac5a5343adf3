/* What to do, in report.md: the findings as a table, by impact and effort, and the first ones in detail; the roadmap; a list to check off. */
#include "core/arena.h"
#include "report/report_int.h"

enum { TOP_FINDINGS = 12, TOP_DETAILS = 5, TOP_CHECKS = 8, FROM_MATRIX = 5, CODE_LINES = 14, NAME_COLUMNS = 120, CELL_COLUMNS = 60, SENTENCE_COLUMNS = 700 };

/* ---- findings ---- */

static void put_gain(FILE *to, double speedup, double low, double high)
{
    number_text a, b, c;
    fprintf(to, "%s (%s–%s)", report_show_speedup(speedup, a), report_show_speedup(low, b), report_show_speedup(high, c));
}

static void put_row(FILE *to, const struct finding *f)
{
    number_text n;
    fprintf(to, "| %s | ", severity_name(f->severity));
    report_put_markdown_cut(to, f->rule, NAME_COLUMNS);
    fprintf(to, " | %s%s | ", report_show_percent(f->share, n), f->with_evaluation ? " of steps with their evaluation" : "");
    put_gain(to, f->speedup, f->speedup_low, f->speedup_high);
    fprintf(to, " | %s | ", effort_name(f->effort));
    report_put_markdown_cut(to, f->where, NAME_COLUMNS);
    fputs(" |\n", to);
}

static void put_sentence(FILE *to, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(to, " *%s* ", label);
    report_put_markdown_cut(to, text, SENTENCE_COLUMNS);
}

static void put_detail(FILE *to, const struct finding *f, int number, bool fix_is_code)
{
    fprintf(to, "%d. **", number);
    report_put_markdown_cut(to, f->rule, NAME_COLUMNS);
    fputs("**", to);
    put_sentence(to, "Pays after:", f->after);
    put_sentence(to, "Cause:", f->cause);
    if (!fix_is_code)
        put_sentence(to, "Fix:", f->fix);
    put_sentence(to, "Evidence:", f->evidence);
    put_sentence(to, "Confidence:", f->confidence);
    put_sentence(to, "To be surer:", f->raise);
    fputc('\n', to);
    if (!fix_is_code || !f->fix || !*f->fix)
        return;
    fputc('\n', to);
    report_markdown_code(to, f->fix, 3, CODE_LINES);
    fputc('\n', to);
}

/* ---- impact against effort: from five findings on, below which the table says it as well ---- */

static void put_cell(FILE *to, const struct plan *p, enum severity severity, enum effort effort)
{
    int shown = 0;
    for (int i = 0; i < p->n && i < TOP_FINDINGS; i++)
        if (p->findings[i].severity == severity && p->findings[i].effort == effort) {
            fputs(shown++ ? ", " : " ", to);
            report_put_markdown_cut(to, p->findings[i].rule, CELL_COLUMNS);
        }
    fputs(" |", to);
}

static void put_matrix(FILE *to, const struct plan *p)
{
    if (p->n < FROM_MATRIX)
        return;
    fputs("\n| impact | low effort | medium effort | high effort |\n|---|---|---|---|\n", to);
    for (int s = SEVERITY_CRITICAL; s >= SEVERITY_LOW; s--) {
        if (!report_count(p, (enum severity)s))
            continue;
        fprintf(to, "| %s |", severity_name((enum severity)s));
        for (int e = EFFORT_LOW; e <= EFFORT_HIGH; e++)
            put_cell(to, p, (enum severity)s, (enum effort)e);
        fputc('\n', to);
    }
}

static void put_findings(FILE *to, const struct plan *p)
{
    fputs("\n## Findings\n\n", to);
    if (!p->n) {
        fputs("No rule found time to win.\n", to);
        return;
    }
    fputs("| severity | rule | share | expected | effort | where |\n|---|---|---:|---:|---|---|\n", to);
    for (int i = 0; i < p->n && i < TOP_FINDINGS; i++)
        put_row(to, &p->findings[i]);
    put_matrix(to, p);
    fputc('\n', to);
    for (int i = 0; i < p->n && i < TOP_DETAILS; i++)
        put_detail(to, &p->findings[i], i + 1, p->trace);
    if (p->n > TOP_DETAILS)
        fprintf(to, "\nAll %d findings in full are in report.json.\n", p->n);
}

/* ---- the roadmap ---- */

static void put_rules(FILE *to, const struct plan *p, const struct plan_phase *phase)
{
    int shown = 0;
    for (int i = 0; i < phase->n; i++)
        if (report_in_phase(p, phase, i)) {
            fputs(shown++ ? ", " : "", to);
            report_put_markdown_cut(to, p->findings[phase->findings[i]].rule, CELL_COLUMNS);
        }
}

static void put_roadmap(FILE *to, const struct plan *p)
{
    if (!p->n_phases)
        return;
    fprintf(to, "\n## Roadmap\n\nThe easy ones first; of fixes that win the same time one counts.%s\n\n| phase | rules | speed-up so far |\n|---|---|---:|\n",
            p->phases[0].with_evaluation ? " Speed-ups are of steps with their evaluation." : "");
    for (int i = 0; i < p->n_phases; i++) {
        fprintf(to, "| %d. ", i + 1);
        report_put_markdown_cut(to, p->phases[i].title, CELL_COLUMNS);
        fputs(" | ", to);
        put_rules(to, p, &p->phases[i]);
        fputs(" | ", to);
        put_gain(to, p->phases[i].speedup, p->phases[i].low, p->phases[i].high);
        fputs(" |\n", to);
    }
}

/* ---- the list to check off ---- */

static void put_check(FILE *to, const char *text)
{
    fputs("- [ ] ", to);
    report_put_markdown_cut(to, text, SENTENCE_COLUMNS);
    fputc('\n', to);
}

static void put_checks(FILE *to, const struct plan *p)
{
    struct arena a = {0};
    int n = 0;
    for (int i = 0; i < p->n && n < TOP_CHECKS; i++)
        if (report_is_checked(&p->findings[i])) {
            fputs(n++ ? "" : "\n## Check list\n\n", to);
            put_check(to, report_check(&a, &p->findings[i]));
        }
    arena_release(&a);
    for (const char *const *last = report_last_checks(p); n && *last; last++)
        put_check(to, *last);
}

void report_markdown_plan(FILE *to, const struct plan *p)
{
    put_findings(to, p);
    put_roadmap(to, p);
    put_checks(to, p);
}
