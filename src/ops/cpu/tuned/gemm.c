/* Matrix products: large ones by BLAS, small ones by a kernel of our own.
 *
 * A tile of ROWS x COLUMNS results lives in registers; for every k one row of a panel of b is multiplied by ROWS elements
 * of a, read where they are. Panels of b (DEPTH x COLUMNS) are packed, so that they stay in the first-level cache while
 * the rows of a pass by. Vectors are the compiler's, so one source serves every width. */
#include "ops/cpu/gemm.h"

#include <cblas.h>
#include <string.h>

#include "ops/cpu/tuned/tuned.h"

#if defined(__AVX512F__)
enum { LANES = 16, ROWS = 8 };
#elif defined(__AVX2__)
enum { LANES = 8, ROWS = 4 };
#else
enum { LANES = 4, ROWS = 8 };
#endif
enum { COLUMNS = 2 * LANES, DEPTH = 256 };

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Where a tile's results go. */
struct target {
    float *c;
    int64_t ldc, columns;       /* columns < COLUMNS: only so many exist */
    float scale;
    bool accumulate;
};

static inline void store_full(const struct target *t, int64_t row, vec x, vec y)
{
    float *c = t->c + row * t->ldc;
    x *= t->scale;
    y *= t->scale;
    if (t->accumulate) {
        x += *(const vec *)c;
        y += *(const vec *)(c + LANES);
    }
    *(vec *)c = x;
    *(vec *)(c + LANES) = y;
}

static inline void store_part(const struct target *t, int64_t row, vec x, vec y)
{
    float *c = t->c + row * t->ldc, all[COLUMNS];
    *(vec *)all = x * t->scale;
    *(vec *)(all + LANES) = y * t->scale;
    for (int64_t j = 0; j < t->columns; j++)
        c[j] = t->accumulate ? c[j] + all[j] : all[j];
}

/* `rows` is a constant in every call, so that the loops over it unroll into registers. */
static inline __attribute__((always_inline)) void tile(const int rows, int64_t depth, const float *a, int64_t a_row,
                                                       int64_t a_col, const float *panel, int64_t stride,
                                                       const struct target *t)
{
    vec x[ROWS], y[ROWS];
    UNROLL(8)
    for (int i = 0; i < rows; i++)
        x[i] = y[i] = (vec){0};
    UNROLL(4)
    for (int64_t p = 0; p < depth; p++) {
        const vec u = *(const vec *)(panel + p * stride), v = *(const vec *)(panel + p * stride + LANES);
        UNROLL(8)
        for (int i = 0; i < rows; i++) {
            const float s = a[i * a_row + p * a_col];
            x[i] += s * u;
            y[i] += s * v;
        }
    }
    UNROLL(8)
    for (int i = 0; i < rows; i++) {
        if (t->columns == COLUMNS)
            store_full(t, i, x[i], y[i]);
        else
            store_part(t, i, x[i], y[i]);
    }
}

#define TILE_OF(r) case r: tile(r, depth, a, a_row, a_col, panel, stride, t); break

static void tile_rows(int rows, int64_t depth, const float *a, int64_t a_row, int64_t a_col, const float *panel,
                      int64_t stride, const struct target *t)
{
    switch (rows) {
        TILE_OF(1); TILE_OF(2); TILE_OF(3); TILE_OF(4);
#if !defined(__AVX2__) || defined(__AVX512F__)
        TILE_OF(5); TILE_OF(6); TILE_OF(7); TILE_OF(8);
#endif
    default: break;
    }
}

/* Four rows of four become four columns of four. */
static inline void transpose_quad(float *to, int64_t to_stride, const float *from, int64_t stride)
{
    const quad a = *(const quad *)from, b = *(const quad *)(from + stride), c = *(const quad *)(from + 2 * stride),
               d = *(const quad *)(from + 3 * stride);
    const quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(quad *)(to + to_stride) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(quad *)(to + 2 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(quad *)(to + 3 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Packs rows [first, first + depth) and columns [column, column + columns) of b, zeros up to COLUMNS. */
static void pack(float *panel, const struct gemm *g, int64_t first, int64_t depth, int64_t column, int64_t columns)
{
    if (columns < COLUMNS)
        memset(panel, 0, (size_t)depth * COLUMNS * sizeof *panel);
    if (!g->b_transposed) {
        for (int64_t p = 0; p < depth; p++)
            memcpy(panel + p * COLUMNS, g->b + (first + p) * g->ldb + column, (size_t)columns * sizeof *panel);
        return;
    }
    for (int64_t j = 0; j < columns; j += 4) {
        const float *from = g->b + (column + j) * g->ldb + first;
        int64_t p = 0;
        if (j + 4 <= columns)
            for (; p + 4 <= depth; p += 4)
                transpose_quad(panel + p * COLUMNS + j, COLUMNS, from + p, g->ldb);
        for (; p < depth; p++)
            for (int64_t i = j; i < j + 4 && i < columns; i++)
                panel[p * COLUMNS + i] = from[(i - j) * g->ldb + p];
    }
}

/* Some rows of a, where they are or packed. */
struct rows {
    const float *a;             /* of the first row, at the first k */
    int64_t n, row, column;     /* strides within a tile */
    int64_t tile;               /* from one tile of ROWS rows to the next */
    float *c;
};

/* All these rows against one panel. */
static void run_panel(const struct gemm *g, const struct rows *r, int64_t depth, bool accumulate, const float *panel,
                      int64_t stride, int64_t column, int64_t columns)
{
    struct target t = {r->c + column, g->ldc, columns, g->scale, accumulate};
    const float *a = r->a;
    int64_t i = 0;
    for (; i + ROWS <= r->n; i += ROWS, a += r->tile, t.c += ROWS * g->ldc) {
        if (r->column == 1)                     /* strides that are constants save an addition per element */
            tile(ROWS, depth, a, r->row, 1, panel, stride, &t);
        else if (r->row == 1 && r->column == ROWS)
            tile(ROWS, depth, a, 1, ROWS, panel, stride, &t);
        else
            tile(ROWS, depth, a, 1, r->column, panel, stride, &t);
    }
    tile_rows((int)(r->n - i), depth, a, r->row, r->column, panel, stride, &t);
}

/* A transposed a is read across its rows: every k touches another cache line and, when a is wide, another page. Packed
 * tile by tile it is touched once. */
static void pack_rows(float *to, const float *a, int64_t n, int64_t a_col, int64_t depth)
{
    for (int64_t p = 0; p < depth; p++)
        for (int64_t i = 0; i < n; i += ROWS)
            memcpy(to + (i * depth + p * ROWS), a + p * a_col + i, (size_t)(n - i < ROWS ? n - i : ROWS) * sizeof *to);
}

enum { PACK_ROWS = 48 };        /* with fewer rows a plain b is read where it is */
enum { ROW_BLOCK = 128 };       /* rows of a that stay in the second-level cache */
enum { WIDE = 64 };             /* a transposed a of at least this many rows is packed */

static void run_rows(const struct gemm *g, const struct rows *r, int64_t first, int64_t depth)
{
    _Alignas(64) float panel[DEPTH * COLUMNS];
    const bool accumulate = g->accumulate || first > 0;
    for (int64_t j = 0; j < g->n; j += COLUMNS) {
        const int64_t columns = g->n - j < COLUMNS ? g->n - j : COLUMNS;
        if (!g->b_transposed && columns == COLUMNS && g->m < PACK_ROWS) {
            run_panel(g, r, depth, accumulate, g->b + first * g->ldb + j, g->ldb, j, columns);
        } else {
            pack(panel, g, first, depth, j, columns);
            run_panel(g, r, depth, accumulate, panel, COLUMNS, j, columns);
        }
    }
}

static void gemm_own(const struct gemm *g)
{
    _Alignas(64) float packed[ROW_BLOCK * DEPTH];
    const bool pack_a = g->a_row == 1 && g->a_col >= WIDE;
    for (int64_t first = 0; first < g->k; first += DEPTH) {
        const int64_t depth = g->k - first < DEPTH ? g->k - first : DEPTH;
        for (int64_t i = 0; i < g->m; i += ROW_BLOCK) {
            struct rows r = {.a = g->a + first * g->a_col + i * g->a_row, .n = g->m - i < ROW_BLOCK ? g->m - i : ROW_BLOCK,
                             .row = g->a_row, .column = g->a_col, .tile = ROWS * g->a_row, .c = g->c + i * g->ldc};
            if (pack_a) {
                pack_rows(packed, r.a, r.n, g->a_col, depth);
                r = (struct rows){.a = packed, .n = r.n, .row = 1, .column = ROWS, .tile = ROWS * depth, .c = r.c};
            }
            run_rows(g, &r, first, depth);
        }
    }
}

static void gemm_blas(const struct gemm *g)
{
    const bool ta = g->a_col != 1;
    const int64_t lda = ta ? g->a_col : g->a_row > g->k ? g->a_row : g->k;      /* one row has no stride to speak of */
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, g->b_transposed ? CblasTrans : CblasNoTrans, (int)g->m,
                (int)g->n, (int)g->k, g->scale, g->a, (int)lda, g->b, (int)g->ldb, g->accumulate,
                g->c, (int)g->ldc);
}

/* Up to here our own kernel was faster than BLIS on Neoverse-N1; docs/performance.md has the table. */
static const int64_t SMALL = (int64_t)1 << 20;

void TUNED(gemm)(const struct gemm *g)
{
    if (g->m * g->n * g->k <= SMALL || cpu_blas_is_lost())
        gemm_own(g);
    else
        gemm_blas(g);
}
