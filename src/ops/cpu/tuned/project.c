/* Tuned: several products of one input. The results of all parts side by side are one matrix, which is cut into one block
 * per thread: a thread computes its rows and its share of the columns, which may end in the middle of a part, so that
 * small parts leave no thread idle and all parts together cost one barrier. Results depend on the number of threads and
 * nothing else. */
#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/tuned.h"

enum { ROW_UNIT = 8, COLUMN_UNIT = 16 };        /* blocks begin at multiples of these, columns counted within a part */

static int64_t units(int64_t columns) { return (columns + COLUMN_UNIT - 1) / COLUMN_UNIT; }
static int64_t part_width(const struct kernel_call *c, int part) { return shape_last(call_out(c, part)->shape); }

/* Rows and columns of one part: y = x w^T + bias. */
static void part_block(const struct kernel_call *c, int part, struct span rows, struct span cols)
{
    const int parts = c->op->attrs.parts;
    const int64_t k = shape_last(call_in(c, 0)->shape), n = part_width(c, part);
    struct gemm g = {
        .m = rows.hi - rows.lo, .n = cols.hi - cols.lo, .k = k, .a_row = k, .a_col = 1, .ldb = k, .b_transposed = true,
        .c = (float *)c->out[part] + rows.lo * n + cols.lo, .ldc = n, .scale = 1,
        .bias = c->op->n_in > 1 + parts ? (const float *)c->in[1 + parts + part] + cols.lo : NULL,
        .kernel = (enum gemm_kernel)c->variant, .bf16 = c->op->attrs.round == ROUND_BF16};
    gemm_take_a(&g, c, 0, rows.lo * k);
    gemm_take_b(&g, c, 1 + part, cols.lo * k);
    TUNED(gemm)(&g);
}

/* Units of columns of all parts. */
static int64_t all_units(const struct program *p, const struct op *op)
{
    int64_t all = 0;
    for (int i = 0; i < op->n_out; i++)
        all += units(shape_last(p->values[op->out[i]].shape));
    return all;
}

static struct blocks project_split(const struct program *p, const struct op *op, int threads)
{
    const struct shape x = p->values[op->in[0]].shape;
    return grid_choose(shape_rows(x), all_units(p, op) * COLUMN_UNIT, shape_last(x), true, threads);
}

static void project(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t m = shape_rows(call_in(c, 0)->shape), all = all_units(c->program, c->op);
    const struct blocks g = c->blocks;
    const struct span rows = team_span(m, ROW_UNIT, block_row(g, t->index), g.rows);
    const struct span mine = team_span(all, 1, block_column(g, t->index), g.columns);      /* units of columns of all parts */
    int64_t at = 0;                             /* units before this part */
    for (int i = 0; i < c->op->n_out && rows.lo < rows.hi; i++) {
        const int64_t n = part_width(c, i), lo = mine.lo - at, hi = mine.hi - at;
        const struct span cols = {lo > 0 ? lo * COLUMN_UNIT : 0, hi * COLUMN_UNIT < n ? hi * COLUMN_UNIT : n};
        if (cols.lo < cols.hi)
            part_block(c, i, rows, cols);
        at += units(n);
    }
}

static struct share project_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t m = shape_rows(call_in(c, 0)->shape);
    return c->blocks.columns > 1 ? (struct share){0} : share_rows(team_span(m, ROW_UNIT, block_row(c->blocks, t->index), c->blocks.rows), m, FIRST_IN);
}

static struct blocks project_grad_split(const struct program *p, const struct op *op, int threads)
{
    const struct shape dx = p->values[op->out[0]].shape;
    int64_t depth = 0;
    for (int i = 0; i < op->attrs.parts; i++)
        depth += shape_last(p->values[op->in[i]].shape);
    return grid_choose(shape_rows(dx), shape_last(dx), depth, false, threads);
}

/* dx = sum of dy w: every thread adds the parts up in its own block of dx. */
static void project_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int parts = c->op->attrs.parts;
    const int64_t m = shape_rows(call_out(c, 0)->shape), n = shape_last(call_out(c, 0)->shape);
    const struct block b = block_of(c->blocks, t->index, m, n);
    const struct span rows = b.rows, cols = b.cols;
    for (int i = 0; i < parts && rows.lo < rows.hi && cols.lo < cols.hi; i++) {
        const int64_t k = shape_last(call_in(c, i)->shape);
        struct gemm g = {
            .m = rows.hi - rows.lo, .n = cols.hi - cols.lo, .k = k, .a_row = k, .a_col = 1, .ldb = n, .b_transposed = false,
            .c = (float *)c->out[0] + rows.lo * n + cols.lo, .ldc = n, .scale = 1, .accumulate = i > 0,
            .kernel = (enum gemm_kernel)c->variant, .bf16 = c->op->attrs.round == ROUND_BF16};
        gemm_take_a(&g, c, i, rows.lo * k);
        gemm_take_b(&g, c, parts + i, cols.lo);
        TUNED(gemm)(&g);
    }
}

/* All gradients that come in, but not the weights behind them. */
static struct share project_grad_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t m = shape_rows(call_out(c, 0)->shape), n = shape_last(call_out(c, 0)->shape);
    const int parts = c->op->attrs.parts;
    return c->blocks.columns > 1 || parts >= 32 ? (struct share){0} : share_rows(block_of(c->blocks, t->index, m, n).rows, m, (1u << parts) - 1);
}

const struct kernel TUNED(project)[] = {
    {.op = OP_PROJECT, .name = "blocks", .run = project, .stores = true, .split = project_split, .share = project_share, .variants = gemm_variants, .below = gemm_below, .supports = gemm_fits},
    {.op = OP_PROJECT_GRAD, .name = "blocks", .run = project_grad, .stores = true, .split = project_grad_split, .share = project_grad_share, .variants = gemm_variants, .below = gemm_below, .supports = gemm_fits},
    {.run = NULL},
};
