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

#ifdef __cplusplus
}
#endif

#endif
