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

/* A tile of each size is a function, and sizes are constants in it. With checks at every access a compiler is at that for six minutes: then one is for all. */
#if defined(HONE_SANITIZED)
#define WIDE_PER_TILE static __attribute__((noinline, unused))
#else
#define WIDE_PER_TILE WIDE_INLINE
#endif

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

/* Lines of memory that will be wanted, row by row of something: where the next one is, and how many there are. */
struct wide_lines {
    const char *at;
    int64_t n, share;           /* still to ask for; and how many of them during one product */
    int64_t gap, in_row, wrap;  /* bytes to the next line of a row; lines of a row; bytes from behind its last to the first of the next row */
    int64_t left;               /* of this row */
};
enum { WIDE_LISTS = 2 };

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
    struct wide_lines *ahead;   /* WIDE_LISTS of them, or NULL: lines to ask for, one with every WIDE_STEPS of k, or two where they are more than that */
    bool c_far;                 /* and those of the result before them, to be written */
};

/* Some of its rows, as many tiles of one height: where they and their results begin. Where lines are asked for it is one tile, and its share of them. */
struct wide_part {
    const float *a;
    float *c;
    int64_t tiles, share[WIDE_LISTS];
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

/* Rows along k are found from every fifth of them, or, where registers are needed for lines to ask for, from every third: an address has a base and an index. */
enum { WIDE_STEPS = 4, WIDE_EVERY = 5, WIDE_EVERY_LOW = 3, WIDE_BASES = (WIDE_TALLEST + WIDE_EVERY - 1) / WIDE_EVERY };
WIDE_INLINE int wide_every(const int vectors) { return vectors > 2 ? WIDE_EVERY_LOW : WIDE_EVERY; }

/* Where the loop over k is. */
struct wide_place {
    const char *a[WIDE_BASES];
    int64_t ahead[WIDE_EVERY];  /* bytes to the next rows */
    const char *b;
    int64_t b_step, b_steps;    /* bytes to the next of its rows, and to the third after this one */
};

/* sum += x * y, written out, and in order: left alone, compilers move loads ahead until registers run out, and write sums over their factors and
 * copy them back. What an empty statement takes and gives back stays in its register, where they would keep one for every sum of addresses. */
#define WIDE_ADD(sum, x, y) __asm__ volatile("vfmadd231ps %2, %1, %0" : WIDE_REGISTER(sum) : WIDE_FACTOR(x), WIDE_FACTOR(y))
#define WIDE_LIVES(x) __asm__ volatile("" : : WIDE_FACTOR(x))
#define WIDE_MOVES(pointer) __asm__ volatile("" : "+r"(pointer))

/* Instructions that load are written out, since compilers make additions of their addresses; but sanitizers shall see the loads, and without optimisation
 * `bytes` is no constant. */
#if defined(__OPTIMIZE__) && !defined(HONE_SANITIZED)
#define WIDE_WRITTEN_OUT
#endif

/* A number at base + ahead + bytes, spread over a vector. */
WIDE_INLINE wide wide_spread(const char *base, int64_t ahead, const int bytes)
{
#if defined(WIDE_WRITTEN_OUT)
    wide_raw x;
    __asm__ volatile("vbroadcastss %c3(%1, %2), %0" : WIDE_RESULT(x) : "r"(base), "r"(ahead), "i"(bytes));
    return (wide)x;
#else
    return *(const float *)(base + ahead + bytes) - (wide){0};
#endif
}

/* Row `step` of b from this place on, vector j of it. */
WIDE_INLINE wide wide_vector(const struct wide_place *at, const int step, const int j)
{
    const int bytes = j * (int)sizeof(wide);
#if defined(WIDE_WRITTEN_OUT)
    wide_raw x;
    if (step == 0)
        __asm__ volatile("vmovups %c2(%1), %0" : WIDE_RESULT(x) : "r"(at->b), "i"(bytes));
    else if (step == 1)
        __asm__ volatile("vmovups %c3(%1, %2), %0" : WIDE_RESULT(x) : "r"(at->b), "r"(at->b_step), "i"(bytes));
    else if (step == 2)
        __asm__ volatile("vmovups %c3(%1, %2, 2), %0" : WIDE_RESULT(x) : "r"(at->b), "r"(at->b_step), "i"(bytes));
    else
        __asm__ volatile("vmovups %c3(%1, %2), %0" : WIDE_RESULT(x) : "r"(at->b), "r"(at->b_steps), "i"(bytes));
    return (wide)x;
#else
    return *(const wide *)(at->b + step * at->b_step + bytes);
#endif
}

/* Row i's number, `step` of k on, spread over a vector. */
WIDE_INLINE wide wide_number(const struct wide_place *at, const int every, const bool along, const int i, const int step)
{
    if (along && i % every)
        return wide_spread(at->a[i / every], at->ahead[i % every], 4 * step);
    return *(const float *)(along ? at->a[i / every] + 4 * step : at->a[0] + 4 * i) - (wide){0};
}

/* `rows`, `vectors`, `along` and `step` are constants in every call, but under sanitizers. */
WIDE_PER_TILE void wide_step(wide s[][WIDE_VECTORS], struct wide_place *at, const int rows, const int vectors, const bool along, const int step,
                             const struct wide_product *g)
{
    wide b[WIDE_VECTORS];
    UNROLL(4)
    for (int j = 0; j < vectors; j++)
        b[j] = wide_vector(at, step, j);
    UNROLL(14)
    for (int i = 0; i < rows; i++) {
        const wide x = wide_number(at, wide_every(vectors), along, i, step);
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
    at->b += steps * at->b_step;
    WIDE_MOVES(at->b);
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

/* ---- lines that are asked for meanwhile ---- */

WIDE_INLINE struct wide_lines wide_result(const struct wide_product *g, const float *c, const int rows, const int vectors)
{
    const int64_t gap = 4 * g->ldc, line = 64, lines = (4 * vectors * WIDE_LANES + line - 1) / line;
    return (struct wide_lines){.at = (const char *)c, .n = g->c_far ? rows * lines : 0, .gap = gap, .in_row = rows, .wrap = line - rows * gap, .left = rows};
}

/* How many rounds ask for n lines; they are taken off those that are left. */
WIDE_INLINE int64_t wide_rounds(int64_t n, bool twice, int64_t *left)
{
    const int64_t rounds = least(twice ? (n + 1) / 2 : n, *left);
    *left -= rounds;
    return rounds;
}

WIDE_INLINE void wide_ask_one(struct wide_lines *l, const bool write)
{
    if (write)
        WANT_TO_WRITE(l->at);
    else
        __builtin_prefetch(l->at, 0, 2);
    l->at += l->gap;
    if (--l->left == 0) {
        l->left = l->in_row;
        l->at += l->wrap;
    }
}

WIDE_INLINE void wide_ask(struct wide_lines *l, bool twice, const bool write)
{
    wide_ask_one(l, write);
    if (twice)
        wide_ask_one(l, write);
}

WIDE_PER_TILE void wide_run(const int rows, const int vectors, const bool along, const struct wide_product *g, struct wide_part part)
{
    const int every = wide_every(vectors);
    struct wide_place at = {.b = (const char *)g->b, .b_step = 4 * g->b_step, .b_steps = 12 * g->b_step};
    wide s[WIDE_TALLEST][WIDE_VECTORS];
    UNROLL(14)
    for (int i = 0; i < rows; i++)
        UNROLL(4)
        for (int j = 0; j < vectors; j++)
            s[i][j] = (wide){0};
    UNROLL(3)
    for (int i = 0; i < WIDE_BASES; i++)
        at.a[i] = (const char *)(part.a + every * i * g->a_row);
    UNROLL(5)
    for (int i = 0; i < every; i++)
        at.ahead[i] = 4 * i * g->a_row;
    int64_t left = g->depth / WIDE_STEPS;
    if (g->ahead) {
        struct wide_lines result = wide_result(g, part.c, rows, vectors);
        const bool twice = result.n + part.share[0] + part.share[1] > left;
        for (int64_t n = wide_rounds(result.n, twice, &left); n > 0; n--) {
            wide_ask(&result, twice, true);
            wide_steps(s, &at, rows, vectors, along, g);
        }
        for (int i = 0; i < WIDE_LISTS; i++) {
            struct wide_lines now = g->ahead[i];
            const int64_t asked = least(part.share[i], now.n);
            for (int64_t n = wide_rounds(asked, twice, &left); n > 0; n--) {
                wide_ask(&now, twice, false);
                wide_steps(s, &at, rows, vectors, along, g);
            }
            now.n -= asked;
            g->ahead[i] = now;
        }
    }
    for (; left > 0; left--)
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
