/* Attention on tensor cores for numbers of type f16. */
#include "ops/cuda/flash_mma_launch.cuh"

template void flash_tensor_forward<__half>(const struct cuda_call *c, const struct attention &a);
template void flash_tensor_backward<__half>(const struct cuda_call *c, const struct attention &a);
