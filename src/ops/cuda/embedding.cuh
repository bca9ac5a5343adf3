/* The two ways to the gradient of an embedding. */
#ifndef HONE_OPS_CUDA_EMBEDDING_CUH
#define HONE_OPS_CUDA_EMBEDDING_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/row_parts.cuh"

enum { FEW_IDS = 256 };             /* up to so many, going through all of them in every block takes less than sorting */

/* embedding_grad.cu */
void launch_sorted_embed_grad(const struct cuda_call *c);
size_t sorted_embed_grad_scratch(const struct program *p, const struct op *op);

#endif
