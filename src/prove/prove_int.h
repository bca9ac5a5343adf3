/* What the files of a proof share. */
#ifndef HONE_PROVE_PROVE_INT_H
#define HONE_PROVE_PROVE_INT_H

#include "core/gpu.h"
#include "prove/prove.h"

enum { OPENINGS_FEWEST = 4, OPENINGS_USUAL = 8, TURNS_FEWEST = 3, TURNS_MOST = 4096 };      /* TURNS_FEWEST: of an opening; TURNS_MOST: of all */

/* ---- evidence: everything that was measured, before anybody judges it ---- */

struct evidence_side {
    double *losses;                 /* (steps) */
    double validation;              /* NAN: no validation data */
    bool has_validation;
    double planned_bytes, ops;
    double model_flops;             /* NAN: steps differ in length */
    double kernels;                 /* per step; NAN: not known */
    struct products_peak peak;
    uint64_t fingerprint;           /* of the parameters after `steps` steps */
    double *turn_us;                /* (turns): the median step, or mean step of a cycle, of each turn */
    double *turn_delay;             /* (turns): of the time of its threads, what other work had their cores for; below 0, or NULL: not known */
    int lanes;                      /* threads that such a delay is a mean of */
    int turn_steps;                 /* of one turn that are counted: whole cycles */
    int cycle;                      /* steps whose mean is that of the next so many */
    double tokens_per_step;
};

struct evidence {
    const struct config *limits;
    bool bf16;                      /* products of one side, or both, are of bf16: rounding counts for more */
    int64_t steps;
    int turns, openings;
    int *opening;                   /* (turns): in which each was taken, in ascending order */
    bool longer;                    /* than was asked for */
    struct gpu_watch gpu;           /* while turns were taken */
    struct evidence_side a, b;
    double *again;                  /* (steps): the losses of b in a second run */
    uint64_t again_fingerprint;
    struct {
        int parameters;
        char worst[128];            /* the parameter with the largest error */
        double error, a_norm, b_norm;
    } gradients;
};

/* Refuses what cannot be compared: by the keys of the configs, then by the parameters of the programs. */
enum status comparable_configs(const struct config *a, const struct config *b, struct error *err);
enum status comparable_programs(const struct program *a, const struct program *b, struct error *err);

/* Fills e->gradients. Both trials are at their start, and are again after it. */
enum status gradients_compare(struct evidence *e, struct trial *a, struct trial *b, struct error *err);

/* Fills turns and openings, and what both sides have of each turn: turns of steps of a and of b, one after the other, in several openings, for about `seconds` each with all that
 * opening takes; where the interval is then wide and does not decide, up to options->most_seconds. `open` has trials of a and of b, which become others. */
enum status openings_measure(struct evidence *e, struct trial *open[2], const struct config *a, const struct config *b, double seconds,
                             const struct verify_options *options, struct error *err);

/* ---- turns: of one opening ---- */

/* Finds how many steps make a turn where all turns of a side take `seconds`, and makes room for them. */
enum status turns_fit(struct evidence *e, struct trial *const open[2], double seconds, struct error *err);
/* The steps of a new opening that do not count. */
enum status turns_warm(struct trial *t, struct error *err);
/* Adds an opening's turns until then, TURNS_FEWEST at least; tells before each. */
enum status turns_take(struct evidence *e, struct trial *const open[2], double until_s, const volatile sig_atomic_t *stop,
                       void (*tell)(void *context), void *context, struct error *err);

/* ---- gates ---- */

/* The gates on two configs, in order; results go to v->gates. */
void gates_judge(const struct evidence *e, struct verdict *v);
void verdict_add(struct verdict *v, const struct gate *g);
void verdict_limit_speed(struct verdict *v, double limit);                     /* its gate on speed, and with it all of it, asks for this instead */

double prove_largest(double a, double b);                                     /* NAN when one is */
const char *prove_show_bytes(double bytes, char out[GATE_TEXT]);              /* "12.3 MB" */
const char *prove_show_change(double part, char out[GATE_TEXT]);              /* 0.05: "+5.0 %" */

/* ---- the interval ---- */

/* Turns (n) of a and of b that were taken one after the other, and in which opening. */
struct pairs {
    double *a, *b;
    int *opening;                   /* ascending */
    int n;
};
int pairs_in_opening(const struct pairs *p, int from);         /* how many of the opening of pair `from` follow, itself included */

/* Of the medians of every opening. The interval holds 90 %, that of `sure` 98 %; of one opening nothing is known, and they hold everything. */
struct ratio {
    double a, b;                    /* means over the openings */
    double value, low, high;
    double sure_low, sure_high;
    int openings;
};
struct ratio ratio_of_pairs(const struct pairs *p);

/* ---- modes ---- */

/* Do pairs fall into groups well apart? Then something that comes and goes decides which of them the median shows. What
 * disturbs both sides of a pair alike is in no ratio, and does not count; nor does what stays as it is through an opening, which the interval holds. */
struct modes {
    bool two;
    double low, high;               /* ratios in the lowest and in the highest group */
    double share;                   /* of the pairs, in the lowest; 0: the sides change on their own, and there are more than two */
    double below, above;            /* the outer ends of those */
};
struct modes modes_find(const struct pairs *p);

/* ---- speed ---- */

/* The gain of b over a in the turns that there are: with two modes the interval holds both. Pairs in which other work had the cores do not count, where enough others
 * are left. Where they are not, the interval is what the gain can be without that delay, wherever it fell. */
struct speed {
    struct ratio ratio;
    struct modes modes;
    int turns, left_out;            /* pairs that it rests on, and others */
    double delayed;                 /* as turn_delay, of all turns; below 0: not known */
    bool disturbed;                 /* by other work: there are not enough undisturbed pairs */
};
struct speed speed_of(const struct evidence *e);
/* Is there an answer: one mode, and an interval that is narrow, or lies on one side of the limit? If not, measuring longer may help.
 * Of two modes nobody knows which is b's: there is an answer only where both are further from the limit than from each other. */
bool speed_is_settled(const struct speed *s, double limit);
/* The same for a measurement that may go on: only a limit outside of what is sure ends it early, as with every look at an interval of 90 % one of ten would end wrongly. */
bool speed_is_sure(const struct speed *s, double limit);

#endif
