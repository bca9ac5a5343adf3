/* fuse-bias-gelu: a product with bias and the GELU that alone reads it become one op in the GELU's place. What goes into the
 * GELU is no value any more: where there are gradients, differentiation has the op keep the GELU's slope instead, and the
 * backward is one multiplication. */
#include "passes/optimize.h"
#include "program/rewrite.h"
#include "program/rewriter.h"

/* The product with bias that this GELU, and nothing else, reads; or -1. */
static int find_linear(const struct rewriter *r, int gelu)
{
    const struct program *p = r->p;
    if (p->ops[gelu].kind != OP_GELU)
        return -1;
    const value_id u = p->ops[gelu].in[0];
    const int linear = rewriter_writer(r, u);
    if (linear < 0 || rewriter_readers(r, u) != 1 || program_is_root(p, u))
        return -1;
    const struct op *op = &p->ops[linear];
    const bool form = op->kind == OP_MATMUL && op->n_in == 3 && op->attrs.trans_b && !op->attrs.trans_a;
    return form && p->values[op->in[1]].shape.rank == 2 && op->phase == p->ops[gelu].phase ? linear : -1;
}

static int fuse(struct rewriter *r, int linear, int gelu)
{
    const struct program *p = r->p;
    const struct op product = p->ops[linear];
    const int made = rewriter_insert(r, gelu, OP_LINEAR_GELU, (struct op_attrs){.parts = 1}, p->values[p->ops[gelu].out[0]].name,
                                     product.n_in, product.in);
    if (made == NO_OP)
        return NO_OP;
    rewriter_replace(r, p->ops[gelu].out[0], p->ops[made].out[0]);
    rewriter_remove(r, gelu);
    rewriter_remove(r, linear);
    return made;
}

int pass_fuse_bias_gelu(struct program *p)
{
    struct rewriter r;
    int places = 0;
    rewriter_open(&r, p);
    for (int i = r.first; i != NO_OP; i = rewriter_next(&r, i)) {
        const int linear = find_linear(&r, i);
        if (linear < 0)
            continue;
        i = fuse(&r, linear, i);
        if (i == NO_OP)
            break;
        places++;
    }
    rewriter_close(&r);
    return places;
}
