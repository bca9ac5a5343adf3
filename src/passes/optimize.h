/* Every optimization is a pass: program -> program. One table; one file per pass, which looks for its pattern, puts other ops in its
 * place, and says in how many places it did. What else belongs to one lives where its matter is: the fused op and its kernels
 * (src/program/ops.c, src/ops/cpu), timing kernels for autotune (src/ops/cpu/autotune.c), where threads meet for fewer-meetings
 * (src/ops/cpu/waits.c) or ops run side by side (src/ops/cuda/lanes.c), making the graph for capture (src/ops/cuda/graph.c), what fits for recompute (src/train/fit.c), the finding that it
 * answers (src/analyze). */
#ifndef HONE_PASSES_OPTIMIZE_H
#define HONE_PASSES_OPTIMIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "program/program.h"

enum pass_effort { PASS_LOW, PASS_MEDIUM, PASS_HIGH };
enum pass_stage {
    STAGE_FORWARD,          /* rewrites the forward program, before autodiff: training, evaluation and generation alike */
    STAGE_STEP,             /* rewrites the whole training step */
};

/* Returns the number of places changed; 0: the pattern is not there. A mistake is left in p->error. */
typedef int pass_fn(struct program *p);

/* What is special about a pass; nobody asks for it by name. */
enum pass_trait {
    PASS_TRADES = 1,        /* something is given for what it wins: time for memory, precision for time */
    PASS_WHEN_NEEDED = 2,   /* does nothing but where a step would not fit; no switch to win speed by */
    PASS_IS_PRECISION = 4,  /* it is optimize.precision, unless that is f32, and has no switch of its own */
};

struct pass {
    const char *name;       /* as in lists of optimize.passes */
    const char *key;        /* of the config, that switches it: optimize.NAME */
    const char *answers;    /* the rule whose finding it fixes */
    enum pass_effort effort;
    enum pass_stage stage;
    unsigned traits;        /* of enum pass_trait */
    pass_fn *run;
    const char *what;       /* one line for people: also that of the key in the reference of configs */
};
extern const struct pass pass_table[];      /* ends with a NULL name; run in this order */
enum { PASSES_MAX = 32 };

/* Which passes are on: bit i for pass_table[i]. */
typedef uint32_t pass_set;
#define PASS_SET_ALL UINT32_MAX
int pass_find(const char *name);            /* index in pass_table; -1: none */

/* Runs the passes of a stage that are in the set, in the order of the table (or of `order`, indices ending with -1, where it is
 * given), and validates after each. places[i], where it is given, gets how often pass i changed something. */
enum status pass_optimize(struct program *p, enum pass_stage stage, pass_set set, const int *order, int *places,
                          struct error *err);

pass_fn pass_fuse_qkv, pass_fuse_gate_up, pass_flash_attention, pass_fuse_residual_norm, pass_fuse_loss, pass_fuse_bias_gelu,
    pass_hoist_constants, pass_fused_optimizer, pass_async_metrics, pass_no_zero_fill, pass_recompute, pass_autotune,
    pass_fewer_meetings, pass_mixed_precision, pass_group_levels, pass_capture;

#endif
