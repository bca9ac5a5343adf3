/* Matrix products where vectors have 8 or 16 lanes (AVX2, AVX-512). A block of b, which fits in the second-level cache, is packed as panels;
 * a tile of rows of a, which fits in the first, passes by all of them. Rows of a are read where they are: a number of a is spread
 * over a vector when it is loaded, wherever it lies. They are copied only where their lines would compete for the same places of
 * the cache. */
#include "ops/cpu/tuned/wide_tile.h"

#if defined(HONE_WIDE_TILE)

#include <assert.h>

#include "ops/cpu/room.h"
#include "ops/cpu/tuned/wide_pack.h"

/* Of the packed block: k, and floats. */
#if defined(__AVX512F__)
enum { DEPTH = 256, BLOCK = 192 << 10 };
#else
enum { DEPTH = 256, BLOCK = 48 << 10 };
#endif
enum { ROW_GAP = DEPTH + WIDE_LINE };                   /* between copied rows */
enum { COPIED = WIDE_ROWS * ROW_GAP > DEPTH * WIDE_LANES ? WIDE_ROWS * ROW_GAP : DEPTH * WIDE_LANES };
enum { ALIKE = 1024 };                                  /* floats: rows that far apart compete for the same cache lines */
enum { NEAR = 8192 };                                   /* floats: what the first-level cache holds beside other things */

static_assert((BLOCK + COPIED) * sizeof(float) <= sizeof((struct gemm_room *)0)->f32, "a block and a tile of rows have room");

/* Columns [first, first + columns) over [k, k + depth). */
struct block {
    const struct gemm *g;
    int64_t first, columns;
    int64_t k, depth;
    float *packed, *copied;     /* panels of b, a tile of rows of a */
    bool b_there, a_there;      /* read where they are */
};

/* Rows of a tile. */
static struct span tile_rows(int64_t m, int64_t tile, int64_t tiles) { return (struct span){m * tile / tiles, m * (tile + 1) / tiles}; }

static void take_rows(const struct block *b, struct span rows, struct wide_product *p)
{
    const struct gemm *g = b->g;
    p->a = g->a + rows.lo * g->a_row + b->k * g->a_col;
    p->a_row = g->a_row;
    p->a_step = g->a_col;
    if (b->a_there)
        return;
    if (g->a_col == 1)
        wide_copy_along(b->copied, ROW_GAP, p->a, g->a_row, rows.hi - rows.lo, b->depth);
    else
        wide_copy_across(b->copied, p->a, g->a_col, rows.hi - rows.lo, b->depth);
    p->a = b->copied;
    p->a_row = g->a_col == 1 ? ROW_GAP : 1;
    p->a_step = g->a_col == 1 ? 1 : WIDE_LANES;
}

/* The panel that begins at column j of the block; packed now where this is the first tile of rows. */
static void take_panel(const struct block *b, int64_t j, bool first, struct wide_product *p)
{
    const struct gemm *g = b->g;
    const int64_t left = b->columns - j, width = wide_panel(left), column = b->first + j;
    const float *from = g->b + (g->b_transposed ? column * g->ldb + b->k : b->k * g->ldb + column);
    p->columns = least(left, WIDE_COLUMNS);
    if (b->b_there && left >= width) {
        p->b = from;
        p->b_step = g->ldb;
        return;
    }
    p->b = b->packed + j * b->depth;
    p->b_step = width;
    if (first)
        wide_pack_panel(b->packed + j * b->depth, from, g->ldb, g->b_transposed, left, b->depth);
}

/* A result is fetched while its tile is computed. */
static void expect(const struct wide_product *p, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < p->columns; j += WIDE_LINE)
            __builtin_prefetch(p->c + i * p->ldc + j, 1);
}

/* The lines of the rows that come next, a share with every panel: line i of a row of a, or the one of k = i. */
static void expect_rows(const struct block *b, struct span rows, int64_t j)
{
    const struct gemm *g = b->g;
    const int64_t panels = (b->columns + WIDE_COLUMNS - 1) / WIDE_COLUMNS, lines = g->a_col == 1 ? (b->depth + WIDE_LINE - 1) / WIDE_LINE : b->depth;
    const struct span mine = team_span(lines, 1, (int)(j / WIDE_COLUMNS), (int)panels);
    const float *a = g->a + rows.lo * g->a_row + b->k * g->a_col;
    for (int64_t i = mine.lo; i < mine.hi; i++)
        if (g->a_col == 1)
            for (int64_t r = 0; r < rows.hi - rows.lo; r++)
                __builtin_prefetch(a + r * g->a_row + i * WIDE_LINE, 0, 2);
        else
            __builtin_prefetch(a + i * g->a_col, 0, 2);
}

static void run_block(const struct block *b)
{
    const struct gemm *g = b->g;
    const int64_t tiles = (g->m + WIDE_ROWS - 1) / WIDE_ROWS;
    struct wide_product p = {.depth = b->depth, .ldc = g->ldc, .scale = g->scale, .accumulate = g->accumulate || b->k > 0};
    for (int64_t t = 0; t < tiles; t++) {
        const struct span rows = tile_rows(g->m, t, tiles);
        take_rows(b, rows, &p);
        for (int64_t j = 0; j < b->columns; j += WIDE_COLUMNS) {
            take_panel(b, j, t == 0, &p);
            p.c = g->c + rows.lo * g->ldc + b->first + j;
            p.bias = g->bias && b->k == 0 ? g->bias + b->first + j : NULL;
            expect(&p, rows.hi - rows.lo);
            if (t + 1 < tiles)
                expect_rows(b, tile_rows(g->m, t + 1, tiles), j);
            TUNED(wide_tile)((int)(rows.hi - rows.lo), &p);
        }
    }
}

/* n in equal parts of at most `most`, in whole units. */
static int64_t equal_part(int64_t n, int64_t most, int64_t unit)
{
    const int64_t parts = (n + most - 1) / most;
    return parts > 1 ? up_to((n + parts - 1) / parts, unit) : n;
}

void TUNED(gemm_own)(const struct gemm *g)
{
    const int64_t deep = equal_part(g->k, DEPTH, 4), columns = equal_part(g->n, BLOCK / (deep ? deep : 1) / WIDE_COLUMNS * WIDE_COLUMNS, WIDE_COLUMNS);
    float *room = (float *)gemm_room()->f32;
    struct block b = {.g = g, .packed = room, .copied = room + BLOCK};
    b.a_there = g->a_col == 1 ? g->a_row % ALIKE || g->n <= WIDE_COLUMNS : deep * g->a_col <= NEAR || g->n <= WIDE_COLUMNS;
    b.b_there = !g->b_transposed && (deep * g->ldb <= NEAR || g->m <= WIDE_ROWS);
    for (b.first = 0; b.first < g->n; b.first += columns) {
        b.columns = least(columns, g->n - b.first);
        for (b.k = 0; b.k == 0 || b.k < g->k; b.k += deep) {
            b.depth = least(deep, g->k - b.k);
            run_block(&b);
            if (g->k == 0)
                break;
        }
    }
}

#else
typedef int gemm_is_not_wide;
#endif
