/* Matrix products of operands that are rounded to bf16, with f32 sums.
 *
 * Where the CPU multiplies bf16 (bf16_tile.h), blocks of both operands are packed as bf16: a block of b stays in the second
 * level cache while blocks of a pass by, and a strip of b in the first while the strips of a block of a pass by. Elsewhere
 * the rounded blocks stay f32 and go to the f32 product: as right, and a little slower than without rounding. */
#include <assert.h>
#include <string.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/pairs/pairs.h"
#include "ops/cpu/room.h"
#include "ops/cpu/tuned/bf16_tile.h"
#include "ops/cpu/tuned/tuned.h"

#if defined(HONE_BF16_TILE)

enum { FASTER = 3 };                                       /* than multiply-adds of f32, about */
enum { DEPTH = 512, A_ROWS = 128, B_COLUMNS = 512 };       /* of blocks; on a Neoverse-V1 half the depth costs 14 % at k = 512, more wins little */
enum { UNIT = SQUARE * GROUP };                             /* packed depths are whole UNITs, zeros at the end */
static_assert(A_ROWS % ROWS == 0 && B_COLUMNS % COLUMNS == 0 && DEPTH % UNIT == 0 && ROWS % SQUARE == 0 && COLUMNS % SQUARE == 0,
              "blocks are whole strips, strips whole squares");


#define INLINE static inline __attribute__((always_inline))

/* What the room holds: a block of each operand. The rows of a strip are on the stack while they are rounded, 16 kB at most: a
 * compiler makes more of an array that nobody else can know. */
struct tiles_room { uint16_t a[A_ROWS * DEPTH], b[B_COLUMNS * DEPTH]; };
static_assert(sizeof(struct tiles_room) <= sizeof((struct gemm_room *)0)->bf16, "it has room");

/* Numbers of an operand: f32, or bf16 as it will be packed; which of them is a constant where they are read. */
struct operand {
    const float *f32;
    const uint16_t *bf16;
};
INLINE uint16_t bits_at(const bool bf16, struct operand x, int64_t i) { return bf16 ? x.bf16[i] : bf16_bits(x.f32[i]); }
INLINE struct operand from(struct operand x, int64_t i) { return (struct operand){x.f32 ? x.f32 + i : NULL, x.bf16 ? x.bf16 + i : NULL}; }

/* Rows that are contiguous along k: they are rounded, then squares of groups are transposed. */
INLINE void pack_along(uint16_t *restrict to, const int strip, const bool bf16, struct operand x, int64_t row, int64_t n, int64_t depth)
{
    _Alignas(64) uint16_t rows[COLUMNS > ROWS ? COLUMNS : ROWS][DEPTH];
    const int64_t whole = up_to(depth, UNIT);
    for (int i = 0; i < strip; i++) {
        const int64_t known = i < n ? depth : 0;
        if (bf16)
            memcpy(rows[i], x.bf16 + i * row, (size_t)known * sizeof **rows);
        else
            bf16_round_row(rows[i], x.f32 + i * row, known);
        memset(rows[i] + known, 0, (size_t)(whole - known) * sizeof **rows);
    }
    for (int i = 0; i < strip; i += SQUARE)
        for (int64_t p = 0; p < whole; p += UNIT)
            bf16_transpose(to + p * strip + i * GROUP, strip * GROUP, rows[i] + p, DEPTH);
}

/* GROUP elements of each row of a strip, side by side at x and its next columns. Whole strips and groups have constant counts,
 * so that they become vectors. */
INLINE void interleave(uint16_t *restrict to, const int strip, const bool bf16, struct operand x, int64_t column, int64_t n, int64_t depth)
{
    if (n >= strip && depth >= GROUP)
        for (int i = 0; i < strip; i++)
            for (int e = 0; e < GROUP; e++)
                to[i * GROUP + e] = bits_at(bf16, x, e * column + i);
    else
        for (int i = 0; i < strip; i++)
            for (int e = 0; e < GROUP; e++)
                to[i * GROUP + e] = i < n && e < depth ? bits_at(bf16, x, e * column + i) : 0;
}

enum { WIDE = 32, AHEAD = 16 };         /* rows that are read together: two cache lines; and k */
static_assert(WIDE % ROWS == 0 && WIDE % COLUMNS == 0, "whole strips");

/* Rows that lie side by side, WIDE of them at most: a narrow strip alone would fetch every cache line twice. */
INLINE void pack_across(uint16_t *to, const int strip, const bool bf16, struct operand x, int64_t column, int64_t n, int64_t depth)
{
    const int64_t whole = up_to(depth, UNIT);
    int64_t p = 0;
    for (; n == WIDE && p + AHEAD <= depth; p += AHEAD)
        for (int64_t i = 0; i < n; i += strip)
            if (bf16)
                bf16_copy_strip(to + i * whole + p * strip, strip * GROUP, x.bf16 + p * column + i, column, AHEAD / GROUP);
            else
                bf16_round_strip(to + i * whole + p * strip, strip * GROUP, x.f32 + p * column + i, column, AHEAD / GROUP);
    for (; p < whole; p += GROUP)
        for (int64_t i = 0; i < n; i += strip)
            interleave(to + i * whole + p * strip, strip, bf16, from(x, p * column + i), column, n - i, depth - p);
}

/* n rows, element (i, p) at i * row + p * column of x, as strips that follow each other; what is missing to whole strips and
 * UNITs is zero. */
INLINE void pack(uint16_t *to, const int strip, const bool bf16, struct operand x, int64_t row, int64_t column, int64_t n, int64_t depth)
{
    const int64_t whole = up_to(depth, UNIT);
    if (column == 1)
        for (int64_t i = 0; i < n; i += strip)
            pack_along(to + i * whole, strip, bf16, from(x, i * row), row, n - i, depth);
    else
        for (int64_t i = 0; i < n; i += WIDE)
            pack_across(to + i * whole, strip, bf16, from(x, i * row), column, least(WIDE, n - i), depth);
}

static void pack_a(uint16_t *to, const struct gemm *g, int64_t row, int64_t rows, int64_t first, int64_t depth)
{
    const struct operand a = from((struct operand){g->a, g->a_bf16}, row * g->a_row + first * g->a_col);
    if (a.bf16)
        pack(to, ROWS, true, a, g->a_row, g->a_col, rows, depth);
    else
        pack(to, ROWS, false, a, g->a_row, g->a_col, rows, depth);
}

static void pack_b(uint16_t *to, const struct gemm *g, int64_t column, int64_t columns, int64_t first, int64_t depth)
{
    const int64_t along = g->b_transposed ? g->ldb : 1, down = g->b_transposed ? 1 : g->ldb;
    const struct operand b = from((struct operand){g->b, g->b_bf16}, column * along + first * down);
    if (b.bf16)
        pack(to, COLUMNS, true, b, along, down, columns, depth);
    else
        pack(to, COLUMNS, false, b, along, down, columns, depth);
}

/* Where sums go: c = scale sums + bias, or added to it. */
struct target {
    float *c;
    int64_t ldc;
    const float *bias;          /* of the columns; NULL: none */
    float scale;
    bool accumulate;
};

INLINE void finish(const struct target *t, const float *sums, int64_t rows, const int64_t columns)
{
    float base[COLUMNS] = {0};
    if (t->bias)
        memcpy(base, t->bias, (size_t)columns * sizeof *base);
    for (int64_t i = 0; i < rows; i++, sums += COLUMNS) {
        float *c = t->c + i * t->ldc;
        if (t->accumulate)
            for (int64_t j = 0; j < columns; j++)
                c[j] += t->scale * sums[j] + base[j];
        else
            for (int64_t j = 0; j < columns; j++)
                c[j] = t->scale * sums[j] + base[j];
    }
}

/* A packed block of a times one of b; depth in whole UNITs. */
struct packed {
    const uint16_t *a, *b;
    int64_t rows, columns, depth;
};

static void run_blocks(const struct packed *k, const struct target *t)
{
    for (int64_t j = 0; j < k->columns; j += COLUMNS)
        for (int64_t i = 0; i < k->rows; i += ROWS) {
            _Alignas(64) float sums[ROWS * COLUMNS];
            struct target tile = *t;
            tile.c += i * t->ldc + j;
            tile.bias = t->bias ? t->bias + j : NULL;
            const bool whole = i + ROWS <= k->rows && j + COLUMNS <= k->columns, plain = whole && t->scale == 1 && !t->bias && !t->accumulate;
            bf16_tile(plain ? tile.c : sums, plain ? t->ldc : COLUMNS, k->depth / GROUP, k->a + i * k->depth, k->b + j * k->depth);
            if (whole && !plain)
                finish(&tile, sums, ROWS, COLUMNS);
            else if (!plain)
                finish(&tile, sums, least(ROWS, k->rows - i), least(COLUMNS, k->columns - j));
        }
}

/* A packed block of b, and all rows of a over the same k. */
struct columns_block {
    const struct gemm *g;
    const uint16_t *b;
    int64_t columns, first, depth;
    struct target target;
    int64_t each;               /* rows of a piece */
};

/* Some rows, which whoever does it packs. */
static void tiles_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct columns_block *c = argument;
    uint16_t *packed = ((struct tiles_room *)gemm_room()->bf16)->a;
    for (int64_t i = piece * c->each; i < least((piece + 1) * c->each, c->g->m); i += A_ROWS) {
        const int64_t rows = least(A_ROWS, c->g->m - i);
        struct target t = c->target;
        t.c += i * t.ldc;
        pack_a(packed, c->g, i, rows, c->first, c->depth);
        run_blocks(&(struct packed){.a = packed, .b = c->b, .rows = rows, .columns = c->columns, .depth = up_to(c->depth, UNIT)}, &t);
    }
}

static void gemm_tiles(const struct gemm *g)
{
    uint16_t *packed = ((struct tiles_room *)gemm_room()->bf16)->b;
    for (int64_t j = 0; j < g->n; j += B_COLUMNS)
        for (int64_t first = 0; first == 0 || first < g->k; first += DEPTH) {       /* once even where k is 0 */
            struct columns_block c = {.g = g, .b = packed, .columns = least(B_COLUMNS, g->n - j), .first = first, .depth = least(DEPTH, g->k - first),
                                      .target = {.c = g->c + j, .ldc = g->ldc, .bias = g->bias && first == 0 ? g->bias + j : NULL,
                                                 .scale = g->scale, .accumulate = g->accumulate || first > 0}};
            pack_b(packed, g, j, c.columns, first, c.depth);
            c.each = A_ROWS * piece_units(piece_count(g->m, A_ROWS), A_ROWS * c.columns * c.depth / FASTER);
            team_pieces(tiles_piece, &c, piece_count(g->m, c.each));
        }
}

#endif

/* ---- without instructions for it ---- */

enum { PLAIN_ROWS = 256, PLAIN_COLUMNS = 512, PLAIN_DEPTH = 256 };
static_assert((PLAIN_ROWS + PLAIN_COLUMNS) * PLAIN_DEPTH * sizeof(float) <= sizeof((struct gemm_room *)0)->bf16, "both blocks have room");

/* to (rows, columns) = what is at `first` of an operand, rounded. */
static void round_block(float *restrict to, const float *f32, const uint16_t *bf16, int64_t first, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++, first += stride, to += columns)
        if (bf16)
            for (int64_t j = 0; j < columns; j++)
                to[j] = bf16_value(bf16[first + j]);
        else
            for (int64_t j = 0; j < columns; j++)
                to[j] = bf16_round(f32[first + j]);
}

/* Rows of a times the rounded block b; blocks keep the orientation of the operands. */
static void plain_rows(const struct gemm *g, const struct gemm *block, int64_t first)
{
    float *a = (float *)gemm_room()->bf16;
    const bool ta = g->a_col != 1;
    for (int64_t i = 0; i < g->m; i += PLAIN_ROWS) {
        struct gemm now = *block;
        now.m = least(PLAIN_ROWS, g->m - i);
        round_block(a, g->a, g->a_bf16, i * g->a_row + first * g->a_col, ta ? g->a_col : g->a_row, ta ? now.k : now.m, ta ? now.m : now.k);
        now.a = a;
        now.a_row = ta ? 1 : now.k;
        now.a_col = ta ? now.m : 1;
        now.c += i * g->ldc;
        TUNED(gemm)(&now);
    }
}

static void gemm_plain(const struct gemm *g)
{
    float *b = (float *)gemm_room()->bf16 + PLAIN_ROWS * PLAIN_DEPTH;
    const bool tb = g->b_transposed;
    for (int64_t j = 0; j < g->n; j += PLAIN_COLUMNS)
        for (int64_t first = 0; first == 0 || first < g->k; first += PLAIN_DEPTH) {
            struct gemm now = *g;
            now.n = least(PLAIN_COLUMNS, g->n - j);
            now.k = least(PLAIN_DEPTH, g->k - first);
            now.b = b;
            now.a_bf16 = now.b_bf16 = NULL;
            now.ldb = tb ? now.k : now.n;
            now.c = g->c + j;
            now.bias = g->bias && first == 0 ? g->bias + j : NULL;
            now.accumulate = g->accumulate || first > 0;
            now.bf16 = false;
            round_block(b, g->b, g->b_bf16, tb ? j * g->ldb + first : first * g->ldb + j, g->ldb, tb ? now.n : now.k, now.ldb);
            plain_rows(g, &now, first);
        }
}

void TUNED(gemm_bf16)(const struct gemm *g)
{
#if defined(__AVX512F__)
    if (cpu_has_bf16()) {
        cpu_gemm_pairs(g);
        return;
    }
#elif defined(HONE_BF16_TILE)
    if (cpu_has_bf16()) {
        gemm_tiles(g);
        return;
    }
#endif
    gemm_plain(g);
}

#if defined(HONE_BF16_TILE)
double TUNED(registers_bf16)(int64_t rounds) { return bf16_registers(rounds); }
#endif
