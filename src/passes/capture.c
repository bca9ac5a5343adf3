/* capture: on a GPU a step is recorded into a graph once and replayed from then on, so that the host starts one thing instead of hundreds.
 * No op changes; who makes the graph is the device (src/ops/cuda/graph.c). A CPU has no host that is elsewhere, and nothing to capture. */
#include "passes/optimize.h"
#include "program/program.h"

int pass_capture(struct program *p)
{
    if (!p->launched || p->captured)
        return 0;
    p->captured = true;
    return 1;
}
