/* One rank's numbers for the comparison of ranks. */
#include "analyze/traced/numbers_int.h"

/* Time that host threads spend in ops and calls of recorded steps, waits for the device left out. */
static double host_ns(const struct view *v)
{
    double ns = 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->step < 0 || e->kind == EVENT_ANNOTATION || v->watches[e->track])
            continue;
        int32_t around = v->parent[i];
        while (around >= 0 && view_event(v, around)->kind == EVENT_ANNOTATION)
            around = v->parent[around];
        if (around < 0)
            ns += (double)e->duration_ns;
        if (view_call_waits(v, i))
            ns -= (double)e->duration_ns;
    }
    return ns > 0 ? ns : 0;
}

struct trace_rank numbers_rank(const struct diagnosis *d, const struct view *v)
{
    const double n = d->n_steps > 0 ? d->n_steps : 1;
    return (struct trace_rank){
        .rank = v->trace->origin.rank, .path = v->trace->origin.path, .steps = d->n_steps, .step_us = d->mean.total_us,
        .kernel_us = d->mean.kernel_us, .comm_us = d->gpu.comm_us / n, .exposed_comm_us = d->gpu.exposed_comm_us / n,
        .idle_us = v->n_device && d->mean.total_us > d->mean.busy_us ? d->mean.total_us - d->mean.busy_us : 0,
        .host_us = us_of(host_ns(v) / n),
    };
}
