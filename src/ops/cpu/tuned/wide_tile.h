/* The innermost product where vectors have 8 or 16 lanes (AVX2, AVX-512): a tile of results lives in registers while k passes by, as
 * many rows as registers allow, one to four vectors wide. A number of a is one load that spreads it over a vector, so a needs no
 * packing: its rows lie along k or across it, any distance apart. Rows of b are vectors.
 *
 * Any number of rows is cut into tiles of about equal height instead of whole ones and a rest: heights are about as fast. Three things keep the loop
 * near what multiply-adds in registers reach (docs/performance.md): nothing else takes their places (no copies of registers, few additions of
 * addresses); lines of memory that later tiles want are asked for a few at a time; and loads are few, 10 for 24 multiply-adds where 6 rows are four vectors wide:
 * a core that runs somebody else's thread beside ours has half of its places for us, and loads then stand in the way of arithmetic. */
#ifndef HONE_OPS_CPU_TUNED_WIDE_TILE_H
#define HONE_OPS_CPU_TUNED_WIDE_TILE_H

#if defined(__AVX512F__) || defined(__AVX2__)
#define HONE_WIDE_TILE

#include <immintrin.h>

#include "ops/cpu/tuned/tuned.h"

#define WIDE_INLINE static inline __attribute__((always_inline))

/* Vectors side by side at most; rows of a tile at most, and of those as many as registers have room for at once: where one or two vectors are side by side,
 * and where there are more. */
#if defined(__AVX512F__)
enum { WIDE_LANES = 16, WIDE_VECTORS = 4, WIDE_ROWS = 16, WIDE_TALLEST = 14, WIDE_LOWER = 6 };
typedef __mmask16 wide_mask;
typedef __m512 wide_raw;
#define WIDE_REGISTER "+v"
#define WIDE_FACTOR "v"
#define WIDE_RESULT "=v"
#else
enum { WIDE_LANES = 8, WIDE_VECTORS = 2, WIDE_ROWS = 6, WIDE_TALLEST = 6, WIDE_LOWER = 6 };
typedef __m256i wide_mask;
typedef __m256 wide_raw;
#define WIDE_REGISTER "+x"
#define WIDE_FACTOR "x"
#define WIDE_RESULT "=x"
#endif
enum { WIDE_COLUMNS = WIDE_VECTORS * WIDE_LANES };

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
    const float *a;             /* element (i, p) at a[i * a_row + p * a_step]; one of the strides is 1 */
    int64_t a_row, a_step;
    const float *b;             /* row p at b + p * b_step: as many vectors as columns need, zeros or anything in columns that do not exist */
    int64_t b_step;
    int64_t depth;
    float *c;
    int64_t ldc, columns;
    const float *bias;          /* (columns), or NULL */
    float scale;
    bool accumulate;
    const float *const *fetch;  /* lines that will be wanted, */
    int64_t fetches;            /* so many: one asked for with every WIDE_STEPS of k, or two where they are more than that; */
    int64_t written;            /* the first of them, so many, will be written */
};

/* Some of its rows, as many tiles of one height: where they and their results begin, and the lines to ask for meanwhile, where it is one tile. */
struct wide_part {
    const float *a;
    float *c;
    int64_t tiles;
    const float *const *fetch;
    int64_t fetches, written;
};

/* Where results are more than stored, or are not whole vectors. */
WIDE_INLINE void wide_finish(wide s[][WIDE_VECTORS], const int rows, const int vectors, const struct wide_product *g, float *to)
{
    wide_mask mask[WIDE_VECTORS];
    wide bias[WIDE_VECTORS];
    UNROLL(4)
    for (int j = 0; j < vectors; j++) {
        mask[j] = wide_first(g->columns - j * WIDE_LANES);
        bias[j] = (wide){0};
        if (g->bias)
            bias[j] = wide_load_part(g->bias + j * WIDE_LANES, mask[j]);
    }
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        UNROLL(4)
        for (int j = 0; j < vectors; j++) {
            float *c = to + i * g->ldc + j * WIDE_LANES;
            wide sum = s[i][j] * g->scale + bias[j];
            if (g->accumulate)
                sum += wide_load_part(c, mask[j]);
            wide_store_part(c, mask[j], sum);
        }
}

WIDE_INLINE void wide_store(wide s[][WIDE_VECTORS], const int rows, const int vectors, const struct wide_product *g, float *to)
{
    if (g->columns < vectors * WIDE_LANES || g->scale != 1 || g->bias || g->accumulate) {
        wide_finish(s, rows, vectors, g, to);
        return;
    }
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        UNROLL(4)
        for (int j = 0; j < vectors; j++)
            *(wide *)(to + i * g->ldc + j * WIDE_LANES) = s[i][j];
}

enum { WIDE_STEPS = 4, WIDE_EVERY = 5, WIDE_BASES = (WIDE_TALLEST + WIDE_EVERY - 1) / WIDE_EVERY };

/* Where the loop over k is. Rows along k are found from every fifth of them: an address has a base and an index. */
struct wide_place {
    const char *a[WIDE_BASES];
    int64_t ahead[WIDE_EVERY];  /* bytes to the next rows */
    const float *b;
};

/* sum += x * y, written out, and in order: left alone, compilers move loads ahead until registers run out, and write sums over their factors and
 * copy them back. What an empty statement takes and gives back stays in its register, where they would keep one for every sum of addresses. */
#define WIDE_ADD(sum, x, y) __asm__ volatile("vfmadd231ps %2, %1, %0" : WIDE_REGISTER(sum) : WIDE_FACTOR(x), WIDE_FACTOR(y))
#define WIDE_LIVES(x) __asm__ volatile("" : : WIDE_FACTOR(x))
#define WIDE_MOVES(pointer) __asm__ volatile("" : "+r"(pointer))

/* A number at base + ahead + bytes, spread over a vector. The instruction is written out, since compilers make additions of its address; but
 * sanitizers shall see the load, and without optimisation `bytes` is no constant. */
WIDE_INLINE wide wide_spread(const char *base, int64_t ahead, const int bytes)
{
#if defined(__OPTIMIZE__) && !defined(HONE_SANITIZED)
    wide_raw x;
    __asm__ volatile("vbroadcastss %c3(%1, %2), %0" : WIDE_RESULT(x) : "r"(base), "r"(ahead), "i"(bytes));
    return (wide)x;
#else
    return *(const float *)(base + ahead + bytes) - (wide){0};
#endif
}

/* Row i's number, `step` of k on. */
WIDE_INLINE wide wide_number(const struct wide_place *at, const bool along, const int i, const int step)
{
    if (along && i % WIDE_EVERY)
        return wide_spread(at->a[i / WIDE_EVERY], at->ahead[i % WIDE_EVERY], 4 * step);
    return *(const float *)(along ? at->a[i / WIDE_EVERY] + 4 * step : at->a[0] + 4 * i) - (wide){0};
}

/* `rows`, `vectors`, `along` and `step` are constants in every call. */
WIDE_INLINE void wide_step(wide s[][WIDE_VECTORS], struct wide_place *at, const int rows, const int vectors, const bool along, const int step,
                           const struct wide_product *g)
{
    wide b[WIDE_VECTORS];
    UNROLL(4)
    for (int j = 0; j < vectors; j++)
        b[j] = *(const wide *)(at->b + j * WIDE_LANES);
    at->b += g->b_step;
    WIDE_MOVES(at->b);
    UNROLL(14)
    for (int i = 0; i < rows; i++) {
        const wide x = wide_number(at, along, i, step);
        UNROLL(4)
        for (int j = 0; j < vectors; j++)
            WIDE_ADD(s[i][j], x, b[j]);
    }
    UNROLL(4)
    for (int j = 0; j < vectors; j++)
        WIDE_LIVES(b[j]);
    if (!along) {
        at->a[0] += 4 * g->a_step;
        WIDE_MOVES(at->a[0]);
    }
}

WIDE_INLINE void wide_advance(struct wide_place *at, const bool along, const int steps)
{
    if (!along)
        return;
    UNROLL(3)
    for (int i = 0; i < WIDE_BASES; i++) {
        at->a[i] += 4 * steps;
        WIDE_MOVES(at->a[i]);
    }
}

WIDE_INLINE void wide_steps(wide s[][WIDE_VECTORS], struct wide_place *at, const int rows, const int vectors, const bool along, const struct wide_product *g)
{
    wide_step(s, at, rows, vectors, along, 0, g);
    wide_step(s, at, rows, vectors, along, 1, g);
    wide_step(s, at, rows, vectors, along, 2, g);
    wide_step(s, at, rows, vectors, along, 3, g);
    wide_advance(at, along, WIDE_STEPS);
}

WIDE_INLINE void wide_run(const int rows, const int vectors, const bool along, const struct wide_product *g, struct wide_part part)
{
    struct wide_place at = {.b = g->b};
    wide s[WIDE_TALLEST][WIDE_VECTORS];
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        UNROLL(4)
        for (int j = 0; j < vectors; j++)
            s[i][j] = (wide){0};
    UNROLL(3)
    for (int i = 0; i < WIDE_BASES; i++)
        at.a[i] = (const char *)(part.a + WIDE_EVERY * i * g->a_row);
    UNROLL(5)
    for (int i = 0; i < WIDE_EVERY; i++)
        at.ahead[i] = 4 * i * g->a_row;
    const int64_t whole = g->depth / WIDE_STEPS, each = part.fetches <= whole ? 1 : 2, fetching = least(part.fetches / each, whole);
    const int64_t writing = least(part.written / each, fetching);
    const float *const *line = part.fetch;
    for (int64_t p = writing; p > 0; p--, line += each) {
        WANT_TO_WRITE(line[0]);
        WANT_TO_WRITE(line[each - 1]);
        wide_steps(s, &at, rows, vectors, along, g);
    }
    for (int64_t p = fetching - writing; p > 0; p--, line += each) {
        __builtin_prefetch(line[0], 0, 2);
        __builtin_prefetch(line[each - 1], 0, 2);
        wide_steps(s, &at, rows, vectors, along, g);
    }
    for (int64_t p = whole - fetching; p > 0; p--)
        wide_steps(s, &at, rows, vectors, along, g);
    for (int64_t p = g->depth % WIDE_STEPS; p > 0; p--) {
        wide_step(s, &at, rows, vectors, along, 0, g);
        wide_advance(&at, along, 1);
    }
    wide_store(s, rows, vectors, g, part.c);
}

/* Tiles one below the other: what stands around the loop over k is most of what small products lose. */
WIDE_INLINE void wide_runs(const int rows, const int vectors, const bool along, const struct wide_product *g, const struct wide_part *part)
{
    struct wide_part now = *part;
    for (int64_t n = 0; n < part->tiles; n++, now.a += rows * g->a_row, now.c += rows * g->ldc)
        wide_run(rows, vectors, along, g, now);
}

/* At most WIDE_COLUMNS columns, and any number of rows. */
void TUNED(wide_tile)(int64_t rows, const struct wide_product *g);

#endif
#endif
