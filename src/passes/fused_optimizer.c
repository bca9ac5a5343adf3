/* fused-optimizer: the squares of all gradients in one op, and AdamW over all tensors with equal settings in one sweep.
 *
 * Where groups of parameters are selected (select.c), their scores become one op over those squares, and the host's reads of them one.
 * Training has the same bits as before: an update is made the same way wherever its tensor stands, and a tensor's squares are
 * still summed for themselves, so that the norm is the sum of the same numbers in the same order. */
#include <stdlib.h>
#include <string.h>

#include "passes/fuse_scores.h"
#include "passes/optimize.h"

/* ---- the norm ---- */

/* The sums of squares that make the norm, one op each, in the order of its sum. */
struct squares {
    int n, *op;
    value_id *sum, *grad;
    value_id held;                  /* what leaves groups out; NO_VALUE: nothing does */
    struct op_member *members;      /* of the program's arena */
};

/* Beside the norm, scores of groups may read them. */
static bool is_part_of_norm(const struct rewriter *r, value_id v)
{
    const int writer = rewriter_writer(r, v);
    int others = 0;
    for (int u = rewriter_first_use(r, v); u != NO_USE; u = r->uses[u].next)
        others += r->p->ops[r->uses[u].op].kind != OP_GROUP_SCORES;
    return writer >= 0 && r->p->ops[writer].kind == OP_SUM_SQUARES && shape_count(r->p->values[v].shape) == 1 && others == 1;
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

static struct squares list_squares(const struct rewriter *r, const struct op *clip)
{
    struct squares s = {.n = clip->n_in - 1, .held = NO_VALUE};
    s.op = xcalloc((size_t)s.n, sizeof *s.op);
    s.sum = xcalloc((size_t)s.n, sizeof *s.sum);
    s.grad = xcalloc((size_t)s.n + 1, sizeof *s.grad);      /* and `held` */
    s.members = arena_alloc(&r->p->arena, (size_t)s.n * sizeof *s.members);
    for (int i = 0; i < s.n; i++) {
        s.sum[i] = clip->in[1 + i];
        s.op[i] = rewriter_writer(r, s.sum[i]);
        const struct op *op = &r->p->ops[s.op[i]];
        s.grad[i] = op->in[0];
        s.members[i] = op->attrs.masked ? op->attrs.members[0] : (struct op_member){-1, 0};
        s.held = op->attrs.masked ? op->in[1] : s.held;
    }
    return s;
}

static void release_squares(struct squares *s)
{
    free(s->op);
    free(s->sum);
    free(s->grad);
}

static value_id sum_all_squares(struct rewriter *r, int before, struct squares *s)
{
    struct op_attrs attrs = {0};
    const bool masked = s->held != NO_VALUE;
    if (masked) {
        attrs = (struct op_attrs){.masked = true, .n_members = s->n, .members = s->members};
        s->grad[s->n] = s->held;
    }
    const int at = rewriter_insert(r, before, OP_SUM_SQUARES, attrs, "squares", s->n + masked, s->grad);
    return at == NO_OP ? NO_VALUE : r->p->ops[at].out[0];
}

static int fuse_norm(struct rewriter *r)
{
    const int at = find_clip(r);
    if (at == NO_OP)
        return 0;
    const struct op clip = r->p->ops[at];
    struct squares s = list_squares(r, &clip);
    const value_id all = sum_all_squares(r, at, &s);
    int places = all != NO_VALUE;
    if (places) {
        rewriter_set_inputs(r, at, 2, (value_id[]){clip.in[0], all});
        places += fuse_scores(r, &s.sum[0], s.n, all);
        for (int i = 0; i < s.n; i++)
            rewriter_remove(r, s.op[i]);
    }
    release_squares(&s);
    return places;
}

/* ---- the updates ---- */

/* lr, step and factor, and where groups are selected, their mask and counts. */
static int scalars_of(const struct op *op) { return op->n_in - op_update_scalars(op); }

/* Settings and scalars agree. */
static bool updates_alike(const struct op *a, const struct op *b)
{
    const int at = op_update_scalars(a);
    return b->kind == OP_ADAMW && op_attrs_equal(&a->attrs, &b->attrs) &&
           !memcmp(a->in + at, b->in + at, (size_t)scalars_of(a) * sizeof *a->in);
}

/* The inputs of the sweep, by role: parameters, both moments, copies where there are such, gradients, scalars. */
static void list_inputs(const struct program *p, const int *members, int n, int roles, value_id *in)
{
    for (int i = 0; i < n; i++)
        for (int role = 0; role < roles; role++)
            in[role * n + i] = p->ops[members[i]].in[role];
    for (int k = 0; k < scalars_of(&p->ops[members[0]]); k++)
        in[roles * n + k] = p->ops[members[0]].in[roles + k];
}

/* One op in the place of the last of them, where every gradient is there. */
static bool fuse_updates(struct rewriter *r, const int *members, int n)
{
    struct program *p = r->p;
    const struct op_attrs one = p->ops[members[0]].attrs;
    struct op_attrs attrs = {.beta1 = one.beta1, .beta2 = one.beta2, .eps = one.eps, .weight_decay = one.weight_decay,
                             .masked = one.masked, .k = one.k};
    const int roles = 4 + one.copies, n_in = roles * n + scalars_of(&p->ops[members[0]]);
    attrs.parts = n;
    attrs.copies = n * one.copies;
    value_id *in = xcalloc((size_t)n_in, sizeof *in);
    list_inputs(p, members, n, roles, in);
    const int at = rewriter_insert(r, members[n - 1], OP_ADAMW_ALL, attrs, "update", n_in, in);
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
