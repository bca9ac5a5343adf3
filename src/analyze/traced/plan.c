/* The roadmap: findings in phases by effort, and what each phase gives together with the ones before, replayed. */
#include <math.h>
#include <string.h>

#include "analyze/traced/judge.h"
#include "analyze/traced/rules.h"

enum { MOST_PHASES = 4 };
static const double WORTH = 1.005;

static const char *const titles[MOST_PHASES] = {"Quick wins", "Larger changes", "Deep changes", "Once the step has another bound"};

static int phase_of(const struct finding *f)
{
    if (f->after)
        return MOST_PHASES - 1;
    return f->effort == EFFORT_LOW ? 0 : f->effort == EFFORT_MEDIUM ? 1 : 2;
}

static const struct trace_rule *rule_find(const char *id)
{
    for (const struct trace_rule *r = trace_rule_table; r->id; r++)
        if (!strcmp(r->id, id))
            return r;
    return NULL;
}

/* Adds what a finding's rule takes away; rules that are not replayed take nothing. */
static void add_rule(struct study *s, struct edit *sum, const struct finding *f)
{
    const struct trace_rule *r = rule_find(f->rule);
    if (!r)
        return;
    struct charge c = {0};
    edit_init(&c.edit, s->v);
    r->detect(s, &c);
    if (!c.memory_only && !(c.speedup > 0))
        edit_add(sum, s->v, &c.edit);
    edit_release(&c.edit);
}

/* Together no less than the best alone: of fixes that would hurt each other one is left out. What is won per sample by a larger
 * batch is the same idle time that the others win: the larger of both counts. */
static struct interval at_least(struct interval i, struct interval best)
{
    return bounds_interval((struct interval){fmax(i.usual, best.usual), fmax(i.low, best.low), fmax(i.high, best.high)}, 0);
}

void judge_plan(struct study *s, const struct costs *costs)
{
    struct diagnosis *d = s->d;
    struct edit sum;
    edit_init(&sum, s->v);
    struct interval total = {1, 0, 1};
    d->phases = arena_alloc(&d->arena, MOST_PHASES * sizeof *d->phases);
    for (int p = 0; p < MOST_PHASES; p++) {
        int *list = arena_alloc(&d->arena, (size_t)(d->n_findings + 1) * sizeof *list), n = 0;
        for (int i = 0; i < d->n_findings; i++)
            if (phase_of(&d->findings[i]) == p && (d->findings[i].speedup >= WORTH || d->findings[i].after))
                list[n++] = i;
        if (!n)
            continue;
        for (int i = 0; i < n; i++) {
            const struct finding *f = &d->findings[list[i]];
            add_rule(s, &sum, f);
            total = at_least(total, (struct interval){f->speedup, f->speedup_low, f->speedup_high});
        }
        total = at_least(total, judge_interval(s, costs, &sum, 0.3));
        d->phases[d->n_phases++] = (struct plan_phase){titles[p], list, n, total.usual, total.low, total.high};
    }
    edit_release(&sum);
}
