/* Matrix products: by rule a kernel of our own; by AMX in thirds (pairs/thirds.c) or by BLAS where it was asked for. On the shapes of the shipped
 * configs our own is as fast as the better library or faster, but for 1 to 3 % where k is thousands long: docs/performance.md. */
#include "ops/cpu/gemm.h"

#include "ops/cpu/bf16.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/pairs/pairs.h"
#include "ops/cpu/tuned/tuned.h"
#include "ops/cpu/tuned/wide_tile.h"

/* For products that know no bias. It comes after them: a result that is filled with it first must be fetched again to be
 * added to, which took a tenth of the time of a (2048, 128) input. */
static void add_bias(const struct gemm *g)
{
    for (int64_t i = 0; g->bias && i < g->m; i++) {
        float *c = g->c + i * g->ldc;
        INDEPENDENT
        for (int64_t j = 0; j < g->n; j++)
            c[j] += g->bias[j];
    }
}

/* A row or a few times a matrix that is not packed: reading it is all that counts. */
enum { FEW = 8 };
static bool has_few_rows(const struct gemm *g) { return g->m <= FEW && g->b_transposed && g->a_col == 1 && !g->bf16 && g->kernel != GEMM_BLAS; }

/* By AMX where packing is worth it: 64 x 64 x 64 is as fast as ours, 128 x 32 x 128 slower. Where rows are more than a few it does not hang on how many:
 * what a row gives shall not. */
#if defined(HONE_AMX)
static bool takes_thirds(const struct gemm *g)
{
    return g->kernel == GEMM_THIRDS && !g->bf16 && g->m > FEW && g->n >= 64 && g->k >= 32 && cpu_bf16_way() == BF16_AMX;
}
#endif

void TUNED(gemm)(const struct gemm *g)
{
    const int64_t work = g->m * g->n * g->k;
    if (has_few_rows(g)) {
        TUNED(gemm_few)(g);
        return;
    }
#if defined(HONE_AMX)
    if (takes_thirds(g)) {
        cpu_gemm_thirds(g);
        return;
    }
#endif
    sgemm_fn *const blas = g->kernel != GEMM_BLAS || work == 0 || g->bf16 ? NULL : cpu_blas();
    if (g->bf16 && work > 0) {
        TUNED(gemm_bf16)(g);
    } else if (!blas) {
        TUNED(gemm_own)(g);
    } else {
        blas_multiply(blas, g);
        add_bias(g);
    }
}
