/* Sums over rows, made on the way. A gradient of a bias is a sum over the rows of a gradient that another op has just made. */
#ifndef HONE_OPS_CUDA_SUMS_H
#define HONE_OPS_CUDA_SUMS_H

#include "ops/cuda/cuda_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* merge_sums.c: ops that make a value sum it where they can, and one op that sums does so for others. */
void cuda_merge_sums(struct prepared *list);

/* sums.cu: OP_MUL, or du = dy * gelu'(u) where the call has u `beside`; the sums over rows of what it stores go to the call's sums. Rows
 * are of whole packs of 16 bytes. */
void cuda_multiply_and_sum(const struct cuda_call *c);

#ifdef __cplusplus
}
#endif

#endif
