/* What to try next: every move proposes, and the one that is expected to win most is taken. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "prove/tune_int.h"

static const double WORTH = 1.02;           /* predictions below are not tried alone */
static const double PROBE = 0.95;           /* a pass that is expected to win less than so is switched off to see, when time is left */

static struct tune_stage stage_of(const struct move *m, const struct proposal *p)
{
    struct tune_stage s = {.answers = m->answers, .what = m->what, .effort = m->effort, .phase = move_phase(m), .places = p->places,
                           .around = m->gain == GAIN_AROUND_STEP,
                           .predicted = p->predicted, .measured = NAN, .low = NAN, .high = NAN};
    snprintf(s.pass, sizeof s.pass, "%s", m->name);
    snprintf(s.change, sizeof s.change, "%s", p->change);
    return s;
}

/* Passes that change nothing but speed and memory and are too small to be worth a try alone are tried together: small gains add up. */
static void join(struct tune_stage *all, const struct tune_stage *s)
{
    const size_t n = strlen(all->pass), m = strlen(all->change);
    snprintf(all->pass + n, sizeof all->pass - n, "%s%s", n ? "+" : "", s->pass);
    snprintf(all->change + m, sizeof all->change - m, "%s%s", m ? " + " : "", m ? s->pass : s->change);
    all->answers = n ? "several" : s->answers;
    all->what = n ? "the rest of the passes together, each of which wins little" : s->what;
    all->places += s->places;
    all->predicted *= s->predicted;
    all->effort = s->effort > all->effort ? s->effort : all->effort;
    all->phase = s->phase > all->phase ? s->phase : all->phase;
}

static void add_idea(struct tune_result *r, const struct move *m, const struct proposal *p)
{
    if (r->n_roadmap == TUNE_IDEAS || (m->off && p->predicted < WORTH))
        return;
    struct tune_idea *d = &r->roadmap[r->n_roadmap++];
    *d = (struct tune_idea){.what = m->what, .answers = m->answers, .effort = m->effort, .places = p->places,
                            .phase = move_phase(m), .predicted = p->predicted};
    snprintf(d->name, sizeof d->name, "%s", m->name);
}

static int by_phase_and_gain(const void *a, const void *b)
{
    const struct tune_idea *x = a, *y = b;
    if (x->phase != y->phase)
        return x->phase - y->phase;
    return (x->predicted < y->predicted) - (x->predicted > y->predicted);
}

/* What gives something for its speed comes after all that does not. */
static bool is_better(const struct tune_stage *a, const struct tune_stage *b)
{
    if ((a->phase == PHASE_TRADE) != (b->phase == PHASE_TRADE))
        return b->phase == PHASE_TRADE;
    return a->predicted > b->predicted;
}

/* What may be tried next, by how it was found. */
struct choices {
    struct choice best;                     /* alone worth a try */
    struct choice rest;                     /* passes that win little each */
    struct choice probe;                    /* a pass to be switched off, though nothing is expected of it */
};

/* Not inlined: its frame holds a config, as its caller's does. */
__attribute__((noinline))
static void consider(struct choices *c, int i, const struct move *m, const struct proposal *p)
{
    const struct choice one = {(uint64_t)1 << i, stage_of(m, p), p->next, m->gain, m->grows};
    if (p->predicted >= WORTH) {
        if (!c->best.moves || is_better(&one.stage, &c->best.stage))
            c->best = one;
    } else if (m->off && p->predicted >= PROBE && (!c->probe.moves || p->predicted > c->probe.stage.predicted))
        c->probe = one;
    if (m->pass >= 0 && !m->off && !m->trade) {
        join(&c->rest.stage, &one.stage);
        c->rest.moves |= one.moves;
        c->rest.next = config_with_passes(&c->rest.next, (pass_set)1 << m->pass);
    }
}

/* A move that changes nothing here may after another one, so it stays untried. What tune has proved is not switched off again. */
static enum status look_at_moves(struct tuner *t, struct choices *c, struct error *err)
{
    const bool first = t->tried == 0;
    struct move m;
    for (int i = 0; move_get(i, &m); i++) {
        struct proposal p;
        if ((t->tried >> i & 1) || (m.off && !config_pass_is_on(&t->r->base, m.pass)))
            continue;
        const enum status st = m.propose(&p, t->situation, m.pass, err);
        if (st != OK)
            return st;
        if (!p.places)
            continue;
        config_give_positions(&p.next);         /* a profile has rows of one length, the run perhaps of several */
        if (first)
            add_idea(t->r, &m, &p);
        consider(c, i, &m, &p);
    }
    if (first)
        qsort(t->r->roadmap, (size_t)t->r->n_roadmap, sizeof *t->r->roadmap, by_phase_and_gain);
    return OK;
}

enum status tune_choose(struct tuner *t, struct choice *best, bool in_time, struct error *err)
{
    struct choices *c = xcalloc(1, sizeof *c);      /* three configs are too much for the stack */
    c->rest = (struct choice){.stage = {.predicted = 1, .measured = NAN, .low = NAN, .high = NAN}, .next = t->now};
    const enum status st = look_at_moves(t, c, err);
    *best = c->best;
    if (c->rest.moves && (!best->moves || best->stage.phase == PHASE_TRADE))
        *best = c->rest;
    if (!best->moves && in_time)
        *best = c->probe;
    else if (!best->moves && c->probe.moves)
        t->r->out_of_time = t->o->budget_s > 0;
    free(c);
    return st;
}
