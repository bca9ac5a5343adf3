/* Ops whose work one kernel does together.
 *
 * Gradients of weights (hopper.cu). Each of them is a few microseconds of which most goes by until a kernel
 * has begun and ended, and nobody waits for them but the end of the step: so those of a layer wait for each other, as far as memory lets
 * them. The last of a group makes all; whether that is faster is timed, or a rule (choosing.cu).
 *
 * Products of nodes of one level, which the program has in one call (pass group-levels): likewise. Their norms and sweeps over elements, which
 * cost less than their launches and ends: in any case.
 *
 * Queries and keys that are turned one after the other, and their gradients. */
#include "ops/cuda/products.h"

static const double GROUPED_FLOPS = 3e9;        /* of each: larger ones fill a GPU by themselves */

static bool is_weight_gradient(const struct cuda_call *c)
{
    return c->op->kind == OP_MATMUL && c->op->n_in == 2 && c->op->attrs.trans_a && !c->op->attrs.trans_b && c->plans[0] &&
           c->plans[0]->product.end == END_PLAIN && dtype_is_narrow(cuda_in(c, 0)->dtype) && !c->merged && !c->beside && !c->n_also &&
           op_flops(c->program, c->op) <= GROUPED_FLOPS;
}

static bool are_alike(const struct cuda_call *a, const struct cuda_call *b)
{
    return cuda_in(a, 0)->dtype == cuda_in(b, 0)->dtype && cuda_out(a, 0)->dtype == cuda_out(b, 0)->dtype && a->op->timed == b->op->timed;
}

/* ---- what may wait for what ---- */

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + b_bytes && y < x + a_bytes;
}

/* Something that c touches lies there. */
static bool touches(const struct cuda_call *c, const void *at, size_t bytes, bool writes_only)
{
    for (int i = 0; i < c->op->n_out; i++)
        if (overlap(c->out[i], value_bytes(cuda_out(c, i)), at, bytes))
            return true;
    for (int i = 0; i < c->op->n_in && !writes_only; i++)
        if (overlap(c->in[i], value_bytes(cuda_in(c, i)), at, bytes))
            return true;
    for (int i = 0; i < c->sums.n; i++)
        if (overlap(c->sums.to[i], c->sums.to_bytes, at, bytes) ||
            (!writes_only && c->sums.of[i] && overlap(c->sums.of[i], c->sums.of_bytes, at, bytes)))
            return true;
    return !writes_only && c->beside && overlap(c->beside, value_bytes(cuda_out(c, 0)), at, bytes);
}

/* The work of c can be done behind the other op as well as before it. */
static bool may_wait(const struct cuda_call *c, const struct cuda_call *other)
{
    for (int i = 0; i < c->op->n_in; i++)
        if (touches(other, c->in[i], value_bytes(cuda_in(c, i)), true))
            return false;
    return !touches(other, c->out[0], value_bytes(cuda_out(c, 0)), false);
}

static void let_do(struct cuda_call *c, struct cuda_call *other)
{
    if (!c->n_also) {
        c->alone = (struct cuda_way){c->at_once, c->pieces, c->width};
        c->at_once = false;
        c->pieces = c->width = 0;
    }
    c->also[c->n_also++] = other;
    other->merged = true;
}

/* ---- gradients of weights ---- */

enum { LAYER_MOST = 4 };            /* gradients of weights of a layer, which wait for each other */

struct group { int members[GROUP_MOST], n; };

static bool all_may_wait(const struct group *g, const struct cuda_call *calls, int other)
{
    bool all = true;
    for (int i = 0; i < g->n; i++)
        all &= may_wait(&calls[g->members[i]], &calls[other]);
    return all;
}

/* The group that begins with calls[first]. */
static struct group group_from(const struct cuda_call *calls, int n, int first)
{
    const struct op *op = calls[first].op;
    struct group g = {.members = {first}, .n = 1};
    for (int i = first + 1; i < n && g.n < LAYER_MOST; i++) {
        if (calls[i].op->phase != op->phase || calls[i].op->layer != op->layer || calls[i].program != calls[first].program ||
            !all_may_wait(&g, calls, i))
            break;
        if (is_weight_gradient(&calls[i]) && are_alike(&calls[first], &calls[i]))
            g.members[g.n++] = i;
    }
    return g;
}

static void form_group(struct cuda_call *calls, const struct group *g)
{
    for (int i = 0; i < g->n - 1; i++)
        let_do(&calls[g->members[g->n - 1]], &calls[g->members[i]]);
}

/* ---- nodes of one level ---- */

static bool in_one_call(const struct cuda_call *a, const struct cuda_call *b)
{
    return a->op->call && a->op->call == b->op->call && a->op->phase == b->op->phase && a->program == b->program;
}

static int parts_of(const struct cuda_call *c) { return c->op->kind == OP_PROJECT || c->op->kind == OP_PROJECT_GRAD ? c->op->attrs.parts : 1; }

static bool is_product_of_a_row(const struct cuda_call *c)
{
    const enum op_kind kind = c->op->kind;
    return c->op->call && (kind == OP_MATMUL || kind == OP_PROJECT || kind == OP_PROJECT_GRAD || kind == OP_LINEAR_GELU) && c->plans[0] &&
           (c->plans[0]->product.end == END_PLAIN || c->plans[0]->product.end == END_BIAS) && dtype_is_narrow(cuda_in(c, 0)->dtype) && !c->merged &&
           !c->beside && !c->n_also && !c->sums.n;
}

/* As many as one kernel takes of those that are in one call with calls[first]. */
static struct group row_from(const struct cuda_call *calls, int n, int first)
{
    struct group g = {.members = {first}, .n = 1};
    for (int i = first + 1; i < n && (g.n + 1) * parts_of(&calls[first]) <= GROUP_MOST; i++) {
        if (!in_one_call(&calls[first], &calls[i]) || !is_product_of_a_row(&calls[i]) || !all_may_wait(&g, calls, i))
            break;
        g.members[g.n++] = i;
    }
    return g;
}

void cuda_find_groups(struct cuda_call *calls, int n)
{
    for (int i = 0; i < n; i++) {
        if (is_product_of_a_row(&calls[i])) {
            const struct group g = row_from(calls, n, i);
            form_group(calls, &g);
        } else if (is_weight_gradient(&calls[i])) {
            const struct group g = group_from(calls, n, i);
            form_group(calls, &g);
        }
    }
}

void cuda_dissolve_group(struct cuda_call *c)
{
    for (int i = 0; i < c->n_also; i++)
        c->also[i]->merged = false;
    c->n_also = 0;
}

/* ---- norms and sweeps of nodes of one level ---- */

static bool is_sweep(const struct cuda_call *c)
{
    if (!c->op->call || c->merged || c->beside || c->sums.n || c->n_also)
        return false;
    switch (c->op->kind) {
    case OP_LAYERNORM: case OP_ADD_LAYERNORM: case OP_RMSNORM: case OP_ADD_RMSNORM: case OP_MUL: case OP_GELU: case OP_GELU_GRAD: return true;
    case OP_ADD: return shape_equal(cuda_in(c, 0)->shape, cuda_in(c, 1)->shape);
    default: return false;
    }
}

void cuda_join_sweeps(struct cuda_call *calls, int n)
{
    for (int i = 0; i < n; i++) {
        struct group g = {.members = {i}, .n = 1};
        for (int k = i + 1; k < n && g.n < GROUP_MOST && is_sweep(&calls[i]) && is_sweep(&calls[k]) && in_one_call(&calls[i], &calls[k]) &&
                            all_may_wait(&g, calls, k); k++)
            g.members[g.n++] = k;
        form_group(calls, &g);
    }
}

/* ---- rope ---- */

static bool turn_alike(const struct cuda_call *a, const struct cuda_call *b)
{
    return a->op->kind == OP_ROPE && b->op->kind == OP_ROPE && a->program == b->program && a->op->phase == b->op->phase &&
           a->op->attrs.inverse == b->op->attrs.inverse && a->in[1] == b->in[1] && a->in[2] == b->in[2] &&
           a->op->n_in == b->op->n_in && (a->op->n_in < 4 || a->in[3] == b->in[3]) &&
           cuda_in(a, 0)->dtype == cuda_in(b, 0)->dtype && cuda_in(a, 0)->shape.dim[1] == cuda_in(b, 0)->shape.dim[1];
}

void cuda_pair_ropes(struct cuda_call *calls, int n)
{
    for (int i = 0; i + 1 < n; i++)
        if (!calls[i].merged && !calls[i].n_also && turn_alike(&calls[i], &calls[i + 1]) && may_wait(&calls[i], &calls[i + 1]))
            let_do(&calls[i + 1], &calls[i]);
}
