/* The two ways to the gradient of an embedding. */
#ifndef HONE_OPS_CUDA_EMBEDDING_CUH
#define HONE_OPS_CUDA_EMBEDDING_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/row_parts.cuh"

/* Up to so many ids and rows of the table, a block for every row, which looks at all ids, takes less than sorting. */
enum { FEW_IDS = 2048, FEW_ROWS = 4096, FEW_LOOKS = 1 << 21 };
static inline bool are_many_ids(int64_t n, int64_t vocab) { return n > FEW_IDS || vocab > FEW_ROWS || n * vocab > FEW_LOOKS; }

/* embedding_grad.cu */
void launch_sorted_embed_grad(const struct cuda_call *c);
size_t sorted_embed_grad_scratch(const struct program *p, const struct op *op);

#endif
