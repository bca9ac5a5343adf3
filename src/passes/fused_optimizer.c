/* fused-optimizer: the squares of all gradients in one op, and AdamW over all tensors with equal settings in one sweep.
 *
 * Training has the same bits as before: an update is made the same way wherever its tensor stands, and a tensor's squares are
 * still summed for themselves, so that the norm is the sum of the same numbers in the same order. */
#include <stdlib.h>
#include <string.h>

#include "passes/optimize.h"
#include "program/rewriter.h"

/* ---- the norm ---- */

static bool is_part_of_norm(const struct rewriter *r, value_id v)
{
    const int writer = rewriter_writer(r, v);
    return writer >= 0 && r->p->ops[writer].kind == OP_SUM_SQUARES && rewriter_readers(r, v) == 1;
}

/* Takes the parts of the norm away and lists what they read, in the order of the norm's sum. */
static int take_gradients(struct rewriter *r, const struct op *clip, value_id *grads)
{
    int n = 0;
    for (int k = 1; k < clip->n_in; k++) {
        const int writer = rewriter_writer(r, clip->in[k]);
        for (int i = 0; i < r->p->ops[writer].n_in; i++)
            grads[n++] = r->p->ops[writer].in[i];
        rewriter_remove(r, writer);
    }
    return n;
}

static int find_clip(const struct rewriter *r)
{
    for (int i = r->first; i != NO_OP; i = rewriter_next(r, i)) {
        const struct op *op = &r->p->ops[i];
        bool all = op->kind == OP_CLIP && op->n_in > 2;
        for (int k = 1; k < op->n_in && all; k++)
            all = is_part_of_norm(r, op->in[k]);
        if (all)
            return i;
    }
    return NO_OP;
}

static int fuse_norm(struct rewriter *r)
{
    const int at = find_clip(r);
    if (at == NO_OP)
        return 0;
    const struct op clip = r->p->ops[at];
    value_id *grads = xcalloc((size_t)r->p->n_values, sizeof *grads);
    const int n = take_gradients(r, &clip, grads);
    const int sum = rewriter_insert(r, at, OP_SUM_SQUARES, (struct op_attrs){0}, "squares", n, grads);
    free(grads);
    if (sum == NO_OP)
        return 0;
    rewriter_set_inputs(r, at, 2, (value_id[]){clip.in[0], r->p->ops[sum].out[0]});
    return 1;
}

/* ---- the updates ---- */

/* Settings and the scalars lr, step and factor agree. */
static bool updates_alike(const struct op *a, const struct op *b)
{
    const int scalars = 4 + a->attrs.copies;
    return b->kind == OP_ADAMW && op_attrs_equal(&a->attrs, &b->attrs) &&
           !memcmp(a->in + scalars, b->in + scalars, 3 * sizeof *a->in);
}

/* The inputs of the sweep, by role: parameters, both moments, copies where there are such, gradients, scalars. */
static void list_inputs(const struct program *p, const int *members, int n, int roles, value_id *in)
{
    for (int i = 0; i < n; i++)
        for (int role = 0; role < roles; role++)
            in[role * n + i] = p->ops[members[i]].in[role];
    for (int k = 0; k < 3; k++)
        in[roles * n + k] = p->ops[members[0]].in[roles + k];
}

/* One op in the place of the last of them, where every gradient is there. */
static bool fuse_updates(struct rewriter *r, const int *members, int n)
{
    struct program *p = r->p;
    const struct op_attrs one = p->ops[members[0]].attrs;
    struct op_attrs attrs = {.beta1 = one.beta1, .beta2 = one.beta2, .eps = one.eps, .weight_decay = one.weight_decay};
    const int roles = 4 + one.copies;
    attrs.parts = n;
    attrs.copies = n * one.copies;
    value_id *in = xcalloc((size_t)(roles * n + 3), sizeof *in);
    list_inputs(p, members, n, roles, in);
    const int at = rewriter_insert(r, members[n - 1], OP_ADAMW_ALL, attrs, "update", roles * n + 3, in);
    free(in);
    if (at == NO_OP)
        return false;
    p->ops[at].layer = NO_LAYER;
    for (int i = 0; i < n; i++)
        rewriter_remove(r, members[i]);
    return true;
}

/* Takes the updates that are like the first one out of list[0 .. *n); the others move up. */
static int take_alike(const struct program *p, int *list, int *n, int *members)
{
    int taken = 0, left = 0;
    const struct op first = p->ops[list[0]];
    for (int i = 0; i < *n; i++) {
        if (updates_alike(&first, &p->ops[list[i]]))
            members[taken++] = list[i];
        else
            list[left++] = list[i];
    }
    *n = left;
    return taken;
}

/* There are as many sorts of updates as settings, which are few. */
static int fuse_all_updates(struct rewriter *r)
{
    const struct program *p = r->p;
    int *list = xcalloc((size_t)p->n_ops, sizeof *list), *members = xcalloc((size_t)p->n_ops, sizeof *members);
    int n = 0, places = 0;
    for (int i = r->first; i != NO_OP; i = rewriter_next(r, i))
        if (p->ops[i].kind == OP_ADAMW)
            list[n++] = i;
    while (n) {
        const int alike = take_alike(p, list, &n, members);
        if (alike >= 2 && !fuse_updates(r, members, alike))
            break;
        places += alike >= 2;
    }
    free(list);
    free(members);
    return places;
}

int pass_fused_optimizer(struct program *p)
{
    struct rewriter r;
    rewriter_open(&r, p);
    int places = fuse_norm(&r);
    places += fuse_all_updates(&r);
    rewriter_close(&r);
    return places;
}
