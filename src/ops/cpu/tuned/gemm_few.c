/* Matrix products with few rows, as of the one token that generation computes: every number of b is used once for each row of a, so it is
 * read where it lies, and packing it would take longer than the product. A result is one sum over k, in an order that depends on k
 * alone: it is the same for any number of rows, columns and threads. */
#include "ops/cpu/tuned/lanes.h"

/* Of results whose sums are in registers, of which there are 32 or 16. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { ROWS = 4, COLUMNS = 4 };
#else
enum { ROWS = 2, COLUMNS = 4 };
#endif

/* a (rows, k), b (columns, k) with their row strides: the sums of results (i, j) are to[i * COLUMNS + j]. */
INLINE void dots(float *to, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, const int rows, const int columns)
{
    vec sum[ROWS][COLUMNS] = {{{0}}};
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES)
        UNROLL(4)
        for (int i = 0; i < rows; i++)
            UNROLL(4)
            for (int j = 0; j < columns; j++)
                sum[i][j] += load(a + i * lda + p) * load(b + j * ldb + p);
    UNROLL(4)
    for (int i = 0; i < rows; i++)
        UNROLL(4)
        for (int j = 0; j < columns; j++) {
            float rest = 0;
            for (int64_t q = p; q < k; q++)
                rest += a[i * lda + q] * b[j * ldb + q];
            to[i * COLUMNS + j] = lanes_total(sum[i][j]) + rest;
        }
}

/* Not inlined: alone they get all registers. */
#define ALONE static __attribute__((noinline))
#define DOTS(rows)                                                                                                    \
    ALONE void dots_##rows(float *to, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k)             \
    {                                                                                                                 \
        dots(to, a, lda, b, ldb, k, rows, COLUMNS);                                                                    \
    }
DOTS(1)
DOTS(2)
#if defined(__AVX512F__) || defined(__aarch64__)
DOTS(3)
DOTS(4)
#define ALL_DOTS {dots_1, dots_2, dots_3, dots_4}
#else
#define ALL_DOTS {dots_1, dots_2}
#endif

static void tile(const struct gemm *g, int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    static void (*const of[ROWS])(float *, const float *, int64_t, const float *, int64_t, int64_t) = ALL_DOTS;
    const float *a = g->a + i * g->a_row, *b = g->b + j * g->ldb;
    float sum[ROWS * COLUMNS] = {0};
    if (columns == COLUMNS)
        of[rows - 1](sum, a, g->a_row, b, g->ldb, g->k);
    else
        for (int64_t at = 0; at < rows * columns; at++)
            dots(sum + at / columns * COLUMNS + at % columns, a + at / columns * g->a_row, 0, b + at % columns * g->ldb, 0, g->k, 1, 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < columns; s++) {
            float *c = g->c + (i + r) * g->ldc + j + s;
            *c = (g->accumulate ? *c : 0) + (g->scale * sum[r * COLUMNS + s] + (g->bias ? g->bias[j + s] : 0));
        }
}

void TUNED(gemm_few)(const struct gemm *g)
{
    for (int64_t j = 0; j < g->n; j += COLUMNS)
        for (int64_t i = 0; i < g->m; i += ROWS)
            tile(g, i, j, least(ROWS, g->m - i), least(COLUMNS, g->n - j));
}
