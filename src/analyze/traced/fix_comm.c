/* What hides which collective. */
#include "analyze/traced/fix_int.h"

#include <string.h>

static const char ddp_fix[] = "# sums of gradients: in DDP's buckets, while backward goes on, and once per update\n"
                              "model = DDP(model, gradient_as_bucket_view=True, static_graph=True)     # static_graph: the same layers in every step\n"
                              "with model.no_sync() if not last_micro_batch else nullcontext():\n"
                              "    loss.backward()\n"
                              "# where it is DDP already: another bucket_cap_mb; smaller buckets start earlier, larger ones are fewer";

static const char fsdp_fix[] = "# weights of the next layers come while this one computes; FSDP2:\n"
                               "for i, block in enumerate(blocks):\n"
                               "    block.set_modules_to_forward_prefetch(blocks[i + 1:i + 3])\n"
                               "    block.set_modules_to_backward_prefetch(blocks[max(0, i - 2):i][::-1])\n"
                               "# FSDP1: FSDP(model, forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)\n"
                               "# larger units (several blocks in one) are fewer and longer collectives";

static const char all_to_all_fix[] = "# compute what does not need the other ranks' rows (dense layers, shared experts, another half of the batch) beside it\n"
                                     "work = dist.all_to_all_single(received, sent, async_op=True)\n"
                                     "y = dense(x)\n"
                                     "work.wait()\n"
                                     "z = sparse(received)                    # experts, or what embeddings of other ranks go into";

static const char collective_fix[] = "# start a collective when its data is there, wait where its result is needed, and compute in between\n"
                                     "work = dist.all_reduce(x, async_op=True)    # or what is called here\n"
                                     "y = compute(z)\n"
                                     "work.wait()";

static const struct { const char *kind, *fix; } collectives[] = {
    {"all_reduce", ddp_fix},        {"all_gather", fsdp_fix},     {"reduce_scatter", fsdp_fix},
    {"all_to_all", all_to_all_fix}, {"dispatch", all_to_all_fix}, {"combine", all_to_all_fix},
};

/* Without gradients an all-reduce is of activations, and there is no backward to fetch weights for. */
const char *fix_collectives(struct arena *a, const struct fix_facts *f)
{
    if (f->forward_only && (!f->collective || !strcmp(f->collective, "all_reduce")))
        return collective_fix;
    if (!f->collective)
        return NULL;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        if (!strcmp(collectives[i].kind, f->collective))
            return f->forward_only ? fix_without_lines(a, collectives[i].fix, "backward") : collectives[i].fix;
    return collective_fix;
}
