/* Times our own matrix product beside BLAS over the shapes of small models and attention heads, and products of bf16 in every way that this
 * CPU has: one thread, best of many.
 *   cmake --build --preset release --target bench-gemm && build/release/bench-gemm */
#include <stdio.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/gemm.h"

static const struct { int m, n, k; bool ta, tb; } shapes[] = {
    {32, 32, 16, 0, 1},   {32, 16, 32, 0, 0},    {32, 16, 32, 1, 0},   {64, 64, 64, 0, 1},    {128, 128, 64, 0, 1},
    {128, 32, 256, 0, 1}, {128, 64, 128, 1, 0},  {128, 128, 32, 0, 1}, {128, 32, 128, 0, 0},  {512, 256, 256, 0, 1},
    {512, 256, 512, 0, 0}, {128, 256, 1024, 1, 0}, {1024, 1000, 256, 0, 1}, {1000, 128, 1024, 1, 0}, {13, 29, 37, 0, 1},
    {2048, 2048, 2048, 0, 1}, {1024, 512, 256, 0, 1}, {2048, 10000, 128, 0, 1}, {2048, 384, 128, 0, 1},
    {2048, 3072, 768, 0, 1}, {2048, 768, 3072, 0, 0}, {3072, 768, 2048, 1, 0}, {1024, 256, 512, 0, 0}, {256, 256, 1024, 1, 0},
};

static double best_gflops(enum gemm_kernel kernel, struct gemm *g)
{
    gemm_fn *run = cpu_gemm();
    g->kernel = kernel;
    const double flops = 2.0 * (double)(g->m * g->n * g->k);
    const int repeats = 1 + (int)(2e7 / flops);
    double best = 0;
    for (int i = 0; i < 15; i++) {
        const double start = clock_s();
        for (int r = 0; r < repeats; r++)
            run(g);
        const double gflops = flops * repeats / (clock_s() - start) / 1e9;
        best = gflops > best ? gflops : best;
    }
    return best;
}

/* With operands in bf16, no better than `way`; 0 where the CPU has it not. */
static double best_bf16(enum bf16_way way, struct gemm *g)
{
    cpu_bf16_limit(way);
    g->bf16 = true;
    const double gflops = cpu_bf16_way() == way ? best_gflops(GEMM_BY_SIZE, g) : 0;
    g->bf16 = false;
    cpu_bf16_limit(BF16_AMX);
    return gflops;
}

static float *filled(int64_t n)
{
    float *x = xcalloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 13) - 6;
    return x;
}

int main(void)
{
    printf("%-22s %8s %8s %6s %8s %8s %8s %8s   (GFLOP/s, one thread; bf16: 0 where the CPU has none)\n", "m x n x k", cpu_blas_name(), "own", "ratio",
           "rounded", "BFMMLA", "AVX512", "AMX");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        const bool ta = shapes[i].ta, tb = shapes[i].tb;
        float *a = filled(m * k), *b = filled(n * k), *c = filled(m * n);
        struct gemm g = {.m = m, .n = n, .k = k, .a = a, .a_row = ta ? 1 : k, .a_col = ta ? m : 1, .b = b,
                         .ldb = tb ? k : n, .b_transposed = tb, .c = c, .ldc = n, .scale = 1};
        const double blas = best_gflops(GEMM_BLAS, &g), own = best_gflops(GEMM_OWN, &g);
        char text[64];
        snprintf(text, sizeof text, "%ld x %ld x %ld %c%c", (long)m, (long)n, (long)k, ta ? 'T' : 'N', tb ? 'T' : 'N');
        printf("%-22s %8.1f %8.1f %6.2f %8.1f %8.1f %8.1f %8.1f\n", text, blas, own, own / blas, best_bf16(BF16_ROUNDED, &g), best_bf16(BF16_BFMMLA, &g),
               best_bf16(BF16_AVX512, &g), best_bf16(BF16_AMX, &g));
        free(a);
        free(b);
        free(c);
    }
    return 0;
}
