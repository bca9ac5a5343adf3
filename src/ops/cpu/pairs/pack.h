/* Packs an operand of a product of bf16 as the instructions of x86-64 take it: numbers go in pairs along k, a pair is 32 bits. A tile is
 * 16 rows of the operand by 16 pairs, 1 KB, rounded to the nearest on the way:
 *   of the left operand    (16 rows, 16 pairs)     rows_tile
 *   of the right operand   (16 pairs, 16 rows)     columns_tile: its rows are columns of the matrix
 * What is bf16 already is taken as it is.
 * Sixteen registers hold a tile: they are filled by row where numbers are contiguous along k, by pair where they are across it, and
 * stored as they are or transposed. What is missing to whole tiles is zero. Numbers below the smallest normal one become zero. */
#ifndef HONE_OPS_CPU_PAIRS_PACK_H
#define HONE_OPS_CPU_PAIRS_PACK_H

#include <immintrin.h>

#include "ops/cpu/tuned/tuned.h"

enum { TILE = 16, TILE_DEPTH = 32, TILE_NUMBERS = TILE * TILE_DEPTH };

#define PAIRS_INLINE static inline __attribute__((always_inline))

/* Element (i, p) at from[i * row + p * step]; one of the strides is 1. */
struct pairs_side {
    const float *from;
    int64_t row, step;
};

/* The same of f32 or bf16. */
struct pairs_either {
    const void *from;
    int64_t row, step;
    bool bf16;
};

PAIRS_INLINE struct pairs_either either_of(const float *f32, const uint16_t *bf16, int64_t row, int64_t step)
{
    return (struct pairs_either){bf16 ? (const void *)bf16 : f32, row, step, bf16 != NULL};
}

/* From element (i, p) on. */
PAIRS_INLINE struct pairs_either either_at(struct pairs_either e, int64_t i, int64_t p)
{
    const int64_t at = (i * e.row + p * e.step) * (e.bf16 ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float));
    return (struct pairs_either){(const char *)e.from + at, e.row, e.step, e.bf16};
}

/* The first n lanes. */
PAIRS_INLINE __mmask16 lanes_mask(int64_t n) { return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1); }
PAIRS_INLINE __mmask32 halves_mask(int64_t n) { return n >= 32 ? 0xffffffff : n <= 0 ? 0 : (__mmask32)((1u << n) - 1); }

/* Two vectors of floats: the numbers of low, then those of high. */
PAIRS_INLINE __m512i pairs_round(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/* Pairs (x[0], x[16]), (x[1], x[17]), ... */
PAIRS_INLINE __m512i pairs_order(__m512i x)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                           18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, x);
}

/* Pairs (low[0], high[0]), (low[1], high[1]), ... */
PAIRS_INLINE __m512i pairs_zip(__m512 low, __m512 high) { return pairs_order(pairs_round(low, high)); }

/* x[i]: row i, its pairs. */
PAIRS_INLINE void take_rows(__m512i x[TILE], const float *from, int64_t row, int64_t rows, int64_t depth)
{
    const __mmask16 low = lanes_mask(depth), high = lanes_mask(depth - 16);
    UNROLL(16)
    for (int i = 0; i < TILE; i++)
        x[i] = i < rows ? pairs_round(_mm512_maskz_loadu_ps(low, from + i * row), _mm512_maskz_loadu_ps(high, from + i * row + 16))
                        : _mm512_setzero_si512();
}

/* x[i]: pair i of all rows. */
PAIRS_INLINE void take_pairs(__m512i x[TILE], const float *from, int64_t step, int64_t rows, int64_t depth)
{
    const __mmask16 there = lanes_mask(rows);
    UNROLL(16)
    for (int i = 0; i < TILE; i++) {
        const __m512 low = _mm512_maskz_loadu_ps(2 * i < depth ? there : 0, from + 2 * i * step);
        const __m512 high = _mm512_maskz_loadu_ps(2 * i + 1 < depth ? there : 0, from + (2 * i + 1) * step);
        x[i] = pairs_zip(low, high);
    }
}

/* The same of bf16. */
PAIRS_INLINE void take_rows_bf16(__m512i x[TILE], const uint16_t *from, int64_t row, int64_t rows, int64_t depth)
{
    const __mmask32 there = halves_mask(depth);
    UNROLL(16)
    for (int i = 0; i < TILE; i++)
        x[i] = i < rows ? _mm512_maskz_loadu_epi16(there, from + i * row) : _mm512_setzero_si512();
}

PAIRS_INLINE void take_pairs_bf16(__m512i x[TILE], const uint16_t *from, int64_t step, int64_t rows, int64_t depth)
{
    const __mmask16 there = lanes_mask(rows);
    UNROLL(16)
    for (int i = 0; i < TILE; i++) {
        const __m256i low = _mm256_maskz_loadu_epi16(2 * i < depth ? there : 0, from + 2 * i * step);
        const __m256i high = _mm256_maskz_loadu_epi16(2 * i + 1 < depth ? there : 0, from + (2 * i + 1) * step);
        x[i] = pairs_order(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
}

/* Rows of 32-bit words become columns. */
PAIRS_INLINE void transpose(__m512i x[TILE])
{
    __m512i y[TILE];
    UNROLL(8)
    for (int i = 0; i < TILE; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    UNROLL(4)
    for (int i = 0; i < TILE; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        y[i] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
        y[i + 4] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
        y[i + 8] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
        y[i + 12] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
    }
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        x[i] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0x88);
        x[i + 4] = _mm512_shuffle_i32x4(y[i + 4], y[i + 12], 0x88);
        x[i + 8] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0xdd);
        x[i + 12] = _mm512_shuffle_i32x4(y[i + 4], y[i + 12], 0xdd);
    }
}

/* One tile; `columns`, `along` and `bf16` are constants in every call, and so are the counts of whole tiles. */
PAIRS_INLINE void pack_tile(uint16_t *to, const bool columns, const bool along, const bool bf16, const void *from, int64_t stride, int64_t rows, int64_t depth)
{
    __m512i x[TILE];
    if (along && bf16)
        take_rows_bf16(x, from, stride, rows, depth);
    else if (along)
        take_rows(x, from, stride, rows, depth);
    else if (bf16)
        take_pairs_bf16(x, from, stride, rows, depth);
    else
        take_pairs(x, from, stride, rows, depth);
    if (along == columns)
        transpose(x);
    UNROLL(16)
    for (int i = 0; i < TILE; i++)
        _mm512_store_si512(to + i * TILE_DEPTH, x[i]);
}

/* Rows [0, rows) as strips of tiles, (strips, depth / TILE_DEPTH tiles). What is contiguous is read as far as it goes. */
PAIRS_INLINE void pack_strips(uint16_t *to, const bool columns, const bool along, const bool bf16, const void *all, int64_t row, int64_t step, int64_t rows,
                              int64_t depth)
{
    const int64_t across = up_to(rows, TILE) / TILE, down = up_to(depth, TILE_DEPTH) / TILE_DEPTH;
    const int64_t outer = along ? across : down, inner = along ? down : across, stride = along ? row : step;
    for (int64_t n = 0; n < outer; n++)
        for (int64_t m = 0; m < inner; m++) {
            const int64_t i = along ? n : m, p = along ? m : n, rows_left = rows - i * TILE, depth_left = depth - p * TILE_DEPTH;
            const int64_t at = i * TILE * row + p * TILE_DEPTH * step;
            const void *from = bf16 ? (const void *)((const uint16_t *)all + at) : (const float *)all + at;
            uint16_t *tile = to + (i * down + p) * TILE_NUMBERS;
            if (rows_left >= TILE && depth_left >= TILE_DEPTH)
                pack_tile(tile, columns, along, bf16, from, stride, TILE, TILE_DEPTH);
            else
                pack_tile(tile, columns, along, bf16, from, stride, rows_left, depth_left);
        }
}

PAIRS_INLINE void pack_side(uint16_t *to, const bool columns, const bool bf16, const void *all, int64_t row, int64_t step, int64_t rows, int64_t depth)
{
    if (step == 1)
        pack_strips(to, columns, true, bf16, all, row, step, rows, depth);
    else
        pack_strips(to, columns, false, bf16, all, row, step, rows, depth);
}

/* The left operand, and the right one. */
static inline void pack_rows(uint16_t *to, const struct pairs_side *s, int64_t rows, int64_t depth)
{
    pack_side(to, false, false, s->from, s->row, s->step, rows, depth);
}
static inline void pack_columns(uint16_t *to, const struct pairs_side *s, int64_t columns, int64_t depth)
{
    pack_side(to, true, false, s->from, s->row, s->step, columns, depth);
}

static inline void pack_either_rows(uint16_t *to, struct pairs_either e, int64_t rows, int64_t depth)
{
    if (e.bf16)
        pack_side(to, false, true, e.from, e.row, e.step, rows, depth);
    else
        pack_side(to, false, false, e.from, e.row, e.step, rows, depth);
}
static inline void pack_either_columns(uint16_t *to, struct pairs_either e, int64_t columns, int64_t depth)
{
    if (e.bf16)
        pack_side(to, true, true, e.from, e.row, e.step, columns, depth);
    else
        pack_side(to, true, false, e.from, e.row, e.step, columns, depth);
}

#endif
