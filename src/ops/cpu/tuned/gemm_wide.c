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
enum { NEAR = 8192, FAR = 1 << 16 };                    /* floats: what the first-level cache holds beside other things; what the second may not hold */

static_assert((BLOCK + COPIED) * sizeof(float) <= sizeof((struct gemm_room *)0)->f32, "a block and a tile of rows have room");

/* Lines of memory that will be wanted: the tile that is computed asks for them, a few at a time. */
enum { LINES = DEPTH / WIDE_STEPS * WIDE_VECTORS };     /* as many as the deepest tile asks for */
struct lines {
    const float *at[LINES];
    int64_t n;
};

/* Columns [first, first + columns) of b over [k, k + depth). */
struct part { int64_t first, columns, k, depth; };

struct block {
    const struct gemm *g;
    struct part now, next;      /* next: no columns where there is none */
    float *packed, *copied;     /* panels of b, a tile of rows of a */
    bool b_there, a_there;      /* read where they are */
    bool a_far, b_far, c_far;   /* not in a cache nearby: lines are fetched ahead */
};

/* Rows of a tile. */
static struct span tile_rows(int64_t m, int64_t tile, int64_t tiles) { return (struct span){m * tile / tiles, m * (tile + 1) / tiles}; }

static void take_rows(const struct block *b, struct span rows, struct wide_product *p)
{
    const struct gemm *g = b->g;
    p->a = g->a + rows.lo * g->a_row + b->now.k * g->a_col;
    p->a_row = g->a_row;
    p->a_step = g->a_col;
    if (b->a_there)
        return;
    if (g->a_col == 1)
        wide_copy_along(b->copied, ROW_GAP, p->a, g->a_row, rows.hi - rows.lo, b->now.depth);
    else
        wide_copy_across(b->copied, p->a, g->a_col, rows.hi - rows.lo, b->now.depth);
    p->a = b->copied;
    p->a_row = g->a_col == 1 ? ROW_GAP : 1;
    p->a_step = g->a_col == 1 ? 1 : WIDE_LANES;
}

/* The panel that begins at column j of the block; packed now where this is the first tile of rows. */
static void take_panel(const struct block *b, int64_t j, bool first, struct wide_product *p)
{
    const struct gemm *g = b->g;
    const int64_t left = b->now.columns - j, width = wide_panel(left), column = b->now.first + j;
    const float *from = g->b + (g->b_transposed ? column * g->ldb + b->now.k : b->now.k * g->ldb + column);
    p->columns = least(left, WIDE_COLUMNS);
    if (b->b_there && left >= width) {
        p->b = from;
        p->b_step = g->ldb;
        return;
    }
    p->b = b->packed + j * b->now.depth;
    p->b_step = width;
    if (first)
        wide_pack_panel(b->packed + j * b->now.depth, from, g->ldb, g->b_transposed, left, b->now.depth);
}

static void want(struct lines *l, const float *line)
{
    if (l->n < LINES)
        l->at[l->n++] = line;
}

/* The result of this tile. */
static void want_result(const struct wide_product *p, int64_t rows, struct lines *l)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < p->columns; j += WIDE_LINE)
            want(l, p->c + i * p->ldc + j);
}

/* The rows that come next, a share with every panel. Where they lie side by side those before have fetched the lines that they begin in. */
static void want_rows(const struct gemm *g, const struct part *of, struct span rows, struct span panel, struct lines *l)
{
    const bool along = g->a_col == 1;
    const struct span mine = team_span(along ? (of->depth + WIDE_LINE - 1) / WIDE_LINE : of->depth, 1, (int)panel.lo, (int)panel.hi);
    const float *a = g->a + rows.lo * g->a_row + of->k * g->a_col;
    for (int64_t i = mine.lo; i < mine.hi; i++)
        if (along)
            for (int64_t r = 0; r < rows.hi - rows.lo; r++)
                want(l, a + r * g->a_row + i * WIDE_LINE);
        else
            want(l, a + i * g->a_col + rows.hi - rows.lo - 1);
}

/* A block of b, a share with every tile. */
static void want_part(const struct gemm *g, const struct part *p, struct span tile, struct lines *l)
{
    const int64_t rows = g->b_transposed ? p->columns : p->depth, in_row = ((g->b_transposed ? p->depth : p->columns) + WIDE_LINE - 1) / WIDE_LINE;
    const struct span mine = team_span(rows * in_row, 1, (int)tile.lo, (int)tile.hi);
    const float *from = g->b + (g->b_transposed ? p->first * g->ldb + p->k : p->k * g->ldb + p->first);
    int64_t row = mine.lo / in_row, line = mine.lo % in_row;
    for (int64_t i = mine.lo; i < mine.hi; i++) {
        want(l, from + row * g->ldb + line * WIDE_LINE);
        if (++line == in_row) {
            line = 0;
            row++;
        }
    }
}

/* What is to be fetched while panel j passes by tile t: the result, the rows that come next, and what follows the block. */
static void want_all(const struct block *b, const struct wide_product *p, struct span tile, struct span panel, struct lines *l)
{
    const struct gemm *g = b->g;
    const struct span rows = tile_rows(g->m, tile.lo, tile.hi);
    const bool last = tile.lo + 1 == tile.hi;
    l->n = 0;
    if (b->c_far)
        want_result(p, rows.hi - rows.lo, l);
    if (b->a_far && (!last || b->next.columns))
        want_rows(g, last ? &b->next : &b->now, tile_rows(g->m, last ? 0 : tile.lo + 1, tile.hi), panel, l);
    if (b->b_far && b->next.columns)
        want_part(g, &b->next, (struct span){tile.lo * panel.hi + panel.lo, tile.hi * panel.hi}, l);
}

static void run_block(const struct block *b)
{
    const struct gemm *g = b->g;
    const int64_t height = g->n > 2 * WIDE_LANES ? WIDE_ROWS : WIDE_TALLEST, tiles = (g->m + height - 1) / height;
    const int64_t panels = (b->now.columns + WIDE_COLUMNS - 1) / WIDE_COLUMNS;
    struct lines l;
    struct wide_product p = {.depth = b->now.depth, .ldc = g->ldc, .scale = g->scale, .accumulate = g->accumulate || b->now.k > 0, .fetch = l.at};
    for (int64_t t = 0; t < tiles; t++) {
        const struct span rows = tile_rows(g->m, t, tiles);
        take_rows(b, rows, &p);
        for (int64_t j = 0; j < panels; j++) {
            const int64_t column = b->now.first + j * WIDE_COLUMNS;
            take_panel(b, j * WIDE_COLUMNS, t == 0, &p);
            p.c = g->c + rows.lo * g->ldc + column;
            p.bias = g->bias && b->now.k == 0 ? g->bias + column : NULL;
            want_all(b, &p, (struct span){t, tiles}, (struct span){j, panels}, &l);
            p.fetches = l.n;
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

/* The part behind p: deeper, or else the next columns. */
static struct part next_part(const struct gemm *g, const struct part *p, int64_t columns, int64_t deep)
{
    const bool deeper = p->k + p->depth < g->k;
    const int64_t first = deeper ? p->first : p->first + p->columns, k = deeper ? p->k + p->depth : 0;
    return (struct part){first, least(columns, g->n - first), k, least(deep, g->k - k)};
}

void TUNED(gemm_own)(const struct gemm *g)
{
    const int64_t deep = equal_part(g->k, DEPTH, 4), columns = equal_part(g->n, BLOCK / (deep ? deep : 1) / WIDE_COLUMNS * WIDE_COLUMNS, WIDE_COLUMNS);
    float *room = (float *)gemm_room()->f32;
    struct block b = {.g = g, .packed = room, .copied = room + BLOCK, .a_far = g->m * g->k > FAR, .b_far = g->n * g->k > FAR, .c_far = g->m * g->ldc > NEAR};
    b.a_there = g->a_col == 1 ? g->a_row % ALIKE || g->n <= WIDE_COLUMNS : deep * g->a_col <= NEAR || g->n <= WIDE_COLUMNS;
    b.b_there = !g->b_transposed && (deep * g->ldb <= NEAR || g->m <= WIDE_ROWS);
    b.next = (struct part){0, least(columns, g->n), 0, least(deep, g->k)};
    while (b.next.columns > 0) {
        b.now = b.next;
        b.next = next_part(g, &b.now, columns, deep);
        run_block(&b);
    }
}

#else
typedef int gemm_is_not_wide;
#endif
