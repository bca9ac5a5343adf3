/* Shape rules and costs of the ops that keep keys and values of tokens, and of attention over them. */
#include "program/ops_int.h"

enum status shape_store_kv(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape keys = in_shape(p, op, 0), k = in_shape(p, op, 2);
    (void)out;
    if (keys.rank != 3 || !shape_equal(keys, in_shape(p, op, 1)) || k.rank != 3 || !shape_equal(k, in_shape(p, op, 3)) || k.dim[2] != keys.dim[2])
        return op_misfit(p, op, "wants keys and values (S, C, W), and new ones (B, T, W)", err);
    if ((k.dim[0] != keys.dim[0] && k.dim[0] != 1) || in_count(p, op, 4) != k.dim[0] * k.dim[1])
        return op_misfit(p, op, "wants new ones of each sample, or one for all, and a place for each of (B, T)", err);
    return OK;
}

enum status shape_attend_kv(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape q = in_shape(p, op, 0), keys = in_shape(p, op, 1);
    if (q.rank != 3 || keys.rank != 3 || q.dim[0] != keys.dim[0] || !shape_equal(keys, in_shape(p, op, 2)) ||
        !op_heads_fit(&op->attrs, q.dim[2], keys.dim[2]) || in_count(p, op, 3) != q.dim[0] * q.dim[1])
        return op_misfit(p, op, "wants q (B, T, H*D), keys and values (B, C, K*D) with K dividing H, and a place for each of (B, T)", err);
    out[0] = q;
    return OK;
}

/* Half of the room, as on the average of a sample that fills it. */
static double seen(const struct program *p, const struct op *op) { return (double)in_shape(p, op, 1).dim[1] / 2; }

double flops_attend_kv(const struct program *p, const struct op *op) { return 4 * (double)in_count(p, op, 0) * seen(p, op); }

double bytes_attend_kv(const struct program *p, const struct op *op)    /* queries of a sample share what they read */
{
    return 2 * (double)value_bytes(input(p, op, 0)) + (double)value_bytes(input(p, op, 1)) + (double)value_bytes(input(p, op, 3));
}

double bytes_store_kv(const struct program *p, const struct op *op)
{
    const double samples = (double)in_shape(p, op, 0).dim[0] / (double)in_shape(p, op, 2).dim[0];
    return 2 * (1 + samples) * (double)value_bytes(input(p, op, 2)) + (double)value_bytes(input(p, op, 4));
}
