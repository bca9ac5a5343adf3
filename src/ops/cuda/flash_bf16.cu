/* Attention on tensor cores for numbers of type bf16. */
#include "ops/cuda/flash_mma_launch.cuh"

template void flash_tensor_forward<__nv_bfloat16>(const struct cuda_call *c, const struct attention &a);
template void flash_tensor_backward<__nv_bfloat16>(const struct cuda_call *c, const struct attention &a);
