/* mixed-precision: the operands of every product of a step, forward and backward, are rounded to bf16, of which an instruction
 * takes twice as many where the CPU has one for it; sums are f32, and so is everything that is kept: weights, their gradients,
 * activations, the state of the optimizer. So updates far smaller than a weight are not lost; and bf16 has the range of f32, so
 * the loss needs no scaling.
 *
 * Attention stays f32: its scores go into an exponential. So do programs that evaluate or generate: they see the f32 weights,
 * and what they say does not depend on how the weights were found. */
#include "passes/optimize.h"

/* The program has its backward by now: differentiation need not carry the attribute over. A program without one evaluates. */
static bool is_training(const struct program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].phase == PHASE_BACKWARD)
            return true;
    return false;
}

int pass_mixed_precision(struct program *p)
{
    int n = 0;
    if (!is_training(p))
        return 0;
    for (int i = 0; i < p->n_ops; i++) {
        struct op *op = &p->ops[i];
        if (!op_info(op->kind)->product || op->attrs.round == ROUND_BF16)
            continue;
        op->attrs.round = ROUND_BF16;
        n++;
    }
    return n;
}
