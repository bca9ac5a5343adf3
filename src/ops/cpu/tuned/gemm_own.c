/* Matrix products where vectors have four lanes (NEON, SSE2): over k in blocks of DEPTH. Of a, a block of rows that fits in the second-level cache is packed; of b, a strip
 * of columns that fits in the first. All rows of the block pass by the strip, tile by tile. What is not worth packing is read
 * where it is: a that few columns need, and whatever is small. */
#include "ops/cpu/tuned/wide_tile.h"

#if !defined(HONE_WIDE_TILE)

#include <assert.h>

#include "ops/cpu/room.h"
#include "ops/cpu/tuned/pack.h"

/* Measured on Neoverse-N1 and V1, with 64 KiB and 1 MiB of cache: half the depth costs 5 % at k = 512, twice the depth 1 %; half
 * the block 1 to 2 %. A row of a where it is costs a V1 a tenth of its speed at 128 columns and more, an N1 less than packing it does. */
enum { DEPTH = 256, BLOCK = 512 * DEPTH };              /* floats of the packed block of a */
enum { STRIP = 32 };                                    /* columns */
enum { FEW_COLUMNS = 16 * TILE_LANES };                 /* up to here rows of a are read where they are */
enum { ALIKE = 1024 };                                  /* floats: rows that far apart compete for the same cache lines */
enum { NEAR = 8192, FAR = 1 << 16 };                    /* floats: half the first-level cache; what the second may not hold */


/* An operand over one block of k, as panels. */
struct operand {
    struct packing from;        /* its rows are the rows of a or the columns of b */
    bool there;                 /* not to be packed */
};

/* Rows [first, first + n) as the first of their panels, packed into `to` unless they are read where they are. */
TILE_INLINE struct tile_side take(const struct operand *o, const int width, float *to, int64_t first, int64_t n)
{
    struct packing s = o->from;
    s.from += first * s.row;
    s.rows = n;
    if (o->there)
        return (struct tile_side){s.from, s.row, s.step};
    pack(to, width, &s);
    return (struct tile_side){to, 1, width};
}

/* How far it is to the next panel. */
static int64_t next(const struct operand *o, int width) { return width * (o->there ? o->from.row : o->from.depth); }

/* A result whose lines are not near: they are fetched while the tile is computed. */
static void fetch(const float *c, int64_t ldc, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        __builtin_prefetch(c + i * ldc, 1);
}

/* A block of rows against a strip of columns. */
static void run_strip(const struct tile_side *a, int64_t a_next, int64_t rows, const struct tile_side *b, int64_t b_next,
                      int64_t columns, int64_t depth, const struct tile_target *target)
{
    const bool far = rows * target->ldc > NEAR;
    struct tile_side x = *a;
    for (int64_t i = 0; i < rows; i += TILE_ROWS, x.at += a_next) {
        const int64_t n = least(rows - i, TILE_ROWS);
        struct tile_side y = *b;
        struct tile_target t = *target;
        t.c += i * t.ldc;
        for (int64_t j = 0; j < columns; j += TILE_COLUMNS, y.at += b_next, t.c += TILE_COLUMNS) {
            if (far && j % PACK_LINE == 0)
                fetch(t.c, t.ldc, n);
            t.columns = least(columns - j, TILE_COLUMNS);
            t.bias = target->bias ? target->bias + j : NULL;
            tile_any(n, depth, &x, &y, &t);
        }
    }
}

static_assert(BLOCK * sizeof(float) <= sizeof((struct gemm_room *)0)->f32 && STRIP * DEPTH * sizeof(float) <= sizeof((struct gemm_room *)0)->aside, "a block and a strip have room");

/* Rows [i, i + rows) over one block of k. */
struct rows_block {
    const struct gemm *g;
    const struct operand *a, *b;
    int64_t i, rows, depth;
    struct tile_side x;         /* these rows of a */
    bool first;                 /* of the blocks of k */
    int64_t each;               /* strips of a piece */
};

static void run_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct rows_block *r = argument;
    const struct gemm *g = r->g;
    float *strip = (float *)gemm_room()->aside;
    for (int64_t j = piece * r->each * STRIP; j < least((piece + 1) * r->each * STRIP, g->n); j += STRIP) {
        const int64_t columns = least(g->n - j, STRIP);
        const struct tile_side y = take(r->b, TILE_COLUMNS, strip, j, columns);
        run_strip(&r->x, next(r->a, TILE_ROWS), r->rows, &y, next(r->b, TILE_COLUMNS), columns, r->depth,
                  &(struct tile_target){.c = g->c + r->i * g->ldc + j, .ldc = g->ldc, .scale = g->scale, .bias = g->bias && r->first ? g->bias + j : NULL,
                                        .accumulate = g->accumulate || !r->first});
    }
}

/* One block of k. */
static void run_depth(const struct gemm *g, const struct operand *a, const struct operand *b, bool first)
{
    const int64_t depth = a->from.depth, most = BLOCK / (depth ? depth : 1) / TILE_ROWS * TILE_ROWS, strips = piece_count(g->n, STRIP);
    struct rows_block r = {.g = g, .a = a, .b = b, .depth = depth, .first = first};
    for (r.i = 0; r.i < g->m; r.i += most) {
        r.rows = least(g->m - r.i, most);
        r.x = take(a, TILE_ROWS, (float *)gemm_room()->f32, r.i, r.rows);
        r.each = piece_units(strips, STRIP * r.rows * depth);
        team_pieces(run_piece, &r, piece_count(strips, r.each));
    }
}

void TUNED(gemm_own)(const struct gemm *g)
{
    const int64_t blocks = (g->k + DEPTH - 1) / DEPTH, each = blocks > 1 ? ((g->k + blocks - 1) / blocks + 3) / 4 * 4 : g->k;
    struct operand a = {.from = {.from = g->a, .row = g->a_row, .step = g->a_col, .far = g->m * g->k > FAR}};
    struct operand b = {.from = {.from = g->b, .row = g->b_transposed ? g->ldb : 1, .step = g->b_transposed ? 1 : g->ldb,
                                 .far = g->n * g->k > FAR}};
    a.there = g->a_col == 1 ? g->n <= FEW_COLUMNS && g->a_row % ALIKE : each * g->a_col <= NEAR;
    b.there = !g->b_transposed && (each * g->ldb <= NEAR || g->m <= TILE_ROWS) && g->n % TILE_COLUMNS == 0;
    for (int64_t first = 0; first == 0 || first < g->k; first += each) {
        a.from.depth = b.from.depth = least(g->k - first, each);
        a.from.from = g->a + first * a.from.step;
        b.from.from = g->b + first * b.from.step;
        run_depth(g, &a, &b, first == 0);
        if (g->k == 0)
            break;
    }
}

#else
typedef int gemm_is_wide;
#endif
