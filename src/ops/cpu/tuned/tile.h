/* The innermost product where vectors have four lanes (wide_tile.h has the others): a tile of TILE_ROWS x TILE_COLUMNS results lives in registers while k passes by.
 *
 * Best are panels: the numbers that belong to one k lie side by side, so that every k costs a few vector loads. An operand
 * is packed to be like that (pack.h), or is read where it is. On ARM a number of a is one lane of a register, on x86 a load
 * that spreads it.
 *
 * On Neoverse-N1, of 40 GFLOP/s: panels 37.4 at depth 64, 38.4 at 128, 39.1 at 256; rows of a where they are 37.2, 37.1,
 * 37.8; a tile of 8 x 12 37.3, 38.2, 38.8. */
#ifndef HONE_OPS_CPU_TUNED_TILE_H
#define HONE_OPS_CPU_TUNED_TILE_H

#include "ops/cpu/tuned/tuned.h"

enum { TILE_LANES = 4, TILE_ROWS = 8 };
enum { TILE_COLUMNS = 2 * TILE_LANES };

typedef float tile_vec __attribute__((vector_size(TILE_LANES * 4), aligned(4), may_alias));
typedef float tile_quad __attribute__((vector_size(16), aligned(4), may_alias));

#define TILE_INLINE static inline __attribute__((always_inline))

/* gcc's first scheduler moves loads across the steps of a loop that uses every register, and spills. */
#if defined(__aarch64__) && !defined(__clang__)
#define TILE_IN_ORDER __attribute__((noinline, optimize("no-schedule-insns")))
#else
#define TILE_IN_ORDER __attribute__((noinline))
#endif

/* Keeps a row's arithmetic together: left alone, compilers move loads ahead until registers run out, and a third of a loop is spills. */
#if defined(__x86_64__)
#define TILE_KEEP(x, y) __asm__ volatile("" : "+x"(x), "+x"(y))
#else
#define TILE_KEEP(x, y) ((void)0)
#endif

/* TILE_ROWS or TILE_COLUMNS rows of an operand: number i of k at at[i * row + k * step]. */
struct tile_side {
    const float *at;
    int64_t row, step;
};

/* Where the results go: c = scale * product + bias, or c += that. */
struct tile_target {
    float *c;
    int64_t ldc;
    int64_t columns;            /* less than TILE_COLUMNS: only so many exist */
    const float *bias;          /* (columns), or NULL */
    float scale;
    bool accumulate;
};

struct tile { tile_vec x[TILE_ROWS], y[TILE_ROWS]; };

TILE_INLINE void tile_clear(struct tile *s)
{
    UNROLL(8)
    for (int i = 0; i < TILE_ROWS; i++)
        s->x[i] = s->y[i] = (tile_vec){0};
}

static inline void tile_store_full(const struct tile_target *t, int64_t row, tile_vec x, tile_vec y)
{
    float *c = t->c + row * t->ldc;
    x *= t->scale;
    y *= t->scale;
    if (t->bias) {
        x += *(const tile_vec *)t->bias;
        y += *(const tile_vec *)(t->bias + TILE_LANES);
    }
    if (t->accumulate) {
        x += *(const tile_vec *)c;
        y += *(const tile_vec *)(c + TILE_LANES);
    }
    *(tile_vec *)c = x;
    *(tile_vec *)(c + TILE_LANES) = y;
}

static inline void tile_store_part(const struct tile_target *t, int64_t row, tile_vec x, tile_vec y)
{
    float *c = t->c + row * t->ldc, all[TILE_COLUMNS];
    *(tile_vec *)all = x * t->scale;
    *(tile_vec *)(all + TILE_LANES) = y * t->scale;
    for (int64_t j = 0; j < t->columns; j++) {
        const float sum = t->bias ? all[j] + t->bias[j] : all[j];
        c[j] = t->accumulate ? c[j] + sum : sum;
    }
}

TILE_INLINE void tile_store(const struct tile *s, const int rows, const struct tile_target *t)
{
    if (t->columns == TILE_COLUMNS && t->scale == 1 && !t->bias && !t->accumulate) {    /* most of them */
        UNROLL(8)
        for (int i = 0; i < rows; i++) {
            *(tile_vec *)(t->c + i * t->ldc) = s->x[i];
            *(tile_vec *)(t->c + i * t->ldc + TILE_LANES) = s->y[i];
        }
        return;
    }
    if (t->columns == TILE_COLUMNS) {
        UNROLL(8)
        for (int i = 0; i < rows; i++)
            tile_store_full(t, i, s->x[i], s->y[i]);
        return;
    }
    UNROLL(8)
    for (int i = 0; i < rows; i++)
        tile_store_part(t, i, s->x[i], s->y[i]);
}

/* One k. A constant row stride of 1 makes vector loads of a. */
TILE_INLINE void tile_step(struct tile *s, const int rows, const float *a, int64_t row, const float *b)
{
    const tile_vec u = *(const tile_vec *)b, v = *(const tile_vec *)(b + TILE_LANES);
#if defined(__aarch64__)
    if (rows == TILE_ROWS && __builtin_constant_p(row) && row == 1) {
        const tile_quad q[2] = {*(const tile_quad *)a, *(const tile_quad *)(a + 4)};
        UNROLL(8)
        for (int i = 0; i < TILE_ROWS; i++) {
            s->x[i] += q[i / 4][i % 4] * u;
            s->y[i] += q[i / 4][i % 4] * v;
        }
        return;
    }
#endif
    UNROLL(8)
    for (int i = 0; i < rows; i++) {
        s->x[i] += a[i * row] * u;
        s->y[i] += a[i * row] * v;
        TILE_KEEP(s->x[i], s->y[i]);
    }
}

/* `rows` is a constant in every call, so that loops over it unroll into registers; strides may be. */
TILE_INLINE void tile_run(const int rows, int64_t depth, struct tile_side a, struct tile_side b, const struct tile_target *t)
{
    struct tile s;
    tile_clear(&s);
    UNROLL(4)
    for (int64_t p = 0; p < depth; p++)
        tile_step(&s, rows, a.at + p * a.step, a.row, b.at + p * b.step);
    tile_store(&s, rows, t);
}

/* Functions of their own: inlined, they compete for registers with what is around them. */
static __attribute__((noinline)) void tile_packed(int64_t depth, const float *a, const float *b, const struct tile_target *t)
{
    tile_run(TILE_ROWS, depth, (struct tile_side){a, 1, TILE_ROWS}, (struct tile_side){b, 1, TILE_COLUMNS}, t);
}

static __attribute__((noinline)) void tile_panels(int64_t depth, const struct tile_side *a, const struct tile_side *b,
                                                  const struct tile_target *t)
{
    tile_run(TILE_ROWS, depth, (struct tile_side){a->at, 1, a->step}, *b, t);
}

/* Rows of a that are contiguous along k: four k of a row are one load. */
static TILE_IN_ORDER void tile_rows(int64_t depth, const struct tile_side *a, const struct tile_side *b,
                                    const struct tile_target *t)
{
    struct tile s;
    const float *at = b->at;
    const int64_t row = a->row, step = b->step;
    int64_t p = 0;
    tile_clear(&s);
#if defined(__aarch64__)
    for (; p + 4 <= depth; p += 4) {
        tile_quad q[TILE_ROWS];
        UNROLL(8)
        for (int i = 0; i < TILE_ROWS; i++)
            q[i] = *(const tile_quad *)(a->at + i * row + p);
        UNROLL(4)
        for (int k = 0; k < 4; k++, at += step) {
            const tile_vec u = *(const tile_vec *)at, v = *(const tile_vec *)(at + TILE_LANES);
            UNROLL(8)
            for (int i = 0; i < TILE_ROWS; i++) {
                s.x[i] += q[i][k] * u;
                s.y[i] += q[i][k] * v;
            }
            UNROLL(8)
            for (int i = 0; i < TILE_ROWS; i++)         /* one step is done before the next begins */
                __asm__ volatile("" : "+w"(s.x[i]), "+w"(s.y[i]));
        }
    }
#endif
    UNROLL(4)
    for (; p < depth; p++, at += step)
        tile_step(&s, TILE_ROWS, a->at + p, row, at);
    tile_store(&s, TILE_ROWS, t);
}

#define TILE_OF(n) case n: tile_run(n, depth, *a, *b, t); break

/* The last rows of a matrix, fewer than TILE_ROWS. */
static __attribute__((noinline)) void tile_few(int64_t rows, int64_t depth, const struct tile_side *a,
                                               const struct tile_side *b, const struct tile_target *t)
{
    switch (rows) {
        TILE_OF(1); TILE_OF(2); TILE_OF(3); TILE_OF(4); TILE_OF(5); TILE_OF(6); TILE_OF(7);
    default: break;
    }
}
#undef TILE_OF

/* Any of them, for at most TILE_ROWS rows; b lies in panels, packed or not. */
static inline void tile_any(int64_t rows, int64_t depth, const struct tile_side *a, const struct tile_side *b,
                            const struct tile_target *t)
{
    if (rows < TILE_ROWS)
        tile_few(rows, depth, a, b, t);
    else if (a->row != 1)
        tile_rows(depth, a, b, t);
    else if (a->step == TILE_ROWS && b->step == TILE_COLUMNS)
        tile_packed(depth, a->at, b->at, t);
    else
        tile_panels(depth, a, b, t);
}

#endif
