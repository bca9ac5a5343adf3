/* Packs operands for wide_tile.h: b as panels of WIDE_COLUMNS columns, (panels, depth, WIDE_COLUMNS), the last one of as many vectors as
 * hold what is left; a few rows of a side by side. What does not exist is zero. */
#ifndef HONE_OPS_CPU_TUNED_WIDE_PACK_H
#define HONE_OPS_CPU_TUNED_WIDE_PACK_H

#include "ops/cpu/tuned/wide_tile.h"

#if defined(HONE_WIDE_TILE)

enum { WIDE_LINE = 16, WIDE_AHEAD = 8 };        /* floats of a cache line; rows that are fetched ahead: no hardware foresees them */

/* Columns that a panel with so many left has place for. */
static inline int64_t wide_panel(int64_t columns) { return up_to(least(columns, WIDE_COLUMNS), WIDE_LANES); }

/* ---- b as it lies: rows of columns ---- */

/* `vectors` is a constant in every call; the last may have columns that do not exist. */
WIDE_INLINE void wide_copy_rows(float *to, const int vectors, const float *from, int64_t ld, int64_t columns, int64_t depth)
{
    const int whole = vectors - 1;
    const wide_mask last = wide_first(columns - whole * WIDE_LANES);
    for (int64_t p = 0; p < depth; p++, from += ld, to += vectors * WIDE_LANES) {
        for (int i = 0; i < vectors * WIDE_LANES; i += WIDE_LINE)
            __builtin_prefetch(from + WIDE_AHEAD * ld + i);
        for (int j = 0; j < whole; j++)
            *(wide *)(to + j * WIDE_LANES) = *(const wide *)(from + j * WIDE_LANES);
        *(wide *)(to + whole * WIDE_LANES) = wide_load_part(from + whole * WIDE_LANES, last);
    }
}

static inline void wide_copy_columns(float *to, const float *from, int64_t ld, int64_t columns, int64_t depth)
{
    switch (wide_panel(columns) / WIDE_LANES) {
    case 1: wide_copy_rows(to, 1, from, ld, columns, depth); break;
    case 2: wide_copy_rows(to, 2, from, ld, columns, depth); break;
    case 3: wide_copy_rows(to, 3, from, ld, columns, depth); break;
    default: wide_copy_rows(to, 4, from, ld, columns, depth); break;
    }
}

/* ---- b transposed: columns that are contiguous along k ---- */

/* Four k of WIDE_LANES columns: lane group q of vector r has those of column 4 q + r. */
WIDE_INLINE wide wide_gather(const float *from, int64_t ld)
{
#if defined(__AVX512F__)
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(from));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(from + 4 * ld), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(from + 8 * ld), 2);
    return (wide)_mm512_insertf32x4(x, _mm_loadu_ps(from + 12 * ld), 3);
#else
    return (wide)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * ld), 1);
#endif
}

#if defined(__AVX512F__)
#define WIDE_MIX(kind, x, y) ((wide)_mm512_##kind((wide_raw)(x), (wide_raw)(y)))
#define WIDE_HALVES(x, y, pick) ((wide)_mm512_shuffle_ps((wide_raw)(x), (wide_raw)(y), pick))
#else
#define WIDE_MIX(kind, x, y) ((wide)_mm256_##kind((wide_raw)(x), (wide_raw)(y)))
#define WIDE_HALVES(x, y, pick) ((wide)_mm256_shuffle_ps((wide_raw)(x), (wide_raw)(y), pick))
#endif

/* WIDE_LANES columns, four k, times scale: four of these numbers side by side become one of each of four rows. */
WIDE_INLINE void wide_transpose(float *to, int64_t to_step, const float *from, int64_t ld, const float scale)
{
    const wide a = wide_gather(from, ld), b = wide_gather(from + ld, ld), c = wide_gather(from + 2 * ld, ld), d = wide_gather(from + 3 * ld, ld);
    const wide ab_low = WIDE_MIX(unpacklo_ps, a, b), ab_high = WIDE_MIX(unpackhi_ps, a, b);
    const wide cd_low = WIDE_MIX(unpacklo_ps, c, d), cd_high = WIDE_MIX(unpackhi_ps, c, d);
    *(wide *)to = WIDE_HALVES(ab_low, cd_low, 0x44) * scale;
    *(wide *)(to + to_step) = WIDE_HALVES(ab_low, cd_low, 0xee) * scale;
    *(wide *)(to + 2 * to_step) = WIDE_HALVES(ab_high, cd_high, 0x44) * scale;
    *(wide *)(to + 3 * to_step) = WIDE_HALVES(ab_high, cd_high, 0xee) * scale;
}

/* Columns [0, columns) of WIDE_LANES, number by number, from k on. */
static inline void wide_turn_slowly(float *to, int64_t to_step, const float *from, int64_t ld, int64_t columns, int64_t k, int64_t depth)
{
    for (int64_t p = k; p < depth; p++) {
        *(wide *)(to + p * to_step) = (wide){0};
        for (int64_t i = 0; i < least(columns, WIDE_LANES); i++)
            to[p * to_step + i] = from[i * ld + p];
    }
}

/* One vector of columns; the lines of those `next` columns on are fetched meanwhile. */
WIDE_INLINE void wide_turn_columns(float *to, int64_t to_step, const float *from, int64_t ld, int64_t columns, int64_t next, int64_t depth)
{
    int64_t p = 0;
    for (; columns >= WIDE_LANES && p + 4 <= depth; p += 4) {
        for (int64_t i = 0; p % WIDE_LINE == 0 && i < WIDE_LANES; i++)
            __builtin_prefetch(from + (next + i) * ld + p);
        wide_transpose(to + p * to_step, to_step, from + p, ld, 1);
    }
    wide_turn_slowly(to, to_step, from, ld, columns, p, depth);
}

/* ---- whole operands ---- */

/* A panel of b: columns of (depth, columns) with row stride ld, or of (columns, depth) where it is transposed. */
static inline void wide_pack_panel(float *to, const float *from, int64_t ld, bool transposed, int64_t columns, int64_t depth)
{
    if (!transposed)
        wide_copy_columns(to, from, ld, least(columns, WIDE_COLUMNS), depth);
    else
        for (int64_t j = 0; j < least(columns, WIDE_COLUMNS); j += WIDE_LANES)
            wide_turn_columns(to + j, wide_panel(columns), from + j * ld, ld, columns - j, WIDE_LANES, depth);
}

/* At most WIDE_ROWS rows of a whose numbers of one k lie side by side: row i of k at to[k * WIDE_LANES + i]. */
static inline void wide_copy_across(float *to, const float *from, int64_t step, int64_t rows, int64_t depth)
{
    const wide_mask first = wide_first(rows);
    for (int64_t p = 0; p < depth; p++, from += step) {
        __builtin_prefetch(from + WIDE_AHEAD * step);
        *(wide *)(to + p * WIDE_LANES) = wide_load_part(from, first);
    }
}

/* At most WIDE_ROWS rows that are contiguous along k, with a row stride of `gap`. */
static inline void wide_copy_along(float *to, int64_t gap, const float *from, int64_t row, int64_t rows, int64_t depth)
{
    for (int64_t i = 0; i < rows; i++)
        __builtin_memcpy(to + i * gap, from + i * row, (size_t)depth * sizeof *to);
}

#endif
#endif
