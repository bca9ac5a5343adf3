/* What the files of a proof share. */
#ifndef HONE_PROVE_PROVE_INT_H
#define HONE_PROVE_PROVE_INT_H

#include "core/gpu.h"
#include "prove/prove.h"

enum { TURNS_FEWEST = 10, TURNS_MOST = 4096 };

/* ---- evidence: everything that was measured, before anybody judges it ---- */

struct evidence_side {
    double *losses;                 /* (steps) */
    double validation;              /* NAN: no validation data */
    bool has_validation;
    double planned_bytes, ops, model_flops;
    double kernels;                 /* per step; NAN: not known */
    struct products_peak peak;
    uint64_t fingerprint;           /* of the parameters after `steps` steps */
    double *turn_us;                /* (turns): the median step of each turn */
    double *turn_delay;             /* (turns): of the time of its threads, what other work had their cores for; below 0, or NULL: not known */
    int lanes;                      /* threads that such a delay is a mean of */
    double tokens_per_step;
};

struct evidence {
    const struct config *limits;
    bool bf16;                      /* products of one side, or both, are of bf16: rounding counts for more */
    int64_t steps;
    int turns;
    double seconds;                 /* that the turns of each took */
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

/* Fills turns and turn_us of both sides: turns of steps of a and of b, one after the other, for about `seconds` each; where the
 * interval is then wide and does not decide, up to options->most_seconds. */
enum status turns_measure(struct evidence *e, struct trial *a, struct trial *b, double seconds,
                          const struct verify_options *options, struct error *err);

/* ---- gates ---- */

/* The gates on two configs, in order; results go to v->gates. */
void gates_judge(const struct evidence *e, struct verdict *v);
void verdict_add(struct verdict *v, const struct gate *g);

double prove_largest(double a, double b);                                     /* NAN when one is */
const char *prove_show_bytes(double bytes, char out[GATE_TEXT]);              /* "12.3 MB" */
const char *prove_show_change(double part, char out[GATE_TEXT]);              /* 0.05: "+5.0 %" */

/* ---- bootstrap ---- */

struct ratio {
    double a, b;                    /* the medians */
    double value, low, high;
};
/* The ratio of the medians of pairs (n) that were measured one after the other, and the interval that holds `confidence` of its
 * resamples. Whole blocks of neighbouring pairs are drawn, as what disturbs one disturbs the next. */
struct ratio bootstrap_ratio(const double *a, const double *b, int n, double confidence, uint64_t seed);

/* ---- modes ---- */

/* Do pairs (n) fall into groups well apart? Then something that comes and goes decides which of them the median shows. What
 * disturbs both sides of a pair alike is in no ratio, and does not count. */
struct modes {
    bool two;
    double low, high;               /* ratios in the lowest and in the highest group */
    double share;                   /* of the pairs, in the lowest; 0: the sides change on their own, and there are more than two */
    double below, above;            /* the outer ends of those */
};
struct modes modes_find(const double *a, const double *b, int n);

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

#endif
