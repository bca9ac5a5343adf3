/* Matrix products of operands that are rounded to bf16, with f32 sums, on x86-64 with AMX or AVX512-BF16.
 *
 * A block of b, packed, stays in the second-level cache while strips of rows of a pass by, each packed into the first level. */
#include <assert.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/pairs/pairs.h"
#include "ops/cpu/pieces.h"
#include "ops/cpu/pairs/tiles.h"
#include "ops/cpu/room.h"

enum { DEPTH_MOST = 1024, B_NUMBERS = 512 << 10 };      /* of blocks; numbers of a packed block of b */
enum { FASTER = 8 };                                    /* than multiply-adds of f32, about */
enum { ROWS_ACROSS = 128 };                             /* rows of a that are packed together where they lie side by side; else a block */

struct pairs_room { uint16_t a[ROWS_ACROSS * DEPTH_MOST], b[B_NUMBERS]; };
static_assert(sizeof(struct pairs_room) <= sizeof((struct gemm_room *)0)->bf16, "it has room");

typedef void block_fn(const struct pairs_block *k, const struct pairs_target *t);

#if defined(HONE_AMX)
static void begin(block_fn *block) { if (block == amx_block) amx_begin(); }
static void end(block_fn *block) { if (block == amx_block) amx_end(); }
#else
static void begin(block_fn *block) { (void)block; }
static void end(block_fn *block) { (void)block; }
#endif

/* One block of b, (depth, columns), and all rows of a over the same k. */
struct panel {
    struct pairs_either a;
    int64_t rows, columns, depth;
    const uint16_t *b;
    block_fn *block;
    struct pairs_target target;
    int64_t each;                       /* rows of a piece */
    bool far;                           /* a and the result */
};

/* Rows of a from row i on, packed. */
static void run_rows(const struct panel *p, const uint16_t *packed, int64_t i, int64_t rows)
{
    const int64_t tiles = up_to(p->depth, TILE_DEPTH) / TILE_DEPTH, across = up_to(p->columns, BLOCK) / BLOCK, blocks = up_to(rows, BLOCK) / BLOCK * across;
    const int64_t places = PAIRS_PLACES * tiles;
    struct ahead ahead = ahead_of(either_lines(p->a, i + rows, rows, p->rows, p->depth), blocks * places);
    for (int64_t n = 0; n < blocks; n++) {
        const int64_t row = n / across * BLOCK, column = n % across * BLOCK;
        const struct pairs_block k = {.a = packed + row * tiles * TILE_DEPTH, .b = p->b + column * tiles * TILE_DEPTH, .tiles = tiles,
                                      .rows = least(BLOCK, rows - row), .columns = least(BLOCK, p->columns - column), .ahead = p->far ? &ahead : NULL};
        struct pairs_target t = p->target;
        t.c += (i + row) * t.ldc + column;
        t.bias = t.bias ? t.bias + column : NULL;
        ahead_begin(&ahead, result_lines(&k, &t), places);
        p->block(&k, &t);
    }
}

/* Rows that are packed together. */
static int64_t rows_once(const struct panel *p) { return p->a.step == 1 ? BLOCK : ROWS_ACROSS; }

/* Some rows, which whoever does it packs. */
static void run_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct panel *p = argument;
    uint16_t *packed = ((struct pairs_room *)gemm_room()->bf16)->a;
    begin(p->block);
    for (int64_t i = piece * p->each; i < least((piece + 1) * p->each, p->rows); i += rows_once(p)) {
        const int64_t rows = least(rows_once(p), p->rows - i);
        pack_either_rows(packed, either_at(p->a, i, 0), rows, p->depth);
        run_rows(p, packed, i, rows);
    }
    end(p->block);
}

/* All columns and blocks of k. */
static void run_all(const struct gemm *g, block_fn *block)
{
    struct pairs_room *room = (struct pairs_room *)gemm_room()->bf16;
    const int64_t parts = (g->k + DEPTH_MOST - 1) / DEPTH_MOST, each = up_to((g->k + parts - 1) / parts, TILE_DEPTH);
    const int64_t most = B_NUMBERS / each / BLOCK * BLOCK;
    const struct pairs_either a = either_of(g->a, g->a_bf16, g->a_row, g->a_col);
    const struct pairs_either b = either_of(g->b, g->b_bf16, g->b_transposed ? g->ldb : 1, g->b_transposed ? 1 : g->ldb);
    struct panel p = {.rows = g->m, .b = room->b, .block = block, .far = is_far(g->m, g->n, g->k)};
    for (int64_t j = 0; j < g->n; j += most)
        for (int64_t first = 0; first < g->k; first += each) {
            p.depth = least(each, g->k - first);
            p.columns = least(most, g->n - j);
            p.a = either_at(a, 0, first);
            pack_either_columns(room->b, either_at(b, j, first), p.columns, p.depth);
            p.target = (struct pairs_target){.c = g->c + j, .ldc = g->ldc, .bias = g->bias && first == 0 ? g->bias + j : NULL,
                                             .scale = g->scale, .accumulate = g->accumulate || first > 0};
            p.each = rows_once(&p) * piece_units(piece_count(g->m, rows_once(&p)), rows_once(&p) * p.columns * p.depth / FASTER);
            team_pieces(run_piece, &p, piece_count(g->m, p.each));
        }
}

void pairs_narrow(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + 2 * TILE <= n; i += 2 * TILE)
        _mm512_storeu_si512(to + i, pairs_round(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + TILE)));
    const __m512 low = _mm512_maskz_loadu_ps(lanes_mask(n - i), from + i), high = _mm512_maskz_loadu_ps(lanes_mask(n - i - TILE), from + i + TILE);
    _mm512_mask_storeu_epi16(to + i, halves_mask(n - i), pairs_round(low, high));
}

void cpu_gemm_pairs(const struct gemm *g)
{
#if defined(HONE_AMX)
    if (cpu_bf16_way() == BF16_AMX) {
        run_all(g, amx_block);
        return;
    }
#endif
    run_all(g, dots_block);
}
