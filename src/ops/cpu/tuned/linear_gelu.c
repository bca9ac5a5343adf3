/* Tuned: a matrix product with bias, GELU of it, and the slope of GELU there, which shares its sigmoid. Every thread computes
 * its block of the product, then the rest in one sweep over it, without a meeting. Smaller pieces of rows, which
 * would still be in the second-level cache for the sweep, cost more than they save: every call of a product packs the weights
 * again. */
#include <assert.h>
#include <string.h>

#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/narrow.h"
#include "ops/cpu/tuned/vec.h"

/* GELU in its tanh form is v s, with s the sigmoid of z(v) = A v + B v^3; its slope is s + s (1 - s) v z'(v), and v z'(v) is
 * 3 z(v) - 2 A v. */
#define A 1.5957691216057308f
#define B 0.0713548162726f
#define LOG2_E 1.4426950409f

/* How many vectors side by side: the chain is long, and a division waits for it. */
#if defined(__aarch64__)
enum { SIDE = 8 };
#else
enum { SIDE = STRANDS };
#endif
enum { GROUP = SIDE * LANES };
#define EACH(k) UNROLL(8) for (int k = 0; k < side; k++)

/* `side` vectors, a constant in every call. What is past 10 is taken as 10 in all but v itself: s is 0 or 1 there in single precision, and 2^(-z log2(e))
 * is just a normal number. Without slope (NULL) y and u may be one memory, else slope and u. */
INLINE void finish(const int side, float *y, float *slope, const float *u, const float *bias)
{
    vec v[SIDE], w[SIDE], z[SIDE], e[SIDE], s[SIDE];     /* z: v z'(v) */
    EACH(k) {
        v[k] = larger(load(u + k * LANES) + load(bias + k * LANES), all(-10));
        w[k] = smaller(v[k], all(10));
        e[k] = w[k] * (w[k] * w[k] * (-B * LOG2_E) + CONSTANT(-A * LOG2_E, w[k]));
        z[k] = w[k] * (-2 * A) + e[k] * (-3 / LOG2_E);
    }
    EACH(k) e[k] = exp2_near(e[k]);
    EACH(k) s[k] = 1 / (1 + e[k]);
    EACH(k) {
        store(y + k * LANES, v[k] * s[k]);
        if (slope)                              /* 1 - s is e s, without the loss of digits */
            store(slope + k * LANES, s[k] + ((e[k] * s[k]) * s[k]) * z[k]);
    }
}

/* The last elements of a row, fewer than a vector has. */
static void finish_rest(float *y, float *slope, const float *u, const float *bias, int64_t n)
{
    float part[4][LANES] = {{0}};
    const size_t bytes = (size_t)n * sizeof *y;
    memcpy(part[0], u, bytes);
    memcpy(part[1], bias, bytes);
    finish(1, part[2], part[3], part[0], part[1]);
    memcpy(y, part[2], bytes);
    if (slope)
        memcpy(slope, part[3], bytes);
}

/* Whole vectors of a row, in groups as long as they last; the number of elements done. Not inlined: alone they get all registers. */
#define ALONE static __attribute__((noinline))
ALONE int64_t finish_both(float *y, float *slope, const float *u, const float *bias, int64_t n)
{
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP)
        finish(SIDE, y + i, slope + i, u + i, bias + i);
    for (; i + LANES <= n; i += LANES)
        finish(1, y + i, slope + i, u + i, bias + i);
    return i;
}
ALONE int64_t finish_value(float *y, const float *u, const float *bias, int64_t n)
{
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP)
        finish(SIDE, y + i, NULL, u + i, bias + i);
    for (; i + LANES <= n; i += LANES)
        finish(1, y + i, NULL, u + i, bias + i);
    return i;
}

static void finish_row(float *y, float *slope, const float *u, const float *bias, int64_t n)
{
    const int64_t i = slope ? finish_both(y, slope, u, bias, n) : finish_value(y, u, bias, n);
    if (i < n)
        finish_rest(y + i, slope ? slope + i : NULL, u + i, bias + i, n - i);
}

static void finish_row_bf16(uint16_t *y, float *slope, const float *u, const float *bias, int64_t n)
{
    float piece[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        finish_row(piece, slope ? slope + i : NULL, u + i, bias + i, least(PIECE, n - i));
        narrow_piece(y + i, piece, least(PIECE, n - i));
    }
}

/* GELU in bf16 leaves no room for the product: where there is no slope either, it goes to scratch memory. */
static size_t scratch(const struct program *p, const struct op *op, int threads)
{
    (void)threads;
    return op->n_out == 1 && p->values[op->out[0]].dtype == BF16 ? (size_t)shape_count(p->values[op->out[0]].shape) * sizeof(float) : 0;
}

static void linear_gelu(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t m = shape_rows(call_in(c, 0)->shape), k = shape_last(call_in(c, 0)->shape);
    const int64_t n = shape_last(call_out(c, 0)->shape);
    const struct block b = block_of(c->blocks, t->index, m, n);
    const int64_t rows = b.rows.hi - b.rows.lo, cols = b.cols.hi - b.cols.lo, at = b.rows.lo * n + b.cols.lo;
    assert(c->out[0]);
    if (rows == 0 || cols == 0)
        return;
    const float *bias = (const float *)c->in[2] + b.cols.lo;
    float *y = gives_bf16(c, 0) ? NULL : (float *)c->out[0] + at, *slope = c->op->n_out > 1 ? (float *)c->out[1] + at : NULL;
    float *u = slope ? slope : y ? y : (float *)c->scratch + at;        /* all (rows, cols) with row stride n */
    struct gemm g = {.m = rows, .n = cols, .k = k, .a_row = k, .a_col = 1, .ldb = k, .b_transposed = true, .c = u, .ldc = n, .scale = 1,
                     .kernel = (enum gemm_kernel)c->variant, .bf16 = c->op->attrs.round == ROUND_BF16};
    gemm_take_a(&g, c, 0, b.rows.lo * k);
    gemm_take_b(&g, c, 1, b.cols.lo * k);
    TUNED(gemm)(&g);
    for (int64_t i = 0; i < rows; i++)
        if (y)
            finish_row(y + i * n, slope ? slope + i * n : NULL, u + i * n, bias, cols);
        else
            finish_row_bf16((uint16_t *)c->out[0] + at + i * n, slope ? slope + i * n : NULL, u + i * n, bias, cols);
}

static struct blocks split(const struct program *p, const struct op *op, int threads)
{
    const struct shape x = p->values[op->in[0]].shape;
    return grid_choose(shape_rows(x), shape_last(p->values[op->out[0]].shape), shape_last(x), true, threads);
}

/* Where rows alone are cut; scratch has rows, too, not a part for each thread. */
static struct share share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t m = shape_rows(call_in(c, 0)->shape), n = shape_last(call_out(c, 0)->shape);
    return c->blocks.columns > 1 || c->scratch_bytes ? (struct share){0} : share_rows(block_of(c->blocks, t->index, m, n).rows, m, FIRST_IN);
}

const struct kernel TUNED(linear_gelu)[] = {
    {.op = OP_LINEAR_GELU, .name = "blocks", .run = linear_gelu, .stores = true, .scratch = scratch, .split = split, .share = share, .variants = gemm_variants, .below = gemm_below, .supports = gemm_fits},
    {.run = NULL},
};
