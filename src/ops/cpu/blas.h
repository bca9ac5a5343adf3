/* The BLAS library for matrix products: loaded at run time by its absolute path, checked, and done without where there is none or
 * where it is wrong. Everything here is decided once per process, before the first product. */
#ifndef HONE_OPS_CPU_BLAS_H
#define HONE_OPS_CPU_BLAS_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/gemm.h"

/* cblas_sgemm: its enums are ints. */
typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);
enum { BLAS_ROW_MAJOR = 101, BLAS_PLAIN = 111, BLAS_TRANSPOSED = 112 };

/* The library's product; NULL: our own kernels do all of them. */
sgemm_fn *cpu_blas(void);
/* CANNOT: there is a library, and the memory to load it is not to be had. Our own kernels would do, but round otherwise: the same config
 * must not give other bits because memory was short for a moment. */
enum status cpu_blas_ready(struct error *err);
/* c = scale a b, or c += scale a b; the bias of `g` is not looked at. */
void blas_multiply(sgemm_fn *sgemm, const struct gemm *g);

/* ---- blas_check.c ---- */

enum { BLAS_WHY = 160 };
struct blas_check {
    bool done;                      /* false: there was no memory or no thread for it */
    bool right;
    int threads;
    int64_t rounds;                 /* products of every thread */
    char why[BLAS_WHY];             /* what is wrong with it */
};

/* Runs products of several shapes on so many threads at once, each behind a barrier, and compares every bit with what one thread
 * alone got, and that with our own kernel. A library that keeps a buffer for all of its callers is found out here. */
void blas_check(struct blas_check *out, sgemm_fn *sgemm, int threads);

#endif
