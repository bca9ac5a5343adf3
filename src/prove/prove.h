/* Proof that one config may take the place of another: both are trained from the same seed on the same data, and gates say
 * whether the second is still the same model, the same run every time, no larger, and faster. Nothing here prints.
 *
 * Also a guard against regressions: two report.json files of `hone profile`, before and after. */
#ifndef HONE_PROVE_PROVE_H
#define HONE_PROVE_PROVE_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"
#include "core/error.h"
#include "core/gpu.h"
#include "core/peaks.h"
#include "train/trial.h"

enum { GATES_MAX = 8, GATE_TEXT = 40, GATE_WORDS = 560 };

struct gate {
    const char *name;
    bool pass;
    bool judged;                    /* false: there was nothing to judge, or, where it does not pass, too much noise to say */
    double a, b;                    /* as measured on each side; words say what of */
    double value, limit;            /* what is held against what */
    double low, high;               /* the interval of value; NAN: it has none */
    int openings, turns;            /* that it rests on: both sides opened anew, and turns of each in all of them; 0: on none */
    bool grouped;                   /* of turns in groups well apart: value depends on which came more often */
    char a_text[GATE_TEXT], b_text[GATE_TEXT], value_text[GATE_TEXT], limit_text[GATE_TEXT];        /* for people */
    char words[GATE_WORDS];         /* one sentence */
};

/* What was measured of one of the two; both from the same turns. */
struct verdict_side {
    double step_us;                 /* the median of the turns; NAN: not measured */
    double tokens_per_step, model_flops, planned_bytes;
    double ops;                     /* per step; NAN: not known */
    double kernels;                 /* that a GPU runs per step; NAN: not known */
    struct products_peak peak;      /* what MFU is relative to; 0: no peaks were given */
};

struct verdict {
    char a[CONFIG_PATH_MAX], b[CONFIG_PATH_MAX];        /* the files */
    struct gate gates[GATES_MAX];
    int n;
    bool pass;                      /* every gate holds */
    bool same_bits;                 /* all runs of a and of b: the same losses and weights */
    char warning[WATCH_WORDS];      /* what happened to the GPU meanwhile, or that other work had the cores, in a sentence; empty: nothing */
    double delayed_share;           /* of the time of the threads in all turns: ready to run and without a core; below 0: not known */
    bool disturbed;                 /* so much that too few turns were left without it */
    bool longer;                    /* the interval was wide, and more turns were taken than asked for */
    struct verdict_side of_a, of_b;
};

struct verify_options {
    int64_t steps;                  /* 0: verify.steps of the first config */
    double seconds;                 /* 0: verify.seconds of the first config */
    double most_seconds;            /* so long at most where the interval stays wide; 0: four times as long */
    const struct peaks *peaks;      /* for MFU; may be NULL */
    const volatile sig_atomic_t *stop;                                          /* set: ends with an error; may be NULL */
    void (*progress)(void *context, const char *what, double part);             /* part of 0 to 1; may be NULL */
    void *context;
    trial_change_fn *change;        /* done to the second one's program; may be NULL */
    void *change_context;
};

/* Judges b against a. The limits are those of a: a candidate does not set its own. Configs of different models, data, seeds or
 * training are refused. A verdict that fails is OK too: only what could not be compared is an error. */
enum status verify_configs(struct verdict *out, const struct config *a, const struct config *b,
                           const struct verify_options *options, struct error *err);

/* Judges the report.json at path b against the one at path a; b may be worse by `limit` (0.05: 5 %). */
enum status verify_reports(struct verdict *out, const char *path_a, const char *path_b, double limit, struct error *err);

const struct gate *verdict_gate(const struct verdict *v, const char *name);     /* NULL: there is none */
const char *gate_outcome(const struct gate *g);                                 /* "pass", "FAIL", "no verdict" or "not judged" */
json_t *verdict_gates_json(const struct verdict *v);                            /* the list of gates alone */
json_t *verdict_json(const struct verdict *v);                                  /* the caller's; NULL: no memory */
void verdict_markdown(const struct verdict *v, FILE *to);

#endif
