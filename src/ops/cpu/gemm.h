/* A serial single-precision matrix product: by BLAS, or by a kernel of our own for sizes where BLAS spends more on set-up
 * and packing than on the work. */
#ifndef HONE_OPS_CPU_GEMM_H
#define HONE_OPS_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

struct gemm {
    int64_t m, n, k;
    const float *a;             /* element (i, p) at a[i * a_row + p * a_col]; one of the strides is 1 */
    int64_t a_row, a_col;
    const float *b;             /* (k, n) with row stride ldb; transposed: (n, k) with row stride ldb */
    int64_t ldb;
    bool b_transposed;
    float *c;                   /* (m, n) with row stride ldc */
    int64_t ldc;
    float scale;
    bool accumulate;            /* c += scale a b, else c = scale a b */
};

typedef void gemm_fn(const struct gemm *g);

/* The one for the instruction set in use. */
gemm_fn *cpu_gemm(void);

#endif
