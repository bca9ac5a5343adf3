/* What to do about an imported trace, in a terminal: the findings in their order, and the roadmap. */
#include <stdlib.h>
#include <string.h>

#include "report/terminal_int.h"

enum { TOP_FINDINGS = 8, FEW_LOW = 4 };

static void put_gain(const struct screen *s, double speedup, double low, double high)
{
    number_text a, b, c;
    fprintf(s->to, "%s (%s to %s)", report_show_speedup(speedup, a), report_show_speedup(low, b), report_show_speedup(high, c));
}

static void put_sentence(const struct screen *s, const char *head, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(s->to, "%*s%s", SCREEN_INDENT, "", head);
    screen_put_wrapped(s, text, SCREEN_INDENT + strlen(head));
}

/* The rest of a fix of several lines is code; the report has it. What is imported says nothing of what to do. */
static void put_first_line(const struct screen *s, const char *head, const char *text)
{
    while (text && !strncmp(text, "import ", 7) && strchr(text, '\n'))
        text = strchr(text, '\n') + 1;
    const size_t n = strcspn(text ? text : "", "\n");
    struct arena arena = {0};
    if (text)
        put_sentence(s, head, arena_printf(&arena, "%.*s%s", (int)n, text, text[n] ? " …" : ""));
    arena_release(&arena);
}

/* One word, and what would make it a better one. */
static void put_confidence(const struct screen *s, const struct finding *f)
{
    struct arena arena = {0};
    if (f->confidence)
        put_sentence(s, "     ", f->raise ? arena_printf(&arena, "Confidence: %s. To be surer: %s", f->confidence, f->raise)
                                          : arena_printf(&arena, "Confidence: %s", f->confidence));
    arena_release(&arena);
}

static void put_finding(const struct screen *s, const struct finding *f)
{
    number_text n;
    fprintf(s->to, "  %s%-*s%s", screen_severity_style(s, f->severity), SCREEN_INDENT - 2, severity_name(f->severity),
            screen_style(s, OFF));
    screen_put_padded(s, f->rule, SCREEN_NAME + 2);
    if (f->speedup == 1 && f->speedup_low == 1 && f->speedup_high == 1) {
        fprintf(s->to, "costs no time, %s effort\n", effort_name(f->effort));
    } else {
        put_gain(s, f->speedup, f->speedup_low, f->speedup_high);
        fprintf(s->to, ", %s of the step, %s effort\n", report_show_percent(f->share, n), effort_name(f->effort));
    }
    put_sentence(s, "at   ", f->where);
    put_sentence(s, "     ", f->cause);
    put_first_line(s, "fix  ", f->fix);
    if (f->after)
        put_sentence(s, "pays after ", f->after);
    put_confidence(s, f);
}

/* Many small things in one line: their names are enough here. */
static void put_low(const struct screen *s, const struct diagnosis *d)
{
    char *text = NULL;
    size_t size = 0;
    FILE *names = open_memstream(&text, &size);
    if (!names)
        return;
    for (int i = 0, n = 0; i < d->n_findings; i++)
        if (d->findings[i].severity == SEVERITY_LOW)
            fprintf(names, "%s%s", n++ ? ", " : "", d->findings[i].rule ? d->findings[i].rule : "");
    if (fclose(names) == 0) {
        fprintf(s->to, "  %s%-*s%s", screen_style(s, DIM), SCREEN_INDENT - 2, "low", screen_style(s, OFF));
        screen_put_wrapped(s, text, SCREEN_INDENT);
    }
    free(text);
}

void screen_put_findings(const struct screen *s, const struct diagnosis *d)
{
    int low = 0, shown = 0;
    for (int i = 0; i < d->n_findings; i++)
        low += d->findings[i].severity == SEVERITY_LOW;
    screen_put_heading(s, "Findings", ", causes first, by expected speed-up (with its interval); `hone explain RULE` says more");
    if (!d->n_findings)
        fputs("  no rule found time to win\n", s->to);
    for (int i = 0; i < d->n_findings && shown < TOP_FINDINGS; i++) {
        if (low > FEW_LOW && d->findings[i].severity == SEVERITY_LOW)
            continue;
        put_finding(s, &d->findings[i]);
        shown++;
    }
    const int hidden = d->n_findings - shown - (low > FEW_LOW ? low : 0);
    if (hidden > 0)
        fprintf(s->to, "  %sand %d more%s\n", screen_style(s, DIM), hidden, screen_style(s, OFF));
    if (low > FEW_LOW)
        put_low(s, d);
}

static void put_phase(const struct screen *s, const struct plan *plan, const struct plan_phase *p, int number)
{
    char *text = NULL;
    size_t size = 0;
    FILE *names = open_memstream(&text, &size);
    if (!names)
        return;
    for (int i = 0; i < p->n; i++)
        if (report_in_phase(plan, p, i))
            fprintf(names, "%s%s", i ? ", " : "", plan->findings[p->findings[i]].rule);
    fprintf(s->to, "  %d  ", number);
    screen_put_padded(s, p->title, SCREEN_NAME + 10);
    put_gain(s, p->speedup, p->low, p->high);
    fprintf(s->to, "\n%*s", SCREEN_INDENT, "");
    screen_put_wrapped(s, fclose(names) == 0 ? text : "", SCREEN_INDENT);
    free(text);
}

void screen_put_roadmap(const struct screen *s, const struct plan *p)
{
    if (!p->n_phases)
        return;
    screen_put_heading(s, "Roadmap", p->phases[0].with_evaluation ? ", speed-up of a phase with all before it, of steps with their evaluation"
                                                                  : ", speed-up of a phase with all before it");
    for (int i = 0; i < p->n_phases; i++)
        put_phase(s, p, &p->phases[i], i + 1);
}
