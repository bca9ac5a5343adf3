/* Tuned: embeddings and sums over leading dimensions. Sums are split by column, so that every element is added up by one
 * thread in one order whatever the number of threads. */
#include <string.h>

#include "ops/cpu/tuned/tuned.h"

static void embed(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *table = c->in[0];
    const int32_t *ids = c->in[1];
    const int64_t width = shape_last(call_in(c, 0)->shape);
    const struct span s = my_rows(t, in_count(c, 1));
    for (int64_t i = s.lo; i < s.hi; i++)
        memcpy((float *)c->out[0] + i * width, table + ids[i] * width, (size_t)width * sizeof *table);
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
        const float *restrict from = dy + i * width;
        float *restrict to = d_table + ids[i] * width;
        for (int64_t j = columns.lo; j < columns.hi; j++)
            to[j] += from[j];
    }
}

static void sum_leading(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *restrict x = c->in[0];
    float *restrict y = c->out[0];
    const int64_t width = out_count(c, 0), rows = in_count(c, 0) / width;
    const struct span columns = my_columns(t, width);
    for (int64_t j = columns.lo; j < columns.hi; j++)
        y[j] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = columns.lo; j < columns.hi; j++)
            y[j] += x[i * width + j];
}

const struct kernel TUNED(embed)[] = {
    {.op = OP_EMBED, .name = "rows", .run = embed},
    {.op = OP_EMBED_GRAD, .name = "columns", .run = embed_grad},
    {.op = OP_SUM_LEADING, .name = "columns", .run = sum_leading},
    {.run = NULL},
};
