/* data-stall: the step waits for its batch in the data loader. */
#include <math.h>
#include <string.h>

#include "analyze/traced/rules.h"

static const double LEAST = 0.005;          /* of the step */
static const double LONG = 0.3;             /* of the step: it is bound by its data */
static const double LEFT = 0.03;            /* of the wait stays: handing a finished batch over takes time too */
static const double HANDED_NS = 200e3;      /* but no more than so much: it does not depend on how long the batch took */

static const double FIRST_LEFT = 0.25;      /* of the wait for an epoch's first batch, where workers are there */
static const double KEPT = 0.15;            /* of the time in which they are started, to tell those that are there of a new epoch */
static const double MOST_OF = 0.5;          /* of all waiting: it is the cause */

static bool is_next(const struct study *s, int32_t i)
{
    return strstr(view_name(s->v, i), "DataLoader") && strstr(view_name(s->v, i), "__next__");
}

/* ---- epochs for which workers are started anew ---- */

struct restarts {
    int n;
    double all_ns, stop_ns, gap_ns, first_ns;       /* the old ones stop; new ones are started; the first batch comes */
};

/* The step's thread starts them outside of all ops; workers that are kept are given the new order, and make the first batch as well. */
static struct restarts charge_restarts(const struct study *s, struct charge *c)
{
    const struct view *v = s->v;
    struct restarts x = {0};
    struct restart r;
    for (int32_t i = 0; i < v->n_host; i++) {
        if (!study_has(s, i) || !view_restart_at(v, i, &r) || !study_has(s, r.starts))
            continue;
        x.n++;
        x.all_ns += (double)restart_ns(v, &r);
        x.stop_ns += (double)view_event(v, r.stops)->duration_ns;
        x.gap_ns += (double)(view_event(v, r.starts)->start_ns - event_end(view_event(v, r.stops)));
        x.first_ns += (double)view_event(v, r.starts)->duration_ns;
        for (int32_t k = r.starts; k < v->end[r.starts]; k++)
            c->edit.host[k] = (uint8_t)lround(FIRST_LEFT * KEEP_ALL);
    }
    c->edit.added_ns -= per_step(s, (1 - KEPT) * x.gap_ns);
    return x;
}

static void tell_restarts(struct study *s, struct charge *c, const struct restarts *x)
{
    c->involved_ns += per_step(s, x->gap_ns);
    c->finding.cause = "every epoch starts the loader's workers anew: it waits for the old ones to end, for the new ones to start and for their first batch";
    c->finding.evidence = study_text(s, "%s; of %d epochs that start in %s steps each takes %s, of which workers stop for %s, are started for %s, and make the first batch for %s",
                                     c->finding.evidence, x->n, study_number(s, s->replay->n_steps), study_us(s, x->all_ns / x->n), study_us(s, x->stop_ns / x->n),
                                     study_us(s, x->gap_ns / x->n), study_us(s, x->first_ns / x->n));
}

bool trace_rule_data_stall(struct study *s, struct charge *c)
{
    double ns = 0;
    int32_t example = -1;
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (study_has(s, i) && is_next(s, i)) {
            ns += (double)view_event(s->v, i)->duration_ns;
            charge_call(s, c, i, fmin(LEFT, HANDED_NS / fmax((double)view_event(s->v, i)->duration_ns, 1)));
            example = example < 0 ? i : example;
        }
    const struct restarts anew = charge_restarts(s, c);
    const double waits_ns = ns;             /* as recorded */
    ns *= study_loader_left(s);             /* as the headline says it: without the profiler, of a step without it */
    if (example < 0 || per_step(s, ns) < LEAST * s->base_ns)
        return false;
    c->involved_ns = per_step(s, ns);
    charge_batch_copies(s, c);              /* the loader of the fix pins them */
    /* a long stall leaves the rest of the step with cold caches: how fast it would be alone is less sure */
    c->doubt = per_step(s, ns) > LONG * s->base_ns ? 0.45 : 0.25;
    c->finding.where = study_text(s, "%s", view_name(s->v, example));
    c->finding.cause = strstr(view_name(s->v, example), "SingleProcess")
                           ? "batches are made by the training process itself, between steps"
                           : "the loader's workers are not ready when the step wants its batch";
    c->finding.evidence = study_text(s, "%s per step in the loader's __next__", study_us(s, per_step(s, ns)));
    if (anew.n && anew.stop_ns + anew.first_ns > MOST_OF * waits_ns)
        tell_restarts(s, c, &anew);
    return true;
}
