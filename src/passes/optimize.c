/* The table of passes, and running them. Keys of the config, their help, moves of hone tune and the order of runs come from it. */
#include "passes/optimize.h"

#include <string.h>

#include "core/setup.h"

#define NAMED(name) name, "optimize." name

const struct pass pass_table[] = {
    /* name and key                answers                effort       stage          traits, run */
    {NAMED("flash-attention"),     "no-flash-attention",  PASS_MEDIUM, STAGE_FORWARD, 0, pass_flash_attention,
     "attention in blocks with a running softmax; the scores are never whole in memory"},
    {NAMED("fuse-qkv"),            "unfused-projections", PASS_LOW,    STAGE_FORWARD, 0, pass_fuse_qkv,
     "query, key and value in one op; their gradients to the input in one sum"},
    {NAMED("fuse-gate-up"),        "unfused-projections", PASS_LOW,    STAGE_FORWARD, 0, pass_fuse_gate_up,
     "gate and up in one op, SiLU and product in one sweep"},
    {NAMED("fuse-residual-norm"),  "unfused-norms",       PASS_LOW,    STAGE_FORWARD, 0, pass_fuse_residual_norm,
     "the residual sum and the norm behind it in one sweep, forward and backward"},
    {NAMED("fuse-bias-gelu"),      "unfused-activation",  PASS_LOW,    STAGE_FORWARD, 0, pass_fuse_bias_gelu,
     "bias and GELU on the product's result while it is in cache"},
    {NAMED("fuse-loss"),           "unfused-loss",        PASS_MEDIUM, STAGE_FORWARD, 0, pass_fuse_loss,
     "logits, loss and their gradients in blocks of rows; the logits are never whole in memory"},
    {NAMED("hoist-constants"),     "constant-rebuilt",    PASS_LOW,    STAGE_FORWARD, 0, pass_hoist_constants,
     "masks and tables are made once, and equal ones are shared"},
    {NAMED("capture"),             "launch-bound",        PASS_LOW,    STAGE_FORWARD, 0, pass_capture,
     "on a GPU: the kernels of a step are captured into a graph that one call of the host starts; without, it starts every kernel"},
    {NAMED("fused-optimizer"),     "unfused-optimizer",   PASS_LOW,    STAGE_STEP,    0, pass_fused_optimizer,
     "gradient norm in one op and AdamW over all tensors in one sweep"},
    {NAMED("async-metrics"),       "host-sync",           PASS_LOW,    STAGE_STEP,    0, pass_async_metrics,
     "loss, norm and learning rate are read when they are shown, not in every step"},
    {NAMED("no-zero-fill"),        "zero-grad-fills",     PASS_LOW,    STAGE_STEP,    0, pass_no_zero_fill,
     "the first micro-batch writes the sums of gradients, so that nothing fills them with zeros"},
    {NAMED("recompute"),           "memory-limit",        PASS_MEDIUM, STAGE_STEP,    PASS_TRADES | PASS_WHEN_NEEDED,
     pass_recompute,
     "activations of as many layers as must go to stay within optimize.memory are computed again in the backward"},
    {NAMED("autotune"),            "untimed-kernels",     PASS_LOW,    STAGE_STEP,    0, pass_autotune,
     "kernels of products are chosen by timing them on this machine, once per shape"},
    {NAMED("fewer-meetings"),      "host-bound",          PASS_LOW,    STAGE_STEP,    0, pass_fewer_meetings,
     "an op waits only for ops that it shares values with, not for every op before it"},
    {"mixed-precision", "optimize.precision", "no-mixed-precision", PASS_LOW, STAGE_STEP, PASS_TRADES | PASS_IS_PRECISION,
     pass_mixed_precision,
     "products of fewer bits: operands in bf16, on a GPU activations and their gradients too; sums, weights and moments in f32; switched by optimize.precision"},
    {NAMED("group-levels"),        "ungrouped-nodes",     PASS_LOW,    STAGE_STEP,    0, pass_group_levels,
     "the same op of all nodes of one level of a tree is one call; auto: of small nodes alone, on: of all"},
    {0},
};

int pass_find(const char *name)
{
    for (int i = 0; pass_table[i].name; i++)
        if (!strcmp(pass_table[i].name, name))
            return i;
    return -1;
}

static enum status run_one(struct program *p, int i, int *places, struct error *err)
{
    const char *made_by = p->made_by;
    p->made_by = pass_table[i].name;
    const int n = pass_table[i].run(p);
    p->made_by = made_by;
    if (places)
        places[i] += n;
    if (setup_check(pass_table[i].name, err) != OK)     /* a pass that was told to stop leaves a program that nobody wants */
        return err->status;
    struct error why;
    if (program_validate(p, &why))
        return error_set(err, why.status, "pass %s: %s", pass_table[i].name, why.text);
    return OK;
}

enum status pass_optimize(struct program *p, enum pass_stage stage, pass_set set, const int *order, int *places,
                          struct error *err)
{
    enum status st = OK;
    for (int k = 0; st == OK; k++) {
        const int i = order ? order[k] : k;
        if (i < 0 || !pass_table[i].name)
            break;
        if (pass_table[i].stage == stage && (set >> i & 1))
            st = setup_check(pass_table[i].name, err);
        if (st == OK && pass_table[i].stage == stage && (set >> i & 1))
            st = run_one(p, i, places, err);
    }
    return st;
}
