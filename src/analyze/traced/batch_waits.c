/* What a larger batch makes longer besides ops and kernels: its loader, and Python that prepares samples. The same on a device and on a CPU. */
#include <math.h>

#include "analyze/traced/study.h"

static const double ONE_PLACE = 0.1;        /* of the step: one stretch of Python so long is work on the batch, as far as a trace can tell */
static const double HANDED_NS = 200e3;      /* handing a finished batch over takes so long at most, whatever its size */
static const double BOUND = 0.3;            /* of the step, from which on waiting for data or for other ranks bounds it */

bool study_is_bound_by(const struct study *s, double ns) { return ns > BOUND * s->base_ns; }

static double loader_own_ns(const struct study *s)
{
    const struct replay *r = s->replay;
    double ns = 0;
    for (int32_t k = 0; k < r->n_items; k++)
        ns += r->items[k].loader ? replay_own_ns(r, &r->items[k]) : 0;
    return ns;
}

double study_loader_ns(const struct study *s) { return fmax(per_step(s, loader_own_ns(s)) - HANDED_NS, 0); }

double study_loader_left(const struct study *s)
{
    const struct replay *r = s->replay;
    double recorded = 0;
    for (int32_t k = 0; k < r->n_items; k++)
        recorded += r->items[k].loader ? (double)r->items[k].ns : 0;
    return recorded > 0 ? loader_own_ns(s) / recorded : 1;
}

/* What they do is not in the trace; preparing samples grows with them, updating parameters does not. */
double study_python_ns(const struct study *s)
{
    const struct replay *r = s->replay;
    const double least = ONE_PLACE * fmax(s->recorded_ns, s->base_ns);      /* stretches are as recorded */
    double ns = 0;
    for (int32_t k = 0; k < r->n_items; k++) {
        const struct replay_item *item = &r->items[k];
        const bool updates = item->event >= 0 && study_annotation(s, item->event, "Optimizer") >= 0;
        ns += item->owner < 0 && !updates && replay_stretch_ns(item) > least ? replay_stretch_ns(item) : 0;
    }
    return per_step(s, ns);
}
