/* Names for profilers that understand NVTX (Nsight Systems shows them): a range of the host around what starts each op, each phase, each
 * graph. Only the headers of NVTX are needed; without a profiler they do nothing. */
#include <stdio.h>

#include "ops/cuda/cuda_int.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(text) ((void)(text))
#define nvtxRangePop() ((void)0)
#endif

void cuda_name_graph(const struct cuda_backend *b, const struct bound_op *first, const struct bound_op *last)
{
    char text[64];
    if (!b->names)
        return;
    snprintf(text, sizeof text, "graph: %s to %s", phase_name(first->op->phase), phase_name(last->op->phase));
    nvtxRangePushA(text);
}

void cuda_name_phase(const struct cuda_backend *b, enum phase ph)
{
    if (b->names)
        nvtxRangePushA(phase_name(ph));
}

void cuda_name_op(const struct cuda_backend *b, const struct cuda_call *c)
{
    char text[192];
    if (!b->names)
        return;
    snprintf(text, sizeof text, "%s %s", op_info(c->op->kind)->name, c->program->values[c->op->out[0]].name);
    nvtxRangePushA(text);
}

void cuda_name_end(const struct cuda_backend *b)
{
    if (b->names)
        nvtxRangePop();
}
