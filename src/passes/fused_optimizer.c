/* fused-optimizer: the squares of all gradients in one op, and AdamW over all tensors with equal settings in one sweep.
 *
 * Training has the same bits as before: an update is made the same way wherever its tensor stands, and a tensor's squares are
 * still summed for themselves, so that the norm is the sum of the same numbers in the same order. */
#include <stdlib.h>

#include "passes/optimize.h"
#include "program/rewrite.h"

/* ---- the norm ---- */

static bool is_part_of_norm(const struct program *p, value_id v)
{
    const int writer = program_writer(p, v);
    return writer >= 0 && p->ops[writer].kind == OP_SUM_SQUARES && program_readers(p, v, NULL) == 1;
}

/* Takes the parts of the norm away and lists what they read, in the order of the norm's sum. */
static int take_gradients(struct program *p, const struct op *clip, value_id *grads)
{
    int n = 0;
    for (int k = 1; k < clip->n_in; k++) {
        const int writer = program_writer(p, clip->in[k]);
        for (int i = 0; i < p->ops[writer].n_in; i++)
            grads[n++] = p->ops[writer].in[i];
        program_remove_op(p, writer);
    }
    return n;
}

static int find_clip(const struct program *p)
{
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        bool all = op->kind == OP_CLIP && op->n_in > 2;
        for (int k = 1; k < op->n_in && all; k++)
            all = is_part_of_norm(p, op->in[k]);
        if (all)
            return i;
    }
    return -1;
}

static int fuse_norm(struct program *p)
{
    int at = find_clip(p);
    if (at < 0)
        return 0;
    const struct op clip = p->ops[at];                  /* its list of inputs stays where it is */
    value_id *grads = xcalloc((size_t)p->n_values, sizeof *grads);
    const int n = take_gradients(p, &clip, grads);
    at -= clip.n_in - 1;
    const int sum = program_insert_op(p, at, OP_SUM_SQUARES, (struct op_attrs){0}, "squares", n, grads);
    free(grads);
    if (sum < 0)
        return 0;
    p->ops[at + 1].in[1] = p->ops[sum].out[0];
    p->ops[at + 1].n_in = 2;
    return 1;
}

/* ---- the updates ---- */

/* Settings and the scalars lr, step and factor agree. */
static bool updates_alike(const struct op *a, const struct op *b)
{
    return b->kind == OP_ADAMW && a->attrs.beta1 == b->attrs.beta1 && a->attrs.beta2 == b->attrs.beta2 &&
           a->attrs.eps == b->attrs.eps && a->attrs.weight_decay == b->attrs.weight_decay && a->in[4] == b->in[4] &&
           a->in[5] == b->in[5] && a->in[6] == b->in[6];
}

/* The inputs of the sweep, by role: parameters, both moments, gradients, scalars. */
static void list_inputs(const struct program *p, const int *members, int n, value_id *in)
{
    for (int i = 0; i < n; i++)
        for (int role = 0; role < 4; role++)
            in[role * n + i] = p->ops[members[i]].in[role];
    for (int k = 0; k < 3; k++)
        in[4 * n + k] = p->ops[members[0]].in[4 + k];
}

/* One op in the place of the last of them, where every gradient is there. */
static bool fuse_updates(struct program *p, const int *members, int n)
{
    const struct op_attrs one = p->ops[members[0]].attrs;
    struct op_attrs attrs = {.beta1 = one.beta1, .beta2 = one.beta2, .eps = one.eps, .weight_decay = one.weight_decay};
    attrs.parts = n;
    value_id *in = xcalloc((size_t)(4 * n + 3), sizeof *in);
    list_inputs(p, members, n, in);
    const int at = program_insert_op(p, members[n - 1], OP_ADAMW_ALL, attrs, "update", 4 * n + 3, in);
    free(in);
    if (at < 0)
        return false;
    p->ops[at].layer = NO_LAYER;
    program_remove_op(p, at + 1);
    for (int i = n - 2; i >= 0; i--)
        program_remove_op(p, members[i]);
    return true;
}

int pass_fused_optimizer(struct program *p)
{
    int places = fuse_norm(p);
    int *members = xcalloc((size_t)p->n_ops, sizeof *members);
    for (int first = 0; first < p->n_ops; first++) {
        int n = 0;
        for (int i = first; i < p->n_ops && p->ops[first].kind == OP_ADAMW; i++)
            if (updates_alike(&p->ops[first], &p->ops[i]))
                members[n++] = i;
        if (n < 2)
            continue;
        if (!fuse_updates(p, members, n))
            break;
        places++;
        first--;                    /* another op stands here now */
    }
    free(members);
    return places;
}
