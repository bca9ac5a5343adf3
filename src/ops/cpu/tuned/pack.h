/* Packs an operand of a product as panels for tile.h: `width` rows side by side, k after k, (panels, depth, width), with
 * zeros where rows are missing in the last panel. `width` is a constant in every call. */
#ifndef HONE_OPS_CPU_TUNED_PACK_H
#define HONE_OPS_CPU_TUNED_PACK_H

#include <string.h>

#include "ops/cpu/tuned/tile.h"

/* Element (i, p) at from[i * row + p * step]; one of the strides is 1. */
struct packing {
    const float *from;
    int64_t row, step;
    int64_t rows, depth;
    bool far;                   /* the matrix is not in a cache nearby: what comes next is fetched ahead */
};

/* Four rows of four become four columns of four. */
TILE_INLINE void pack_quad(float *to, int64_t to_stride, const float *from, int64_t stride)
{
    const tile_quad a = *(const tile_quad *)from, b = *(const tile_quad *)(from + stride),
                    c = *(const tile_quad *)(from + 2 * stride), d = *(const tile_quad *)(from + 3 * stride);
    const tile_quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const tile_quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const tile_quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const tile_quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(tile_quad *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(tile_quad *)(to + to_stride) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(tile_quad *)(to + 2 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(tile_quad *)(to + 3 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Rows [row, rows) of one panel, from k on, number by number. */
static void pack_slowly(float *to, int width, const struct packing *s, int64_t row, int64_t k)
{
    for (int64_t p = k; p < s->depth; p++)
        for (int64_t i = row; i < row + width; i++)
            to[p * width + i - row] = i < s->rows ? s->from[i * s->row + p * s->step] : 0;
}

/* Rows that are contiguous along k: the rows of the next panel are what comes next. */
TILE_INLINE void pack_along(float *to, const int width, const struct packing *s)
{
    const int64_t row = s->row, depth = s->depth;
    int64_t i = 0;
    for (; i + width <= s->rows; i += width, to += width * depth) {
        const float *from = s->from + i * row;
        int64_t p = 0;
        for (; p + 4 <= depth; p += 4) {
            for (int r = 0; s->far && p % 16 == 0 && r < width; r++)
                __builtin_prefetch(from + (width + r) * row + p);
            UNROLL(8)
            for (int r = 0; r < width; r += 4)
                pack_quad(to + p * width + r, width, from + r * row + p, row);
        }
        pack_slowly(to, width, s, i, p);
    }
    if (i < s->rows)
        pack_slowly(to, width, s, i, 0);
}

enum { PACK_LINE = 16 };        /* floats of a cache line */
enum { PACK_AHEAD = 8 };        /* k that are fetched ahead: no hardware foresees them */

/* Some panels at once, rows side by side in memory: as many as fill the lines that are read. */
TILE_INLINE void pack_panels(float *to, const int width, const int panels, const float *from, int64_t step, int64_t depth)
{
    for (int64_t p = 0; p < depth; p++, from += step) {
        for (int i = 0; i < panels * width; i += PACK_LINE)
            __builtin_prefetch(from + PACK_AHEAD * step + i);
        UNROLL(8)
        for (int i = 0; i < panels; i++)
            memcpy(to + (i * depth + p) * width, from + i * width, (size_t)width * sizeof *to);
    }
}

TILE_INLINE void pack_across(float *to, const int width, const struct packing *s)
{
    const int panels = width < 2 * PACK_LINE ? 2 * PACK_LINE / width : 1;
    int64_t i = 0;
    for (; i + panels * width <= s->rows; i += panels * width)
        pack_panels(to + i * s->depth, width, panels, s->from + i, s->step, s->depth);
    for (; i + width <= s->rows; i += width)
        pack_panels(to + i * s->depth, width, 1, s->from + i, s->step, s->depth);
    if (i < s->rows)
        pack_slowly(to + i * s->depth, width, s, i, 0);
}

TILE_INLINE void pack(float *to, const int width, const struct packing *s)
{
    if (s->step == 1)
        pack_along(to, width, s);
    else
        pack_across(to, width, s);
}

#endif
