/* Attention by cuDNN, where it is there, does what the op asks for and is faster than the own kernel. */
#ifndef HONE_OPS_CUDA_CUDNN_H
#define HONE_OPS_CUDA_CUDNN_H

#include "ops/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of scratch that it needs; 0: it is not done by cuDNN. The plan is made here, before anything is launched. */
size_t cudnn_attention_scratch(const struct program *p, const struct op *op);
bool cudnn_takes(const struct program *p, const struct op *op);        /* any op: it has a plan */
/* Puts an op of attention into the stream; false: it was not, and the own kernel does it. */
bool cudnn_attention(const struct cuda_call *c);

/* cudnn_stats.cu: `sums` of n rows whose `largest` is the logarithm of the whole sum, and that logarithm of any rows. */
void cudnn_fill_ones(float *to, int64_t n, cudaStream_t stream);
void cudnn_log_sums(float *to, const float *largest, const float *sums, int64_t n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
