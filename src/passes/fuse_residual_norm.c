/* fuse-residual-norm: the addition of two values of one shape and a norm of the sum become one op in the norm's place. The
 * sum stays a value, because the next residual and the backward read it. */
#include "passes/optimize.h"
#include "program/rewriter.h"

static bool is_residual(const struct program *p, const struct op *op)
{
    return op->kind == OP_ADD && shape_equal(p->values[op->in[0]].shape, p->values[op->in[1]].shape);
}

/* Whether an op before `norm` reads the sum: then it must be there earlier than the norm's place. */
static bool is_read_before(const struct rewriter *r, value_id sum, int norm)
{
    for (int u = rewriter_first_use(r, sum); u != NO_USE; u = r->uses[u].next)
        if (rewriter_is_before(r, r->uses[u].op, norm))
            return true;
    return false;
}

/* The addition whose sum this norm reads, or -1. */
static int find_add(const struct rewriter *r, int norm)
{
    const struct program *p = r->p;
    const struct op *op = &p->ops[norm];
    if (op->kind != OP_LAYERNORM && op->kind != OP_RMSNORM)
        return -1;
    const int add = rewriter_writer(r, op->in[0]);
    if (add < 0 || !is_residual(p, &p->ops[add]) || p->ops[add].phase != op->phase || is_read_before(r, op->in[0], norm))
        return -1;
    return add;
}

/* Outputs of the norm: y, statistics. Of the new op: y, sum, statistics. */
static int fuse(struct rewriter *r, int add, int norm)
{
    const struct program *p = r->p;
    const struct op sum = p->ops[add], old = p->ops[norm];
    const value_id in[] = {sum.in[0], sum.in[1], old.in[1], old.n_in > 2 ? old.in[2] : NO_VALUE};
    const int made = rewriter_insert(r, norm, old.kind == OP_LAYERNORM ? OP_ADD_LAYERNORM : OP_ADD_RMSNORM, old.attrs,
                                     p->values[old.out[0]].name, old.n_in + 1, in);
    if (made == NO_OP)
        return NO_OP;
    const value_id *out = p->ops[made].out;
    rewriter_remove(r, norm);
    rewriter_replace(r, sum.out[0], out[1]);
    rewriter_replace(r, old.out[0], out[0]);
    for (int i = 1; i < old.n_out; i++)
        rewriter_replace(r, old.out[i], out[i + 1]);
    rewriter_remove(r, add);
    return made;
}

int pass_fuse_residual_norm(struct program *p)
{
    struct rewriter r;
    int places = 0;
    rewriter_open(&r, p);
    for (int i = r.first; i != NO_OP; i = rewriter_next(&r, i)) {
        const int add = find_add(&r, i);
        if (add < 0)
            continue;
        i = fuse(&r, add, i);
        if (i == NO_OP)
            break;
        places++;
    }
    rewriter_close(&r);
    return places;
}
