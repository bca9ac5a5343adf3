/* The closed loop: profile, predict what each remaining pass would win, apply the best, prove it, keep it or drop it, until
 * nothing is left to win or the time is spent. Nothing here prints. */
#ifndef HONE_PROVE_TUNE_H
#define HONE_PROVE_TUNE_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "analyze/analyze.h"
#include "config/config.h"
#include "core/error.h"
#include "passes/optimize.h"

enum { TUNE_WHY = 320, TUNE_NAMES = 256 };

struct tune_stage {                         /* one pass that was tried, or the last small ones together */
    char pass[TUNE_NAMES];                  /* its name; several with plus signs between them, tried together */
    const char *answers;                    /* the rule it fixes */
    enum pass_effort effort;
    int places;                             /* where it changes the program */
    double predicted;                       /* speed-up over the step before it, by the cost model */
    double measured, low, high;             /* the same in turns, with its interval; NAN: not measured */
    bool kept;
    char why[TUNE_WHY];
};

struct tune_point {                         /* a program, measured */
    double step_us, samples_per_s, tokens_per_s;
    double planned_bytes;                   /* parameters, state, inputs, workspace and scratch */
    double ops;                             /* per step */
};

struct tune_size {                          /* the same two programs at another size */
    int64_t batch, seq;
    struct tune_point before, after;
};
enum { TUNE_SIZES = 8 };

struct tune_result {
    struct config base, tuned;              /* base: without passes */
    struct tune_stage stages[PASSES_MAX];   /* in the order in which they were tried */
    int n_stages;
    struct tune_point before, after;
    double speedup, speedup_low, speedup_high;      /* base to tuned, in turns */
    struct tune_size sizes[TUNE_SIZES];     /* (n_sizes) 8 x 128 and 16 x 256 where they were measured; others: memory only */
    int n_sizes;
    bool out_of_time, interrupted;
    double seconds;
};

struct tune_options {
    double budget_s;                        /* stages are not begun after so long; 0: only predictions are made */
    const struct peaks *peaks;
    const volatile sig_atomic_t *stop;      /* set: ends after the stage in progress; may be NULL */
    void (*progress)(void *context, const char *what, double part);     /* part of the budget; may be NULL */
    void (*on_stage)(void *context, const struct tune_stage *stage);    /* after each; may be NULL */
    void *context;
};

enum status tune_run(struct tune_result *out, const struct config *c, const struct tune_options *options, struct error *err);

/* ---- predict.c ---- */

/* What a program is expected to take, from the measured ops of another one of the same model: ops that both have keep their
 * time; new ones take the time of those that went, in the ratio of their rooflines. */
double predict_step_us(const struct profile *measured, const struct program *then);

/* ---- tune_report.c ---- */

json_t *tune_json(const struct tune_result *r);         /* the caller's; NULL: no memory */
void tune_markdown(const struct tune_result *r, FILE *to);

#endif
