/* Sums over ranks, as the kernels of OP_REDUCE_START and OP_REDUCE_WAIT ask for them. What travels does so in a stream of its own, which
 * leaves the op's stream at START and comes back at WAIT, inside of a graph too: by NCCL from GPU to GPU, or in pinned memory through
 * the group of ranks (backend/comm.h), which sums it as it sums that of CPUs. */
#ifndef HONE_OPS_CUDA_REDUCTIONS_H
#define HONE_OPS_CUDA_REDUCTIONS_H

#include "ops/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Behind the kernels that fill the bucket, and before those that read it. Without other ranks they do nothing. */
void cuda_reduction_start(const struct cuda_call *c);
void cuda_reduction_wait(const struct cuda_call *c);
/* ranks.cu: all of it lies in its place already; nothing is launched. */
bool cuda_reduction_is_free(const struct cuda_call *c);

/* gathers.c, as the kernels of OP_GATHER_START and _WAIT ask for it: behind the updates of this rank's slice, and before whoever reads the weights. Returns where
 * the device reads whether slices of others have arrived; NULL: they are there. */
void cuda_gather_start(const struct cuda_call *c);
const int32_t *cuda_gather_wait(const struct cuda_call *c);
/* Value i of OP_GATHER_WAIT: where what has arrived lies on the host, NULL where nothing does, and which part of it is this rank's own. */
struct cuda_arrival { const float *host; struct slice own; };
struct cuda_arrival cuda_arrival_of(const struct cuda_call *c, int i);

#ifdef __cplusplus
}
#endif

#endif
