/* Tuned: matrix products. The result is cut into one block per thread and every thread computes its block alone; or, where that
 * has less to fetch, as for gradients of weights, which are small sums over many rows, several threads have the same block, each a part of the depth,
 * and add up what they found when all are done. Results depend on the number of threads and nothing else. */
#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/tuned.h"

/* ---- how it is cut ---- */

static struct blocks split(const struct program *p, const struct op *op, int threads)
{
    const struct matmul_dims d = matmul_dims(p, op);
    const bool sums = op->attrs.trans_a && !op->attrs.trans_b && op->n_in == 2;
    return sums ? grid_sums(d.m, d.n, d.k, threads) : grid_choose(d.m, d.n, d.k, op->attrs.trans_b, threads);
}

/* ---- what a thread does ---- */

static struct gemm product_of(const struct kernel_call *c, struct matmul_dims d, struct block b, struct span k)
{
    const bool ta = c->op->attrs.trans_a, tb = c->op->attrs.trans_b;
    const struct span rows = b.rows, cols = b.cols;
    struct gemm g = {
        .m = rows.hi - rows.lo, .n = cols.hi - cols.lo, .k = k.hi - k.lo, .a_row = ta ? 1 : d.k, .a_col = ta ? d.m : 1, .ldb = tb ? d.k : d.n, .b_transposed = tb,
        .c = (float *)c->out[0] + rows.lo * d.n + cols.lo, .ldc = d.n, .scale = 1,
        .bias = c->op->n_in > 2 ? (const float *)c->in[2] + cols.lo : NULL, .kernel = (enum gemm_kernel)c->variant,
        .bf16 = c->op->attrs.round == ROUND_BF16};
    gemm_take_a(&g, c, 0, ta ? rows.lo + k.lo * d.m : rows.lo * d.k + k.lo);
    gemm_take_b(&g, c, 1, tb ? cols.lo * d.k + k.lo : cols.lo + k.lo * d.n);
    return g;
}

/* Floats of a thread's part of a sum. */
static int64_t part_size(struct matmul_dims d, struct blocks g)
{
    return up_to(up_to(d.m, 8 * g.rows) / g.rows * (up_to(d.n, 16 * g.columns) / g.columns), 64);
}

static size_t scratch_bytes(const struct program *p, const struct op *op, int threads)
{
    const struct blocks g = split(p, op, threads);
    return g.depth > 1 ? (size_t)(part_size(matmul_dims(p, op), g) * threads) * sizeof(float) : 0;
}

static bool sums(const struct program *p, const struct op *op, int threads) { return split(p, op, threads).depth > 1; }

/* to (n) = what so many parts have of it, in their order. */
static void add_run(float *to, const float *parts, int64_t next, int64_t n, int depth)
{
    INDEPENDENT
    for (int64_t j = 0; j < n; j++)
        to[j] = parts[j] + parts[next + j];
    for (int p = 2; p < depth; p++)
        INDEPENDENT
        for (int64_t j = 0; j < n; j++)
            to[j] += parts[p * next + j];
}

/* My rows of a block: what the threads that have it found. In runs that stay in the first-level cache, and are long enough for a core to fetch ahead. */
enum { RUN = 4096 };
static void add_parts(const struct gemm *whole, const float *parts, int64_t next, struct span rows, int depth)
{
    const bool all = whole->ldc == whole->n;        /* rows lie one behind the other */
    const int64_t row = all ? (rows.hi - rows.lo) * whole->n : whole->n;
    for (int64_t i = rows.lo; i < rows.hi; i += all ? rows.hi - rows.lo : 1)
        for (int64_t j = 0; j < row; j += RUN)
            add_run(whole->c + i * whole->ldc + j, parts + i * whole->n + j, next, least(RUN, row - j), depth);
}

static void matmul(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct matmul_dims d = matmul_dims(c->program, c->op);
    const struct blocks g = c->blocks;
    struct gemm mine = product_of(c, d, block_of(g, t->index % (g.rows * g.columns), d.m, d.n), grid_depth(g, t->index, d.k));
    if (g.depth > 1) {
        mine.c = (float *)c->scratch + t->index * part_size(d, g);
        mine.ldc = mine.n;
    }
    if (mine.m > 0 && mine.n > 0)
        TUNED(gemm)(&mine);
}

/* A block that several threads have: each sums up some rows of it. */
static void finish(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct matmul_dims d = matmul_dims(c->program, c->op);
    const struct blocks g = c->blocks;
    const int blocks = g.rows * g.columns, block = t->index % blocks;
    const int64_t size = part_size(d, g);
    const struct gemm whole = product_of(c, d, block_of(g, block, d.m, d.n), (struct span){0, d.k});
    add_parts(&whole, (const float *)c->scratch + block * size, blocks * size, team_span(whole.m, 1, t->index / blocks, g.depth), g.depth);
}

/* Where rows alone are cut: those of the result, or of both operands of a sum over them. */
static struct share share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct matmul_dims d = matmul_dims(c->program, c->op);
    const struct blocks g = c->blocks;
    if (g.depth == t->count && g.depth > 1)
        return share_rows(grid_depth(g, t->index, d.k), d.k, FIRST_TWO_IN);
    return g.columns * g.depth > 1 || c->op->attrs.trans_a ? (struct share){0} : share_rows(block_of(g, t->index, d.m, d.n).rows, d.m, FIRST_IN);
}

const struct kernel TUNED(matmul)[] = {
    {.op = OP_MATMUL, .name = "blocks", .run = matmul, .stores = true, .split = split, .scratch = scratch_bytes, .finish = finish, .summed = 1, .sums = sums, .share = share, .variants = gemm_variants, .below = gemm_below,
     .supports = gemm_fits},
    {.run = NULL},
};
