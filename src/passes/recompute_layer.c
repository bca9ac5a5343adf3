/* One layer of the pass recompute: what its backward needs, and copies of the forward ops that make it. */
#include "passes/recompute.h"

#include "program/rewrite.h"

static const double CHEAP_FLOPS = 16;           /* per number that an op makes: norms and activation functions have 8 */

struct layer {
    struct search *s;
    struct program *p;
    int index;
    enum form form;
    int first;                  /* the backward op that first reads a needed value; -1: none is needed */
};

static bool is_norm_of_sum(const struct op *op) { return op->kind == OP_ADD_LAYERNORM || op->kind == OP_ADD_RMSNORM; }

static bool is_made(const struct layer *l, value_id v) { return l->s->made_in[v] == l->index; }

/* A sum of two values of the layer before and its norm: keeping the sum takes half the memory of keeping both terms. */
static bool starts_from_sum(const struct layer *l, const struct op *op)
{
    return is_norm_of_sum(op) && !is_made(l, op->in[0]) && !is_made(l, op->in[1]);
}

static bool is_dear(const struct layer *l, const struct op *op)
{
    const bool attention = op->kind == OP_ATTENTION || op->kind == OP_ATTN_MIX;
    return (l->form == KEEP_ATTENTION && attention) ||
           (l->form == KEEP_PRODUCTS && op_flops(l->p, op) > CHEAP_FLOPS * (double)shape_count(l->p->values[op->out[0]].shape));
}

/* How many items a heap has; *list gets them. */
static int ops_of(const struct heaps *h, int heap, const int **list)
{
    *list = h->item + h->start[heap];
    return h->start[heap + 1] - h->start[heap];
}

static void mark_kept(struct layer *l)
{
    struct search *s = l->s;
    const int *list, n = ops_of(&s->forward, l->index, &list);
    for (int i = 0; i < n; i++) {
        const struct op *op = &l->p->ops[list[i]];
        for (int k = 0; k < op->n_out; k++)
            s->kept[op->out[k]] |= program_is_root(l->p, op->out[k]) || is_dear(l, op) || (k == 1 && starts_from_sum(l, op));
    }
}

static bool need(struct layer *l, value_id v)
{
    const bool again = is_made(l, v) && !l->s->kept[v];
    l->s->needed[v] |= again;
    return again;
}

static bool is_copied(const struct layer *l, const struct op *op)
{
    bool any = false;
    for (int k = 0; k < op->n_out; k++)
        any |= l->s->needed[op->out[k]];
    return any;
}

/* From the backward ops, then against the order of the forward ops. */
static void mark_needed(struct layer *l)
{
    const int *list;
    for (int i = ops_of(&l->s->backward, l->index, &list) - 1; i >= 0; i--)
        for (int k = 0; k < l->p->ops[list[i]].n_in; k++)
            if (need(l, l->p->ops[list[i]].in[k]))
                l->first = list[i];
    for (int i = ops_of(&l->s->forward, l->index, &list) - 1; i >= 0; i--) {
        const struct op *op = &l->p->ops[list[i]];
        for (int k = 0; k < op->n_in && is_copied(l, op) && !starts_from_sum(l, op); k++)
            need(l, op->in[k]);
    }
}

/* Whether a value that persists changes between op `at` and the copy of it. */
static bool changes_after(const struct layer *l, value_id v, int at)
{
    const int *list, n = ops_of(&l->s->changes, v, &list);
    for (int i = 0; i < n; i++)
        if (list[i] > at && list[i] < l->first)
            return true;
    return false;
}

/* A value that persists and changes on the way from the forward op to the copy would give other numbers. */
static bool is_steady(const struct layer *l)
{
    const int *list, n = ops_of(&l->s->forward, l->index, &list);
    for (int i = 0; i < n; i++) {
        const struct op *op = &l->p->ops[list[i]];
        for (int k = 0; k < op->n_in && is_copied(l, op); k++)
            if (changes_after(l, op->in[k], list[i]))
                return false;
    }
    return true;
}

static value_id now(const struct layer *l, value_id v) { return l->s->copy[v] == NO_VALUE ? v : l->s->copy[v]; }

/* The norm alone, of the sum that was kept: y and statistics, the same bits. */
static bool copy_norm(struct layer *l, const struct op *op)
{
    struct program *p = l->p;
    const int at = p->n_ops;
    const value_id in[] = {op->out[1], op->in[2], op->n_in > 3 ? op->in[3] : NO_VALUE};
    const struct op old = *op;
    const char *name = arena_printf(&p->arena, "again.%s", p->values[old.out[0]].name);
    if (program_insert_op(p, at, old.kind == OP_ADD_LAYERNORM ? OP_LAYERNORM : OP_RMSNORM, old.attrs, name, old.n_in - 1, in) < 0)
        return false;
    for (int k = 0; k < p->ops[at].n_out; k++) {
        const value_id v = p->ops[at].out[k];
        p->values[v].kind = VALUE_ACTIVATION;
        if (l->s->needed[old.out[k ? k + 1 : 0]])
            l->s->copy[old.out[k ? k + 1 : 0]] = v;
    }
    return true;
}

static bool copy_op(struct layer *l, const struct op *op)
{
    struct program *p = l->p;
    const int at = p->n_ops;
    if (starts_from_sum(l, op))
        return copy_norm(l, op);
    const value_id *old = op->out;
    value_id *in = arena_alloc(&p->arena, (size_t)op->n_in * sizeof *in);
    for (int k = 0; k < op->n_in; k++)
        in[k] = now(l, op->in[k]);
    if (program_insert_copy(p, at, op, "again", in) < 0)
        return false;
    for (int k = 0; k < p->ops[at].n_out; k++)
        if (l->s->needed[old[k]])
            l->s->copy[old[k]] = p->ops[at].out[k];
    return true;
}

/* The backward ops of the layer read the copies. */
static void read_copies(struct layer *l)
{
    struct program *p = l->p;
    const int *list, n = ops_of(&l->s->backward, l->index, &list);
    for (int i = 0; i < n; i++) {
        struct op *op = &p->ops[list[i]];
        op->in = arena_copy(&p->arena, op->in, (size_t)op->n_in * sizeof *op->in);      /* the old list may be taken up again */
        for (int k = 0; k < op->n_in; k++)
            op->in[k] = now(l, op->in[k]);
    }
}

/* What the copies read of other layers is kept for them. */
static void keep_inputs(struct layer *l, const struct copies *c)
{
    for (int i = c->from; i < c->to; i++)
        for (int k = 0; k < l->p->ops[i].n_in; k++) {
            const value_id v = l->p->ops[i].in[k];
            if (v < l->s->n_values && !is_made(l, v))
                l->s->kept[v] = true;
        }
}

static bool copy_ops(struct layer *l)
{
    struct program *p = l->p;
    struct copies *c = &l->s->copies[l->index];
    const enum phase phase = p->phase;
    const int layer = p->layer;
    const int *list, n = ops_of(&l->s->forward, l->index, &list);
    bool done = true;
    *c = (struct copies){.from = p->n_ops, .before = l->first};
    p->phase = PHASE_BACKWARD;
    p->layer = l->index;
    for (int i = 0; i < n && done; i++)
        if (is_copied(l, &p->ops[list[i]]))
            done = copy_op(l, &p->ops[list[i]]);
    p->phase = phase;
    p->layer = layer;
    c->to = p->n_ops;
    read_copies(l);
    keep_inputs(l, c);
    return done && c->to > c->from;
}

bool recompute_layer(struct search *s, int index, enum form form)
{
    struct layer l = {.s = s, .p = s->p, .index = index, .form = form, .first = -1};
    mark_kept(&l);
    mark_needed(&l);
    return l.first >= 0 && is_steady(&l) && copy_ops(&l);
}
