/* Matrix products by cuBLAS: row-major operands in f32, or rounded to bf16 in scratch; sums and results in f32. */
#ifndef HONE_OPS_CUDA_PRODUCTS_CUH
#define HONE_OPS_CUDA_PRODUCTS_CUH

#include "ops/cuda/device.cuh"

struct operand {
    const void *at;                 /* f32, or bf16 */
    bool trans, bf16;
};

/* y (m, n) = op(a) (m, k) op(b) (k, n) + beta y. Both operands are of one type. */
void cuda_multiply(const struct cuda_call *c, float *y, struct operand a, struct operand b, int64_t m, int64_t n, int64_t k, float beta);

/* x (n) as an operand: itself, or rounded to bf16 into `room` of operand_room bytes. */
struct operand cuda_operand(const struct cuda_call *c, const float *x, int64_t n, bool trans, bool bf16, void *room);
static inline size_t operand_room(int64_t n, bool bf16) { return bf16 ? aligned((size_t)n * 2) : 0; }

#endif
