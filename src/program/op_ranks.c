/* Shape rules of the ops that sum over shards and ranks, and divide the optimizer over them. */
#include "program/ops_int.h"

enum status shape_sum_shards(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    (void)out;
    if (n < 1 || op->n_in < n + 2 || op->n_in > n + 3 || input(p, op, n)->dtype != I32 || in_count(p, op, n) != 1 || op->attrs.total < 1 ||
        (op->n_in > n + 2 && in_count(p, op, n + 2) != 1))
        return op_misfit(p, op, "wants sums, the number of the micro-batch, x, and its weight or none", err);
    for (int i = 0; i < n; i++)
        if (!shape_equal(in_shape(p, op, i), in_shape(p, op, n + 1)))
            return op_misfit(p, op, "sums must have the shape of what is summed", err);
    return OK;
}

/* Slices fill all of n numbers; where there are no cuts, nothing is sliced. */
static bool cuts_fit(const struct op_attrs *a, int64_t n)
{
    bool fit = a->n_cuts >= 2 && a->cuts[0] == 0 && a->cuts[a->n_cuts - 1] == n;
    for (int i = 1; i < a->n_cuts && fit; i++)
        fit = a->cuts[i] >= a->cuts[i - 1];
    return fit;
}

enum status shape_reduce_start(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    int64_t sum = 0;
    if (n < 1 || op->n_in < n || op->n_in > n + 1 || (op->n_in > n && in_count(p, op, n) != 1))
        return op_misfit(p, op, "wants gradients, and their weight or none", err);
    for (int i = 0; i < n; i++)
        sum += in_count(p, op, i);
    out[0] = shape_of(1, sum);
    return !op->attrs.n_cuts || cuts_fit(&op->attrs, sum) ? OK : op_misfit(p, op, "slices must fill the bucket", err);
}

enum status shape_reduce_wait(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op), first = op->n_in - n;
    int64_t sum = 0;
    if (n < 1 || first < 1 || first > 2 || (first > 1 && in_count(p, op, 1) != 1))
        return op_misfit(p, op, "wants a bucket, the total or none, and as many values as parts", err);
    for (int i = 0; i < n; i++) {
        out[i] = in_shape(p, op, first + i);
        sum += shape_count(out[i]);
    }
    if (op->attrs.sliced)
        return op->attrs.first >= 0 && op->attrs.first + sum <= in_count(p, op, 0) ? OK : op_misfit(p, op, "the slice must lie in the bucket", err);
    return sum == in_count(p, op, 0) ? OK : op_misfit(p, op, "the values must fill the bucket", err);
}

enum status shape_square_blocks(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct op_attrs *a = &op->attrs;
    const int n = op->n_in - a->masked;
    bool fit = n == a->n_members && a->rows >= 1;
    for (int i = 0; i < n && fit; i++)
        fit = a->members[i].unit >= 0 && a->members[i].unit + (in_count(p, op, i) + SLICE_BLOCK - 1) / SLICE_BLOCK <= a->rows &&
              (!a->masked || a->members[i].group < in_count(p, op, n));
    out[0] = shape_of(1, a->rows);
    return fit ? OK : op_misfit(p, op, "wants slices, and where the blocks of each go", err);
}

enum status shape_sum_blocks(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct op_attrs *a = &op->attrs;
    bool fit = a->parts >= 1 && a->n_members == a->parts;
    for (int i = 0; i < a->n_members && fit; i++) {
        fit = a->members[i].unit >= (i ? a->members[i - 1].unit : 0) && a->members[i].unit <= in_count(p, op, 0);
        out[i] = shape_of(0);
    }
    return fit ? OK : op_misfit(p, op, "wants sums of blocks, and where those of each result begin", err);
}

static int64_t count_parts(const struct program *p, const struct op *op)
{
    int64_t sum = 0;
    for (int i = 0; i < parts(op); i++)
        sum += in_count(p, op, i);
    return sum;
}

static bool copies_fit(const struct program *p, const struct op *op)
{
    const struct op_attrs *a = &op->attrs;
    bool fit = a->copies >= 0 && a->n_members == a->copies && op->n_in == a->parts + a->copies;
    for (int i = 0; i < a->copies && fit; i++)
        fit = a->members[i].unit >= 0 && a->members[i].unit < a->parts && shape_equal(in_shape(p, op, a->parts + i), in_shape(p, op, a->members[i].unit));
    return fit;
}

enum status shape_gather(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)out;
    if (parts(op) < 1 || !copies_fit(p, op) || !cuts_fit(&op->attrs, count_parts(p, op)))
        return op_misfit(p, op, "wants parameters, where each rank's slice of them begins, and copies that are like some of them", err);
    return OK;
}
