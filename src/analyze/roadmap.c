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

struct sum {
    double base_us, won_us, low_us, high_us;
    double outside_us;                      /* of won_us, what is not in the step: evaluation */
    double floor_us;                        /* roofline of the ops that none of them touches: no fix goes below it */
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
    sum->base_us += c->outside ? c->involved_us : 0;
    sum->won_us += c->won_us;
    sum->outside_us += c->outside ? c->won_us : 0;
    sum->low_us += c->won_low_us;
    sum->high_us += c->won_high_us;
    for (int i = 0; c->ops && i < s->p->n_ops; i++)
        claimed[i] |= c->ops[i];
    sum->names = sum->taken++ ? arena_printf(&s->p->arena, "%s, %s", sum->names, c->finding.rule) : c->finding.rule;
}

/* Of the phases up to one: best first, leaving out what overlaps with one already taken. */
static struct sum combine(struct scene *s, const struct claim *claims, int n, int phase, bool with_broad)
{
    struct sum sum = {.base_us = s->step_us};
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

static double gain_of(const struct sum *sum, double won_us)
{
    const double least = fmax(sum->floor_us, sum->base_us / 1000);
    return sum->base_us > 0 ? fmax(sum->base_us / fmax(sum->base_us - won_us, least), 1) : 1;
}

/* ---- phase by phase ---- */

struct total {                              /* up to a phase: never less than up to the one before */
    struct sum sum;
    double speedup, low, high;
};

static void add_sum(struct total *t, const struct sum *sum)
{
    const double speedup = gain_of(sum, sum->won_us);
    if (!t->sum.taken || speedup > t->speedup)
        t->sum = *sum;
    t->speedup = fmax(t->speedup, speedup);
    t->low = fmax(t->low, gain_of(sum, sum->low_us));
    t->high = fmax(t->high, gain_of(sum, sum->high_us));
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
    add_sum(t, &narrow);
    add_sum(t, &wide);
    p->phases[p->n_phases++] = (struct plan_phase){titles[phase], list, listed, t->speedup, t->low, t->high};
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
    const double left_us = fmax(s->step_us - (t->sum.won_us - t->sum.outside_us), fmax(t->sum.floor_us, s->step_us / 1000));
    const double shown = s->step_us > 0 ? s->shown_us / s->step_us : 1;
    return arena_printf(a, "%.2f× (%.2f× to %.2f×)%s, the step from %s to %s, by %s%s", t->speedup, t->low, t->high,
                        t->sum.outside_us > 0 ? " of steps with their evaluation" : "", text_us(a, s->shown_us),
                        text_us(a, left_us * shown), t->sum.names, roof);
}

void roadmap_fill(struct scene *s, const struct claim *claims, int n)
{
    struct total t = {.speedup = 1, .low = 1, .high = 1};
    s->p->phases = arena_alloc(&s->p->arena, ROADMAP_PHASES * sizeof *s->p->phases);
    s->p->n_phases = 0;
    for (int phase = 0; phase < ROADMAP_PHASES; phase++)
        add_phase(s, claims, n, phase, &t);
    s->p->realistic_gain = gain_words(s, &t);
}
