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

PAIRS_INLINE void thirds_put(uint16_t *line, __m512 x, __m512 y)
{
    __m512i third[THIRDS];
    thirds_of(third, x, y);
    UNROLL(3)
    for (int t = 0; t < THIRDS; t++)
        _mm512_store_si512(line + t * TILE_NUMBERS, third[t]);
}

/* Four numbers of each of rows 0, 4, 8 and 12. */
PAIRS_INLINE __m512 thirds_gather(const float *from, int64_t stride)
{
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(from));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(from + 4 * stride), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(from + 8 * stride), 2);
    return _mm512_insertf32x4(x, _mm_loadu_ps(from + 12 * stride), 3);
}

/* x[i]: number i of each of TILE rows. */
PAIRS_INLINE void thirds_turn(__m512 x[TILE], const float *from, int64_t stride)
{
    UNROLL(4)
    for (int i = 0; i < TILE; i += 4, from += 4) {
        const __m512 a = thirds_gather(from, stride), b = thirds_gather(from + stride, stride);
        const __m512 c = thirds_gather(from + 2 * stride, stride), d = thirds_gather(from + 3 * stride, stride);
        const __m512 ab_low = _mm512_unpacklo_ps(a, b), ab_high = _mm512_unpackhi_ps(a, b);
        const __m512 cd_low = _mm512_unpacklo_ps(c, d), cd_high = _mm512_unpackhi_ps(c, d);
        x[i] = _mm512_shuffle_ps(ab_low, cd_low, 0x44);
        x[i + 1] = _mm512_shuffle_ps(ab_low, cd_low, 0xee);
        x[i + 2] = _mm512_shuffle_ps(ab_high, cd_high, 0x44);
        x[i + 3] = _mm512_shuffle_ps(ab_high, cd_high, 0xee);
    }
}

/* A whole tile: lines of it lie in memory, or across it. `turned` and `along` are constants in every call; along: numbers of a row lie side by side,
 * else those of a k. */
PAIRS_INLINE void thirds_pack_tile(uint16_t *to, const bool turned, const bool along, const float *from, int64_t stride)
{
    const float *second = from + (along ? TILE : TILE * stride);
    __m512 x[TILE], y[TILE];
    if (turned) {
        thirds_turn(x, from, stride);
        thirds_turn(y, second, stride);
    }
    UNROLL(16)
    for (int i = 0; i < TILE; i++)
        thirds_put(to + i * TILE_DEPTH, turned ? x[i] : _mm512_loadu_ps(from + i * stride), turned ? y[i] : _mm512_loadu_ps(second + i * stride));
}

/* What is there of a tile, and zeros. */
PAIRS_INLINE void thirds_pack_part(uint16_t *to, const bool turned, const bool along, const float *from, int64_t stride, int64_t rows, int64_t depth)
{
    _Alignas(64) float whole[TILE * TILE_DEPTH];
    const int64_t lines = along ? TILE : TILE_DEPTH, length = TILE * TILE_DEPTH / lines, there = least(along ? rows : depth, lines), numbers = along ? depth : rows;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < length; j += TILE)
            _mm512_store_ps(whole + i * length + j, _mm512_maskz_loadu_ps(i < there ? lanes_mask(numbers - j) : 0, from + i * stride + j));
    thirds_pack_tile(to, turned, along, whole, length);
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
                thirds_pack_tile(tile, along == columns, along, from, stride);
            else
                thirds_pack_part(tile, along == columns, along, from, stride, rows_left, depth_left);
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

/* Product n of the six, over the depth of a tile; small ones come first, and each has one side of the one before it. The other side is loaded as soon as a tile is free,
 * that of the first rows or columns while products of the second are computed. `n` is a constant. */
enum { THIRDS_STEPS = 6 };
PAIRS_INLINE void thirds_step(const int n, const bool two_rows, const bool two_columns, const uint16_t *a, const uint16_t *b, int64_t next)
{
    static const int of_a[THIRDS_STEPS + 1] = {0, 0, 1, 1, 2, 0, 0}, of_b[THIRDS_STEPS + 1] = {2, 1, 1, 0, 0, 0, 0};
    const bool new_rows = of_a[n] != of_a[n + 1], new_columns = of_b[n] != of_b[n + 1];
    const uint16_t *rows = a + of_a[n + 1] * TILE_NUMBERS, *columns = b + of_b[n + 1] * TILE_NUMBERS;
    if (n == 0) {
        AMX_LOAD(4, a + of_a[0] * TILE_NUMBERS);
        AMX_LOAD(6, b + of_b[0] * TILE_NUMBERS);
        if (two_rows)
            AMX_LOAD(5, a + of_a[0] * TILE_NUMBERS + next);
        if (two_columns)
            AMX_LOAD(7, b + of_b[0] * TILE_NUMBERS + next);
    }
    AMX_ADD(0, 4, 6);
    if (two_columns && !new_columns)
        AMX_ADD(1, 4, 7);
    if (new_rows)
        AMX_LOAD(4, rows);
    if (two_rows)
        AMX_ADD(2, 5, 6);
    if (new_columns)
        AMX_LOAD(6, columns);
    if (two_columns && new_columns)
        AMX_ADD(1, 4, 7);
    if (two_rows && two_columns)
        AMX_ADD(3, 5, 7);
    if (two_rows && new_rows)
        AMX_LOAD(5, rows + next);
    if (two_columns && new_columns)
        AMX_LOAD(7, columns + next);
}

/* to = a b */
PAIRS_INLINE void thirds_product(const bool two_rows, const bool two_columns, const struct pairs_block *k, float *to, int64_t to_row)
{
    const int64_t next = k->tiles * THIRDS_NUMBERS;
    struct ahead h = k->ahead ? *k->ahead : (struct ahead){0};
    amx_start(two_rows, two_columns, NULL, 0);
    for (int64_t p = 0; p < next; p += THIRDS_NUMBERS)
        UNROLL(6)
        for (int n = 0; n < THIRDS_STEPS; n++) {
            thirds_step(n, two_rows, two_columns, k->a + p, k->b + p, next);
            ahead_ask(&h);
        }
    if (k->ahead)
        *k->ahead = h;
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
