/* An f32 number as three of bf16, its thirds, each the next 8 of its 24 digits rounded to the nearest: their sum is the number. The product of
 * two numbers is six products of thirds; the other three are below the last digit of the result.
 *
 * Tiles are those of pack.h, three for each: (strips, depth / TILE_DEPTH, 3, TILE_NUMBERS). A pair is numbers k and k + 16 of the depth of a tile,
 * of both operands: their upper halves lie side by side after one shift. */
#ifndef HONE_OPS_CPU_PAIRS_THIRDS_H
#define HONE_OPS_CPU_PAIRS_THIRDS_H

#include "ops/cpu/pairs/tiles.h"

enum { THIRDS = 3, THIRDS_NUMBERS = THIRDS * TILE_NUMBERS };

/* ---- packing ---- */

/* The nearest number of bf16, as f32; infinity where x is larger than all of them. */
PAIRS_INLINE __m512 third_nearest(__m512 x)
{
    const __m512i up = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
    return _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32((int)0xffff0000)));
}

/* Pairs of their upper halves. Where numbers are denormal there is more in the lower ones. */
PAIRS_INLINE __m512i thirds_pair(__m512 first, __m512 second)
{
    const __m512i upper = _mm512_and_si512(_mm512_castps_si512(second), _mm512_set1_epi32((int)0xffff0000));
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(first), 16), upper);
}

/* The thirds of both, largest first. */
PAIRS_INLINE void thirds_of(__m512i to[THIRDS], __m512 x, __m512 y)
{
    UNROLL(2)
    for (int i = 0; i < THIRDS - 1; i++) {
        const __m512 u = third_nearest(x), v = third_nearest(y);
        to[i] = thirds_pair(u, v);
        x = _mm512_sub_ps(x, u);
        y = _mm512_sub_ps(y, v);
    }
    to[THIRDS - 1] = thirds_pair(x, y);
}

/* Line i of a tile: row i along k, or pair i of all rows across it. */
PAIRS_INLINE void thirds_line(__m512i to[THIRDS], const bool along, int i, const float *from, int64_t stride, int64_t rows, int64_t depth)
{
    const __mmask16 low = along ? lanes_mask(i < rows ? depth : 0) : lanes_mask(i < depth ? rows : 0);
    const __mmask16 high = along ? lanes_mask(i < rows ? depth - TILE : 0) : lanes_mask(i + TILE < depth ? rows : 0);
    thirds_of(to, _mm512_maskz_loadu_ps(low, from + i * stride), _mm512_maskz_loadu_ps(high, from + (along ? i * stride + TILE : (i + TILE) * stride)));
}

/* One tile, three times; `columns` and `along` are constants in every call, and so are the counts of whole tiles. */
PAIRS_INLINE void thirds_pack_tile(uint16_t *to, const bool columns, const bool along, const float *from, int64_t stride, int64_t rows, int64_t depth)
{
    __m512i x[THIRDS][TILE];
    UNROLL(16)
    for (int i = 0; i < TILE; i++) {
        __m512i line[THIRDS];
        thirds_line(line, along, i, from, stride, rows, depth);
        UNROLL(3)
        for (int t = 0; t < THIRDS; t++)
            if (along == columns)
                x[t][i] = line[t];
            else
                _mm512_store_si512(to + t * TILE_NUMBERS + i * TILE_DEPTH, line[t]);
    }
    for (int t = 0; along == columns && t < THIRDS; t++) {
        transpose(x[t]);
        UNROLL(16)
        for (int i = 0; i < TILE; i++)
            _mm512_store_si512(to + t * TILE_NUMBERS + i * TILE_DEPTH, x[t][i]);
    }
}

PAIRS_INLINE void thirds_pack_strips(uint16_t *to, const bool columns, const bool along, struct pairs_side s, int64_t rows, int64_t depth)
{
    const int64_t across = up_to(rows, TILE) / TILE, down = up_to(depth, TILE_DEPTH) / TILE_DEPTH;
    const int64_t outer = along ? across : down, inner = along ? down : across, stride = along ? s.row : s.step;
    for (int64_t n = 0; n < outer; n++)
        for (int64_t m = 0; m < inner; m++) {
            const int64_t i = along ? n : m, p = along ? m : n, rows_left = rows - i * TILE, depth_left = depth - p * TILE_DEPTH;
            const float *from = s.from + i * TILE * s.row + p * TILE_DEPTH * s.step;
            uint16_t *tile = to + (i * down + p) * THIRDS_NUMBERS;
            if (rows_left >= TILE && depth_left >= TILE_DEPTH)
                thirds_pack_tile(tile, columns, along, from, stride, TILE, TILE_DEPTH);
            else
                thirds_pack_tile(tile, columns, along, from, stride, rows_left, depth_left);
        }
}

/* The left operand, and the right one: `rows` of it are columns of the matrix. */
static inline void thirds_pack_rows(uint16_t *to, struct pairs_side s, int64_t rows, int64_t depth)
{
    if (s.step == 1)
        thirds_pack_strips(to, false, true, s, rows, depth);
    else
        thirds_pack_strips(to, false, false, s, rows, depth);
}
static inline void thirds_pack_columns(uint16_t *to, struct pairs_side s, int64_t rows, int64_t depth)
{
    if (s.step == 1)
        thirds_pack_strips(to, true, true, s, rows, depth);
    else
        thirds_pack_strips(to, true, false, s, rows, depth);
}

/* ---- products ---- */

#if defined(HONE_AMX)

/* sums += the products of two tiles of rows and two of columns that are loaded. */
PAIRS_INLINE void thirds_multiply(const bool two_rows, const bool two_columns)
{
    _tile_dpbf16ps(0, 4, 6);
    if (two_columns)
        _tile_dpbf16ps(1, 4, 7);
    if (two_rows)
        _tile_dpbf16ps(2, 5, 6);
    if (two_rows && two_columns)
        _tile_dpbf16ps(3, 5, 7);
}

PAIRS_INLINE void thirds_load_rows(const bool two, const uint16_t *a, int64_t next)
{
    _tile_loadd(4, a, 64);
    if (two)
        _tile_loadd(5, a + next, 64);
}

PAIRS_INLINE void thirds_load_columns(const bool two, const uint16_t *b, int64_t next)
{
    _tile_loadd(6, b, 64);
    if (two)
        _tile_loadd(7, b + next, 64);
}

/* Of the depth of a tile: small ones first, and a tile or two loaded for each. */
PAIRS_INLINE void thirds_step(const bool two_rows, const bool two_columns, const uint16_t *a, const uint16_t *b, int64_t next)
{
    thirds_load_rows(two_rows, a, next);
    thirds_load_columns(two_columns, b + 2 * TILE_NUMBERS, next);
    thirds_multiply(two_rows, two_columns);
    thirds_load_columns(two_columns, b + TILE_NUMBERS, next);
    thirds_multiply(two_rows, two_columns);
    thirds_load_rows(two_rows, a + TILE_NUMBERS, next);
    thirds_multiply(two_rows, two_columns);
    thirds_load_columns(two_columns, b, next);
    thirds_multiply(two_rows, two_columns);
    thirds_load_rows(two_rows, a + 2 * TILE_NUMBERS, next);
    thirds_multiply(two_rows, two_columns);
    thirds_load_rows(two_rows, a, next);
    thirds_multiply(two_rows, two_columns);
}

/* to = a b */
PAIRS_INLINE void thirds_product(const bool two_rows, const bool two_columns, const struct pairs_block *k, float *to, int64_t to_row)
{
    const int64_t next = k->tiles * THIRDS_NUMBERS;
    amx_start(two_rows, two_columns, NULL, 0);
    for (int64_t p = 0; p < next; p += THIRDS_NUMBERS)
        thirds_step(two_rows, two_columns, k->a + p, k->b + p, next);
    amx_store(two_rows, two_columns, to, to_row);
}

static inline void thirds_any(const struct pairs_block *k, float *to, int64_t to_row)
{
    if (k->rows > TILE && k->columns > TILE)
        thirds_product(true, true, k, to, to_row);
    else if (k->rows > TILE)
        thirds_product(true, false, k, to, to_row);
    else if (k->columns > TILE)
        thirds_product(false, true, k, to, to_row);
    else
        thirds_product(false, false, k, to, to_row);
}

#endif

#endif
