/* autotune: the backend is asked to time the ways in which it can run the matrix products of a step, and to take the fastest. The
 * program computes the same; which kernel is used is decided when it is bound to a device, and remembered there, so that it does
 * not change from run to run. Where nothing can be remembered the backend's own rule stands. */
#include "passes/optimize.h"
#include "program/program.h"

int pass_autotune(struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ops && p->step != NO_VALUE; i++) {     /* what is not a training step runs too rarely */
        struct op *op = &p->ops[i];
        if (op->phase == PHASE_SETUP || op->timed || !op_info(op->kind)->product)
            continue;
        op->timed = true;
        n++;
    }
    return n;
}
