/* Matrix products of f32 by AMX, which multiplies bf16: operands are cut into thirds (thirds.h), and six products of them added up. That is
 * 2.4 times as fast as multiply-adds of f32 in registers, and not less exact: small products are summed before large ones. Numbers below
 * 2^-110 have fewer digits, those below the smallest normal one are zero, and infinity gives NaN.
 *
 * A block of b, packed, stays in the second-level cache while strips of rows of a pass by, each packed into the first level. */
#include <assert.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/pairs/pairs.h"
#include "ops/cpu/pairs/thirds.h"
#include "ops/cpu/pieces.h"
#include "ops/cpu/room.h"

#if defined(HONE_AMX)

enum { DEPTH_MOST = 256, B_NUMBERS = 192 << 10 };       /* of blocks; numbers of a packed block of b */

struct thirds_room { uint16_t a[THIRDS * BLOCK * DEPTH_MOST], b[THIRDS * B_NUMBERS]; };
static_assert(sizeof(struct thirds_room) <= sizeof((struct gemm_room *)0)->bf16, "it has room");

/* Whole tiles go straight to where they belong. What is there already is added last: sums that begin with it have six times as much to lose. */
static void run_block(const struct pairs_block *k, const struct pairs_target *t)
{
    _Alignas(64) float sums[BLOCK * BLOCK];
    if (k->rows % TILE == 0 && k->columns % TILE == 0 && t->scale == 1 && !t->bias && !t->accumulate) {
        thirds_any(k, t->c, t->ldc);
        return;
    }
    thirds_any(k, sums, BLOCK);
    pairs_finish(k, t, sums);
}

/* A packed block of b, (depth, columns), and all rows of a over the same k. */
struct panel {
    struct pairs_side a;
    int64_t rows, columns, depth;
    const uint16_t *b;
    struct pairs_target target;
    int64_t each;               /* blocks of rows of a piece */
    bool far;                   /* a and the result */
};

/* A block of rows, from row i on. */
static void run_rows(const struct panel *p, uint16_t *packed, int64_t i)
{
    const int64_t tiles = up_to(p->depth, TILE_DEPTH) / TILE_DEPTH, strip = THIRDS * tiles * TILE_DEPTH, rows = least(BLOCK, p->rows - i);
    const int64_t places = THIRDS_STEPS * tiles, across = up_to(p->columns, BLOCK) / BLOCK;
    struct ahead ahead = ahead_of(either_lines(either_of(p->a.from, NULL, p->a.row, p->a.step), i + BLOCK, BLOCK, p->rows, p->depth), across * places);
    struct pairs_target t = p->target;
    t.c += i * t.ldc;
    thirds_pack_rows(packed, (struct pairs_side){p->a.from + i * p->a.row, p->a.row, p->a.step}, rows, p->depth);
    for (int64_t j = 0; j < p->columns; j += BLOCK, t.c += BLOCK) {
        const struct pairs_block k = {.a = packed, .b = p->b + j * strip, .tiles = tiles, .rows = rows, .columns = least(BLOCK, p->columns - j), .ahead = p->far ? &ahead : NULL};
        t.bias = p->target.bias ? p->target.bias + j : NULL;
        ahead_begin(&ahead, result_lines(&k, &t), places);
        run_block(&k, &t);
    }
}

/* Some of them, which whoever does it packs. */
static void run_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct panel *p = argument;
    uint16_t *packed = ((struct thirds_room *)gemm_room()->bf16)->a;
    amx_begin();
    for (int64_t i = piece * p->each * BLOCK; i < least((piece + 1) * p->each * BLOCK, p->rows); i += BLOCK)
        run_rows(p, packed, i);
    amx_end();
}

/* n in equal parts of at most `most`, in whole units. */
static int64_t equal_part(int64_t n, int64_t most, int64_t unit)
{
    const int64_t parts = (n + most - 1) / most;
    return up_to((n + parts - 1) / parts, unit);
}

/* All columns and blocks of k. */
void cpu_gemm_thirds(const struct gemm *g)
{
    const int64_t deep = equal_part(g->k, DEPTH_MOST, TILE_DEPTH), columns = equal_part(g->n, B_NUMBERS / deep / BLOCK * BLOCK, BLOCK);
    uint16_t *packed = ((struct thirds_room *)gemm_room()->bf16)->b;
    struct panel p = {.rows = g->m, .b = packed, .far = is_far(g->m, g->n, g->k)};
    const int64_t blocks = piece_count(g->m, BLOCK);
    for (int64_t j = 0; j < g->n; j += columns)
        for (int64_t first = 0; first < g->k; first += deep) {
            p.depth = least(deep, g->k - first);
            p.columns = least(columns, g->n - j);
            p.a = (struct pairs_side){g->a + first * g->a_col, g->a_row, g->a_col};
            thirds_pack_columns(packed, g->b_transposed ? (struct pairs_side){g->b + j * g->ldb + first, g->ldb, 1} : (struct pairs_side){g->b + first * g->ldb + j, 1, g->ldb},
                                p.columns, p.depth);
            p.target = (struct pairs_target){.c = g->c + j, .ldc = g->ldc, .bias = g->bias && first == 0 ? g->bias + j : NULL,
                                             .scale = g->scale, .accumulate = g->accumulate || first > 0};
            p.each = piece_units(blocks, BLOCK * p.columns * p.depth);
            team_pieces(run_piece, &p, piece_count(blocks, p.each));
        }
}

#endif
