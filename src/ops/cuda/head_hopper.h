/* The loss of a linear head on GPUs of compute capability 9.0: logits are made twice, and never stored. */
#ifndef HONE_OPS_CUDA_HEAD_HOPPER_H
#define HONE_OPS_CUDA_HEAD_HOPPER_H

#include "ops/cuda/kernel.h"

/* A chunk of rows of x (rows, depth), with w (vocab, depth): both narrow, of one type. */
struct head_sweep {
    const void *x, *w;
    const int32_t *targets;         /* below 0: padding */
    const float *count, *scale;     /* known targets of all rows; NULL: 1 */
    float *losses, *shifts;         /* (rows): the first sweep writes both; 2^(z log2(e) - shift) is a weight */
    void *kept;                     /* (rows, depth): x, padding as zeros. The first sweep writes it; NULL: no gradients */
    void *dz, *dx;                  /* (rows, stride), (rows, depth): the second sweep's */
    int64_t rows, vocab, depth, stride;
    bool f16, wide_dx;              /* dx is f32 */
};

bool cuda_head_sweeps(const struct head_sweep *h);      /* whether it can be done so, and pays */
void cuda_head_first(const struct cuda_call *c, const struct head_sweep *h);
void cuda_head_second(const struct cuda_call *c, const struct head_sweep *h);

#endif
