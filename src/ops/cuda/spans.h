/* From when kernels ran to when ops did. */
#ifndef HONE_OPS_CUDA_SPANS_H
#define HONE_OPS_CUDA_SPANS_H

#include "backend/backend.h"
#include "ops/cuda/cupti.h"

/* Times of ops [first, end) of a run that began at `start`: an op begins with its first kernel and lasts as long as its part of the time,
 * and one without a kernel takes none. Spans are sorted by their start; `part` (n) must be zero, and gets what each of them has. */
void spans_lay_out(const struct kernel_span *s, int n, int first, int end, struct lane_time *times, int64_t start, double *part);
/* The same part of [start, stop) for each of n ops, where nothing better is known. */
void spans_spread(struct lane_time *times, int n, int64_t start, int64_t stop);

#endif
