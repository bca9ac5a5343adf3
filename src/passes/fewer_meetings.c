/* fewer-meetings: a step with as few meetings of the threads as its values allow. Threads share the work of an op, and without
 * this pass all of them meet before the next one begins; a gradient of a weight, that of its bias and that of the input, though, share
 * nothing that one of them writes. Where the threads must meet is decided when the program is bound to memory (src/ops/cpu/waits.c). On a GPU the
 * same property lets such ops run side by side (src/ops/cuda/lanes.c). */
#include "passes/optimize.h"
#include "program/program.h"

int pass_fewer_meetings(struct program *p)
{
    if (p->fewer_meetings || p->step == NO_VALUE)         /* what is not a training step runs too rarely */
        return 0;
    p->fewer_meetings = true;
    return 1;
}
