/* Tuned: embeddings and sums over leading dimensions. Sums are split by column, so that every element is added up by one
 * thread in one order whatever the number of threads. */
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

static void sum_leading(const struct kernel_call *c, const struct kernel_thread *t)
{
    enum { ROWS = 32 };             /* at a time: few pages, however wide they are */
    const float *x = c->in[0];
    float *y = c->out[0];
    const int64_t width = out_count(c, 0), rows = in_count(c, 0) / width;
    const struct span s = my_columns(t, width);
    memset(y + s.lo, 0, (size_t)(s.hi - s.lo) * sizeof *y);
    for (int64_t i = 0; i < rows; i += ROWS)
        add_rows(y + s.lo, x + i * width + s.lo, rows - i < ROWS ? rows - i : ROWS, s.hi - s.lo, width);
}

const struct kernel TUNED(embed)[] = {
    {.op = OP_EMBED, .name = "rows", .run = embed},
    {.op = OP_EMBED_GRAD, .name = "columns", .run = embed_grad},
    {.op = OP_SUM_LEADING, .name = "columns", .run = sum_leading},
    {.run = NULL},
};
