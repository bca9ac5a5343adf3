/* The closed loop: from the config as given, profile, predict what each remaining move would win (moves.h), apply the best, prove it,
 * keep it or drop it, until nothing is left to win or the time is spent. Then all that was kept is judged at once against what was
 * given. What is not proved keeps the value that it was given. Nothing here prints. */
#ifndef HONE_PROVE_TUNE_H
#define HONE_PROVE_TUNE_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "analyze/analyze.h"
#include "config/config.h"
#include "core/error.h"
#include "passes/optimize.h"
#include "prove/prove.h"
#include "train/batch_sweep.h"

enum { TUNE_WHY = 400, TUNE_NAMES = 256, TUNE_CHANGE = 256, TUNE_IDEAS = 48, TUNE_NAME = 48 };

enum tune_outcome {
    TUNE_NOT_TRIED,                         /* not measured: no time, no memory */
    TUNE_KEPT,
    TUNE_DROPPED,                           /* measured, and worse: slower, or a gate failed */
    TUNE_NO_GAIN,                           /* measured, and no different */
    TUNE_NO_VERDICT,                        /* measured, and too much noise to say */
};
const char *tune_outcome_word(enum tune_outcome o);     /* "kept", "not tried", ... */

struct tune_stage {                         /* one move that was tried, or the last small passes together */
    char pass[TUNE_NAMES];                  /* its name; several with plus signs between them, tried together */
    const char *answers, *what;             /* the rule it fixes, or NULL; one line for people */
    char change[TUNE_CHANGE];               /* what it writes in the config */
    enum pass_effort effort;
    int phase;                              /* of the roadmap */
    int places;                             /* where it changes the program or the config */
    bool around;                            /* its gain is of the run around the step (evaluation), not of the step */
    double predicted;                       /* speed-up over the step before it, by the cost model */
    double measured, low, high;             /* the same in turns, with its interval; NAN: not measured */
    int openings, turns;                    /* that the interval rests on; 0: it was not measured so */
    bool longer;                            /* measured longer than asked for, as the interval was wide */
    struct tune_evaluation {                /* where `around`: per training step, before it, and the share that is left of it */
        double us, low_us, high_us, left;
    } evaluation;
    enum tune_outcome outcome;
    char why[TUNE_WHY];
};

/* What could be done at the start, with what it is expected to win on the program as it was then. */
enum { PHASE_QUICK = 1, PHASE_REWRITE, PHASE_TRADE };       /* little effort; more of it; something is given for it */
struct tune_idea {
    char name[TUNE_NAME];
    const char *what, *answers;
    enum pass_effort effort;
    int places, phase;
    double predicted;
};

struct tune_point {                         /* a program, measured, or only planned: then times are NAN */
    double step_us, samples_per_s, tokens_per_s;
    double mfu_percent;                     /* NAN or 0: not known */
    struct products_peak mfu_peak;          /* what it is relative to; passes may change it */
    double planned_bytes;                   /* parameters, state, inputs, workspace and scratch */
    double ops;                             /* per step */
    double kernels;                         /* that a GPU runs per step; NAN: not known */
    bool too_large;                         /* it was planned, and this machine has not the memory to run it */
};

struct tune_size {                          /* the same two programs at another size */
    int64_t batch, seq;
    struct tune_point before, after;        /* times, where they are known, are of the same turns */
    bool judged;                            /* by all gates: `verdict` holds */
    struct verdict verdict;
};
enum { TUNE_SIZES = 8 };

/* Another program that the tuned one is measured against, in turns of their own. */
struct tune_reference {
    const char *name;                       /* "the program without passes" */
    bool all;                               /* it has all passes, not none */
    double step_us, tuned_us;
    double speedup, low, high;
    int openings, turns;
    bool judged;                            /* false: too much noise to say which is faster */
};
enum { TUNE_REFERENCES = 2 };

/* An update of more samples, where it was asked for: what follows starts from it. */
struct tune_larger {
    bool asked;
    enum lr_rule rule;
    struct batch_sweep sweep;               /* from the given batch on; n 0: nothing was measured */
    int64_t times;                          /* as many samples in an update; 1: as given */
    struct config given;                    /* before it */
    char words[640];
};

struct tune_result {
    struct config base, tuned;              /* base: as given, but for a larger update */
    struct tune_larger larger;
    double larger_expected;                 /* what twice the batch is expected to win per sample, on the base; 0: nothing worth a word, or it could not be tried */
    const char *given;                      /* what to call it: "the given config", or the program without passes that it is */
    char bound[TUNE_WHY];                   /* what the base is bound by, one sentence */
    struct { bool done; double speedup, low, high, believed; int openings, turns; } check;       /* the base against itself, before anything was tried; gains must be above `believed` */
    struct tune_idea roadmap[TUNE_IDEAS];   /* by phase, in each the largest gain first */
    int n_roadmap;
    struct tune_stage stages[TUNE_IDEAS];   /* in the order in which they were tried */
    int n_stages;
    /* base and tuned, of the same turns as the speed-up; where tuned is the base there is one measurement, and both are it */
    struct tune_point before, after;
    double speedup, speedup_low, speedup_high;      /* NAN: both at once do not fit in memory */
    struct {                                /* the whole run, without checkpoints */
        int64_t steps;                      /* 0: not known */
        double evaluation_before_us, evaluation_after_us;       /* per training step */
        double step_us;                     /* of the base, the mean over rows of all lengths; 0: they have one, and it is before.step_us */
    } run;
    bool judged;                            /* base to tuned, by all gates: `verdict` holds */
    struct verdict verdict;
    bool taken_back;                        /* what was kept stage by stage is no better all together: tuned is the base */
    char whole[TUNE_WHY];                   /* why */
    struct tune_reference references[TUNE_REFERENCES];
    int n_references;
    struct tune_size sizes[TUNE_SIZES];     /* (n_sizes) 8 x 128 and 16 x 256 where they were measured; others: memory only */
    int n_sizes;
    double naive_kernels;                   /* of the program without passes on a GPU; NAN: not known */
    char warning[WATCH_WORDS];              /* the first that a proof came with, of what happened to the GPU, or that of the most delay by other work; empty: nothing */
    double delayed_share;                   /* by other work, of the proof in which it was most; below 0: not known */
    bool out_of_time, interrupted;
    double seconds;
};

struct tune_options {
    double budget_s;                        /* of which the last quarter is for judging the whole; 0: only predictions are made */
    const struct peaks *peaks;
    const volatile sig_atomic_t *stop;      /* set: ends after the stage in progress; may be NULL */
    void (*progress)(void *context, const char *what, double part);     /* part of the budget; may be NULL */
    void (*on_stage)(void *context, const struct tune_stage *stage);    /* after each; may be NULL */
    void *context;
    bool larger_batch;                      /* more samples in an update, and the learning rate by the rule, where that is faster */
    enum lr_rule rule;
    trial_change_fn *change;                /* done to the second run of the base against itself; may be NULL */
    void *change_context;
};

/* ANSWER_NO: the config does not give the same bits twice, or is faster than itself; then nothing could be proved. */
bool tune_keeps(const struct tune_result *r);           /* anything: the tuned config is another one */
enum status tune_run(struct tune_result *out, const struct config *c, const struct tune_options *options, struct error *err);

/* ---- tune_report.c ---- */

json_t *tune_json(const struct tune_result *r);         /* the caller's; NULL: no memory */

#endif
