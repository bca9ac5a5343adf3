/* Reverse-mode differentiation: walks the forward ops backwards and appends each one's gradient ops. A rule per op kind;
 * a value that is used several times gets the sum of its gradients. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "program/rewrite.h"

struct tape {
    struct program *p;
    value_id *grad;             /* per forward value: its gradient so far, or NO_VALUE */
    const bool *needed;         /* per forward value: a parameter lies behind it */
    int at;                     /* the forward op whose rule is asked */
    struct { value_id of, is; float by; } scaled;       /* the newest OP_SCALE: means of means want the same */
};

typedef void rule_fn(struct tape *t, const struct op *op);

/* Adds g to the gradient of value v. */
static void contribute(struct tape *t, value_id v, value_id g)
{
    if (t->grad[v] == NO_VALUE)
        t->grad[v] = g;
    else
        t->grad[v] = program_emit(t->p, OP_ADD, (struct op_attrs){0}, "sum", 2, t->grad[v], g);
}

static bool wants(const struct tape *t, value_id v) { return t->needed[v]; }
static value_id dy_of(const struct tape *t, const struct op *op) { return t->grad[op->out[0]]; }

static const char *grad_name(struct tape *t, value_id v)
{
    return arena_printf(&t->p->arena, "d.%s", t->p->values[v].name);
}

/* Emits an op with up to three inputs whose output is (part of) the gradient of v. */
static void emit_for(struct tape *t, value_id v, enum op_kind kind, struct op_attrs attrs, int n, value_id a, value_id b,
                     value_id c)
{
    if (wants(t, v))
        contribute(t, v, program_emit(t->p, kind, attrs, grad_name(t, v), n, a, b, c));
}

static void d_embed(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_EMBED_GRAD, (struct op_attrs){0}, 3, op->in[0], op->in[1], dy_of(t, op));
}

/* y = a b^T + bias, the only form that models emit: da = dy b, db = dy^T a, dbias = sum of dy's rows. */
static void d_matmul(struct tape *t, const struct op *op)
{
    const value_id dy = dy_of(t, op);
    emit_for(t, op->in[0], OP_MATMUL, (struct op_attrs){0}, 2, dy, op->in[1], NO_VALUE);
    emit_for(t, op->in[1], OP_MATMUL, (struct op_attrs){.trans_a = true}, 2, dy, op->in[0], NO_VALUE);
    if (op->n_in > 2)
        emit_for(t, op->in[2], OP_SUM_LEADING, (struct op_attrs){0}, 2, dy, op->in[2], NO_VALUE);
}

static void d_add(struct tape *t, const struct op *op)
{
    const value_id dy = dy_of(t, op), a = op->in[0], b = op->in[1];
    if (wants(t, a))
        contribute(t, a, dy);
    if (!wants(t, b))
        return;
    if (shape_equal(t->p->values[a].shape, t->p->values[b].shape))
        contribute(t, b, dy);
    else
        emit_for(t, b, OP_SUM_LEADING, (struct op_attrs){0}, 2, dy, b, NO_VALUE);
}

static void d_mul(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_MUL, (struct op_attrs){0}, 2, dy_of(t, op), op->in[1], NO_VALUE);
    emit_for(t, op->in[1], OP_MUL, (struct op_attrs){0}, 2, dy_of(t, op), op->in[0], NO_VALUE);
}

static value_id scaled(struct tape *t, value_id v, value_id dy, float by)
{
    if (t->scaled.of != dy || t->scaled.by != by) {
        t->scaled.is = program_emit(t->p, OP_SCALE, (struct op_attrs){.scale = by}, grad_name(t, v), 1, dy);
        t->scaled.of = dy;
        t->scaled.by = by;
    }
    return t->scaled.is;
}

/* y = (x0 + x1 + ...) / n: every input gets the same. */
static void d_mean(struct tape *t, const struct op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], scaled(t, op->in[i], dy_of(t, op), 1 / (float)op->n_in));
}

static void d_scale(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_SCALE, op->attrs, 1, dy_of(t, op), NO_VALUE, NO_VALUE);
}

static void d_gelu(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_GELU_GRAD, (struct op_attrs){0}, 2, op->in[0], dy_of(t, op), NO_VALUE);
}

static void d_silu(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_SILU_GRAD, (struct op_attrs){0}, 2, op->in[0], dy_of(t, op), NO_VALUE);
}

/* Norms give the gradients of x, gain (and shift) in one op. */
static void d_norm(struct tape *t, const struct op *op)
{
    const bool layer = op->kind == OP_LAYERNORM;
    const value_id in[] = {dy_of(t, op), op->in[0], op->in[1], op->out[1], layer ? op->out[2] : NO_VALUE};
    const int at = program_add_op(t->p, layer ? OP_LAYERNORM_GRAD : OP_RMSNORM_GRAD, (struct op_attrs){0},
                                  grad_name(t, op->in[0]), layer ? 5 : 4, in);
    if (at < 0)
        return;
    const value_id *out = t->p->ops[at].out;
    for (int i = 0; i < op->n_in; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], out[i]);
}

static void d_rope(struct tape *t, const struct op *op)
{
    struct op_attrs back = op->attrs;
    back.inverse = !back.inverse;
    if (wants(t, op->in[0]))
        contribute(t, op->in[0], program_emit(t->p, OP_ROPE, back, grad_name(t, op->in[0]), op->n_in, dy_of(t, op), op->in[1], op->in[2],
                                              op->n_in > 3 ? op->in[3] : NO_VALUE));
}

/* s = scale q k^T: dq = scale ds k, dk = scale ds^T q. */
static void d_attn_scores(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_ATTN_MIX, op->attrs, 2, dy_of(t, op), op->in[1], NO_VALUE);
    emit_for(t, op->in[1], OP_ATTN_MIX_T, op->attrs, 2, dy_of(t, op), op->in[0], NO_VALUE);
}

/* y = scale p v: dp = scale dy v^T, dv = scale p^T dy. */
static void d_attn_mix(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_ATTN_SCORES, op->attrs, 2, dy_of(t, op), op->in[1], NO_VALUE);
    emit_for(t, op->in[1], OP_ATTN_MIX_T, op->attrs, 2, op->in[0], dy_of(t, op), NO_VALUE);
}

static void d_softmax(struct tape *t, const struct op *op)
{
    const enum op_kind kind = op->kind == OP_SOFTMAX ? OP_SOFTMAX_GRAD : OP_LOG_SOFTMAX_GRAD;
    emit_for(t, op->in[0], kind, (struct op_attrs){0}, 2, op->out[0], dy_of(t, op), NO_VALUE);
}

static void d_dropout(struct tape *t, const struct op *op)
{
    emit_for(t, op->in[0], OP_DROPOUT, op->attrs, 2, dy_of(t, op), op->in[1], NO_VALUE);
}

static void d_nll(struct tape *t, const struct op *op)
{
    const value_id in[] = {op->in[0], op->in[1], op->out[1], dy_of(t, op)};
    const int at = program_add_op(t->p, OP_NLL_GRAD, (struct op_attrs){0}, grad_name(t, op->in[0]), 4, in);
    if (at >= 0)
        contribute(t, op->in[0], t->p->ops[at].out[0]);
}

/* ---- ops that passes make ---- */

/* y_i = x w_i^T + b_i: dx is one sum over all, weights and biases as for single products. */
static void d_project(struct tape *t, const struct op *op)
{
    const int n = op->attrs.parts;
    value_id in[2 * OP_MAX_OUT];
    for (int i = 0; i < n; i++) {
        in[i] = t->grad[op->out[i]];
        in[n + i] = op->in[1 + i];
    }
    if (wants(t, op->in[0])) {
        const int at = program_add_op(t->p, OP_PROJECT_GRAD, (struct op_attrs){.parts = n}, grad_name(t, op->in[0]), 2 * n, in);
        if (at >= 0)
            contribute(t, op->in[0], t->p->ops[at].out[0]);
    }
    for (int i = 0; i < n; i++) {
        emit_for(t, op->in[1 + i], OP_MATMUL, (struct op_attrs){.trans_a = true}, 2, in[i], op->in[0], NO_VALUE);
        if (op->n_in > 1 + n)
            emit_for(t, op->in[1 + n + i], OP_SUM_LEADING, (struct op_attrs){0}, 2, in[i], op->in[1 + n + i], NO_VALUE);
    }
}

static void d_swiglu(struct tape *t, const struct op *op)
{
    const value_id in[] = {op->in[0], op->in[1], dy_of(t, op)};
    const int at = program_add_op(t->p, OP_SWIGLU_GRAD, (struct op_attrs){0}, grad_name(t, op->in[0]), 3, in);
    for (int i = 0; at >= 0 && i < 2; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], t->p->ops[at].out[i]);
}

static void d_attention(struct tape *t, const struct op *op)
{
    const value_id in[] = {dy_of(t, op), op->in[0], op->in[1], op->in[2], op->out[0], op->out[1], op->out[2],
                           op->n_in > 3 ? op->in[3] : NO_VALUE, op->n_in > 4 ? op->in[4] : NO_VALUE};     /* tick, starts */
    const int at = program_add_op(t->p, OP_ATTENTION_GRAD, op->attrs, grad_name(t, op->in[0]), 4 + op->n_in, in);
    for (int i = 0; at >= 0 && i < 3; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], t->p->ops[at].out[i]);
}

/* y = norm(s), s = x + r; s is read elsewhere too, and what comes from there goes into the same op. */
static void d_add_norm(struct tape *t, const struct op *op)
{
    const bool layer = op->kind == OP_ADD_LAYERNORM;
    const value_id sum = t->grad[op->out[1]];
    value_id in[6] = {dy_of(t, op), op->out[1], op->in[2], op->out[2]};
    int n = 4;
    if (layer)
        in[n++] = op->out[3];
    if (sum != NO_VALUE)
        in[n++] = sum;
    const int at = program_add_op(t->p, layer ? OP_LAYERNORM_GRAD : OP_RMSNORM_GRAD, (struct op_attrs){0},
                                  grad_name(t, op->out[1]), n, in);
    if (at < 0)
        return;
    for (int i = 0; i < 2; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], t->p->ops[at].out[0]);
    for (int i = 2; i < op->n_in; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], t->p->ops[at].out[i - 1]);
}

/* The forward op gets a second output, the slope of the GELU, which it has nearly for nothing: du = dy times the slope. */
static void d_linear_gelu(struct tape *t, const struct op *op)
{
    struct program *p = t->p;
    const value_id y = op->out[0];
    value_id slope = op->n_out > 1 ? op->out[1] : NO_VALUE;
    if (slope == NO_VALUE) {
        const char *name = arena_printf(&p->arena, "%s.slope", p->values[y].name);
        slope = program_add_value(p, name, VALUE_ACTIVATION, F32, p->values[y].shape);
        struct op *forward = &p->ops[t->at];
        forward->attrs.parts = forward->n_out = 2;
        forward->out = arena_copy(&p->arena, (value_id[]){y, slope}, 2 * sizeof slope);
    }
    const value_id du = program_emit(p, OP_MUL, (struct op_attrs){0}, arena_printf(&p->arena, "%s.in", grad_name(t, y)), 2,
                                     dy_of(t, op), slope);
    emit_for(t, op->in[0], OP_MATMUL, (struct op_attrs){0}, 2, du, op->in[1], NO_VALUE);
    emit_for(t, op->in[1], OP_MATMUL, (struct op_attrs){.trans_a = true}, 2, du, op->in[0], NO_VALUE);
    emit_for(t, op->in[2], OP_SUM_LEADING, (struct op_attrs){0}, 2, du, op->in[2], NO_VALUE);
}

/* The op itself gives the gradients of its loss while it has the logits, so the forward op gets two more outputs. They are
 * right only where the loss is the one that differentiation starts from. */
static void d_linear_loss(struct tape *t, const struct op *op)
{
    struct program *p = t->p;
    if (op->out[0] != p->loss) {
        error_set(&p->error, BAD_INPUT, "'%s' is not the loss of the program", p->values[op->out[0]].name);
        return;
    }
    value_id out[4];
    memcpy(out, op->out, (size_t)op->n_out * sizeof *out);
    for (int i = op->n_out; i < 4; i++) {
        const value_id of = op->in[i - 2];
        out[i] = program_add_value(p, grad_name(t, of), VALUE_GRADIENT, F32, p->values[of].shape);
    }
    struct op *forward = &p->ops[t->at];
    forward->attrs.parts = forward->n_out = 4;
    forward->out = arena_copy(&p->arena, out, sizeof out);
    for (int i = 0; i < 2; i++)
        if (wants(t, op->in[i]))
            contribute(t, op->in[i], out[2 + i]);
}

/* Ops whose later outputs may be read by ops that learn: their rule looks at the gradients of all of them. */
static const bool takes_all[OP_KINDS] = {[OP_PROJECT] = true, [OP_ADD_LAYERNORM] = true, [OP_ADD_RMSNORM] = true};

static rule_fn *const rules[OP_KINDS] = {
    [OP_PROJECT] = d_project,     [OP_SWIGLU] = d_swiglu,         [OP_ATTENTION] = d_attention,
    [OP_ADD_LAYERNORM] = d_add_norm, [OP_ADD_RMSNORM] = d_add_norm, [OP_LINEAR_GELU] = d_linear_gelu,
    [OP_LINEAR_LOSS] = d_linear_loss,
    [OP_EMBED] = d_embed,         [OP_MATMUL] = d_matmul,         [OP_ADD] = d_add,
    [OP_MUL] = d_mul,             [OP_GELU] = d_gelu,             [OP_SILU] = d_silu,
    [OP_LAYERNORM] = d_norm,      [OP_RMSNORM] = d_norm,          [OP_ROPE] = d_rope,
    [OP_ATTN_SCORES] = d_attn_scores, [OP_ATTN_MIX] = d_attn_mix, [OP_SOFTMAX] = d_softmax,
    [OP_LOG_SOFTMAX] = d_softmax, [OP_DROPOUT] = d_dropout,       [OP_NLL] = d_nll,
    [OP_MEAN] = d_mean,           [OP_SCALE] = d_scale,
};

/* Marks the values that a parameter flows into. */
static bool *mark_needed(const struct program *p)
{
    bool *needed = xcalloc((size_t)p->n_values, sizeof *needed);
    for (int i = 0; i < p->n_values; i++)
        needed[i] = p->values[i].kind == VALUE_PARAMETER;
    for (int i = 0; i < p->n_ops; i++)
        for (int j = 0; j < p->ops[i].n_in; j++)
            if (needed[p->ops[i].in[j]])
                for (int k = 0; k < p->ops[i].n_out; k++)
                    needed[p->ops[i].out[k]] = true;
    return needed;
}

static enum status walk_back(struct tape *t, int n_ops, struct error *err)
{
    struct program *p = t->p;
    for (int i = n_ops - 1; i >= 0; i--) {
        const struct op op = p->ops[i];         /* a copy: the list moves as it grows */
        for (int k = 1; k < op.n_out; k++)      /* statistics for the backward: rules know nothing of their gradients */
            if (!takes_all[op.kind] && t->grad[op.out[k]] != NO_VALUE && t->needed[op.out[k]])
                return error_set(err, BAD_INPUT, "op %d %s (layer %d) has no gradient rule for '%s'", i,
                                 op_info(op.kind)->name, op.layer, p->values[op.out[k]].name);
        if (op.n_out == 0 || t->grad[op.out[0]] == NO_VALUE || !t->needed[op.out[0]])
            continue;
        if (!rules[op.kind] || (op.kind == OP_MATMUL && (op.attrs.trans_a || !op.attrs.trans_b)))
            return error_set(err, BAD_INPUT, "op %d %s (layer %d) has no gradient rule", i, op_info(op.kind)->name,
                             op.layer);
        p->layer = op.layer;
        t->at = i;
        rules[op.kind](t, &op);
        if (p->error.status)
            return error_set(err, p->error.status, "autodiff of op %d %s: %s", i, op_info(op.kind)->name, p->error.text);
    }
    return OK;
}

static enum status hand_to_parameters(struct tape *t, int n_values, struct error *err)
{
    for (int i = 0; i < n_values; i++) {
        struct value *v = &t->p->values[i];
        if (v->kind != VALUE_PARAMETER)
            continue;
        if (t->grad[i] == NO_VALUE)
            return error_set(err, BAD_INPUT, "parameter '%s' does not reach the loss", v->name);
        v->grad = t->grad[i];
    }
    return OK;
}

enum status pass_autodiff(struct program *p, struct error *err)
{
    if (p->loss == NO_VALUE)
        return error_set(err, BAD_INPUT, "program %s has no loss to differentiate", p->name);
    const int n_ops = p->n_ops, n_values = p->n_values;
    bool *needed = mark_needed(p);
    struct tape t = {.p = p, .grad = xcalloc((size_t)n_values, sizeof *t.grad), .needed = needed, .scaled = {.of = NO_VALUE}};
    memset(t.grad, 0xff, (size_t)n_values * sizeof *t.grad);    /* all NO_VALUE */

    p->made_by = "autodiff";
    p->phase = PHASE_BACKWARD;
    program_scope(p, NO_LAYER, "%s", "");
    const value_id seed = program_emit(p, OP_FILL, (struct op_attrs){.value = 1}, "d.loss", 1, p->loss);
    t.grad[p->loss] = seed;
    enum status st = walk_back(&t, n_ops, err);
    if (st == OK && program_readers(p, seed, NULL) == 0)
        program_remove_op(p, n_ops);            /* the rule of the loss had no use for it */
    if (st == OK)
        st = hand_to_parameters(&t, n_values, err);
    p->layer = NO_LAYER;
    free(t.grad);
    free(needed);
    return st;
}
