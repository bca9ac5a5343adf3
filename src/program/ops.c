/* The op table, and its shape rules. */
#include <limits.h>

#include "program/ops_int.h"

enum status op_misfit(const struct program *p, const struct op *op, const char *what, struct error *err)
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
            return op_misfit(p, op, "shapes must be equal", err);
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
        return op_misfit(p, op, "wants values, and where some are left out, the group of each and a number for every group", err);
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
        return op_misfit(p, op, "wants the factor, sums of squares, and the group of each of them", err);
    out[0] = shape_of(1, (int64_t)op->attrs.parts);
    return OK;
}

static enum status held(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    out[0] = in_shape(p, op, 0);
    return out[0].rank == 1 && in_count(p, op, 1) == 1 && op->attrs.every > 1 ? OK
               : op_misfit(p, op, "wants the last steps (G), the step, and that selections are kept", err);
}

static enum status top_k(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct op_attrs *a = &op->attrs;
    out[2] = in_shape(p, op, 0);
    if (out[2].rank != 1 || !shape_equal(out[2], in_shape(p, op, 1)) || in_count(p, op, 2) != 1 || in_count(p, op, 3) != 1 ||
        count_from(p, op, 4) != out[2].dim[0] || a->k < 1 || a->k > out[2].dim[0] || a->every < 1)
        return op_misfit(p, op, "wants counts and last steps (G), step, factor and G scores, and k from 1 to G", err);
    return OK;
}

static enum status scalar_from_scalar(const struct program *p, const struct op *op, struct shape *out,
                                      struct error *err)
{
    if (in_count(p, op, 0) != 1)
        return op_misfit(p, op, "the input must be a scalar", err);
    return scalar(p, op, out, err);
}

static enum status embed(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape table = in_shape(p, op, 0), ids = in_shape(p, op, 1);
    if (table.rank != 2 || ids.rank != 2 || input(p, op, 1)->dtype != I32)
        return op_misfit(p, op, "wants a table (V, D) and ids (B, T) of i32", err);
    out[0] = shape_of(3, ids.dim[0], ids.dim[1], table.dim[1]);
    return OK;
}

static enum status embed_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (in_count(p, op, 2) != in_count(p, op, 1) * shape_last(in_shape(p, op, 0)))
        return op_misfit(p, op, "the gradient does not fit table and ids", err);
    out[0] = in_shape(p, op, 0);
    return OK;
}

static enum status matmul(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape a = in_shape(p, op, 0), b = in_shape(p, op, 1);
    if (a.rank < 2 || b.rank < 2)
        return op_misfit(p, op, "wants matrices", err);
    const int64_t m = op->attrs.trans_a ? shape_last(a) : shape_rows(a);
    const int64_t k = op->attrs.trans_a ? shape_rows(a) : shape_last(a);
    const int64_t n = op->attrs.trans_b ? shape_rows(b) : shape_last(b);
    if (k != (op->attrs.trans_b ? shape_last(b) : shape_rows(b)))
        return op_misfit(p, op, "inner dimensions differ", err);
    if (op->n_in > 2 && in_count(p, op, 2) != n)
        return op_misfit(p, op, "the bias must have as many elements as columns", err);
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
    return is_suffix(out[0], in_shape(p, op, 1)) ? OK : op_misfit(p, op, "the second shape must end the first", err);
}

static enum status sum_leading(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    out[0] = in_shape(p, op, 1);
    return is_suffix(in_shape(p, op, 0), out[0]) ? OK : op_misfit(p, op, "the second shape must end the first", err);
}

static enum status layernorm(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0);
    for (int i = 1; i < op->n_in; i++)
        if (in_count(p, op, i) != shape_last(x))
            return op_misfit(p, op, "gain and shift must have the width of the input", err);
    out[0] = x;
    out[1] = out[2] = shape_of(1, shape_rows(x));
    return OK;
}

static enum status norm_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (!shape_equal(in_shape(p, op, 0), in_shape(p, op, 1)))
        return op_misfit(p, op, "dy and x must have one shape", err);
    const int more = op->kind == OP_LAYERNORM_GRAD ? 5 : 4;
    if (op->n_in > more && !shape_equal(in_shape(p, op, more), in_shape(p, op, 1)))
        return op_misfit(p, op, "what is added to dx must have its shape", err);
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
    if (x.rank != 3 || op->attrs.heads < 1 || (op->n_in < 4 && x.dim[1] != table.dim[0]) ||
        x.dim[2] != op->attrs.heads * 2 * table.dim[1])
        return op_misfit(p, op, "wants (B, T, H*D) and a table (T, D/2)", err);
    if (op->n_in > 3 && in_count(p, op, 3) != x.dim[0] * x.dim[1])
        return op_misfit(p, op, "wants a place for each of (B, T)", err);
    out[0] = x;
    return OK;
}

static enum status causal_mask(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)p, (void)err;
    out[0] = shape_of(2, op->attrs.rows, op->attrs.rows);
    return OK;
}

bool op_heads_fit(const struct op_attrs *a, int64_t q_width, int64_t k_width)
{
    return a->heads > 0 && a->kv_heads > 0 && a->heads % a->kv_heads == 0 && q_width % a->heads == 0 &&
           k_width == q_width / a->heads * a->kv_heads;
}

static enum status attn_scores(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape q = in_shape(p, op, 0), k = in_shape(p, op, 1);
    if (q.rank != 3 || k.rank != 3 || q.dim[0] != k.dim[0] || q.dim[1] != k.dim[1] ||
        !op_heads_fit(&op->attrs, q.dim[2], k.dim[2]))
        return op_misfit(p, op, "wants q (B, T, H*D) and k (B, T, K*D) with K dividing H", err);
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
        return op_misfit(p, op, "wants weights (B, H, T, T) and a (B, T, heads*D) that fits them", err);
    out[0] = shape_of(3, v.dim[0], v.dim[1], v.dim[2] / mine * other);
    return OK;
}

static enum status nll(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (shape_rows(in_shape(p, op, 0)) != in_count(p, op, 1) || input(p, op, 1)->dtype != I32)
        return op_misfit(p, op, "wants one i32 target per row", err);
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

/* A moment of a slice of parameter i, or of all of it. */
static bool moment_fits(const struct program *p, const struct op *op, int i, int moment)
{
    const struct value_slice *s = input(p, op, moment)->slice;
    if (!s)
        return shape_equal(in_shape(p, op, i), in_shape(p, op, moment));
    return s->of == op->in[i] && s->first >= 0 && s->first + in_count(p, op, moment) <= in_count(p, op, i) && !op->attrs.copies;
}

static enum status adamw(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)out;
    if (op->attrs.copies < 0 || op->attrs.copies > 1 || op->n_in != 7 + op->attrs.copies + 2 * op->attrs.masked)
        return op_misfit(p, op, "wants parameter, moments, a copy or none, gradient and three scalars", err);
    if (!mask_fits(p, op))
        return op_misfit(p, op, "wants a mask and counts that have a place for the parameter's group", err);
    for (int i = 1; i < 3 + op->attrs.copies; i++)
        if (!(i < 3 ? moment_fits(p, op, 0, i) : shape_equal(in_shape(p, op, 0), in_shape(p, op, i))))
            return op_misfit(p, op, "parameter, moments, copy and gradient must have one shape", err);
    if (!shape_equal(in_shape(p, op, 1), in_shape(p, op, 3 + op->attrs.copies)) || !shape_equal(in_shape(p, op, 1), in_shape(p, op, 2)))
        return op_misfit(p, op, "parameter, moments, copy and gradient must have one shape", err);
    return OK;
}

static enum status clip(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    if (op->attrs.scaled && (op->n_in < 3 || in_count(p, op, 1) != 1))
        return op_misfit(p, op, "wants the loss, the loss scale and sums of squares", err);
    return scalar(p, op, out, err);
}

static enum status accumulate(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    (void)out;
    for (int i = 2; i < op->n_in; i++)
        if (in_count(p, op, i) != 1 || input(p, op, i)->dtype != (i == 2 ? F32 : I32))
            return op_misfit(p, op, "weight and batch must be scalars, the batch of i32", err);
    return shape_equal(in_shape(p, op, 0), in_shape(p, op, 1)) ? OK : op_misfit(p, op, "shapes must be equal", err);
}

/* ---- ops over several values ---- */

/* x, weights, biases: each pair is a product of its own. */
static enum status project(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    const struct shape x = in_shape(p, op, 0);
    if (n < 2 || n > OP_MAX_OUT || (op->n_in != 1 + n && op->n_in != 1 + 2 * n) || x.rank < 2)
        return op_misfit(p, op, "wants an input, as many weights as parts, and as many biases or none", err);
    for (int i = 0; i < n; i++) {
        const struct shape w = in_shape(p, op, 1 + i);
        if (w.rank != 2 || w.dim[1] != shape_last(x))
            return op_misfit(p, op, "a weight must be (out, in) with the width of the input", err);
        if (op->n_in > 1 + n && in_count(p, op, 1 + n + i) != w.dim[0])
            return op_misfit(p, op, "a bias must have as many elements as its weight has rows", err);
        out[i] = x;
        out[i].dim[x.rank - 1] = w.dim[0];
    }
    return OK;
}

static enum status project_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const int n = parts(op);
    if (n < 2 || op->n_in != 2 * n)
        return op_misfit(p, op, "wants as many gradients and weights as parts", err);
    for (int i = 0; i < n; i++)
        if (shape_last(in_shape(p, op, i)) != in_shape(p, op, n + i).dim[0] ||
            shape_rows(in_shape(p, op, i)) != shape_rows(in_shape(p, op, 0)) ||
            shape_last(in_shape(p, op, n + i)) != shape_last(in_shape(p, op, n)))
            return op_misfit(p, op, "a gradient does not fit its weight", err);
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

int op_attention_tick(const struct op *op)
{
    return op->attrs.prob > 0 ? op->kind == OP_ATTENTION ? 3 : 7 : -1;
}

int op_attention_starts(const struct op *op) { return op->attrs.packed ? op->n_in - 1 : -1; }

static enum status attention(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape q = in_shape(p, op, 0), k = in_shape(p, op, 1);
    if (q.rank != 3 || k.rank != 3 || q.dim[0] != k.dim[0] || q.dim[1] != k.dim[1] || !shape_equal(k, in_shape(p, op, 2)) ||
        !op_heads_fit(&op->attrs, q.dim[2], k.dim[2]) || op->n_in != 3 + (op->attrs.prob > 0) + op->attrs.packed)
        return op_misfit(p, op, "wants q (B, T, H*D), k and v (B, T, K*D) with K dividing H, a tick with dropout, and starts of packed samples", err);
    if (op->attrs.packed && (!op->attrs.causal || in_count(p, op, op->n_in - 1) != q.dim[0] * q.dim[1]))
        return op_misfit(p, op, "packed samples are causal, with a start for each of (B, T)", err);
    out[0] = q;
    out[1] = out[2] = shape_of(3, q.dim[0], (int64_t)op->attrs.heads, q.dim[1]);
    return OK;
}

static enum status attention_grad(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    for (int i = 0; i < 3; i++)
        out[i] = in_shape(p, op, 1 + i);
    return shape_equal(in_shape(p, op, 0), out[0]) && shape_equal(in_shape(p, op, 4), out[0])
               ? OK : op_misfit(p, op, "dy, q and y must have one shape", err);
}

static enum status add_norm(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0);
    if (!shape_equal(x, in_shape(p, op, 1)))
        return op_misfit(p, op, "both terms must have one shape", err);
    for (int i = 2; i < op->n_in; i++)
        if (in_count(p, op, i) != shape_last(x))
            return op_misfit(p, op, "gain and shift must have the width of the input", err);
    out[0] = out[1] = x;
    out[2] = out[3] = shape_of(1, shape_rows(x));
    return OK;
}

static enum status linear_gelu(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape x = in_shape(p, op, 0), w = in_shape(p, op, 1);
    if (x.rank < 2 || w.rank != 2 || w.dim[1] != shape_last(x) || in_count(p, op, 2) != w.dim[0] ||
        (parts(op) != 1 && parts(op) != 2))
        return op_misfit(p, op, "wants x (N.., in), a weight (out, in) and a bias (out)", err);
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
        return op_misfit(p, op, "wants x (N.., D), a weight (V, D) and one i32 target per row", err);
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
        return op_misfit(p, op, "wants parameters, moments and gradients in equal number, copies of the first, and three scalars", err);
    if (!mask_fits(p, op))
        return op_misfit(p, op, "wants a mask and counts that have a place for every parameter's group", err);
    for (int i = 0; i < n; i++)
        for (int k = 1; k < 4; k++)
            if (!moment_fits(p, op, i, n + i) || !shape_equal(in_shape(p, op, n + i), in_shape(p, op, k * n + i + (k == 3) * copies)))
                return op_misfit(p, op, "parameter, moments and gradient must have one shape", err);
    for (int i = 0; i < copies; i++)
        if (!shape_equal(in_shape(p, op, i), in_shape(p, op, 3 * n + i)))
            return op_misfit(p, op, "a parameter and its copy must have one shape", err);
    return OK;
}

static enum status keep(const struct program *p, const struct op *op, struct shape *out, struct error *err)
{
    const struct shape ring = in_shape(p, op, 0);
    (void)out;
    if (ring.rank != 2 || in_count(p, op, 1) != 1 || input(p, op, 1)->dtype != I32 || count_from(p, op, 2) != ring.dim[1])
        return op_misfit(p, op, "wants a ring (R, n), the step and values of n numbers in all", err);
    return OK;
}

int op_outputs(enum op_kind kind, const struct op_attrs *attrs)
{
    const int n = op_info(kind)->n_out;
    return n != OP_PARTS ? n : op_info(kind)->n_updated == OP_PARTS ? op_updated(kind, attrs) : attrs->parts;
}

int op_updated(enum op_kind kind, const struct op_attrs *attrs)
{
    const int n = op_info(kind)->n_updated;
    if (n == OP_PARTS && (kind == OP_SUM_SHARDS || kind == OP_GATHER_START || kind == OP_GATHER_WAIT))
        return attrs->parts + attrs->copies;
    return n != OP_PARTS ? n : 3 * (kind == OP_ADAMW ? 1 : attrs->parts) + attrs->copies;
}

enum { FIRST = 1, SECOND = 2 };             /* bits of `reuse` */

const struct op_info op_table[OP_KINDS] = {
    /*                       name                in (min max) out  shapes       flops             bytes              reuse updated */
    [OP_EMBED]            = {"embed",            2, 2, 1, embed,       flops_none,             bytes_embed,       0, 0},
    [OP_EMBED_GRAD]       = {"embed_grad",       3, 3, 1, embed_grad,  flops_per_third,        bytes_embed_grad,  0, 0},
    [OP_MATMUL]           = {"matmul",           2, 3, 1, matmul,      flops_matmul,     NULL,              0, 0, true},
    [OP_SUM_LEADING]      = {"sum_leading",      2, 2, 1, sum_leading, flops_per_element,      bytes_sum_leading, 0, 0},
    [OP_ADD]              = {"add",              2, 2, 1, add,         flops_per_element,      NULL,              FIRST | SECOND, 0},
    [OP_MUL]              = {"mul",              2, 2, 1, all_alike,   flops_per_element,      NULL,              FIRST | SECOND, 0},
    [OP_GELU]             = {"gelu",             1, 1, 1, like_first,  flops_many, NULL,              FIRST, 0},
    [OP_GELU_GRAD]        = {"gelu_grad",        2, 2, 1, all_alike,   flops_many, NULL,              FIRST | SECOND, 0},
    [OP_SILU]             = {"silu",             1, 1, 1, like_first,  flops_few,  NULL,              FIRST, 0},
    [OP_SILU_GRAD]        = {"silu_grad",        2, 2, 1, all_alike,   flops_many, NULL,              FIRST | SECOND, 0},
    [OP_LAYERNORM]        = {"layernorm",        3, 3, 3, layernorm,   flops_many, NULL,              0, 0},
    [OP_LAYERNORM_GRAD]   = {"layernorm_grad",   5, 6, 3, norm_grad,   flops_many, NULL,              FIRST, 0},
    [OP_RMSNORM]          = {"rmsnorm",          2, 2, 2, layernorm,   flops_few,  NULL,              0, 0},
    [OP_RMSNORM_GRAD]     = {"rmsnorm_grad",     4, 5, 2, norm_grad,   flops_many, NULL,              FIRST, 0},
    [OP_ROPE_TABLE]       = {"rope_table",       0, 0, 2, rope_table,  flops_per_output,       NULL,              0, 0},
    [OP_ROPE]             = {"rope",             3, 4, 1, rope,        flops_few,  NULL,              FIRST, 0},
    [OP_CAUSAL_MASK]      = {"causal_mask",      0, 0, 1, causal_mask, flops_none,             NULL,              0, 0},
    [OP_ATTN_SCORES]      = {"attn_scores",      2, 2, 1, attn_scores, flops_attn,       NULL,              0, 0},
    [OP_ATTN_MIX]         = {"attn_mix",         2, 2, 1, attn_mix,    flops_attn,       NULL,              0, 0},
    [OP_ATTN_MIX_T]       = {"attn_mix_t",       2, 2, 1, attn_mix,    flops_attn,       NULL,              0, 0},
    [OP_SOFTMAX]          = {"softmax",          1, 1, 1, like_first,  flops_few,  NULL,              FIRST, 0},
    [OP_SOFTMAX_GRAD]     = {"softmax_grad",     2, 2, 1, all_alike,   flops_few,  NULL,              FIRST | SECOND, 0},
    [OP_LOG_SOFTMAX]      = {"log_softmax",      1, 1, 1, like_first,  flops_few,  NULL,              FIRST, 0},
    [OP_LOG_SOFTMAX_GRAD] = {"log_softmax_grad", 2, 2, 1, all_alike,   flops_few,  NULL,              FIRST | SECOND, 0},
    [OP_DROPOUT]          = {"dropout",          2, 2, 1, like_first,  flops_per_element,      NULL,              FIRST, 0},
    [OP_NLL]              = {"nll",              2, 2, 2, nll,         flops_none,             bytes_nll,         0, 0},
    [OP_NLL_GRAD]         = {"nll_grad",         4, 4, 1, nll,         flops_none,             bytes_nll_grad,    FIRST, 0},
    [OP_FILL]             = {"fill",             1, 1, 1, like_first,  flops_none,             bytes_output,      FIRST, 0},
    [OP_ADVANCE]          = {"advance",          1, 1, 1, nothing,     flops_none,             NULL,              0, 1},
    [OP_LR]               = {"lr",               1, 1, 1, scalar_from_scalar, flops_none,      NULL,              0, 0},
    [OP_ACCUMULATE]       = {"accumulate",       2, 4, 1, accumulate,  flops_per_element,      NULL,              0, 1},
    [OP_DIVIDE]           = {"divide",           2, 2, 1, like_first,  flops_per_element,      NULL,              FIRST, 0},
    [OP_ZERO]             = {"zero",             1, 1, 1, nothing,     flops_none,             bytes_output,      0, 1},
    [OP_SUM_SQUARES]      = {"sum_squares",      1, INT_MAX, 1, squares, flops_squares,    NULL,              0, 0},
    [OP_CLIP]             = {"clip",             2, INT_MAX, 2, clip, flops_none,              NULL,              0, 0},
    [OP_ADAMW]            = {"adamw",            7, 10, OP_PARTS, adamw, flops_adamw, bytes_adamw,           0, OP_PARTS},
    [OP_HOST_READ]        = {"host_read",        1, 1, 1, like_first,  flops_none,             NULL,              0, 0},
    [OP_PROJECT]          = {"project",          3, 9, OP_PARTS, project, flops_project, NULL,              0, 0, true},
    [OP_PROJECT_GRAD]     = {"project_grad",     4, 8, 1, project_grad, flops_project,   NULL,              0, 0, true},
    [OP_SWIGLU]           = {"swiglu",           2, 2, 1, all_alike,   flops_many, NULL,              FIRST | SECOND, 0},
    [OP_SWIGLU_GRAD]      = {"swiglu_grad",      3, 3, 2, swiglu_grad, flops_many, NULL,              FIRST, 0},
    [OP_ATTENTION]        = {"attention",        3, 5, 3, attention,   flops_attention,  NULL,              0, 0},
    [OP_ATTENTION_GRAD]   = {"attention_grad",   7, 9, 3, attention_grad, flops_attention, NULL,            0, 0},
    [OP_ADD_LAYERNORM]    = {"add_layernorm",    4, 4, 4, add_norm,    flops_many, NULL,              FIRST | SECOND, 0},
    [OP_ADD_RMSNORM]      = {"add_rmsnorm",      3, 3, 3, add_norm,    flops_few,  NULL,              FIRST | SECOND, 0},
    [OP_LINEAR_GELU]      = {"linear_gelu",      3, 3, OP_PARTS, linear_gelu, flops_linear_gelu, NULL,      0, 0, true},
    [OP_LINEAR_LOSS]      = {"linear_loss",      3, 4, OP_PARTS, linear_loss, flops_linear_loss, NULL,      0, 0, true},
    [OP_ADAMW_ALL]        = {"adamw_all",        7, INT_MAX, OP_PARTS, adamw_all, flops_adamw, bytes_adamw, 0, OP_PARTS},
    [OP_KEEP]             = {"keep",             3, INT_MAX, 1, keep,  flops_none,             bytes_keep,        0, 1},
    [OP_CAST]             = {"cast",             1, 1, 1, like_first,  flops_none,             NULL,              0, 0},
    [OP_RESCALE]          = {"rescale",          3, 3, 2, nothing,     flops_none,             NULL,              0, 2},
    [OP_MEAN]             = {"mean",             2, INT_MAX, 1, all_alike, flops_per_input,    NULL,              FIRST | SECOND, 0},
    [OP_SCALE]            = {"scale",            1, 1, 1, like_first,  flops_per_element,      NULL,              FIRST, 0},
    [OP_HELD]             = {"held",             2, 2, 1, held,        flops_none,             NULL,              0, 0},
    [OP_GROUP_SCORES]     = {"group_scores",     2, INT_MAX, 1, group_scores, flops_none,      NULL,              0, 0},
    [OP_TOP_K]            = {"top_k",            5, INT_MAX, 3, top_k, flops_none,             NULL,              0, 2},
    [OP_SUM_SHARDS]       = {"sum_shards",       3, INT_MAX, OP_PARTS, shape_sum_shards, flops_shards, bytes_shards, 0, OP_PARTS},
    [OP_REDUCE_START]     = {"reduce_start",     1, INT_MAX, 1, shape_reduce_start, flops_per_output, NULL,             0, 0},
    [OP_REDUCE_WAIT]      = {"reduce_wait",      2, INT_MAX, OP_PARTS, shape_reduce_wait, flops_reduce_wait, bytes_reduce_wait, 0, 0},
    [OP_SQUARE_BLOCKS]    = {"square_blocks",    1, INT_MAX, 1, shape_square_blocks, flops_squares,    NULL,             0, 0},
    [OP_SUM_BLOCKS]       = {"sum_blocks",       1, 1, OP_PARTS, shape_sum_blocks, flops_squares,      NULL,             0, 0},
    [OP_GATHER_START]     = {"gather_start",     1, INT_MAX, OP_PARTS, shape_gather, flops_none,       bytes_gather_start, 0, OP_PARTS},
    [OP_GATHER_WAIT]      = {"gather_wait",      1, INT_MAX, OP_PARTS, shape_gather, flops_none,       bytes_gather_wait, 0, OP_PARTS},
    [OP_STORE_KV]         = {"store_kv",         5, 5, 2, shape_store_kv,  flops_none,             bytes_store_kv,    0, 2},
    [OP_ATTEND_KV]        = {"attend_kv",        4, 4, 1, shape_attend_kv, flops_attend_kv,        bytes_attend_kv,   0, 0},
};
