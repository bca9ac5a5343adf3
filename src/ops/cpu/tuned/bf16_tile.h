/* A tile of a product of bf16 numbers with f32 sums, for ARM: the only code that names its instructions (x86-64: pairs/tiles.h).
 * HONE_BF16_TILE is defined where there is one; it runs where cpu_has_bf16 says so.
 *
 * Operands are strips: ROWS rows of a, COLUMNS columns of b. Along k a strip goes in groups of GROUP numbers, which one
 * instruction multiplies and sums: (groups, ROWS, GROUP) and (groups, COLUMNS, GROUP). A square is 16 bytes of groups each way:
 * SQUARE rows of as many groups. */
#ifndef HONE_OPS_CPU_TUNED_BF16_TILE_H
#define HONE_OPS_CPU_TUNED_BF16_TILE_H

#include "core/bf16.h"
#include "ops/cpu/tuned/tuned.h"

#if defined(__aarch64__) && !defined(__clang__)     /* clang offers them only where the whole file is compiled for them */

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

#define WITH_BF16 static __attribute__((noinline, target("arch=armv8.2-a+bf16")))

/* Eight numbers, as bf16_bits rounds them; subnormal ones are zero already (core/subnormal.h). */
#define BF16_EIGHT(from) vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(vld1q_f32(from)), vld1q_f32((from) + 4)))

WITH_BF16 void bf16_round_row(uint16_t *to, const float *from, int64_t n)
{
    int64_t p = 0;
    for (; p + 8 <= n; p += 8)
        vst1q_u16(to + p, BF16_EIGHT(from + p));
    for (; p < n; p++)
        to[p] = bf16_bits(from[p]);
}

/* A strip of eight rows that lie side by side, `column` numbers from one k to the next: groups of four k. */
WITH_BF16 void bf16_round_strip(uint16_t *to, int64_t to_stride, const float *from, int64_t column, int64_t groups)
{
    for (int64_t g = 0; g < groups; g++, to += to_stride, from += GROUP * column)
        vst4q_u16(to, (uint16x8x4_t){{BF16_EIGHT(from), BF16_EIGHT(from + column), BF16_EIGHT(from + 2 * column), BF16_EIGHT(from + 3 * column)}});
}

static inline void bf16_copy_strip(uint16_t *to, int64_t to_stride, const uint16_t *from, int64_t column, int64_t groups)
{
    for (int64_t g = 0; g < groups; g++, to += to_stride, from += GROUP * column)
        vst4q_u16(to, (uint16x8x4_t){{vld1q_u16(from), vld1q_u16(from + column), vld1q_u16(from + 2 * column), vld1q_u16(from + 3 * column)}});
}

/* out (ROWS, COLUMNS), rows `stride` numbers apart. Sums come as squares of two rows and two columns, each of two groups of four products. */
WITH_BF16 void bf16_tile(float *out, int64_t stride, int64_t groups, const uint16_t *a, const uint16_t *b)
{
    float32x4_t x[ROWS / 2][COLUMNS / 2];
    UNROLL(4)
    for (int i = 0; i < ROWS / 2; i++)
        UNROLL(4)
        for (int j = 0; j < COLUMNS / 2; j++)
            x[i][j] = vdupq_n_f32(0);
    UNROLL(2)
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
        UNROLL(2)
        for (int j = 0; j < COLUMNS / 2; j += 2) {
            const float64x2_t left = vreinterpretq_f64_f32(x[i][j]), right = vreinterpretq_f64_f32(x[i][j + 1]);
            vst1q_f32(out + 2 * i * stride + 2 * j, vreinterpretq_f32_f64(vzip1q_f64(left, right)));
            vst1q_f32(out + (2 * i + 1) * stride + 2 * j, vreinterpretq_f32_f64(vzip2q_f64(left, right)));
        }
}

/* So many rounds of products that stay in registers; returns their FLOPs. Each waits for itself. */
WITH_BF16 double bf16_registers(int64_t rounds)
{
    enum { CHAINS = 24, FLOPS = 2 * 2 * 2 * GROUP };            /* more than a CPU has under way; of an instruction */
    const uint16_t zeros[2 * GROUP] = {0}, *from = zeros;       /* loaded, as in a product: see registers.c */
    __asm__ volatile("" : "+r"(from) : : "memory");
    float32x4_t x[CHAINS];
    const bfloat16x8_t u = vreinterpretq_bf16_u16(vld1q_u16(from)), v = vreinterpretq_bf16_u16(vld1q_u16(from));
    UNROLL(24)
    for (int i = 0; i < CHAINS; i++)
        x[i] = vdupq_n_f32(0);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL(24)
        for (int i = 0; i < CHAINS; i++) {
            x[i] = vbfmmlaq_f32(x[i], u, v);
            __asm__ volatile("" : "+w"(x[i]));                      /* somebody wants it */
        }
    }
    return (double)rounds * CHAINS * FLOPS;
}

#endif

#endif
