/* What the rules share: the scene they look at, the claim they make about it, and the table of rules. */
#ifndef HONE_ANALYZE_RULES_H
#define HONE_ANALYZE_RULES_H

#include "analyze/detect.h"

#define WORTH_DOING 1.02                    /* expected speed-up from which something is named as the thing to do */

/* The profile as rules see it: every number finite and not negative, times per step. */
struct scene {
    struct profile *p;
    const struct program *program;
    struct run_facts facts;
    double step_us;                         /* the step, and waiting for data that its median did not see; shares are of it */
    double shown_us;                        /* the step as the profile has it; see scene_time */
    double data_wait_us, upload_us, imbalance_us, dispatch_us, host_us;     /* the gaps of the step */
    /* dispatch_us of a GPU: it was idle between kernels */
    double stalled_us;                      /* dispatch beyond what starting ops can cost: threads without a core */
    double call_us;                         /* dispatch of one op, once */
    double available_bytes;
    double rows_scale;                      /* tokens of the run's rows over those of the rows that were measured; 1: they are alike */
    double eval_us;                         /* evaluation per step, as long beside step_us as it is beside a step of the run: times rows_scale both are the run's */
};

/* A fault that is there: which time it takes part in, and how much of that a fix removes. A rule fills it; detect turns
 * it into a finding. */
struct claim {
    struct finding finding;                 /* the rule gives where, cause, fix and evidence */
    double base_us;                         /* what the gain is relative to; the step unless a rule says otherwise */
    double involved_us;                     /* share = involved / base; nothing beyond it can be removed */
    double won_us, won_low_us, won_high_us; /* removed, and under pessimistic and optimistic assumptions */
    bool *ops;                              /* (n_ops): whose time is involved; NULL: gaps only */
    int n_ops, first_op;                    /* how many those are, and the first of them */
    const struct remedy *remedy;            /* given to the rule: the pass that would fix it, and the ops it would change; or NULL */
    bool broad;                             /* takes part in time of all ops: no other gain adds to this one */
    bool outside;                           /* in time that is not of the step: evaluation */
};

typedef bool rule_fn(struct scene *s, struct claim *c);     /* true: the fault is there */
struct rule {
    const char *id;
    rule_fn *detect;
};
extern const struct rule rule_table[];      /* ends with a NULL id */

rule_fn rule_host_sync, rule_constant_rebuilt, rule_unfused_optimizer, rule_no_flash_attention, rule_data_stall,
    rule_eval_share, rule_small_batch, rule_host_bound, rule_unfused_projections, rule_zero_grad_fills, rule_recompute,
    rule_memory_limit, rule_no_clipping, rule_cpu_oversubscribed, rule_layout_copies, rule_launch_bound, rule_low_occupancy,
    rule_no_mixed_precision, rule_misaligned_dims, rule_device_to_host_copy, rule_exposed_comm, rule_straggler, rule_padding_waste;

/* ---- scene.c ---- */

void scene_init(struct scene *s, struct profile *p, const struct program *program, const struct run_facts *facts);
const struct op *scene_op(const struct scene *s, int op);
const char *scene_op_name(const struct scene *s, int op);
double scene_self_us(const struct scene *s, int op);
double scene_op_us(const struct scene *s, int op);          /* self time and imbalance */
double scene_floor_us(const struct scene *s, int op);
int scene_runs(const struct scene *s, int op); /* per step: micro-batches run all but optimize several times */
/* What shares are of, in words: "12.6 ms", "12.6 ms step". Where more waiting is in it than in the step as the profile has it, that is said behind it:
 * " with the mean wait for data", else "". */
const char *scene_time(const struct scene *s);
const char *scene_step(const struct scene *s);
const char *scene_wait_words(const struct scene *s);
const char *scene_start_word(const struct scene *s);        /* what starting an op is called there: "dispatch"; on a GPU "launch" */
double scene_calls_us(const struct scene *s, int op);       /* dispatch of the op per step */
double scene_compute_us(const struct scene *s, double flops);       /* of f32, as all of attention is; 0 without peaks */
double scene_traffic_us(const struct scene *s, double bytes); /* at the bandwidth for so much data; 0 without peaks */

/* Marks an op as involved, with its self time, imbalance and dispatch. */
void claim_op(const struct scene *s, struct claim *c, int op);
/* "blocks.0.attn.mask", or "blocks.0.attn.mask and 3 more ops". */
const char *claim_where(const struct scene *s, const struct claim *c);

const char *text_us(struct arena *a, double us);            /* "812 µs", "12.3 ms", "1.20 s": as tables have them */
const char *text_bytes(struct arena *a, double bytes);      /* "90.0 MB" */
double positive(double x);                                  /* 0 for NaN, infinite and negative numbers */

/* ---- remedies.c ---- */

/* False: no op would change, and nothing be won (threads that need not meet, where there is one). */
bool remedy_does_something(const struct scene *s, const struct remedy *r);
/* A claim about what a pass would change: in the rule's words where it `fired`, else in its own; the gain is the predicted one.
 * False: the pass would win nothing that is worth a word. */
bool remedy_claim(const struct scene *s, struct claim *c, bool fired);

/* ---- finding.c, words.c ---- */

/* Turns the claim into its finding: bounds, gains, severity, effort. */
void claim_settle(struct claim *c, const char *rule);
void claims_rank(struct claim *claims, int n); /* the largest expected gain first; equal ones as they were */
void words_fill(struct scene *s, const struct claim *claims, int n);

/* ---- roadmap.c ---- */

/* The phases of the roadmap, and the gain of everything in words, which is that of the last one. */
void roadmap_fill(struct scene *s, const struct claim *claims, int n);

#endif
