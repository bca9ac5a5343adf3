/* exposed-comm: collectives that no computation hides. */
#include <math.h>

#include "analyze/traced/rules.h"

static const double LEAST = 0.02;           /* of the step */

bool trace_rule_exposed_comm(struct study *s, struct charge *c)
{
    const struct view *v = s->v;
    const struct trace_gpu *g = &s->d->gpu;
    if (!(g->comm_us > 0) || g->exposed_comm_us < LEAST * g->total_us)
        return false;
    const double hidden = 1 - g->exposed_comm_us / g->comm_us;
    int32_t longest = -1;
    for (int32_t d = 0; d < v->n_device; d++)
        if (view_kernel_kind(v, v->device + d) == KERNEL_COMM) {
            c->edit.device[d] = (float)fmax(hidden, 0.05);      /* what is exposed now goes behind computation */
            if (longest < 0 || view_event(v, v->device + d)->duration_ns > view_event(v, longest)->duration_ns)
                longest = v->device + d;
        }
    c->doubt = 0.5;
    c->finding.where = longest >= 0 ? study_kernel(s, view_name(v, longest)) : "collectives";
    c->finding.cause = "the device waits in collectives while no computation runs beside them";
    c->finding.evidence = study_text(s, "%s of collectives in the trace, %.0f %% of it exposed", study_us(s, g->comm_us * 1e3),
                                     100 * g->exposed_comm_us / g->comm_us);
    return true;
}

/* memory-limit: the allocator holds nearly all there is. */
bool trace_rule_memory_limit(struct study *s, struct charge *c)
{
    const double held = fmax((double)s->v->trace->origin.reserved_bytes, s->d->memory_peak_bytes);
    const double total = s->d->memory_total_bytes;
    if (!(total > 0) || held < 0.92 * total)
        return false;
    c->memory_only = true;
    c->finding.where = "the allocator";
    c->finding.cause = "nearly all memory of the device is taken: the next larger batch or sequence fails, and the allocator "
                       "may give memory back and take it again";
    c->finding.evidence = study_text(s, "%.1f GB of %.1f GB", held / 1e9, total / 1e9);
    return true;
}
