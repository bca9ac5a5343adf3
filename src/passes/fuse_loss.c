/* fuse-loss: the product that gives the logits, log-softmax and loss become one op that never holds all logits.
 *
 * It is put in with two outputs, loss and count. Where the program is differentiated, the gradient rule of the op (autodiff.c)
 * adds the other two, so that evaluation pays for no gradient. */
#include "passes/optimize.h"
#include "program/rewrite.h"

/* The op that writes v, where it is of this kind and v has one reader; else -1. */
static int sole_source(const struct program *p, value_id v, enum op_kind kind)
{
    const int at = program_writer(p, v);
    return at >= 0 && p->ops[at].kind == kind && program_readers(p, v, NULL) == 1 ? at : -1;
}

/* logits = x w^T without bias. Other forms have no gradient rule, or none that this op covers. */
static bool is_head(const struct program *p, const struct op *op)
{
    return op->n_in == 2 && op->attrs.trans_b && !op->attrs.trans_a && p->values[op->in[1]].shape.rank == 2;
}

static int fuse(struct program *p, int nll)
{
    const value_id logp = p->ops[nll].in[0], loss = p->ops[nll].out[0], count = p->ops[nll].out[1];
    const int softmax = program_is_root(p, logp) ? -1 : sole_source(p, logp, OP_LOG_SOFTMAX);
    const value_id logits = softmax < 0 ? NO_VALUE : p->ops[softmax].in[0];
    const int head = softmax < 0 ? -1 : sole_source(p, logits, OP_MATMUL);
    if (head < 0 || !is_head(p, &p->ops[head]))
        return 0;
    const value_id in[] = {p->ops[head].in[0], p->ops[head].in[1], p->ops[nll].in[1]};
    const int at = program_insert_op(p, nll, OP_LINEAR_LOSS, (struct op_attrs){.parts = 2}, p->values[loss].name, 3, in);
    if (at < 0)
        return 0;
    program_replace_value(p, loss, p->ops[at].out[0]);
    program_replace_value(p, count, p->ops[at].out[1]);
    if (p->logits == logits)
        p->logits = NO_VALUE;
    program_remove_op(p, nll + 1);          /* from the last to the first, so that places stay right */
    program_remove_op(p, softmax);
    program_remove_op(p, head);
    return 1;
}

/* One place at most: gradients of the op are those of its own loss, so it must be the loss of the program. */
int pass_fuse_loss(struct program *p)
{
    const int nll = p->loss == NO_VALUE ? -1 : program_writer(p, p->loss);
    return nll >= 0 && p->ops[nll].kind == OP_NLL ? fuse(p, nll) : 0;
}
