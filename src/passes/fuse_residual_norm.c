/* fuse-residual-norm: the addition of two values of one shape and a norm of the sum become one op in the norm's place. The
 * sum stays a value, because the next residual and the backward read it. */
#include "passes/optimize.h"
#include "program/rewrite.h"

static bool is_residual(const struct program *p, const struct op *op)
{
    return op->kind == OP_ADD && shape_equal(p->values[op->in[0]].shape, p->values[op->in[1]].shape);
}

/* Whether an op before `norm` reads the sum: then it must be there earlier than the norm's place. */
static bool is_read_before(const struct program *p, value_id sum, int norm)
{
    for (int i = 0; i < norm; i++)
        for (int k = 0; k < p->ops[i].n_in; k++)
            if (p->ops[i].in[k] == sum)
                return true;
    return false;
}

/* The addition whose sum the norm at this place reads, or -1. */
static int find_add(const struct program *p, int norm)
{
    const struct op *op = &p->ops[norm];
    if (op->kind != OP_LAYERNORM && op->kind != OP_RMSNORM)
        return -1;
    const int add = program_writer(p, op->in[0]);
    if (add < 0 || !is_residual(p, &p->ops[add]) || p->ops[add].phase != op->phase || is_read_before(p, op->in[0], norm))
        return -1;
    return add;
}

/* Outputs of the norm: y, statistics. Of the new op: y, sum, statistics. */
static bool fuse(struct program *p, int add, int norm)
{
    const struct op sum = p->ops[add], old = p->ops[norm];
    const value_id in[] = {sum.in[0], sum.in[1], old.in[1], old.n_in > 2 ? old.in[2] : NO_VALUE};
    if (program_insert_op(p, norm, old.kind == OP_LAYERNORM ? OP_ADD_LAYERNORM : OP_ADD_RMSNORM, old.attrs,
                          p->values[old.out[0]].name, old.n_in + 1, in) < 0)
        return false;
    const value_id *out = p->ops[norm].out;
    program_remove_op(p, norm + 1);
    program_replace_value(p, sum.out[0], out[1]);
    program_replace_value(p, old.out[0], out[0]);
    for (int i = 1; i < old.n_out; i++)
        program_replace_value(p, old.out[i], out[i + 1]);
    program_remove_op(p, add);
    return true;
}

int pass_fuse_residual_norm(struct program *p)
{
    int places = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const int add = find_add(p, i);
        if (add < 0)
            continue;
        if (!fuse(p, add, i))
            break;
        places++;
        i--;                                    /* one op less stands before the next */
    }
    return places;
}
