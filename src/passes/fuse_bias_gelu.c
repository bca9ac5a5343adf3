/* fuse-bias-gelu: a product with bias and the GELU that alone reads it become one op in the GELU's place. What goes into the
 * GELU is no value any more: where there are gradients, differentiation has the op keep the GELU's slope instead, and the
 * backward is one multiplication. */
#include "passes/optimize.h"
#include "program/rewrite.h"

/* The product with bias that the GELU at this place, and nothing else, reads; or -1. */
static int find_linear(const struct program *p, int gelu)
{
    if (p->ops[gelu].kind != OP_GELU)
        return -1;
    const value_id u = p->ops[gelu].in[0];
    const int linear = program_writer(p, u);
    if (linear < 0 || program_readers(p, u, NULL) != 1 || program_is_root(p, u))
        return -1;
    const struct op *op = &p->ops[linear];
    const bool form = op->kind == OP_MATMUL && op->n_in == 3 && op->attrs.trans_b && !op->attrs.trans_a;
    return form && p->values[op->in[1]].shape.rank == 2 && op->phase == p->ops[gelu].phase ? linear : -1;
}

static bool fuse(struct program *p, int linear, int gelu)
{
    const struct op product = p->ops[linear], old = p->ops[gelu];
    if (program_insert_op(p, gelu, OP_LINEAR_GELU, (struct op_attrs){.parts = 1}, p->values[old.out[0]].name, product.n_in,
                          product.in) < 0)
        return false;
    program_replace_value(p, old.out[0], p->ops[gelu].out[0]);
    program_remove_op(p, gelu + 1);
    program_remove_op(p, linear);
    return true;
}

int pass_fuse_bias_gelu(struct program *p)
{
    int places = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const int linear = find_linear(p, i);
        if (linear < 0)
            continue;
        if (!fuse(p, linear, i))
            break;
        places++;
        i--;                                    /* one op less stands before the next */
    }
    return places;
}
