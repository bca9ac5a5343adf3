/* The numbers of a diagnosis that need no judgement. Each fills its part of the diagnosis, in its arena.
 *
 * What counts where: steps, ops, launches and the time by kind count events of recorded steps (all, when there are no
 * marks); the device's timeline counts device events whose launch is in the trace, in a step or not; the list of kernels
 * counts all kernels, with op "" where the launch is not in the trace. */
#ifndef HONE_ANALYZE_TRACED_NUMBERS_H
#define HONE_ANALYZE_TRACED_NUMBERS_H

#include "analyze/diagnosis.h"
#include "analyze/traced/view.h"

void numbers_steps(struct diagnosis *d, const struct view *v);      /* steps, mean, timeline_step, no_step_marks */
void numbers_gpu(struct diagnosis *d, const struct view *v);        /* gpu */
void numbers_kernels(struct diagnosis *d, const struct view *v);    /* kernels, kinds, mean_occupancy */
void numbers_names(struct diagnosis *d);                             /* of its kernels: what is shown of their names */
void numbers_ops(struct diagnosis *d, const struct view *v);        /* ops */
void numbers_launches(struct diagnosis *d, const struct view *v);   /* launches, queue */
void numbers_memory(struct diagnosis *d, const struct view *v);     /* memory */
/* One entry of d->ranks for this view, whose own numbers d holds. */
struct trace_rank numbers_rank(const struct diagnosis *d, const struct view *v);

#endif
