/* Tuned: matrix products. The result is cut into one block per thread and every thread computes its block alone, so
 * results depend on the number of threads and nothing else. */
#include <string.h>

#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/tuned.h"

static void matmul(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct matmul_dims d = matmul_dims(c->program, c->op);
    const bool ta = c->op->attrs.trans_a, tb = c->op->attrs.trans_b;
    const struct grid g = grid_choose(d.m, d.n, t->count);
    const struct span rows = team_span(d.m, 8, t->index % g.rows, g.rows);
    const struct span cols = team_span(d.n, 16, t->index / g.rows, g.columns);
    if (rows.lo == rows.hi || cols.lo == cols.hi)
        return;
    const bool bias = c->op->n_in > 2;
    float *y = (float *)c->out[0] + rows.lo * d.n + cols.lo;
    for (int64_t i = 0; bias && i < rows.hi - rows.lo; i++)
        memcpy(y + i * d.n, (const float *)c->in[2] + cols.lo, (size_t)(cols.hi - cols.lo) * sizeof *y);
    TUNED(gemm)(&(struct gemm){
        .m = rows.hi - rows.lo, .n = cols.hi - cols.lo, .k = d.k,
        .a = (const float *)c->in[0] + (ta ? rows.lo : rows.lo * d.k), .a_row = ta ? 1 : d.k, .a_col = ta ? d.m : 1,
        .b = (const float *)c->in[1] + (tb ? cols.lo * d.k : cols.lo), .ldb = tb ? d.k : d.n, .b_transposed = tb,
        .c = y, .ldc = d.n, .scale = 1, .accumulate = bias});
}

/* CBLAS counts in int. */
static bool fits_int(const struct program *p, const struct op *op)
{
    const struct matmul_dims d = matmul_dims(p, op);
    return d.m < INT32_MAX && d.n < INT32_MAX && d.k < INT32_MAX;
}

const struct kernel TUNED(matmul)[] = {
    {.op = OP_MATMUL, .name = "blocks", .run = matmul, .supports = fits_int},
    {.run = NULL},
};
