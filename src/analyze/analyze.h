/* What a run of steps says: the profile (numbers), the findings (what to do), and the answers in words.
 * A finding has the same form whether it came from a program of our own or from an imported trace. */
#ifndef HONE_ANALYZE_ANALYZE_H
#define HONE_ANALYZE_ANALYZE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/gpu.h"
#include "core/peaks.h"
#include "program/program.h"
#include "trace/trace.h"

/* ---- findings ---- */

enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL };
enum effort { EFFORT_LOW, EFFORT_MEDIUM, EFFORT_HIGH };

struct finding {
    const char *rule;                       /* id: "constant-rebuilt" */
    enum severity severity;                 /* from the time that would be won; see severity_of */
    enum effort effort;
    double share;                           /* of the step that the fault takes part in, 0 to 1 */
    double speedup, speedup_low, speedup_high;      /* expected: step time before / after, with its interval */
    const char *where, *cause, *fix, *evidence;     /* a sentence each; owned by the profile's arena. The fix for an imported
                                                       trace is PyTorch code and may have several lines */
    bool symptom;                           /* of a trace: what several faults together look like; those stand before it */
    const char *after;                      /* id of the rule to fix first, without which this one pays little; or NULL */
    const char *pass;                       /* the pass that fixes it, whose predicted gain is the expected one; NULL: none does */
    double doubt;                           /* of a trace: how much of what is won is not sure, relative */
    const char *confidence, *raise;         /* of a trace: "high", "medium" or "low", and what to do to be surer (NULL: nothing) */
    double saves_s;                         /* seconds of the whole run that this alone would win; 0: not known, as of a trace */
    bool per_sample;                        /* the gain is of samples per second: steps get longer, and fewer where a run is by epochs */
    bool with_evaluation;                   /* share and gain are of steps with their evaluation, which is beside the step */
    double predicted;                       /* what was expected before it was tried in the program: speedup is measured then; 0: it was not */
};

/* Won share of the step: critical from 50 %, high from 20 %, medium from 5 %, low below. */
enum severity severity_of(double speedup);
extern const char *const severity_names[];        /* from the lowest, up to NULL */
const char *severity_name(enum severity s);
const char *effort_name(enum effort e);

struct plan_phase {                         /* of the roadmap: findings to take together, in order of effort */
    const char *title;                      /* "Quick wins", ... */
    const int *findings;                    /* (n) indices */
    int n;
    double speedup, low, high;              /* of this and all earlier phases together */
    double step_us;                         /* of a profile: what is left of the step then, and of the mean wait for data; 0: not known, as of a trace */
    bool with_evaluation;                   /* the speed-ups, of all phases alike, are of steps with their evaluation */
};

/* What `hone explain` and docs/rules.md show; one entry per rule id. */
struct rule_text {
    const char *id, *summary, *recognised, *costs, *fix_hone, *fix_pytorch;
    enum effort effort;
    bool trade;                             /* something is given for the speed: digits, updates per sample, evaluations */
};
extern const struct rule_text rule_texts[];     /* ends with a NULL id; the order of DESIGN's list */
const struct rule_text *rule_text_find(const char *id);

/* ---- the profile ---- */

struct profile_op {                         /* one op of the program, per step */
    const char *name, *kind, *kernel, *made_by;     /* "blocks.0.attn.q", "matmul", "blocks", "model" */
    const char *part;                       /* of the model: "attention"; see model_parts */
    const char *target;                     /* rule of the largest finding that takes part in its time; NULL: none does */
    enum phase phase;
    int layer;                              /* NO_LAYER outside the blocks */
    double self_us;                         /* mean over threads of the time they worked on it, in a step as it takes undisturbed */
    double imbalance_us;                    /* mean over threads of what they then waited for others, beyond the one that waited least */
    double flops, bytes;
    double floor_us;                        /* roofline: the larger of FLOPs over peak and bytes over bandwidth; never above self_us */
    bool memory_bound;                      /* which of the two it is */
    int level;                              /* of memory, whose bandwidth that is: 0 for L1; an op that is faster than the level which
                                               holds its bytes had them nearer */
    double occupancy;                       /* of a GPU: warps of its kernels there at once, of those that fit; 0: not known */
    double gradient_share;                  /* of its arithmetic, what belongs to the backward; op_gradient_share */
};

struct profile_kind {                       /* ops of one kind together */
    const char *kind;
    int count;
    double self_us, imbalance_us, flops, bytes, floor_us;
};

struct profile_part { const char *name; double us; };

/* Of matrices, outside of attention. */
struct profile_products {
    double us;                              /* self time of their ops */
    int ops;
    int projections;                        /* by a weight, in the forward pass; of several in one op each */
};

struct profile_memory_point {               /* bytes alive while each op runs, in order */
    double parameters, state, gradients, activations, inputs;
};

struct profile_rank {                       /* one of several ranks, per step: step = compute + loader + exposed + wait */
    const char *host;
    double step_us;
    double compute_us;                      /* all that is not one of the following */
    double loader_us;                       /* waited for its batch */
    double exposed_us;                      /* waited for sums that every rank waits for: communication that nothing hides */
    double wait_us;                         /* waited for ranks that were later than this one */
    double sums_us;                         /* that sums took, hidden or not */
    double hidden_share;                    /* of the bytes of sums, what travelled behind backward; below 0: not known */
    double memory_bytes, delayed_share;     /* delayed_share below 0: not known */
};

struct profile {
    const char *name, *arch, *device, *isa, *blas, *config_yaml, *version;
    int threads, usable_cores, steps;       /* cores that the process may use; steps measured */
    int64_t batch, seq, accumulate, layers, parameters;
    struct peaks peaks;
    bool gpu;                               /* it ran on one: */
    const char *device_name, *timed_by;     /* "NVIDIA H200"; how ops were timed. Else NULL */
    double kernels_per_step;                /* 0: not known */
    struct gpu_watch watch;                 /* how it was; no look: it tells nothing */

    /* whole steps, measured without events: the one step time, which all other times are parts of */
    double step_us, step_p10_us, step_p90_us;
    double *steps_us;                       /* (steps) each of them, in order */
    double recording_percent;               /* what recording events costs a step; times of recorded steps are scaled to step_us */
    double scale;                           /* by this factor, but for ops that ran at their roofline */
    double samples_per_s, tokens_per_s, model_flops, mfu_percent, loss;
    double padding_share;                   /* of these tokens: they are of no sample */
    struct products_peak mfu_peak;          /* what MFU is relative to */
    double hardware_flops, hardware_bytes;  /* what the program's ops do, by the op table */

    /* what a step is made of: the mean of the middle half of the recorded steps by time, scaled, so that work of the ops and gaps
     * sum to step_us exactly */
    struct profile_part split[8];           /* data, forward, backward, optimizer, evaluation, other, and with several ranks
                                               communication; per training step */
    int n_split;
    struct profile_part gaps[8];            /* not op work: loader wait, upload, imbalance, dispatch, host; on a GPU instead of the
                                               two before the last: idle between kernels */
    int n_gaps;
    const char *waits_behind;               /* the ops that threads wait behind for others the longest, and how these are cut; NULL: nobody waits */
    struct profile_part parts[8];           /* self time of the ops by part of the model; see model_parts */
    int n_parts;
    struct profile_products products;

    struct profile_op *ops;                 /* in program order */
    int n_ops;
    struct profile_kind *kinds;             /* by self time, largest first */
    int n_kinds;

    struct profile_memory_point *memory;    /* (n_ops) */
    double peak_bytes, planned_bytes, scratch_bytes, naive_bytes, rss_peak_bytes, available_bytes;      /* scratch: of the plan, what kernels work in */
    int peak_op;                            /* where memory peaks */

    /* counters of the CPU per step where perf is readable; else has_counters is false */
    bool has_counters;
    double instructions, cycles, cache_misses;

    struct profile_rank *ranks;             /* (n_ranks); 0: there is one, alone. All else is of rank 0 */
    int n_ranks;

    const struct trace *trace;              /* events of the recorded steps */
    int timeline_step;                      /* the step whose time is the median */

    struct finding *findings;               /* ranked by expected gain */
    int n_findings;
    struct plan_phase *phases;              /* (n_phases) empty ones left out; the last one's speedup is that of everything */
    int n_phases;

    /* how the machine was while this was measured */
    double delayed_share;                   /* of the time: threads were ready to run and had no core; below 0: not known */
    double preemptions_per_s;               /* how often other work took a core away */
    double pace_share, clock_share;         /* what the cores had behind the steps, in small products and of their clock, of the best that they have shown, the median; 0: not known */
    const char *warning;                    /* one sentence that stands before any advice; NULL: the machine was quiet */

    struct {                                /* the whole run at this speed, without checkpoints */
        int64_t steps;                      /* 0: not known */
        double seconds, evaluation_s;       /* in all, and of it evaluation */
        double rows_scale;                  /* steps are times this: tokens of the run's rows over those of the rows that were measured */
        double evaluation_scale;            /* and evaluation times this, of its own rows */
    } run;

    /* answers in words */
    const char *headline;                   /* what bounds this step, one sentence */
    const char *bound_by;                   /* "compute", "memory", "overhead", "data", "threads", "communication", or "latency" on a GPU */
    const char *largest, *first_action, *realistic_gain;
    const char *mfu_band;                   /* "< 20 %", "20-40 %", "40-60 %", "> 60 %" */
    struct arena arena;                     /* owns the strings and arrays above but for trace */
};

void profile_release(struct profile *p);

/* ---- parts.c: the parts of a model, in the words people use ---- */

extern const char *const model_parts[];     /* attention, feed-forward, embedding, head and loss, norms, optimizer, other; then NULL */
/* The part that op i belongs to, by what it computes and whose weights it reads. Gradients belong to what they are gradients of;
 * residual sums to the norms, which passes fuse them with. */
const char *op_model_part(const struct program *p, int i);

#endif
