/* mixed-precision: fewer bits where a step has many numbers. It comes in two kinds, as program->precision says.
 *
 * Values of 16 bits (a GPU, and the reference): activations and their gradients become bf16 or f16. The type letters of the op table
 * say where that may be: statistics of norms, sums of softmax, losses, gradients of parameters, moments and what is trained stay f32, so
 * that updates far smaller than a weight are not lost. Products read a narrow copy of their weights, which the setup makes and the
 * optimizer writes in the same sweep as the weight, or where ranks divide the optimizer, who waits for the weights of the others; other operands that are f32 are cast. f16 has little range, and gets a loss scale
 * (loss_scale.c); bf16 has that of f32.
 *
 * Rounded operands (tuned kernels of a CPU; TF32 on a GPU): values stay f32, and the operands of every product are rounded while they
 * are packed; those of attention where the CPU gains by it (AMX), as its scores, softmax and sums are f32 in any case. A value that only
 * products read which round it to bf16 is stored in bf16, where its op can do that, and of parameters they read copies as above, where that
 * leaves memory for them: half the bytes, and not a bit of a result changes.
 *
 * Evaluation computes as training does, from the copies that the training step writes, so that on a GPU it is as fast as its forward, and
 * its loss is that of the model in the numbers that it is trained in. Where a CPU rounds operands there is little to win, and it stays f32. */
#include <stdlib.h>

#include "passes/loss_scale.h"
#include "passes/optimize.h"
#include "passes/passes.h"
#include "program/rewriter.h"

/* A training step has its backward by now: differentiation need not carry types over. A program without one evaluates. */
static bool is_training(const struct program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].phase == PHASE_BACKWARD)
            return true;
    return false;
}

/* ---- which values become narrow ---- */

static bool is_alike(enum op_type type) { return type == TYPE_ALIKE || type == TYPE_STORED; }

/* What one of the op's values does not let be is taken from `may`; true: something was. */
static bool rule_out(const struct op *op, bool *may)
{
    bool alike = true, changed = false;
    for (int i = 0; i < op->n_in; i++)
        alike &= op_in_type(op, i) != TYPE_ALIKE || may[op->in[i]];
    for (int i = 0; i < op->n_out; i++)
        alike &= !is_alike(op_out_type(op, i)) || may[op->out[i]];
    for (int i = 0; i < op->n_in + op->n_out; i++) {
        const bool is_in = i < op->n_in;
        const enum op_type type = is_in ? op_in_type(op, i) : op_out_type(op, i - op->n_in);
        const value_id v = is_in ? op->in[i] : op->out[i - op->n_in];
        const bool allowed = type == TYPE_OPERAND || type == TYPE_ANY || type == TYPE_NARROW || (is_alike(type) && alike);
        changed |= may[v] && !allowed;
        may[v] &= allowed;
    }
    return changed;
}

/* What one op rules out others may have to follow, before and behind it: to and fro until nothing changes, which is soon. */
static bool *find_narrow(const struct program *p)
{
    bool *may = xcalloc((size_t)p->n_values, sizeof *may), changed = true;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++) {
            const struct value *v = &p->values[p->ops[i].out[k]];
            may[p->ops[i].out[k]] = (v->kind == VALUE_ACTIVATION || v->kind == VALUE_GRADIENT) && v->dtype == F32;
        }
    while (changed) {
        changed = false;
        for (int i = 0; i < p->n_ops; i++)
            changed |= rule_out(&p->ops[i], may);
        for (int i = p->n_ops - 1; i >= 0; i--)
            changed |= rule_out(&p->ops[i], may);
    }
    return may;
}

static int make_narrow(struct program *p)
{
    bool *may = find_narrow(p);
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (may[i]) {
            p->values[i].dtype = p->precision.narrow;
            n++;
        }
    free(may);
    return n;
}

/* ---- operands ---- */

enum { ALIGN = 64 };                /* bytes, of the memory plan */

/* Which parameters get a copy: those of another program of the same weights, or as many as there is room for. */
struct limit {
    const struct program *like;     /* NULL: there is none */
    double room;                    /* bytes */
};

struct casts {
    struct rewriter r;
    enum dtype to;
    struct limit *limit;            /* not NULL: parameters alone, for products that round them, and not all */
    value_id *of;                   /* per value that there was: its narrow form; NO_VALUE: none yet */
    int setup_end;                  /* the first op behind the setup */
};

static const char *narrow_name(struct casts *c, const struct value *v) { return arena_printf(&c->r.p->arena, "%s.%s", v->name, dtype_name(c->to)); }

static int add_cast(struct casts *c, value_id v, int before, const char *name)
{
    const struct op_attrs attrs = {.to = c->to};
    return rewriter_insert(&c->r, before, OP_CAST, attrs, name, 1, &v);
}

/* A copy of a parameter is a table that the setup makes, and makes again when the parameter was written from outside. */
static value_id add_copy(struct casts *c, value_id parameter)
{
    struct program *p = c->r.p;
    const char *name = narrow_name(c, &p->values[parameter]);
    const int at = add_cast(c, parameter, c->setup_end, "copy");
    if (at == NO_OP)
        return NO_VALUE;
    const value_id copy = p->ops[at].out[0];
    p->ops[at].phase = PHASE_SETUP;
    p->ops[at].layer = p->values[copy].layer = p->values[parameter].layer;
    p->values[copy].kind = VALUE_TABLE;
    program_rename(p, copy, name);
    return copy;
}

static bool may_copy(struct casts *c, const struct value *v)
{
    struct limit *l = c->limit;
    const size_t bytes = value_bytes(v) / 2 + ALIGN;
    if (v->kind != VALUE_PARAMETER)
        return false;
    if (l->like)
        return program_find(l->like, narrow_name(c, v)) != NO_VALUE;
    const bool fits = (double)bytes <= l->room;
    l->room -= fits ? (double)bytes : 0;
    return fits;
}

/* In front of the first op that needs it. */
static value_id narrow_form(struct casts *c, value_id v, int reader)
{
    struct program *p = c->r.p;
    if (p->values[v].dtype == c->to)
        return v;
    if (c->of[v] != NO_VALUE)
        return c->of[v];
    if (c->limit && !may_copy(c, &p->values[v]))
        return v;
    if (p->values[v].kind == VALUE_PARAMETER)
        return c->of[v] = add_copy(c, v);
    const char *name = narrow_name(c, &p->values[v]);
    const int at = add_cast(c, v, reader, "cast");
    if (at == NO_OP)
        return NO_VALUE;
    c->setup_end = reader == c->setup_end ? at : c->setup_end;
    program_rename(p, p->ops[at].out[0], name);
    return c->of[v] = p->ops[at].out[0];
}

static bool has_operands(const struct casts *c, const struct op *op)
{
    if (c->limit && op->attrs.round != ROUND_BF16)
        return false;
    for (int i = 0; i < op->n_in; i++)
        if (op_in_type(op, i) == TYPE_OPERAND)
            return true;
    return false;
}

static bool narrow_operands(struct casts *c, int at)
{
    struct program *p = c->r.p;
    const int n = p->ops[at].n_in;
    value_id *in = xcalloc((size_t)n, sizeof *in);
    bool all = true;
    for (int i = 0; i < n && all; i++) {
        const value_id v = p->ops[at].in[i];
        in[i] = op_in_type(&p->ops[at], i) == TYPE_OPERAND ? narrow_form(c, v, at) : v;
        all = in[i] != NO_VALUE;
    }
    if (all)
        rewriter_set_inputs(&c->r, at, n, in);
    free(in);
    return all;
}

/* ---- copies that the optimizer writes ---- */

/* The n tensors of an update, those with a copy first. */
static int with_copies_first(const struct casts *c, const struct op *op, int n, int *order)
{
    int copies = 0, at;
    for (int i = 0; i < n; i++)
        if (c->of[op->in[i]] != NO_VALUE)
            order[copies++] = i;
    at = copies;
    for (int i = 0; i < n; i++)
        if (c->of[op->in[i]] == NO_VALUE)
            order[at++] = i;
    return copies;
}

/* What has slices updates a part of its parameters alone. */
static bool is_divided(const struct program *p, const struct op *op)
{
    return p->values[op->in[op_update_tensors(op)]].slice != NULL;
}

/* Where all of a parameter is there, its copy is made of it. */
static void copy_gathered(struct casts *c, int at)
{
    struct program *p = c->r.p;
    struct op *op = &p->ops[at];
    const int n = op->attrs.parts;
    struct op_member *members = arena_alloc(&p->arena, (size_t)n * sizeof *members);
    value_id *in = xcalloc(2 * (size_t)n, sizeof *in);
    int copies = 0;
    for (int i = 0; i < n; i++) {
        in[i] = op->in[i];
        if (c->of[in[i]] == NO_VALUE)
            continue;
        in[n + copies] = c->of[in[i]];
        members[copies++] = (struct op_member){-1, i};
    }
    rewriter_set_inputs(&c->r, at, n + copies, in);
    op = &p->ops[at];
    op->attrs.copies = op->attrs.n_members = copies;
    op->attrs.members = members;
    op->n_out = n + copies;
    op->out = arena_copy(&p->arena, in, (size_t)(n + copies) * sizeof *in);
    free(in);
}

static void write_copies(struct casts *c, int at)
{
    struct program *p = c->r.p;
    struct op *op = &p->ops[at];
    const int n = op_update_tensors(op), scalars = op->n_in - op_update_scalars(op);
    int *order = xcalloc((size_t)n, sizeof *order);
    const int copies = op->attrs.copies ? 0 : with_copies_first(c, op, n, order), grads = 3 * n + copies;
    value_id *in = xcalloc((size_t)(grads + n + scalars), sizeof *in);
    for (int i = 0; i < n; i++) {
        for (int role = 0; role < 3; role++)
            in[role * n + i] = op->in[role * n + order[i]];
        in[grads + i] = op->in[3 * n + order[i]];
    }
    for (int i = 0; i < copies; i++)
        in[3 * n + i] = c->of[in[i]];
    for (int i = 0; i < scalars; i++)
        in[grads + n + i] = op->in[op_update_scalars(op) + i];
    if (copies) {
        rewriter_set_inputs(&c->r, at, grads + n + scalars, in);
        op = &p->ops[at];
        op->attrs.copies = copies;
        op->n_out = grads;
        op->out = arena_copy(&p->arena, in, (size_t)grads * sizeof *in);
    }
    free(order);
    free(in);
}

/* ---- */

static void find_setup_end(struct casts *c)
{
    c->setup_end = c->r.first;
    while (c->setup_end != NO_OP && c->r.p->ops[c->setup_end].phase == PHASE_SETUP)
        c->setup_end = rewriter_next(&c->r, c->setup_end);
}

static void cast_operands(struct program *p, enum dtype to, struct limit *limit)
{
    struct casts c = {.to = to, .limit = limit, .of = xcalloc((size_t)p->n_values, sizeof *c.of)};
    const int n = p->n_values;
    for (int i = 0; i < n; i++)
        c.of[i] = NO_VALUE;
    rewriter_open(&c.r, p);
    find_setup_end(&c);
    bool right = true;
    for (int i = c.r.first; i != NO_OP && right; i = rewriter_next(&c.r, i))
        if (has_operands(&c, &p->ops[i]))
            right = narrow_operands(&c, i);
    for (value_id v = 0; limit && limit->like && v < n && right; v++)           /* what others read it writes, whether it reads it or not */
        right = narrow_form(&c, v, c.setup_end) != NO_VALUE;
    for (int i = c.r.first; i != NO_OP && right; i = rewriter_next(&c.r, i))
        if (p->ops[i].kind == OP_GATHER_WAIT)
            copy_gathered(&c, i);
        else if ((p->ops[i].kind == OP_ADAMW || p->ops[i].kind == OP_ADAMW_ALL) && !is_divided(p, &p->ops[i]))
            write_copies(&c, i);
    rewriter_close(&c.r);
    free(c.of);
}

static bool rounds(const struct program *p, const struct op *op)
{
    return op_info(op->kind)->product || (p->precision.attention && (op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD));
}

static int round_operands(struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++) {
        struct op *op = &p->ops[i];
        if (!rounds(p, op) || op->attrs.round == p->precision.round)
            continue;
        op->attrs.round = p->precision.round;
        n++;
    }
    return n;
}

/* The loss may scale the rows that it reads before it rounds them. */
static bool rounds_input(const struct op *op, int i)
{
    return op_in_type(op, i) == TYPE_OPERAND && op->attrs.round == ROUND_BF16 && !(op->kind == OP_LINEAR_LOSS && i == 0);
}

/* Does a product that rounds it to bf16 read it, and nothing else? may: per value, that it is so as far as is known. */
static void rule_out_readers(const struct op *op, bool *may)
{
    for (int i = 0; i < op->n_in; i++)
        may[op->in[i]] &= rounds_input(op, i);
}

static void store_rounded(struct program *p)
{
    bool *may = xcalloc((size_t)p->n_values, sizeof *may);
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++) {
            const struct value *v = &p->values[p->ops[i].out[k]];
            may[p->ops[i].out[k]] = op_out_type(&p->ops[i], k) == TYPE_STORED && !value_is_persistent(v) && v->dtype == F32;
        }
    for (int i = 0; i < p->n_ops; i++)
        rule_out_readers(&p->ops[i], may);
    for (int i = 0; i < p->n_values; i++)
        if (may[i] && i != p->logits)
            p->values[i].dtype = BF16;
    free(may);
}

static bool divides_optimizer(const struct program *p)
{
    bool divides = false;
    for (int i = 0; i < p->n_ops; i++)
        divides |= p->ops[i].kind == OP_GATHER_WAIT;
    return divides;
}

/* Copies of weights take the memory that stored values leave free: a step in bf16 needs no more than one in f32. Steps of other lengths follow the
 * first one: who updates a weight writes the copy that others read. Where ranks divide the optimizer one thread would make them, and products
 * round weights as before. */
static void store_for_products(struct program *p)
{
    const double before = pass_planned_bytes(p);
    store_rounded(p);
    if (!divides_optimizer(p))
        cast_operands(p, BF16, &(struct limit){p->precision.like, before - pass_planned_bytes(p)});
}

int pass_mixed_precision(struct program *p)
{
    if (p->precision.round == ROUND_BF16 && !is_training(p))
        return 0;
    if (p->precision.narrow == F32) {
        const int rounded = round_operands(p);
        if (p->precision.round == ROUND_BF16)
            store_for_products(p);
        return rounded;
    }
    const int n = make_narrow(p);
    if (n)
        cast_operands(p, p->precision.narrow, NULL);
    if (n && p->precision.narrow == F16 && is_training(p))
        add_loss_scale(p);
    return n;
}
