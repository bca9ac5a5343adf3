/* Findings that a pass answers: what it would change, where, and what it is predicted to win. */
#include <math.h>
#include <stdlib.h>

#include "analyze/rules.h"
#include "passes/optimize.h"

static const double WORTH_A_WORD = 1.0005;  /* expected speed-up */
static const double WORTH_MEMORY = 0.01;    /* of the planned memory */

static bool is_worth_it(const struct scene *s, const struct remedy *r)
{
    return r->speedup > WORTH_A_WORD || r->saved_bytes > WORTH_MEMORY * fmax(positive(s->p->planned_bytes), 1);
}

bool remedy_does_something(const struct scene *s, const struct remedy *r)
{
    bool changes = is_worth_it(s, r);
    for (int i = 0; i < s->p->n_ops && !changes; i++)
        changes = r->ops && r->ops[i];
    return changes && r->places > 0 && r->speedup > 0;
}

/* In the words of the rule's text, for faults that only the pass recognises. */
static void describe(const struct scene *s, struct claim *c)
{
    const struct remedy *r = c->remedy;
    struct arena *a = &s->p->arena;
    for (int i = 0; i < s->p->n_ops; i++)
        if (r->ops && r->ops[i] && scene_runs(s, i) > 0)
            claim_op(s, c, i);
    c->finding.where = c->n_ops ? claim_where(s, c) : arena_printf(a, "between the %d ops of the step", s->p->n_ops);
    c->finding.cause = rule_text_find(r->rule)->summary;
    const char *memory = r->saved_bytes > 0 ? arena_printf(a, "; it plans %s less memory", text_bytes(a, r->saved_bytes)) : "";
    c->finding.evidence =
        c->n_ops ? arena_printf(a, "the pass changes %d place%s: %d op%s that take%s %s of the %s%s", r->places,
                                r->places == 1 ? "" : "s", c->n_ops, c->n_ops == 1 ? "" : "s", c->n_ops == 1 ? "s" : "",
                                text_us(a, c->involved_us), scene_step(s), memory)
                 : arena_printf(a, "the pass changes %d place%s%s", r->places, r->places == 1 ? "" : "s", memory);
}

_Static_assert((int)PASS_LOW == EFFORT_LOW && (int)PASS_MEDIUM == EFFORT_MEDIUM && (int)PASS_HIGH == EFFORT_HIGH, "a pass's effort is a finding's");

/* The gain and the effort are the pass's, as hone tune has them; the interval also holds what the rule expects, and new ops at their roofline. */
static void prescribe(const struct scene *s, struct claim *c)
{
    const struct remedy *r = c->remedy;
    struct finding *f = &c->finding;
    const int pass = pass_find(r->pass);
    f->pass = r->pass;
    if (pass >= 0)
        f->effort = (enum effort)pass_table[pass].effort;
    f->fix = arena_printf(&s->p->arena, "%s: %s", r->change, r->what);
    f->speedup = r->speedup;
    f->speedup_low = fmin(f->speedup_low, r->speedup);
    f->speedup_high = fmax(f->speedup_high, r->speedup);
    f->severity = severity_of(f->speedup);
    c->won_us = positive(c->base_us * (1 - 1 / f->speedup));
    c->won_low_us = positive(c->base_us * (1 - 1 / fmax(f->speedup_low, 1)));
    c->won_high_us = positive(c->base_us * (1 - 1 / f->speedup_high));
    c->involved_us = fmax(c->involved_us, c->won_us);
    f->share = c->base_us > 0 ? c->involved_us / c->base_us : 0;
}

bool remedy_claim(const struct scene *s, struct claim *c, bool fired)
{
    const struct remedy *r = c->remedy;
    if (!fired && !is_worth_it(s, r))
        return false;
    if (!fired) {
        free(c->ops);                       /* what the rule looked at and found all right */
        *c = (struct claim){.base_us = c->base_us, .first_op = -1, .remedy = r};
        describe(s, c);
        c->won_high_us = c->base_us * (1 - 1 / fmax(r->speedup_high, 1));
    }
    claim_settle(c, r->rule);
    prescribe(s, c);
    return true;
}
