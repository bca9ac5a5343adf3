/* recompute: where a step would need more memory than it may, activations of layers are not kept for the backward but computed
 * again right before it, by copies of the layer's forward ops. The numbers are the same to the last bit.
 *
 * What the backward of a layer reads of its own forward is needed; the forward ops that lead to it are copied, back to values
 * that are there anyway: inputs of the layer, and what the backward of other layers reads. There are three forms, from the one
 * that costs least to the one that saves most: results of products are kept and only what is made of them by element is computed
 * again; results of attention alone are kept; nothing is kept. A form is tried on one layer after the other before the next one.
 * Layers are taken from the first on, because their activations would live longest: when the backward comes to them, those of
 * later layers are gone. */
#include <stdlib.h>
#include <string.h>

#include "passes/optimize.h"
#include "passes/passes.h"
#include "program/rewrite.h"

/* ---- one layer ---- */

enum form { KEEP_PRODUCTS, KEEP_ATTENTION, KEEP_NOTHING, FORMS };

static const double CHEAP_FLOPS = 16;           /* per number that an op makes: norms and activation functions have 8 */

struct layer {
    struct program *p;
    int index, n_ops;
    enum form form;
    bool *made;                 /* per value: by a forward op of this layer */
    bool *kept;                 /* per value: lives until the layer's backward anyway */
    bool *needed;               /* per value: must be made again */
    value_id *copy;             /* per value: the one made again, or NO_VALUE */
    int first;                  /* the backward op that first reads a needed value; -1: none is needed */
};

static bool is_forward(const struct layer *l, const struct op *op)
{
    return op->phase == PHASE_FORWARD && op->layer == l->index;
}

static bool is_backward(const struct layer *l, const struct op *op)
{
    return op->phase == PHASE_BACKWARD && op->layer == l->index;
}

static bool is_norm_of_sum(const struct op *op) { return op->kind == OP_ADD_LAYERNORM || op->kind == OP_ADD_RMSNORM; }

/* A sum of two values of the layer before and its norm: keeping the sum takes half the memory of keeping both terms. */
static bool starts_from_sum(const struct layer *l, const struct op *op)
{
    return is_norm_of_sum(op) && !l->made[op->in[0]] && !l->made[op->in[1]];
}

static bool is_dear(const struct layer *l, const struct op *op)
{
    const bool attention = op->kind == OP_ATTENTION || op->kind == OP_ATTN_MIX;
    return (l->form == KEEP_ATTENTION && attention) ||
           (l->form == KEEP_PRODUCTS && op_flops(l->p, op) > CHEAP_FLOPS * (double)shape_count(l->p->values[op->out[0]].shape));
}

static void mark_made_and_kept(struct layer *l)
{
    const struct program *p = l->p;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (int k = 0; k < op->n_out && is_forward(l, op); k++)
            l->made[op->out[k]] = !value_is_persistent(&p->values[op->out[k]]);
        for (int k = 0; k < op->n_out && is_forward(l, op); k++)
            l->kept[op->out[k]] = program_is_root(p, op->out[k]) || is_dear(l, op) || (k == 1 && starts_from_sum(l, op));
        for (int k = 0; k < op->n_in && op->phase > PHASE_FORWARD && !is_backward(l, op); k++)
            l->kept[op->in[k]] = true;
    }
}

static bool need(struct layer *l, value_id v)
{
    const bool again = l->made[v] && !l->kept[v];
    l->needed[v] |= again;
    return again;
}

static bool is_copied(const struct layer *l, const struct op *op)
{
    bool any = false;
    for (int k = 0; k < op->n_out && is_forward(l, op); k++)
        any |= l->needed[op->out[k]];
    return any;
}

/* From the backward ops, then against the order of the forward ops. */
static void mark_needed(struct layer *l)
{
    for (int i = l->n_ops - 1; i >= 0; i--) {
        const struct op *op = &l->p->ops[i];
        const bool backward = is_backward(l, op);
        if (!backward && (!is_copied(l, op) || starts_from_sum(l, op)))
            continue;
        for (int k = 0; k < op->n_in; k++)
            if (need(l, op->in[k]) && backward)
                l->first = i;
    }
}

/* A value that persists and changes on the way from the forward op to the copy would give other numbers. */
static bool is_steady(const struct layer *l)
{
    const struct program *p = l->p;
    int *changed = xcalloc((size_t)p->n_values, sizeof *changed);       /* per value that persists: the op that last does it */
    bool steady = true;
    for (int i = 0; i < l->first; i++)
        for (int k = 0; k < p->ops[i].n_out; k++)
            if (value_is_persistent(&p->values[p->ops[i].out[k]]))
                changed[p->ops[i].out[k]] = i;
    for (int i = 0; i < l->first; i++)
        for (int k = 0; k < p->ops[i].n_in && is_copied(l, &p->ops[i]); k++)
            steady &= changed[p->ops[i].in[k]] <= i;
    free(changed);
    return steady;
}

static value_id now(const struct layer *l, value_id v) { return l->copy[v] == NO_VALUE ? v : l->copy[v]; }

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
        if (l->needed[old.out[k ? k + 1 : 0]])
            l->copy[old.out[k ? k + 1 : 0]] = v;
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
        if (l->needed[old[k]])
            l->copy[old[k]] = p->ops[at].out[k];
    return true;
}

/* The backward ops of the layer, from `at` on, read the copies. */
static void read_copies(struct layer *l, int at)
{
    struct program *p = l->p;
    for (int i = at; i < p->n_ops; i++) {
        struct op *op = &p->ops[i];
        if (!is_backward(l, op))
            continue;
        op->in = arena_copy(&p->arena, op->in, (size_t)op->n_in * sizeof *op->in);      /* the old list may be taken up again */
        for (int k = 0; k < op->n_in; k++)
            op->in[k] = now(l, op->in[k]);
    }
}

/* The copies are added at the end of the list, then go to their place all at once. */
static bool copy_ops(struct layer *l)
{
    struct program *p = l->p;
    const enum phase phase = p->phase;
    const int layer = p->layer;
    bool done = true;
    p->phase = PHASE_BACKWARD;
    p->layer = l->index;
    for (int i = 0; i < l->first && done; i++)
        if (is_copied(l, &p->ops[i]))
            done = copy_op(l, &p->ops[i]);
    p->phase = phase;
    p->layer = layer;
    const int n = p->n_ops - l->n_ops;
    program_move_ops(p, l->n_ops, n, l->first);
    read_copies(l, l->first + n);
    return done && n > 0;
}

/* Returns whether anything is computed again now. */
static bool recompute_layer(struct program *p, int index, enum form form)
{
    const size_t n = (size_t)p->n_values;
    struct layer l = {.p = p, .index = index, .n_ops = p->n_ops, .form = form, .made = xcalloc(n, sizeof *l.made),
                      .kept = xcalloc(n, sizeof *l.kept), .needed = xcalloc(n, sizeof *l.needed),
                      .copy = xcalloc(n, sizeof *l.copy), .first = -1};
    memset(l.copy, 0xff, n * sizeof *l.copy);           /* all NO_VALUE */
    mark_made_and_kept(&l);
    mark_needed(&l);
    const bool changed = l.first >= 0 && is_steady(&l) && copy_ops(&l);
    free(l.made);
    free(l.kept);
    free(l.needed);
    free(l.copy);
    return changed;
}

/* ---- how many layers ---- */

struct search {
    struct program *p;
    struct op *ops;                 /* of the program as it was */
    int n_ops, n_values, layers;
    double least;                   /* the smallest plan so far, and its depth */
    int best;
};

static void restore(const struct search *s)
{
    memcpy(s->p->ops, s->ops, (size_t)s->n_ops * sizeof *s->ops);
    s->p->n_ops = s->n_ops;
    s->p->n_values = s->n_values;
}

/* Depth d is the first form in the first d layers; beyond the number of layers, the next form in the first of them, and so on.
 * From the last layer to the first, so that it is known what the backward of the next one reads. */
static int apply(const struct search *s, int depth)
{
    int changed = 0;
    restore(s);
    for (int i = (depth < s->layers ? depth : s->layers) - 1; i >= 0; i--)
        changed += recompute_layer(s->p, i, (enum form)((depth - 1 - i) / s->layers));
    return changed;
}

static double bytes_at(struct search *s, int depth)
{
    apply(s, depth);
    const double bytes = pass_planned_bytes(s->p);
    if (bytes < s->least) {
        s->least = bytes;
        s->best = depth;
    }
    return bytes;
}

/* More layers in one form need less memory, but for the last layer, whose copies may live beside the loss. */
static bool fits_in_form(struct search *s, int form)
{
    const double limit = s->p->memory_limit;
    return bytes_at(s, (form + 1) * s->layers) <= limit || (s->layers > 1 && bytes_at(s, (form + 1) * s->layers - 1) <= limit);
}

/* The lowest depth that stays within the limit, or the one with the smallest plan. */
static int find_depth(struct search *s)
{
    int form = 0;
    while (form < FORMS && !fits_in_form(s, form))
        form++;
    if (form == FORMS)
        return s->best;
    int low = form * s->layers, high = s->best;             /* low does not fit, high does */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        *(bytes_at(s, middle) <= s->p->memory_limit ? &high : &low) = middle;
    }
    return high;
}

static int count_layers(const struct program *p)
{
    int last = NO_LAYER;
    for (int i = 0; i < p->n_ops; i++)
        last = p->ops[i].layer > last ? p->ops[i].layer : last;
    return last + 1;
}

int pass_recompute(struct program *p)
{
    struct search s = {.p = p, .n_ops = p->n_ops, .n_values = p->n_values, .layers = count_layers(p)};
    if (p->memory_limit <= 0 || s.layers == 0)
        return 0;
    s.least = pass_planned_bytes(p);
    if (s.least <= p->memory_limit)
        return 0;
    s.ops = xcalloc((size_t)p->n_ops, sizeof *s.ops);
    memcpy(s.ops, p->ops, (size_t)p->n_ops * sizeof *s.ops);
    const int changed = apply(&s, find_depth(&s));
    free(s.ops);
    return changed;
}
