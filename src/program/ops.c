/* The op table: shape rules and costs. Transcendental functions count as one FLOP, as is usual. */
#include "program/ops.h"

#include <limits.h>

#include "program/program.h"

static const struct value *input(const struct program *p, const struct op *op, int i) { return &p->values[op->in[i]]; }
static struct shape in_shape(const struct program *p, const struct op *op, int i) { return input(p, op, i)->shape; }
static int64_t in_count(const struct program *p, const struct op *op, int i) { return shape_count(in_shape(p, op, i)); }

static enum status misfit(const struct program *p, const struct op *op, const char *what, struct error *err)
{
    char a[64] = "-", b[64] = "-";
    if (op->n_in > 0)
        shape_text(in_shape(p, op, 0), a);
    if (op->n_in > 1)
        shape_text(in_shape(p, op, 1), b);
    return error_set(err, BAD_INPUT, "op %s: %s; inputs are %s %s and %s %s", op_info(op->kind)->name, what,
                     op->n_in > 0 ? input(p, op, 0)->name : "none", a, op->n_in > 1 ? input(p, op, 1)->name : "none", b);
}

/* ---- shape rules ---- */

static enum status like_first(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)err;
    out[0] = in_shape(p, op, 0);
    return OK;
}

/* All inputs share the first one's shape. */
static enum status all_alike(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    out[0] = in_shape(p, op, 0);
    for (int i = 1; i < op->n_in; i++)
        if (!shape_equal(out[0], in_shape(p, op, i)))
            return misfit(p, op, "shapes must be equal", err);
    return OK;
}

static enum status scalar(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)p, (void)err;
    for (int i = 0; i < op_outputs(op->kind, &op->attrs); i++)
        out[i] = shape_of(0);
    return OK;
}

/* Members are in groups of [0, groups), or in none. */
static bool members_fit(const struct op_attrs *a, int64_t n, int64_t groups)
{
    bool fit = a->n_members == n;
    for (int i = 0; i < a->n_members && fit; i++)
        fit = a->members[i].group >= -1 && a->members[i].group < groups && a->members[i].unit >= 0 && a->members[i].unit < a->n_members;
    return fit;
}

static enum status squares(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = op->n_in - op->attrs.masked;
    if (n < 1 || (op->attrs.masked && !members_fit(&op->attrs, n, in_count(p, op, n))))
        return misfit(p, op, "wants values, and where some are left out, the group of each and a number for every group", err);
    out[0] = n == 1 ? shape_of(0) : shape_of(1, (int64_t)n);
    return OK;
}

static int64_t count_from(const struct program *p, const struct op *op, int first)
{
    int64_t n = 0;
    for (int i = first; i < op->n_in; i++)
        n += in_count(p, op, i);
    return n;
}

static enum status group_scores(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (op->attrs.parts < 1 || in_count(p, op, 0) != 1 || !members_fit(&op->attrs, count_from(p, op, 1), op->attrs.parts))
        return misfit(p, op, "wants the factor, sums of squares, and the group of each of them", err);
    out[0] = shape_of(1, (int64_t)op->attrs.parts);
    return OK;
}

static enum status held(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    out[0] = in_shape(p, op, 0);
    return out[0].rank == 1 && in_count(p, op, 1) == 1 && op->attrs.every > 1 ? OK
               : misfit(p, op, "wants the last steps (G), the step, and that selections are kept", err);
}

static enum status top_k(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct op_attrs *a = &op->attrs;
    out[2] = in_shape(p, op, 0);
    if (out[2].rank != 1 || !shape_equal(out[2], in_shape(p, op, 1)) || in_count(p, op, 2) != 1 || in_count(p, op, 3) != 1 ||
        count_from(p, op, 4) != out[2].dim[0] || a->k < 1 || a->k > out[2].dim[0] || a->every < 1)
        return misfit(p, op, "wants counts and last steps (G), step, factor and G scores, and k from 1 to G", err);
    return OK;
}

static enum status scalar_from_scalar(const struct program *p, const struct op *op, struct shape *out,
                                      struct error *err)
{
    if (in_count(p, op, 0) != 1)
        return misfit(p, op, "the input must be a scalar", err);
    return scalar(p, op, out, err);
}

static enum status embed(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape table = in_shape(p, op, 0), ids = in_shape(p, op, 1);
    if (table.rank != 2 || ids.rank != 2 || input(p, op, 1)->dtype != I32)
        return misfit(p, op, "wants a table (V, D) and ids (B, T) of i32", err);
    out[0] = shape_of(3, ids.dim[0], ids.dim[1], table.dim[1]);
    return OK;
}

static enum status embed_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (in_count(p, op, 2) != in_count(p, op, 1) * shape_last(in_shape(p, op, 0)))
        return misfit(p, op, "the gradient does not fit table and ids", err);
    out[0] = in_shape(p, op, 0);
    return OK;
}

static enum status matmul(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape a = in_shape(p, op, 0), b = in_shape(p, op, 1);
    if (a.rank < 2 || b.rank < 2)
        return misfit(p, op, "wants matrices", err);
    const int64_t m = op->attrs.trans_a ? shape_last(a) : shape_rows(a);
    const int64_t k = op->attrs.trans_a ? shape_rows(a) : shape_last(a);
    const int64_t n = op->attrs.trans_b ? shape_rows(b) : shape_last(b);
    if (k != (op->attrs.trans_b ? shape_last(b) : shape_rows(b)))
        return misfit(p, op, "inner dimensions differ", err);
    if (op->n_in > 2 && in_count(p, op, 2) != n)
        return misfit(p, op, "the bias must have as many elements as columns", err);
    out[0] = op->attrs.trans_a ? shape_of(2, m, n) : a;
    out[0].dim[out[0].rank - 1] = n;
    return OK;
}

static bool is_suffix(struct shape of, struct shape s)
{
    for (int i = 1; i <= s.rank; i++)
        if (s.rank > of.rank || s.dim[s.rank - i] != of.dim[of.rank - i])
            return false;
    return true;
}

static enum status add(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    out[0] = in_shape(p, op, 0);
    return is_suffix(out[0], in_shape(p, op, 1)) ? OK : misfit(p, op, "the second shape must end the first", err);
}

static enum status sum_leading(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    out[0] = in_shape(p, op, 1);
    return is_suffix(in_shape(p, op, 0), out[0]) ? OK : misfit(p, op, "the second shape must end the first", err);
}

static enum status layernorm(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0);
    for (int i = 1; i < op->n_in; i++)
        if (in_count(p, op, i) != shape_last(x))
            return misfit(p, op, "gain and shift must have the width of the input", err);
    out[0] = x;
    out[1] = out[2] = shape_of(1, shape_rows(x));
    return OK;
}

static enum status norm_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (!shape_equal(in_shape(p, op, 0), in_shape(p, op, 1)))
        return misfit(p, op, "dy and x must have one shape", err);
    const int more = op->kind == OP_LAYERNORM_GRAD ? 5 : 4;
    if (op->n_in > more && !shape_equal(in_shape(p, op, more), in_shape(p, op, 1)))
        return misfit(p, op, "what is added to dx must have its shape", err);
    out[0] = in_shape(p, op, 1);
    out[1] = out[2] = in_shape(p, op, 2);
    return OK;
}

static enum status rope_table(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)p, (void)err;
    out[0] = out[1] = shape_of(2, op->attrs.rows, op->attrs.cols);
    return OK;
}

static enum status rope(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0), table = in_shape(p, op, 1);
    if (x.rank != 3 || op->attrs.heads < 1 || x.dim[1] != table.dim[0] ||
        x.dim[2] != op->attrs.heads * 2 * table.dim[1])
        return misfit(p, op, "wants (B, T, H*D) and a table (T, D/2)", err);
    out[0] = x;
    return OK;
}

static enum status causal_mask(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)p, (void)err;
    out[0] = shape_of(2, op->attrs.rows, op->attrs.rows);
    return OK;
}

static bool heads_fit(const struct op_attrs *a, int64_t q_width, int64_t k_width)
{
    return a->heads > 0 && a->kv_heads > 0 && a->heads % a->kv_heads == 0 && q_width % a->heads == 0 &&
           k_width == q_width / a->heads * a->kv_heads;
}

static enum status attn_scores(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape q = in_shape(p, op, 0), k = in_shape(p, op, 1);
    if (q.rank != 3 || k.rank != 3 || q.dim[0] != k.dim[0] || q.dim[1] != k.dim[1] ||
        !heads_fit(&op->attrs, q.dim[2], k.dim[2]))
        return misfit(p, op, "wants q (B, T, H*D) and k (B, T, K*D) with K dividing H", err);
    out[0] = shape_of(4, q.dim[0], (int64_t)op->attrs.heads, q.dim[1], q.dim[1]);
    return OK;
}

static enum status attn_mix(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape w = in_shape(p, op, 0), v = in_shape(p, op, 1);
    const bool back = op->kind == OP_ATTN_MIX_T;
    const int64_t mine = back ? op->attrs.heads : op->attrs.kv_heads, other = back ? op->attrs.kv_heads : op->attrs.heads;
    if (w.rank != 4 || v.rank != 3 || w.dim[0] != v.dim[0] || w.dim[1] != op->attrs.heads || w.dim[2] != v.dim[1] ||
        mine < 1 || other < 1 || v.dim[2] % mine || op->attrs.heads % op->attrs.kv_heads)
        return misfit(p, op, "wants weights (B, H, T, T) and a (B, T, heads*D) that fits them", err);
    out[0] = shape_of(3, v.dim[0], v.dim[1], v.dim[2] / mine * other);
    return OK;
}

static enum status nll(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (shape_rows(in_shape(p, op, 0)) != in_count(p, op, 1) || input(p, op, 1)->dtype != I32)
        return misfit(p, op, "wants one i32 target per row", err);
    if (op->kind == OP_NLL_GRAD)
        return like_first(p, op, out, err);
    return scalar(p, op, out, err);
}

static enum status nothing(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)p, (void)op, (void)out, (void)err;
    return OK;                              /* every output is updated in place */
}

int op_update_tensors(const struct op *op) { return op->kind == OP_ADAMW ? 1 : op->attrs.parts; }
int op_update_scalars(const struct op *op) { return 4 * op_update_tensors(op) + op->attrs.copies; }

/* The mask and the counts of a selection have a place for the group of every parameter. */
static bool mask_fits(const struct program *p, const struct op *op)
{
    const int at = op_update_scalars(op) + 3;
    if (!op->attrs.masked)
        return true;
    bool fit = shape_equal(in_shape(p, op, at), in_shape(p, op, at + 1)) && in_shape(p, op, at).rank == 1;
    for (int i = 0; i < op_update_tensors(op) && fit; i++)
        fit = input(p, op, i)->group >= -1 && input(p, op, i)->group < in_count(p, op, at);
    return fit;
}

static enum status adamw(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)out;
    if (op->attrs.copies < 0 || op->attrs.copies > 1 || op->n_in != 7 + op->attrs.copies + 2 * op->attrs.masked)
        return misfit(p, op, "wants parameter, moments, a copy or none, gradient and three scalars", err);
    if (!mask_fits(p, op))
        return misfit(p, op, "wants a mask and counts that have a place for the parameter's group", err);
    for (int i = 1; i < 4 + op->attrs.copies; i++)
        if (!shape_equal(in_shape(p, op, 0), in_shape(p, op, i)))
            return misfit(p, op, "parameter, moments, copy and gradient must have one shape", err);
    return OK;
}

static enum status clip(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (op->attrs.scaled && (op->n_in < 3 || in_count(p, op, 1) != 1))
        return misfit(p, op, "wants the loss, the loss scale and sums of squares", err);
    return scalar(p, op, out, err);
}

static enum status accumulate(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)out;
    for (int i = 2; i < op->n_in; i++)
        if (in_count(p, op, i) != 1 || input(p, op, i)->dtype != (i == 2 ? F32 : I32))
            return misfit(p, op, "weight and batch must be scalars, the batch of i32", err);
    return shape_equal(in_shape(p, op, 0), in_shape(p, op, 1)) ? OK : misfit(p, op, "shapes must be equal", err);
}

/* ---- ops over several values ---- */

static int parts(const struct op *op) { return op->attrs.parts; }

/* x, weights, biases: each pair is a product of its own. */
static enum status project(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    const struct shape x = in_shape(p, op, 0);
    if (n < 2 || n > OP_MAX_OUT || (op->n_in != 1 + n && op->n_in != 1 + 2 * n) || x.rank < 2)
        return misfit(p, op, "wants an input, as many weights as parts, and as many biases or none", err);
    for (int i = 0; i < n; i++) {
        const struct shape w = in_shape(p, op, 1 + i);
        if (w.rank != 2 || w.dim[1] != shape_last(x))
            return misfit(p, op, "a weight must be (out, in) with the width of the input", err);
        if (op->n_in > 1 + n && in_count(p, op, 1 + n + i) != w.dim[0])
            return misfit(p, op, "a bias must have as many elements as its weight has rows", err);
        out[i] = x;
        out[i].dim[x.rank - 1] = w.dim[0];
    }
    return OK;
}

static enum status project_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    if (n < 2 || op->n_in != 2 * n)
        return misfit(p, op, "wants as many gradients and weights as parts", err);
    for (int i = 0; i < n; i++)
        if (shape_last(in_shape(p, op, i)) != in_shape(p, op, n + i).dim[0] ||
            shape_rows(in_shape(p, op, i)) != shape_rows(in_shape(p, op, 0)) ||
            shape_last(in_shape(p, op, n + i)) != shape_last(in_shape(p, op, n)))
            return misfit(p, op, "a gradient does not fit its weight", err);
    out[0] = in_shape(p, op, 0);
    out[0].dim[out[0].rank - 1] = shape_last(in_shape(p, op, n));
    return OK;
}

static enum status swiglu_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const enum status st = all_alike(p, op, out, err);
    out[1] = out[0];
    return st;
}

static enum status attention(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape q = in_shape(p, op, 0), k = in_shape(p, op, 1);
    if (q.rank != 3 || k.rank != 3 || q.dim[0] != k.dim[0] || q.dim[1] != k.dim[1] || !shape_equal(k, in_shape(p, op, 2)) ||
        !heads_fit(&op->attrs, q.dim[2], k.dim[2]) || (op->n_in > 3) != (op->attrs.prob > 0))
        return misfit(p, op, "wants q (B, T, H*D), k and v (B, T, K*D) with K dividing H, and a tick with dropout", err);
    out[0] = q;
    out[1] = out[2] = shape_of(3, q.dim[0], (int64_t)op->attrs.heads, q.dim[1]);
    return OK;
}

static enum status attention_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    for (int i = 0; i < 3; i++)
        out[i] = in_shape(p, op, 1 + i);
    return shape_equal(in_shape(p, op, 0), out[0]) && shape_equal(in_shape(p, op, 4), out[0])
               ? OK : misfit(p, op, "dy, q and y must have one shape", err);
}

static enum status add_norm(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0);
    if (!shape_equal(x, in_shape(p, op, 1)))
        return misfit(p, op, "both terms must have one shape", err);
    for (int i = 2; i < op->n_in; i++)
        if (in_count(p, op, i) != shape_last(x))
            return misfit(p, op, "gain and shift must have the width of the input", err);
    out[0] = out[1] = x;
    out[2] = out[3] = shape_of(1, shape_rows(x));
    return OK;
}

static enum status linear_gelu(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0), w = in_shape(p, op, 1);
    if (x.rank < 2 || w.rank != 2 || w.dim[1] != shape_last(x) || in_count(p, op, 2) != w.dim[0] ||
        (parts(op) != 1 && parts(op) != 2))
        return misfit(p, op, "wants x (N.., in), a weight (out, in) and a bias (out)", err);
    out[0] = x;
    out[0].dim[x.rank - 1] = w.dim[0];
    out[1] = out[0];
    return OK;
}

static enum status linear_loss(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0), w = in_shape(p, op, 1);
    if (w.rank != 2 || w.dim[1] != shape_last(x) || shape_rows(x) != in_count(p, op, 2) || input(p, op, 2)->dtype != I32 ||
        (parts(op) != 2 && parts(op) != 4) || (op->n_in > 3 && in_count(p, op, 3) != 1))
        return misfit(p, op, "wants x (N.., D), a weight (V, D) and one i32 target per row", err);
    out[0] = out[1] = shape_of(0);
    out[2] = x;
    out[3] = w;
    return OK;
}

static enum status adamw_all(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op), copies = op->attrs.copies;
    (void)out;
    if (n < 1 || copies < 0 || copies > n || op->n_in != 4 * n + copies + 3 + 2 * op->attrs.masked)
        return misfit(p, op, "wants parameters, moments and gradients in equal number, copies of the first, and three scalars", err);
    if (!mask_fits(p, op))
        return misfit(p, op, "wants a mask and counts that have a place for every parameter's group", err);
    for (int i = 0; i < n; i++)
        for (int k = 1; k < 4; k++)
            if (!shape_equal(in_shape(p, op, i), in_shape(p, op, k * n + i + (k == 3) * copies)))
                return misfit(p, op, "parameter, moments and gradient must have one shape", err);
    for (int i = 0; i < copies; i++)
        if (!shape_equal(in_shape(p, op, i), in_shape(p, op, 3 * n + i)))
            return misfit(p, op, "a parameter and its copy must have one shape", err);
    return OK;
}

static enum status keep(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape ring = in_shape(p, op, 0);
    (void)out;
    if (ring.rank != 2 || in_count(p, op, 1) != 1 || input(p, op, 1)->dtype != I32 || count_from(p, op, 2) != ring.dim[1])
        return misfit(p, op, "wants a ring (R, n), the step and values of n numbers in all", err);
    return OK;
}

static enum status sum_shards(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    (void)out;
    if (n < 1 || op->n_in < n + 2 || op->n_in > n + 3 || input(p, op, n)->dtype != I32 || in_count(p, op, n) != 1 || op->attrs.total < 1 ||
        (op->n_in > n + 2 && in_count(p, op, n + 2) != 1))
        return misfit(p, op, "wants sums, the number of the micro-batch, x, and its weight or none", err);
    for (int i = 0; i < n; i++)
        if (!shape_equal(in_shape(p, op, i), in_shape(p, op, n + 1)))
            return misfit(p, op, "sums must have the shape of what is summed", err);
    return OK;
}

static enum status reduce_start(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    int64_t sum = 0;
    if (n < 1 || op->n_in < n || op->n_in > n + 1 || (op->n_in > n && in_count(p, op, n) != 1))
        return misfit(p, op, "wants gradients, and their weight or none", err);
    for (int i = 0; i < n; i++)
        sum += in_count(p, op, i);
    out[0] = shape_of(1, sum);
    return OK;
}

static enum status reduce_wait(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op), first = op->n_in - n;
    int64_t sum = 0;
    if (n < 1 || first < 1 || first > 2 || (first > 1 && in_count(p, op, 1) != 1))
        return misfit(p, op, "wants a bucket, the total or none, and as many values as parts", err);
    for (int i = 0; i < n; i++) {
        out[i] = in_shape(p, op, first + i);
        sum += shape_count(out[i]);
    }
    return sum == in_count(p, op, 0) ? OK : misfit(p, op, "the values must fill the bucket", err);
}

int op_outputs(enum op_kind kind, const struct op_attrs *attrs)
{
    const int n = op_info(kind)->n_out;
    return n != OP_PARTS ? n : op_info(kind)->n_updated == OP_PARTS ? op_updated(kind, attrs) : attrs->parts;
}

int op_updated(enum op_kind kind, const struct op_attrs *attrs)
{
    const int n = op_info(kind)->n_updated;
    if (n == OP_PARTS && kind == OP_SUM_SHARDS)
        return attrs->parts;
    return n != OP_PARTS ? n : 3 * (kind == OP_ADAMW ? 1 : attrs->parts) + attrs->copies;
}

/* ---- FLOPs ---- */

static double none(const struct program *p, const struct op *op) { (void)p, (void)op; return 0; }
static double per_element(const struct program *p, const struct op *op) { return (double)in_count(p, op, 0); }
static double few_per_element(const struct program *p, const struct op *op) { return 4.0 * per_element(p, op); }
static double many_per_element(const struct program *p, const struct op *op) { return 8.0 * per_element(p, op); }
static double per_input(const struct program *p, const struct op *op) { return (double)op->n_in * per_element(p, op); }
static double per_third(const struct program *p, const struct op *op) { return (double)in_count(p, op, 2); }
static double per_output(const struct program *p, const struct op *op)
{
    return (double)shape_count(p->values[op->out[0]].shape);
}

static double matmul_flops(const struct program *p, const struct op *op)
{
    const struct shape a = in_shape(p, op, 0);
    const double k = (double)(op->attrs.trans_a ? shape_rows(a) : shape_last(a));
    return per_output(p, op) * (2 * k + (op->n_in > 2));
}

/* Every score takes one dot product of head size; the same for the two mixes. */
static double attn_flops(const struct program *p, const struct op *op)
{
    const bool scores = op->kind == OP_ATTN_SCORES;
    const struct shape w = scores ? p->values[op->out[0]].shape : in_shape(p, op, 0);
    const struct shape x = in_shape(p, op, scores ? 0 : 1);
    const double head = (double)x.dim[2] / (op->kind == OP_ATTN_MIX ? op->attrs.kv_heads : op->attrs.heads);
    return 2.0 * (double)shape_count(w) * head;
}

/* Two FLOPs per element of a weight and row of the input or gradient. */
static double project_flops(const struct program *p, const struct op *op)
{
    const int n = parts(op), first = op->kind == OP_PROJECT ? 1 : n;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 2 * (double)in_count(p, op, first + i);
    return sum * (double)shape_rows(in_shape(p, op, 0));
}

/* The two products forward, five backward (scores again); half of them under a causal mask. */
static double attention_flops(const struct program *p, const struct op *op)
{
    const bool back = op->kind == OP_ATTENTION_GRAD;
    const struct shape q = in_shape(p, op, back);
    return (back ? 10.0 : 4.0) * (double)shape_count(q) * (double)q.dim[1] * (op->attrs.causal ? 0.5 : 1);
}

static double linear_gelu_flops(const struct program *p, const struct op *op)
{
    return per_output(p, op) * (2.0 * (double)shape_last(in_shape(p, op, 0)) + (parts(op) == 2 ? 16 : 9));
}

static double linear_loss_flops(const struct program *p, const struct op *op)
{
    const double rows = (double)shape_rows(in_shape(p, op, 0)), weights = (double)in_count(p, op, 1);
    const double logits = rows * (double)in_shape(p, op, 1).dim[0];
    return 2 * rows * weights * (parts(op) == 4 ? 3 : 1) + 8 * logits;
}

static double all_squares(const struct program *p, const struct op *op)
{
    double sum = 0;
    for (int i = 0; i < op->n_in; i++)
        sum += (double)in_count(p, op, i);
    return sum;
}

/* Of tensor i of an update: what is updated, on the average over steps, where attrs.k groups are selected. */
static double updated_share(const struct program *p, const struct op *op, int i)
{
    if (!op->attrs.masked || input(p, op, i)->group < 0)
        return 1;
    return (double)op->attrs.k / (double)in_count(p, op, op_update_scalars(op) + 3);
}

static double shard_flops(const struct program *p, const struct op *op)     /* one product and one sum, most of the time */
{
    return 2 * per_element(p, op);
}

static double adamw_flops(const struct program *p, const struct op *op)
{
    double sum = 0;
    for (int i = 0; i < op_update_tensors(op); i++)
        sum += 8 * (double)in_count(p, op, i) * updated_share(p, op, i);
    return sum;
}

/* ---- bytes where "every value once" is wrong ---- */

static double value_traffic(const struct program *p, value_id id) { return (double)value_bytes(&p->values[id]); }

static double embed_bytes(const struct program *p, const struct op *op)     /* reads only the rows it needs */
{
    return value_traffic(p, op->in[1]) + 2 * value_traffic(p, op->out[0]);
}

static double embed_grad_bytes(const struct program *p, const struct op *op)    /* the table gives its shape alone */
{
    return value_traffic(p, op->in[1]) + value_traffic(p, op->in[2]) + value_traffic(p, op->out[0]);
}

static double nll_bytes(const struct program *p, const struct op *op)       /* one number per row */
{
    return 2 * value_traffic(p, op->in[1]);
}

static double nll_grad_bytes(const struct program *p, const struct op *op)  /* writes all, reads targets */
{
    return value_traffic(p, op->in[1]) + value_traffic(p, op->out[0]);
}

static double output_bytes(const struct program *p, const struct op *op) { return value_traffic(p, op->out[0]); }

static double sum_leading_bytes(const struct program *p, const struct op *op)
{
    return value_traffic(p, op->in[0]) + value_traffic(p, op->out[0]);
}

/* A tensor's inputs and outputs stand one number of tensors apart; copies, of the first tensors alone, in between. */
static double adamw_bytes(const struct program *p, const struct op *op)
{
    const int n = op_update_tensors(op), copies = op->attrs.copies;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double one = value_traffic(p, op->in[i]), copy = i < copies ? value_traffic(p, op->in[3 * n + i]) : 0;
        sum += (7 * one + 2 * copy) * updated_share(p, op, i);
    }
    for (int i = op_update_scalars(op); i < op->n_in; i++)
        sum += value_traffic(p, op->in[i]);
    return sum;
}

static double keep_bytes(const struct program *p, const struct op *op)      /* one row */
{
    return 2 * (double)shape_last(in_shape(p, op, 0)) * 4 + value_traffic(p, op->in[1]);
}

static double shard_bytes(const struct program *p, const struct op *op)     /* x and the first sum, most of the time */
{
    return value_traffic(p, op->in[parts(op) + 1]) + 2 * value_traffic(p, op->out[0]);
}

static double reduce_wait_bytes(const struct program *p, const struct op *op)   /* the last inputs give their shapes alone */
{
    return 2 * value_traffic(p, op->in[0]);
}

enum { FIRST = 1, SECOND = 2 };             /* bits of `reuse` */

const struct op_info op_table[OP_KINDS] = {
    /*                       name                in (min max) out  shapes       flops             bytes              reuse updated */
    [OP_EMBED]            = {"embed",            2, 2, 1, embed,       none,             embed_bytes,       0, 0},
    [OP_EMBED_GRAD]       = {"embed_grad",       3, 3, 1, embed_grad,  per_third,        embed_grad_bytes,  0, 0},
    [OP_MATMUL]           = {"matmul",           2, 3, 1, matmul,      matmul_flops,     NULL,              0, 0, true},
    [OP_SUM_LEADING]      = {"sum_leading",      2, 2, 1, sum_leading, per_element,      sum_leading_bytes, 0, 0},
    [OP_ADD]              = {"add",              2, 2, 1, add,         per_element,      NULL,              FIRST, 0},
    [OP_MUL]              = {"mul",              2, 2, 1, all_alike,   per_element,      NULL,              FIRST | SECOND, 0},
    [OP_GELU]             = {"gelu",             1, 1, 1, like_first,  many_per_element, NULL,              FIRST, 0},
    [OP_GELU_GRAD]        = {"gelu_grad",        2, 2, 1, all_alike,   many_per_element, NULL,              FIRST | SECOND, 0},
    [OP_SILU]             = {"silu",             1, 1, 1, like_first,  few_per_element,  NULL,              FIRST, 0},
    [OP_SILU_GRAD]        = {"silu_grad",        2, 2, 1, all_alike,   many_per_element, NULL,              FIRST | SECOND, 0},
    [OP_LAYERNORM]        = {"layernorm",        3, 3, 3, layernorm,   many_per_element, NULL,              0, 0},
    [OP_LAYERNORM_GRAD]   = {"layernorm_grad",   5, 6, 3, norm_grad,   many_per_element, NULL,              FIRST, 0},
    [OP_RMSNORM]          = {"rmsnorm",          2, 2, 2, layernorm,   few_per_element,  NULL,              0, 0},
    [OP_RMSNORM_GRAD]     = {"rmsnorm_grad",     4, 5, 2, norm_grad,   many_per_element, NULL,              FIRST, 0},
    [OP_ROPE_TABLE]       = {"rope_table",       0, 0, 2, rope_table,  per_output,       NULL,              0, 0},
    [OP_ROPE]             = {"rope",             3, 3, 1, rope,        few_per_element,  NULL,              FIRST, 0},
    [OP_CAUSAL_MASK]      = {"causal_mask",      0, 0, 1, causal_mask, none,             NULL,              0, 0},
    [OP_ATTN_SCORES]      = {"attn_scores",      2, 2, 1, attn_scores, attn_flops,       NULL,              0, 0},
    [OP_ATTN_MIX]         = {"attn_mix",         2, 2, 1, attn_mix,    attn_flops,       NULL,              0, 0},
    [OP_ATTN_MIX_T]       = {"attn_mix_t",       2, 2, 1, attn_mix,    attn_flops,       NULL,              0, 0},
    [OP_SOFTMAX]          = {"softmax",          1, 1, 1, like_first,  few_per_element,  NULL,              FIRST, 0},
    [OP_SOFTMAX_GRAD]     = {"softmax_grad",     2, 2, 1, all_alike,   few_per_element,  NULL,              FIRST | SECOND, 0},
    [OP_LOG_SOFTMAX]      = {"log_softmax",      1, 1, 1, like_first,  few_per_element,  NULL,              FIRST, 0},
    [OP_LOG_SOFTMAX_GRAD] = {"log_softmax_grad", 2, 2, 1, all_alike,   few_per_element,  NULL,              FIRST | SECOND, 0},
    [OP_DROPOUT]          = {"dropout",          2, 2, 1, like_first,  per_element,      NULL,              FIRST, 0},
    [OP_NLL]              = {"nll",              2, 2, 2, nll,         none,             nll_bytes,         0, 0},
    [OP_NLL_GRAD]         = {"nll_grad",         4, 4, 1, nll,         none,             nll_grad_bytes,    FIRST, 0},
    [OP_FILL]             = {"fill",             1, 1, 1, like_first,  none,             output_bytes,      FIRST, 0},
    [OP_ADVANCE]          = {"advance",          1, 1, 1, nothing,     none,             NULL,              0, 1},
    [OP_LR]               = {"lr",               1, 1, 1, scalar_from_scalar, none,      NULL,              0, 0},
    [OP_ACCUMULATE]       = {"accumulate",       2, 4, 1, accumulate,  per_element,      NULL,              0, 1},
    [OP_DIVIDE]           = {"divide",           2, 2, 1, like_first,  per_element,      NULL,              FIRST, 0},
    [OP_ZERO]             = {"zero",             1, 1, 1, nothing,     none,             output_bytes,      0, 1},
    [OP_SUM_SQUARES]      = {"sum_squares",      1, INT_MAX, 1, squares, all_squares,    NULL,              0, 0},
    [OP_CLIP]             = {"clip",             2, INT_MAX, 2, clip, none,              NULL,              0, 0},
    [OP_ADAMW]            = {"adamw",            7, 10, OP_PARTS, adamw, adamw_flops, adamw_bytes,           0, OP_PARTS},
    [OP_HOST_READ]        = {"host_read",        1, 1, 1, like_first,  none,             NULL,              0, 0},
    [OP_PROJECT]          = {"project",          3, 9, OP_PARTS, project, project_flops, NULL,              0, 0, true},
    [OP_PROJECT_GRAD]     = {"project_grad",     4, 8, 1, project_grad, project_flops,   NULL,              0, 0, true},
    [OP_SWIGLU]           = {"swiglu",           2, 2, 1, all_alike,   many_per_element, NULL,              FIRST | SECOND, 0},
    [OP_SWIGLU_GRAD]      = {"swiglu_grad",      3, 3, 2, swiglu_grad, many_per_element, NULL,              FIRST, 0},
    [OP_ATTENTION]        = {"attention",        3, 4, 3, attention,   attention_flops,  NULL,              0, 0},
    [OP_ATTENTION_GRAD]   = {"attention_grad",   7, 8, 3, attention_grad, attention_flops, NULL,            0, 0},
    [OP_ADD_LAYERNORM]    = {"add_layernorm",    4, 4, 4, add_norm,    many_per_element, NULL,              FIRST | SECOND, 0},
    [OP_ADD_RMSNORM]      = {"add_rmsnorm",      3, 3, 3, add_norm,    few_per_element,  NULL,              FIRST | SECOND, 0},
    [OP_LINEAR_GELU]      = {"linear_gelu",      3, 3, OP_PARTS, linear_gelu, linear_gelu_flops, NULL,      0, 0, true},
    [OP_LINEAR_LOSS]      = {"linear_loss",      3, 4, OP_PARTS, linear_loss, linear_loss_flops, NULL,      0, 0, true},
    [OP_ADAMW_ALL]        = {"adamw_all",        7, INT_MAX, OP_PARTS, adamw_all, adamw_flops, adamw_bytes, 0, OP_PARTS},
    [OP_KEEP]             = {"keep",             3, INT_MAX, 1, keep,  none,             keep_bytes,        0, 1},
    [OP_CAST]             = {"cast",             1, 1, 1, like_first,  none,             NULL,              0, 0},
    [OP_RESCALE]          = {"rescale",          3, 3, 2, nothing,     none,             NULL,              0, 2},
    [OP_MEAN]             = {"mean",             2, INT_MAX, 1, all_alike, per_input,    NULL,              FIRST | SECOND, 0},
    [OP_SCALE]            = {"scale",            1, 1, 1, like_first,  per_element,      NULL,              FIRST, 0},
    [OP_HELD]             = {"held",             2, 2, 1, held,        none,             NULL,              0, 0},
    [OP_GROUP_SCORES]     = {"group_scores",     2, INT_MAX, 1, group_scores, none,      NULL,              0, 0},
    [OP_TOP_K]            = {"top_k",            5, INT_MAX, 3, top_k, none,             NULL,              0, 2},
    [OP_SUM_SHARDS]       = {"sum_shards",       3, INT_MAX, OP_PARTS, sum_shards, shard_flops, shard_bytes, 0, OP_PARTS},
    [OP_REDUCE_START]     = {"reduce_start",     1, INT_MAX, 1, reduce_start, per_output, NULL,             0, 0},
    [OP_REDUCE_WAIT]      = {"reduce_wait",      2, INT_MAX, OP_PARTS, reduce_wait, per_element, reduce_wait_bytes, 0, 0},
};

double op_gradient_share(const struct program *p, const struct op *op)
{
    if (op->kind != OP_LINEAR_LOSS || parts(op) != 4)
        return op->phase == PHASE_BACKWARD ? 1 : 0;
    struct op forward = *op;
    forward.attrs.parts = 2;
    return 1 - linear_loss_flops(p, &forward) / linear_loss_flops(p, op);
}

static double needed_share(const struct op *op) { return op->leave ? op->leave->share : 1; }

double op_flops(const struct program *p, const struct op *op) { return op_info(op->kind)->flops(p, op) * needed_share(op); }

double op_bytes(const struct program *p, const struct op *op)
{
    const struct op_info *info = op_info(op->kind);
    if (info->bytes)
        return info->bytes(p, op) * needed_share(op);
    double sum = 0;
    for (int i = 0; i < op->n_in; i++)
        sum += value_traffic(p, op->in[i]);
    for (int i = 0; i < op->n_out; i++)
        sum += value_traffic(p, op->out[i]);
    return sum * needed_share(op);
}
