/* The innermost product where vectors have 8 or 16 lanes (AVX2, AVX-512): a tile of results lives in registers while k passes by, as
 * many rows as registers allow, one or two vectors wide. A number of a is one load that spreads it over a vector, so a needs no
 * packing: element (i, p) may lie anywhere. Rows of b are vectors.
 *
 * Of what multiply-adds in registers reach on a Xeon with AVX-512, 216 GFLOP/s a core: 14 rows 98 % from depth 128 on, 12 rows as much,
 * 8 rows 96 %. So any number of rows is cut into tiles of about equal height instead of whole ones and a rest. */
#ifndef HONE_OPS_CPU_TUNED_WIDE_TILE_H
#define HONE_OPS_CPU_TUNED_WIDE_TILE_H

#if defined(__AVX512F__) || defined(__AVX2__)
#define HONE_WIDE_TILE

#include <immintrin.h>

#include "ops/cpu/tuned/tuned.h"

#define WIDE_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
enum { WIDE_LANES = 16, WIDE_ROWS = 14 };
typedef __mmask16 wide_mask;
typedef __m512 wide_raw;
#define WIDE_REGISTER "+v"
#else
enum { WIDE_LANES = 8, WIDE_ROWS = 6 };
typedef __m256i wide_mask;
typedef __m256 wide_raw;
#define WIDE_REGISTER "+x"
#endif
enum { WIDE_COLUMNS = 2 * WIDE_LANES };

typedef float wide __attribute__((vector_size(WIDE_LANES * 4), aligned(4), may_alias));

/* The first n lanes; all of them where n is more. */
WIDE_INLINE wide_mask wide_first(int64_t n)
{
#if defined(__AVX512F__)
    return (wide_mask)(n >= WIDE_LANES ? 0xffff : n > 0 ? (1 << n) - 1 : 0);
#else
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
#endif
}

/* Zeros in other lanes, whose memory is not touched. */
WIDE_INLINE wide wide_load_part(const float *from, wide_mask m)
{
#if defined(__AVX512F__)
    return (wide)_mm512_maskz_loadu_ps(m, from);
#else
    return (wide)_mm256_maskload_ps(from, m);
#endif
}

WIDE_INLINE void wide_store_part(float *to, wide_mask m, wide x)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, m, (wide_raw)x);
#else
    _mm256_maskstore_ps(to, m, (wide_raw)x);
#endif
}

/* c = scale * a b + bias, or c += that. */
struct wide_product {
    const float *a;             /* element (i, p) at a[i * a_row + p * a_step] */
    int64_t a_row, a_step;
    const float *b;             /* row p at b + p * b_step: one vector or two, zeros or anything in columns that do not exist */
    int64_t b_step;
    int64_t depth;
    float *c;
    int64_t ldc, columns;
    const float *bias;          /* (columns), or NULL */
    float scale;
    bool accumulate;
};

/* Where results are more than stored, or are not whole vectors. */
WIDE_INLINE void wide_finish(wide s[][2], const int rows, const int vectors, const struct wide_product *g)
{
    wide_mask mask[2];
    wide bias[2];
    for (int j = 0; j < vectors; j++) {
        mask[j] = wide_first(g->columns - j * WIDE_LANES);
        bias[j] = (wide){0};
        if (g->bias)
            bias[j] = wide_load_part(g->bias + j * WIDE_LANES, mask[j]);
    }
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            float *c = g->c + i * g->ldc + j * WIDE_LANES;
            wide sum = s[i][j] * g->scale + bias[j];
            if (g->accumulate)
                sum += wide_load_part(c, mask[j]);
            wide_store_part(c, mask[j], sum);
        }
}

WIDE_INLINE void wide_store(wide s[][2], const int rows, const int vectors, const struct wide_product *g)
{
    if (g->columns < vectors * WIDE_LANES || g->scale != 1 || g->bias || g->accumulate) {
        wide_finish(s, rows, vectors, g);
        return;
    }
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            *(wide *)(g->c + i * g->ldc + j * WIDE_LANES) = s[i][j];
}

/* `rows` and `vectors` are constants in every call. Rows of a are found from every third: an address has a base and an index. The empty
 * statements keep a row's arithmetic together: left alone, compilers move loads ahead until registers run out. */
WIDE_INLINE void wide_run(const int rows, const int vectors, const struct wide_product *g)
{
    enum { EVERY = 3, BASES = (WIDE_ROWS + EVERY - 1) / EVERY };
    const int64_t row = g->a_row, step = g->a_step, b_step = g->b_step;
    const float *b = g->b, *a[BASES];
    wide s[WIDE_ROWS][2];
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        s[i][0] = s[i][1] = (wide){0};
    UNROLL(5)
    for (int i = 0; i < BASES; i++)
        a[i] = g->a + EVERY * i * row;
    UNROLL(4)
    for (int64_t p = g->depth; p > 0; p--) {
        const wide u = *(const wide *)b, v = vectors > 1 ? *(const wide *)(b + WIDE_LANES) : u;
        b += b_step;
        UNROLL(14)
        for (int i = 0; i < rows; i++) {
            const float x = a[i / EVERY][i % EVERY * row];
            s[i][0] += x * u;
            __asm__ volatile("" : WIDE_REGISTER(s[i][0]));
            if (vectors > 1) {
                s[i][1] += x * v;
                __asm__ volatile("" : WIDE_REGISTER(s[i][1]));
            }
        }
        UNROLL(5)
        for (int i = 0; i < BASES; i++)
            a[i] += step;
    }
    wide_store(s, rows, vectors, g);
}

/* A tile of at most WIDE_ROWS rows and WIDE_COLUMNS columns. */
void TUNED(wide_tile)(int rows, const struct wide_product *g);

#endif
#endif
