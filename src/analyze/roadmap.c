/* The roadmap: findings in phases by effort, and what each phase gives together with the ones before; what everything gives in words.
 * A fix wins only time that no other fix has won: of those that overlap the best counts. */
#include <math.h>
#include <stdlib.h>

#include "analyze/rules.h"

enum { ROADMAP_PHASES = 4 };
static const char *const titles[ROADMAP_PHASES] = {"Quick wins", "Larger changes", "Deep changes", "Trades"};
static const double WORTH_ADDING = 0.001;   /* share of the step from which a gain is added to the others */

static int phase_of(const struct finding *f)
{
    if (rule_text_find(f->rule)->trade)
        return ROADMAP_PHASES - 1;
    return f->effort == EFFORT_LOW ? 0 : f->effort == EFFORT_MEDIUM ? 1 : 2;
}

static bool is_worth_adding(const struct scene *s, const struct claim *c) { return c->won_us > WORTH_ADDING * s->step_us; }

/* ---- findings whose time does not overlap, taken together ---- */

enum { USUAL, LOW, HIGH, ENDS };

struct sum {
    double won_us[ENDS];                    /* of the step */
    double outside_us[ENDS];                /* of what is beside it: evaluation */
    double floor_us;                        /* roofline of the ops that none of them touches: no fix goes below it */
    bool per_sample;                        /* steps get longer: what is left of one is not known */
    int taken;
    const char *names;
};

static bool overlaps(const struct claim *c, const bool *claimed, int n_ops)
{
    for (int i = 0; c->ops && i < n_ops; i++)
        if (c->ops[i] && claimed[i])
            return true;
    return false;
}

static void take(struct scene *s, struct sum *sum, const struct claim *c, bool *claimed)
{
    const double won_us[ENDS] = {c->won_us, c->won_low_us, c->won_high_us};
    for (int end = 0; end < ENDS; end++)
        (c->outside ? sum->outside_us : sum->won_us)[end] += won_us[end];
    for (int i = 0; c->ops && i < s->p->n_ops; i++)
        claimed[i] |= c->ops[i];
    sum->per_sample |= c->finding.per_sample;
    sum->names = sum->taken++ ? arena_printf(&s->p->arena, "%s, %s", sum->names, c->finding.rule) : c->finding.rule;
}

/* Of the phases up to one: best first, leaving out what overlaps with one already taken. */
static struct sum combine(struct scene *s, const struct claim *claims, int n, int phase, bool with_broad)
{
    struct sum sum = {0};
    bool *claimed = xcalloc((size_t)s->p->n_ops, sizeof *claimed);
    bool broad = false, specific = false;
    for (int i = 0; i < n; i++) {
        const struct claim *c = &claims[i];
        const bool clash =
            c->broad ? broad || specific || !with_broad : c->ops && (broad || overlaps(c, claimed, s->p->n_ops));
        if (clash || phase_of(&c->finding) > phase || !is_worth_adding(s, c))
            continue;
        broad |= c->broad;
        specific |= c->ops != NULL;
        take(s, &sum, c, claimed);
    }
    for (int i = 0; i < s->p->n_ops; i++)
        sum.floor_us += claimed[i] ? 0 : fmin(scene_floor_us(s, i), scene_self_us(s, i));
    free(claimed);
    return sum;
}

/* What is beside the step, where a finding is about it. All phases are held against steps with that, so that they can be told apart. */
static double beside_us(const struct scene *s, const struct claim *claims, int n)
{
    double us = 0;
    for (int i = 0; i < n; i++)
        us += claims[i].outside && is_worth_adding(s, &claims[i]) ? claims[i].involved_us : 0;
    return us;
}

static double left_us(const struct scene *s, const struct sum *sum, int end)
{
    return fmax(s->step_us - sum->won_us[end], fmax(sum->floor_us, s->step_us / 1000));
}

static double gain_of(const struct scene *s, const struct sum *sum, double beside_us, int end)
{
    return s->step_us > 0 ? fmax((s->step_us + beside_us) / (left_us(s, sum, end) + positive(beside_us - sum->outside_us[end])), 1) : 1;
}

/* ---- phase by phase ---- */

struct total {                              /* up to a phase, of the best sum; never less than up to the one before */
    struct sum sum;
    double beside_us;                       /* evaluation, of which something can be won */
    double speedup, low, high;
};

static void add_sum(const struct scene *s, struct total *t, const struct sum *sum)
{
    const double speedup = gain_of(s, sum, t->beside_us, USUAL);
    if (t->sum.taken && speedup <= t->speedup)
        return;
    t->sum = *sum;
    t->speedup = speedup;
    t->low = gain_of(s, sum, t->beside_us, LOW);
    t->high = fmax(t->high, gain_of(s, sum, t->beside_us, HIGH));       /* who has more fixes to choose from may still take fewer */
}

static int list_phase(const struct scene *s, const struct claim *claims, int n, int phase, int *list)
{
    int listed = 0;
    for (int i = 0; i < n; i++)
        if (phase_of(&claims[i].finding) == phase && is_worth_adding(s, &claims[i]))
            list[listed++] = i;
    return listed;
}

static void add_phase(struct scene *s, const struct claim *claims, int n, int phase, struct total *t)
{
    struct profile *p = s->p;
    int *list = arena_alloc(&p->arena, (size_t)(n + 1) * sizeof *list);
    const int listed = list_phase(s, claims, n, phase, list);
    if (!listed)
        return;
    const struct sum narrow = combine(s, claims, n, phase, false), wide = combine(s, claims, n, phase, true);
    add_sum(s, t, &narrow);
    add_sum(s, t, &wide);
    p->phases[p->n_phases++] = (struct plan_phase){titles[phase], list, listed, t->speedup, t->low, t->high, t->sum.per_sample ? 0 : left_us(s, &t->sum, USUAL), t->beside_us > 0};
}

/* ---- in words ---- */

static double program_floor_us(const struct scene *s)
{
    double sum = 0;
    for (int i = 0; i < s->p->n_ops; i++)
        sum += scene_floor_us(s, i);
    return sum;
}

static const char *gain_words(const struct scene *s, const struct total *t)
{
    struct arena *a = &s->p->arena;
    const double floor_us = program_floor_us(s);
    const char *roof =
        floor_us > 0 ? arena_printf(a, "; the roofline of the program as it stands is %s", text_us(a, floor_us)) : "";
    if (t->speedup < WORTH_DOING)
        return arena_printf(a, "Less than 2 %%: %.2f× by what was found%s", t->speedup, roof);
    const char *step = t->sum.per_sample ? " in samples per second" : arena_printf(a, ", the step from %s to %s", scene_time(s), text_us(a, left_us(s, &t->sum, USUAL)));
    return arena_printf(a, "%.2f× (%.2f× to %.2f×)%s%s, by %s%s", t->speedup, t->low, t->high,
                        t->beside_us > 0 ? " of steps with their evaluation" : "", step, t->sum.names, roof);
}

void roadmap_fill(struct scene *s, const struct claim *claims, int n)
{
    struct total t = {.beside_us = beside_us(s, claims, n), .speedup = 1, .low = 1, .high = 1};
    s->p->phases = arena_alloc(&s->p->arena, ROADMAP_PHASES * sizeof *s->p->phases);
    s->p->n_phases = 0;
    for (int phase = 0; phase < ROADMAP_PHASES; phase++)
        add_phase(s, claims, n, phase, &t);
    s->p->realistic_gain = gain_words(s, &t);
}
