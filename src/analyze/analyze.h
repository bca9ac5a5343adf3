/* What a run of steps says: the profile (numbers), the findings (what to do), and the answers in words.
 * A finding has the same form whether it came from a program of our own or from an imported trace. */
#ifndef HONE_ANALYZE_ANALYZE_H
#define HONE_ANALYZE_ANALYZE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
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
    const char *after;                      /* id of the rule to fix first, without which this one pays little; or NULL */
};

/* Won share of the step: critical from 50 %, high from 20 %, medium from 5 %, low below. */
enum severity severity_of(double speedup);
const char *severity_name(enum severity s);
const char *effort_name(enum effort e);

/* What `hone explain` and docs/rules.md show; one entry per rule id. */
struct rule_text {
    const char *id, *summary, *recognised, *costs, *fix_hone, *fix_pytorch;
    enum effort effort;
};
extern const struct rule_text rule_texts[];     /* ends with a NULL id; the order of DESIGN's list */
const struct rule_text *rule_text_find(const char *id);

/* ---- the profile ---- */

struct profile_op {                         /* one op of the program, per step */
    const char *name, *kind, *kernel, *made_by;     /* "blocks.0.attn.q", "matmul", "blocks", "model" */
    enum phase phase;
    int layer;                              /* NO_LAYER outside the blocks */
    double self_us;                         /* mean over threads of the time they worked on it, median over steps */
    double imbalance_us;                    /* mean over threads of what they then waited for others, beyond the one that waited least */
    double flops, bytes;
    double floor_us;                        /* roofline: the larger of FLOPs over peak and bytes over bandwidth */
    bool memory_bound;                      /* which of the two it is */
};

struct profile_kind {                       /* ops of one kind together */
    const char *kind;
    int count;
    double self_us, imbalance_us, flops, bytes, floor_us;
};

struct profile_part { const char *name; double us; };

struct profile_memory_point {               /* bytes alive while each op runs, in order */
    double parameters, state, gradients, activations, inputs;
};

struct profile {
    const char *name, *arch, *device, *isa, *blas, *config_yaml, *version;
    int threads, steps;                     /* steps measured */
    int64_t batch, seq, accumulate, layers, parameters;
    struct peaks peaks;

    /* whole steps, measured without events */
    double step_us, step_p10_us, step_p90_us;
    double recorded_step_us;                /* median with events: the cost of recording shows here */
    double samples_per_s, tokens_per_s, model_flops, mfu_percent, loss;
    struct products_peak mfu_peak;          /* what MFU is relative to */
    double hardware_flops, hardware_bytes;  /* what the program's ops do, by the op table */

    /* a recorded step, exactly: the parts sum to recorded_us */
    double recorded_us;                     /* the mean of the middle half of the recorded steps by time */
    struct profile_part split[8];           /* data, forward, backward, optimizer, evaluation, other; per training step */
    int n_split;
    struct profile_part gaps[8];            /* not op work: loader wait, upload, imbalance, dispatch, host */
    int n_gaps;

    struct profile_op *ops;                 /* in program order */
    int n_ops;
    struct profile_kind *kinds;             /* by self time, largest first */
    int n_kinds;

    struct profile_memory_point *memory;    /* (n_ops) */
    double peak_bytes, planned_bytes, naive_bytes, rss_peak_bytes, available_bytes;
    int peak_op;                            /* where memory peaks */

    /* counters of the CPU per step where perf is readable; else has_counters is false */
    bool has_counters;
    double instructions, cycles, cache_misses;

    const struct trace *trace;              /* events of the recorded steps */
    int timeline_step;                      /* the step whose time is the median */

    struct finding *findings;               /* ranked by expected gain */
    int n_findings;

    /* answers in words */
    const char *headline;                   /* what bounds this step, one sentence */
    const char *bound_by;                   /* "compute", "memory", "overhead" or "data" */
    const char *largest, *first_action, *realistic_gain;
    const char *mfu_band;                   /* "< 20 %", "20-40 %", "40-60 %", "> 60 %" */
    struct arena arena;                     /* owns the strings and arrays above but for trace */
};

void profile_release(struct profile *p);

#endif
