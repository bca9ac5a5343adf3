/* data-stall: the step waits for its batch in the data loader. */
#include <math.h>
#include <string.h>

#include "analyze/traced/rules.h"

static const double LEAST = 0.005;          /* of the step */
static const double LONG = 0.3;             /* of the step: it is bound by its data */
static const double LEFT = 0.03;            /* of the wait stays: handing a finished batch over takes time too */
static const double HANDED_NS = 200e3;      /* but no more than so much: it does not depend on how long the batch took */

static bool is_next(const struct study *s, int32_t i)
{
    return strstr(view_name(s->v, i), "DataLoader") && strstr(view_name(s->v, i), "__next__");
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
    return true;
}
