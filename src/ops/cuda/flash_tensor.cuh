/* Attention on tensor cores, as attention.cu sees it: for narrow types, rows of one sample each, heads whose size is a multiple of 8, at most 128. */
#ifndef HONE_OPS_CUDA_FLASH_TENSOR_CUH
#define HONE_OPS_CUDA_FLASH_TENSOR_CUH

#include "ops/cuda/flash.cuh"

/* Scores are compared before they are scaled: scales are above zero. Blocks, and the numbers of a sequence, are counted in int. */
static inline bool flash_tensor_takes(const struct attention &a)
{
    return dtype_is_narrow(a.type) && !a.starts && a.size % 8 == 0 && a.size <= 128 && a.scale > 0 && a.seq * a.heads * a.size <= INT32_MAX &&
           a.batch * a.heads * divide_up(a.seq, 32) < INT32_MAX;
}

/* Of each row: two floats. */
static inline size_t flash_tensor_scratch(int64_t rows) { return (size_t)rows * 2 * sizeof(float); }

/* flash_bf16.cu, flash_f16.cu: __nv_bfloat16 and __half. */
template <typename T> void flash_tensor_forward(const struct cuda_call *c, const struct attention &a);
template <typename T> void flash_tensor_backward(const struct cuda_call *c, const struct attention &a);

#endif
