/* Tuned: a matrix product with bias, and GELU of it. Every thread computes its block of the product, then bias and GELU in
 * one sweep over it, without waiting for the others. Smaller pieces of rows, which would still be in the second-level cache
 * for the sweep, cost more than they save: every call of a product packs the weights again. */
#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/tuned.h"

/* As in elementwise.c: 0.5 (1 + tanh(u)) is sigmoid(2u). */
static const float GELU_2A = 1.5957691216057308f, GELU_B = 0.044715f;

/* A row of n: u += bias, y = gelu(u). */
static void finish_row(float *restrict y, float *restrict u, const float *restrict bias, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = u[i] + bias[i];
        u[i] = v;
        y[i] = v * fast_sigmoid(GELU_2A * (v + GELU_B * v * v * v));
    }
}

static void linear_gelu(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t m = shape_rows(call_in(c, 0)->shape), k = shape_last(call_in(c, 0)->shape);
    const int64_t n = shape_last(call_out(c, 0)->shape);
    const struct block b = my_block(t, m, n);
    const int64_t rows = b.rows.hi - b.rows.lo, cols = b.cols.hi - b.cols.lo, at = b.rows.lo * n + b.cols.lo;
    if (rows == 0 || cols == 0)
        return;
    const float *bias = (const float *)c->in[2] + b.cols.lo;
    float *y = (float *)c->out[0] + at, *u = (float *)c->out[1] + at;      /* (rows, cols) with row stride n */
    TUNED(gemm)(&(struct gemm){
        .m = rows, .n = cols, .k = k, .a = (const float *)c->in[0] + b.rows.lo * k, .a_row = k, .a_col = 1,
        .b = (const float *)c->in[1] + b.cols.lo * k, .ldb = k, .b_transposed = true, .c = u, .ldc = n, .scale = 1});
    for (int64_t i = 0; i < rows; i++)
        finish_row(y + i * n, u + i * n, bias, cols);
}

/* CBLAS counts in int. */
static bool fits_int(const struct program *p, const struct op *op)
{
    const struct shape x = p->values[op->in[0]].shape, w = p->values[op->in[1]].shape;
    return shape_rows(x) < INT32_MAX && shape_last(x) < INT32_MAX && shape_rows(w) < INT32_MAX;
}

const struct kernel TUNED(linear_gelu)[] = {
    {.op = OP_LINEAR_GELU, .name = "blocks", .run = linear_gelu, .supports = fits_int},
    {.run = NULL},
};
