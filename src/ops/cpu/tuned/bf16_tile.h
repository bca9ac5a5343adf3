/* A tile of a product of bf16 numbers with f32 sums, for the instruction sets that have one: the only code that names its
 * instructions. HONE_BF16_TILE is defined where there is one; it runs where cpu_has_bf16 says so.
 *
 * Operands are strips: ROWS rows of a, COLUMNS columns of b. Along k a strip goes in groups of GROUP numbers, which one
 * instruction multiplies and sums: (groups, ROWS, GROUP) and (groups, COLUMNS, GROUP). A square is 16 bytes of groups each way:
 * SQUARE rows of as many groups. */
#ifndef HONE_OPS_CPU_TUNED_BF16_TILE_H
#define HONE_OPS_CPU_TUNED_BF16_TILE_H

#include "ops/cpu/tuned/tuned.h"

#if defined(__AVX512F__)

#include <immintrin.h>

#define HONE_BF16_TILE
enum { GROUP = 2, SQUARE = 4, ROWS = 8, COLUMNS = 32 };         /* a row of a tile: two vectors of sums */

typedef uint32_t groups_4 __attribute__((vector_size(16), aligned(2), may_alias));

/* Rows of groups, `stride` numbers apart, become columns. */
static inline void bf16_transpose(uint16_t *to, int64_t to_stride, const uint16_t *from, int64_t stride)
{
    const groups_4 a = *(const groups_4 *)from, b = *(const groups_4 *)(from + stride),
                   c = *(const groups_4 *)(from + 2 * stride), d = *(const groups_4 *)(from + 3 * stride);
    const groups_4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const groups_4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(groups_4 *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(groups_4 *)(to + to_stride) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(groups_4 *)(to + 2 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(groups_4 *)(to + 3 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Not inlined: the instructions are for this function alone. */
static __attribute__((noinline, target("avx512bf16"))) void bf16_tile(float *out /* (ROWS, COLUMNS) */, int64_t groups,
                                                                       const uint16_t *a, const uint16_t *b)
{
    __m512 x[ROWS], y[ROWS];
    UNROLL(8)
    for (int i = 0; i < ROWS; i++)
        x[i] = y[i] = _mm512_setzero_ps();
    for (int64_t g = 0; g < groups; g++, a += ROWS * GROUP, b += COLUMNS * GROUP) {
        const __m512bh u = (__m512bh)_mm512_loadu_si512(b), v = (__m512bh)_mm512_loadu_si512(b + 32);
        UNROLL(8)
        for (int i = 0; i < ROWS; i++) {
            int pair;
            __builtin_memcpy(&pair, a + i * GROUP, sizeof pair);
            const __m512bh s = (__m512bh)_mm512_set1_epi32(pair);
            x[i] = _mm512_dpbf16_ps(x[i], s, u);
            y[i] = _mm512_dpbf16_ps(y[i], s, v);
        }
    }
    UNROLL(8)
    for (int i = 0; i < ROWS; i++) {
        _mm512_storeu_ps(out + i * COLUMNS, x[i]);
        _mm512_storeu_ps(out + i * COLUMNS + 16, y[i]);
    }
}

#elif defined(__aarch64__) && !defined(__clang__)     /* clang offers them only where the whole file is compiled for them */

#include <arm_neon.h>

#define HONE_BF16_TILE
enum { GROUP = 4, SQUARE = 2, ROWS = 8, COLUMNS = 8 };

typedef uint64_t groups_2 __attribute__((vector_size(16), aligned(2), may_alias));

/* Rows of groups, `stride` numbers apart, become columns. */
static inline void bf16_transpose(uint16_t *to, int64_t to_stride, const uint16_t *from, int64_t stride)
{
    const groups_2 a = *(const groups_2 *)from, b = *(const groups_2 *)(from + stride);
    *(groups_2 *)to = __builtin_shufflevector(a, b, 0, 2);
    *(groups_2 *)(to + to_stride) = __builtin_shufflevector(a, b, 1, 3);
}

/* Sums come as squares of two rows and two columns, each of two groups of four products. */
static __attribute__((noinline, target("arch=armv8.2-a+bf16"))) void bf16_tile(float *out /* (ROWS, COLUMNS) */, int64_t groups,
                                                                               const uint16_t *a, const uint16_t *b)
{
    float32x4_t x[ROWS / 2][COLUMNS / 2];
    UNROLL(4)
    for (int i = 0; i < ROWS / 2; i++)
        UNROLL(4)
        for (int j = 0; j < COLUMNS / 2; j++)
            x[i][j] = vdupq_n_f32(0);
    for (int64_t g = 0; g < groups; g++, a += ROWS * GROUP, b += COLUMNS * GROUP) {
        bfloat16x8_t v[COLUMNS / 2];
        UNROLL(4)
        for (int j = 0; j < COLUMNS / 2; j++)
            v[j] = vreinterpretq_bf16_u16(vld1q_u16(b + j * 8));
        UNROLL(4)
        for (int i = 0; i < ROWS / 2; i++) {
            const bfloat16x8_t u = vreinterpretq_bf16_u16(vld1q_u16(a + i * 8));
            UNROLL(4)
            for (int j = 0; j < COLUMNS / 2; j++)
                x[i][j] = vbfmmlaq_f32(x[i][j], u, v[j]);
        }
    }
    UNROLL(4)
    for (int i = 0; i < ROWS / 2; i++)
        UNROLL(4)
        for (int j = 0; j < COLUMNS / 2; j++) {
            vst1_f32(out + 2 * i * COLUMNS + 2 * j, vget_low_f32(x[i][j]));
            vst1_f32(out + (2 * i + 1) * COLUMNS + 2 * j, vget_high_f32(x[i][j]));
        }
}

#endif

#endif
