/* The innermost product of bf16 on x86-64: up to two tiles of rows times two of columns (pack.h), with f32 sums. AMX has eight tiles of
 * its own, four for sums; AVX512-BF16 keeps half of the rows at a time in registers. The only code that names these instructions. */
#ifndef HONE_OPS_CPU_PAIRS_TILES_H
#define HONE_OPS_CPU_PAIRS_TILES_H

#include "ops/cpu/pairs/ahead.h"

enum { BLOCK = 2 * TILE };              /* rows and columns of a block at most */
enum { PAIRS_PLACES = 4 };              /* of a step along k, where it asks for what is ahead */

/* Where sums go: c = scale sums + bias, or added to it. */
struct pairs_target {
    float *c;
    int64_t ldc;
    const float *bias;                  /* of the columns; NULL: none */
    float scale;
    bool accumulate;
};

/* A strip of tiles of each operand is `tiles` tiles; the second one follows the first. */
struct pairs_block {
    const uint16_t *a, *b;
    int64_t tiles;
    int64_t rows, columns;
    struct ahead *ahead;                /* what it asks for; NULL: nothing */
};

/* Products of less than so much memory, of `a` and the result, find it in the second-level cache. */
enum { AHEAD_BYTES = 256 << 10 };
static inline bool is_far(int64_t rows, int64_t columns, int64_t depth) { return rows * (columns + depth) * (int64_t)sizeof(float) >= AHEAD_BYTES; }

static inline struct lines result_lines(const struct pairs_block *k, const struct pairs_target *t)
{
    return lines_of(t->c, k->rows, k->columns * (int64_t)sizeof *t->c, t->ldc * (int64_t)sizeof *t->c);
}

/* sums (rows, BLOCK) to where they go. */
static inline void pairs_finish(const struct pairs_block *k, const struct pairs_target *t, const float *sums)
{
    for (int64_t j = 0; j < k->columns; j += TILE) {
        const __mmask16 there = lanes_mask(k->columns - j);
        const __m512 scale = _mm512_set1_ps(t->scale), bias = t->bias ? _mm512_maskz_loadu_ps(there, t->bias + j) : _mm512_setzero_ps();
        for (int64_t i = 0; i < k->rows; i++) {
            float *c = t->c + i * t->ldc + j;
            __m512 x = _mm512_fmadd_ps(_mm512_load_ps(sums + i * BLOCK + j), scale, bias);
            if (t->accumulate)
                x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, c));
            _mm512_mask_storeu_ps(c, there, x);
        }
    }
}

/* ---- AMX ---- */

#if defined(HONE_AMX)

/* Numbers of tiles must be constants of the text: sums are 0 to 3, by row and column; rows 4 and 5, columns 6 and 7. */
struct __attribute__((packed)) amx_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Instructions of tiles, with places behind them that nothing takes. A core that runs somebody else's thread beside ours does loads of tiles and products one after the
 * other where these instructions follow each other closely, and both at once where they do not: 1.5 times as much and more (docs/performance.md). One that is ours alone has such
 * places to spare: a product takes 16 of its cycles. */
#define AMX_SPACE() __asm__ volatile(".rept 8\n\tnop\n\t.endr")
#define AMX_LOAD(tile, from)           \
    do {                               \
        _tile_loadd(tile, from, 64);   \
        AMX_SPACE();                   \
    } while (0)
#define AMX_ADD(sums, rows, columns)           \
    do {                                       \
        _tile_dpbf16ps(sums, rows, columns);   \
        AMX_SPACE();                           \
    } while (0)

/* What a thread does before its first block and behind its last one. */
static inline void amx_begin(void)
{
    static const struct amx_config config = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                             .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}
static inline void amx_end(void) { _tile_release(); }

#define AMX_START(tile, i, j)                                                                                         \
    do {                                                                                                              \
        if (from)                                                                                                     \
            _tile_loadd(tile, from + (i) * TILE * from_row + (j) * TILE, (size_t)from_row * 4);                       \
        else                                                                                                          \
            _tile_zero(tile);                                                                                         \
    } while (0)
#define AMX_STORE(tile, i, j) _tile_stored(tile, to + (i) * TILE * to_row + (j) * TILE, (size_t)to_row * 4)

/* Places behind an instruction, and what is asked for there. */
#define AMX_ADD_ASK(sums, rows, columns, h)        \
    do {                                           \
        _tile_dpbf16ps(sums, rows, columns);       \
        if (h)                                     \
            ahead_ask(h);                          \
        else                                       \
            AMX_SPACE();                           \
    } while (0)

/* One step along k: a tile of each strip. two_rows and two_columns are constants, and whether there is an h. */
PAIRS_INLINE void amx_step(const bool two_rows, const bool two_columns, const uint16_t *a, const uint16_t *b, int64_t next, struct ahead *h)
{
    AMX_LOAD(6, b);
    AMX_LOAD(4, a);
    AMX_ADD_ASK(0, 4, 6, h);
    if (two_columns) {
        AMX_LOAD(7, b + next);
        AMX_ADD_ASK(1, 4, 7, h);
    }
    if (two_rows) {
        AMX_LOAD(5, a + next);
        AMX_ADD_ASK(2, 5, 6, h);
    }
    if (two_rows && two_columns)
        AMX_ADD_ASK(3, 5, 7, h);
}

/* Sums begin with `from`, or with zero where it is NULL. */
PAIRS_INLINE void amx_start(const bool two_rows, const bool two_columns, const float *from, int64_t from_row)
{
    __asm__ volatile("" ::: "memory");          /* what was packed is in memory: gcc does not know that tiles are read from there */
    AMX_START(0, 0, 0);
    if (two_columns)
        AMX_START(1, 0, 1);
    if (two_rows)
        AMX_START(2, 1, 0);
    if (two_rows && two_columns)
        AMX_START(3, 1, 1);
}

PAIRS_INLINE void amx_store(const bool two_rows, const bool two_columns, float *to, int64_t to_row)
{
    AMX_STORE(0, 0, 0);
    if (two_columns)
        AMX_STORE(1, 0, 1);
    if (two_rows)
        AMX_STORE(2, 1, 0);
    if (two_rows && two_columns)
        AMX_STORE(3, 1, 1);
}
#undef AMX_START
#undef AMX_STORE

/* to = from + a b, with two tiles of rows or columns where two_rows and two_columns say so. */
PAIRS_INLINE void amx_product(const bool two_rows, const bool two_columns, const struct pairs_block *k, const float *from, int64_t from_row,
                              float *to, int64_t to_row)
{
    const int64_t next = k->tiles * TILE_NUMBERS;
    amx_start(two_rows, two_columns, from, from_row);
    if (k->ahead) {
        struct ahead h = *k->ahead;
        for (int64_t p = 0; p < next; p += TILE_NUMBERS)
            amx_step(two_rows, two_columns, k->a + p, k->b + p, next, &h);
        *k->ahead = h;
    } else
        for (int64_t p = 0; p < next; p += TILE_NUMBERS)
            amx_step(two_rows, two_columns, k->a + p, k->b + p, next, NULL);
    amx_store(two_rows, two_columns, to, to_row);
}

static inline void amx_any(const struct pairs_block *k, const float *from, int64_t from_row, float *to, int64_t to_row)
{
    if (k->rows > TILE && k->columns > TILE)
        amx_product(true, true, k, from, from_row, to, to_row);
    else if (k->rows > TILE)
        amx_product(true, false, k, from, from_row, to, to_row);
    else if (k->columns > TILE)
        amx_product(false, true, k, from, from_row, to, to_row);
    else
        amx_product(false, false, k, from, from_row, to, to_row);
}

/* Whole tiles go straight to where they belong. */
static inline void amx_block(const struct pairs_block *k, const struct pairs_target *t)
{
    _Alignas(64) float sums[BLOCK * BLOCK];
    if (k->rows % TILE == 0 && k->columns % TILE == 0 && t->scale == 1 && !(t->bias && t->accumulate)) {
        amx_any(k, t->accumulate ? t->c : t->bias, t->accumulate ? t->ldc : 0, t->c, t->ldc);
        return;
    }
    amx_any(k, NULL, 0, sums, BLOCK);
    pairs_finish(k, t, sums);
}

#endif

/* ---- AVX512-BF16 ---- */

enum { HALF = TILE / 2 };
typedef int32_t number_pair __attribute__((may_alias));

/* Half of a tile of rows times one or two tiles of columns: sums (HALF, BLOCK). */
PAIRS_INLINE void dots_half(const bool two_columns, int64_t tiles, const uint16_t *a, const uint16_t *b, float *sums)
{
    const int64_t next = tiles * TILE_NUMBERS;
    __m512 x[HALF], y[HALF];
    UNROLL(8)
    for (int i = 0; i < HALF; i++)
        x[i] = y[i] = _mm512_setzero_ps();
    for (int64_t p = 0; p < tiles * TILE; p++, b += TILE_DEPTH) {
        const __m512bh u = (__m512bh)_mm512_load_si512(b), v = (__m512bh)_mm512_load_si512(two_columns ? b + next : b);
        const number_pair *pairs = (const number_pair *)(a + p / TILE * TILE_NUMBERS) + p % TILE;
        UNROLL(8)
        for (int i = 0; i < HALF; i++) {
            const __m512bh s = (__m512bh)_mm512_set1_epi32(pairs[i * TILE]);
            x[i] = _mm512_dpbf16_ps(x[i], s, u);
            if (two_columns)
                y[i] = _mm512_dpbf16_ps(y[i], s, v);
        }
    }
    UNROLL(8)
    for (int i = 0; i < HALF; i++) {
        _mm512_store_ps(sums + i * BLOCK, x[i]);
        if (two_columns)
            _mm512_store_ps(sums + i * BLOCK + TILE, y[i]);
    }
}

static __attribute__((noinline)) void dots_one(int64_t tiles, const uint16_t *a, const uint16_t *b, float *sums)
{
    dots_half(false, tiles, a, b, sums);
}
static __attribute__((noinline)) void dots_two(int64_t tiles, const uint16_t *a, const uint16_t *b, float *sums)
{
    dots_half(true, tiles, a, b, sums);
}

static inline void dots_block(const struct pairs_block *k, const struct pairs_target *t)
{
    _Alignas(64) float sums[BLOCK * BLOCK];
    for (int64_t i = 0; i < k->rows; i += HALF) {
        const uint16_t *a = k->a + i / TILE * k->tiles * TILE_NUMBERS + i % TILE * TILE_DEPTH;
        if (k->columns > TILE)
            dots_two(k->tiles, a, k->b, sums + i * BLOCK);
        else
            dots_one(k->tiles, a, k->b, sums + i * BLOCK);
    }
    pairs_finish(k, t, sums);
}

#endif
