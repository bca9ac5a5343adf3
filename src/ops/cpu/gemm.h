/* A serial single-precision matrix product: by BLAS, or by a kernel of our own. */
#ifndef HONE_OPS_CPU_GEMM_H
#define HONE_OPS_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "program/program.h"

enum gemm_kernel { GEMM_OWN, GEMM_THIRDS, GEMM_BLAS, GEMM_KERNELS };     /* thirds: by AMX, where there is one and it is worth it, else our own */

struct gemm {
    int64_t m, n, k;
    const float *a;             /* element (i, p) at a[i * a_row + p * a_col]; one of the strides is 1 */
    int64_t a_row, a_col;
    const float *b;             /* (k, n) with row stride ldb; transposed: (n, k) with row stride ldb */
    int64_t ldb;
    bool b_transposed;
    const uint16_t *a_bf16, *b_bf16;    /* not NULL: the operand is there, in bf16, instead of in a or b; where `bf16` is set */
    float *c;                   /* (m, n) with row stride ldc */
    int64_t ldc;
    float scale;
    const float *bias;          /* (n), added to every row; NULL: none */
    bool accumulate;            /* c += scale a b + bias, else c = scale a b + bias */
    enum gemm_kernel kernel;
    bool bf16;                  /* a and b are rounded to bf16 first; `kernel` counts only where the CPU does not multiply bf16 */
};

extern const char *const gemm_variants[];       /* names of enum gemm_kernel, for kernels whose variants are these */
double gemm_below(int variant);                 /* of our own's time, for a variant to be taken; 0 where this machine has it not (kernel.h) */

typedef void gemm_fn(const struct gemm *g);

/* Whether all sizes of an op can be counted in int, as CBLAS does. */
bool gemm_fits(const struct program *p, const struct op *op);

/* Those for the instruction set in use. */
gemm_fn *cpu_gemm(void);

/* Multiply-adds in registers, so many rounds; returns the FLOPs of them. */
typedef double registers_fn(int64_t rounds);
registers_fn *cpu_registers(void);
registers_fn *cpu_registers_bf16(void);         /* of bf16 with f32 sums; NULL: the CPU has no such instruction that is faster than f32 */

#endif
