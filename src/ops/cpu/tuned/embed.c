/* Tuned: embeddings and sums over leading dimensions. A table's gradient is split by column: every number is added up by one thread in one
 * order whatever the number of threads. Sums over rows are split by row where there are many: those a thread has made are in its own cache, and columns
 * are often fewer than threads could share. What the threads have is then added up in their order. */
#include <string.h>

#include "ops/cpu/tuned/vec.h"

static void embed(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *table = c->in[0];
    const int32_t *ids = c->in[1];
    const int64_t width = shape_last(call_in(c, 0)->shape);
    const struct span s = my_rows(t, in_count(c, 1));
    for (int64_t i = s.lo; i < s.hi; i++)
        if (ids[i] >= 0)
            memcpy((float *)c->out[0] + i * width, table + ids[i] * width, (size_t)width * sizeof *table);
        else
            memset((float *)c->out[0] + i * width, 0, (size_t)width * sizeof *table);
}

static void embed_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int32_t *ids = c->in[1];
    const float *dy = c->in[2];
    float *d_table = c->out[0];
    const int64_t width = shape_last(call_in(c, 0)->shape), n = in_count(c, 1);
    const struct span all = my_elements(t, out_count(c, 0)), columns = my_columns(t, width);
    memset(d_table + all.lo, 0, (size_t)(all.hi - all.lo) * sizeof *d_table);
    team_barrier(t->team);
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0)
            continue;
        const float *restrict from = dy + i * width;
        float *restrict to = d_table + ids[i] * width;
        for (int64_t j = columns.lo; j < columns.hi; j++)
            to[j] += from[j];
    }
}

/* y (columns) += x (rows, columns), row by row; sums of many columns stay in registers meanwhile. */
static void add_rows(float *restrict y, const float *restrict x, int64_t rows, int64_t columns, int64_t width)
{
    int64_t j = 0;
    for (; j + STRIDE <= columns; j += STRIDE) {
        vec sum[STRANDS];
        EACH_STRAND(k) sum[k] = load(y + j + k * LANES);
        for (int64_t i = 0; i < rows; i++)
            EACH_STRAND(k) sum[k] += load(x + i * width + j + k * LANES);
        EACH_STRAND(k) store(y + j + k * LANES, sum[k]);
    }
    for (; j + LANES <= columns; j += LANES) {
        vec sum = load(y + j);
        for (int64_t i = 0; i < rows; i++)
            sum += load(x + i * width + j);
        store(y + j, sum);
    }
    for (; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j] += x[i * width + j];
}

/* y (columns) = sums over some rows of x (.., width). */
static void sum_rows(float *y, const float *x, struct span rows, int64_t columns, int64_t width)
{
    enum { AT_ONCE = 32 };          /* few pages, however wide they are */
    memset(y, 0, (size_t)columns * sizeof *y);
    for (int64_t i = rows.lo; i < rows.hi; i += AT_ONCE)
        add_rows(y, x + i * width, least(rows.hi - i, AT_ONCE), columns, width);
}

/* Numbers and rows for each thread that pay for adding up parts. */
enum { SUMS_EACH = FAR_IS_DEAR ? 4096 : 8192, SUMS_ROWS = 4, SUMS_LINE = 32 };

static bool sums_by_row(int64_t rows, int64_t width, int threads)
{
    return threads > 1 && rows >= SUMS_ROWS * threads && rows * width >= (int64_t)SUMS_EACH * threads;
}

static size_t sum_scratch(const struct program *p, const struct op *op, int threads)
{
    const int64_t width = shape_count(p->values[op->out[0]].shape), rows = shape_count(p->values[op->in[0]].shape) / width;
    return sums_by_row(rows, width, threads) ? (size_t)(up_to(width, SUMS_LINE) * threads) * sizeof(float) : 0;
}

static bool sum_sums(const struct program *p, const struct op *op, int threads) { return sum_scratch(p, op, threads) > 0; }

static void sum_leading(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0];
    float *y = c->out[0], *parts = c->scratch;
    const int64_t width = out_count(c, 0), rows = in_count(c, 0) / width, stride = up_to(width, SUMS_LINE);
    const struct span s = my_columns(t, width);
    if (!sums_by_row(rows, width, t->count)) {
        sum_rows(y + s.lo, x + s.lo, (struct span){0, rows}, s.hi - s.lo, width);
        return;
    }
    sum_rows(parts + t->index * stride, x, my_rows(t, rows), width, width);
}

static void finish_sum(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t width = out_count(c, 0);
    const struct span s = my_columns(t, width);
    sum_rows((float *)c->out[0] + s.lo, (const float *)c->scratch + s.lo, (struct span){0, t->count}, s.hi - s.lo, up_to(width, SUMS_LINE));
}

static struct share sum_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t rows = in_count(c, 0) / out_count(c, 0);
    return sums_by_row(rows, out_count(c, 0), t->count) ? share_rows(my_rows(t, rows), rows, FIRST_IN) : (struct share){0};
}

const struct kernel TUNED(embed)[] = {
    {.op = OP_EMBED, .name = "rows", .run = embed},
    {.op = OP_EMBED_GRAD, .name = "columns", .run = embed_grad},
    {.op = OP_SUM_LEADING, .name = "sums", .run = sum_leading, .finish = finish_sum, .summed = 1, .sums = sum_sums, .scratch = sum_scratch, .share = sum_share},
    {.run = NULL},
};
