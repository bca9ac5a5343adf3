/* Tuned: matrix products. The result is cut into one block per thread and every thread computes its block alone, so
 * results depend on the number of threads and nothing else. */
#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/tuned.h"

static void matmul(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct matmul_dims d = matmul_dims(c->program, c->op);
    const bool ta = c->op->attrs.trans_a, tb = c->op->attrs.trans_b;
    const struct block b = my_block(t, d.m, d.n, d.k);
    const struct span rows = b.rows, cols = b.cols;
    if (rows.lo == rows.hi || cols.lo == cols.hi)
        return;
    struct gemm g = {
        .m = rows.hi - rows.lo, .n = cols.hi - cols.lo, .k = d.k, .a_row = ta ? 1 : d.k, .a_col = ta ? d.m : 1, .ldb = tb ? d.k : d.n, .b_transposed = tb,
        .c = (float *)c->out[0] + rows.lo * d.n + cols.lo, .ldc = d.n, .scale = 1,
        .bias = c->op->n_in > 2 ? (const float *)c->in[2] + cols.lo : NULL, .kernel = (enum gemm_kernel)c->variant,
        .bf16 = c->op->attrs.round == ROUND_BF16};
    gemm_take_a(&g, c, 0, ta ? rows.lo : rows.lo * d.k);
    gemm_take_b(&g, c, 1, tb ? cols.lo * d.k : cols.lo);
    TUNED(gemm)(&g);
}

static struct blocks split(const struct program *p, const struct op *op, int threads)
{
    const struct matmul_dims d = matmul_dims(p, op);
    return grid_choose(d.m, d.n, d.k, threads);
}

const struct kernel TUNED(matmul)[] = {
    {.op = OP_MATMUL, .name = "blocks", .run = matmul, .stores = true, .split = split, .variants = gemm_variants, .supports = gemm_fits},
    {.run = NULL},
};
