/* Throughput and memory against the batch size: steps are timed at several, and each gets a word: too small, the sweet spot, no faster
 * than that, or does not fit. */
#ifndef HONE_TRAIN_BATCH_SWEEP_H
#define HONE_TRAIN_BATCH_SWEEP_H

#include <jansson.h>

#include "train/train.h"

enum batch_verdict { BATCH_TOO_SMALL, BATCH_SWEET_SPOT, BATCH_NO_FASTER, BATCH_DOES_NOT_FIT, BATCH_UNKNOWN };
const char *batch_verdict_word(enum batch_verdict v);       /* "too small", ... */

struct batch_point {
    int64_t batch;                      /* train.batch_size */
    double planned_bytes;               /* of its step */
    bool fits;                          /* below: of those that do */
    bool recompute;                     /* by computing some of the forward twice */
    double ms_per_step, ms_spread, samples_per_s, tokens_per_s;     /* the faster of two measurements */
    int rounds;                         /* how often it was timed */
    double ms_slowest;                  /* of the rounds */
    enum batch_verdict verdict;
};

enum batch_end {                        /* why no larger ones were tried */
    BATCHES_GIVEN,                      /* they were not asked for */
    BATCHES_NO_MEMORY,                  /* they do not fit */
    BATCHES_LEVEL,                      /* nothing was won any more */
    BATCHES_SLOW,                       /* a step of the next one would take longer than there is time */
    BATCHES_STOPPED,                    /* the user said stop */
};

enum { BATCH_POINTS = 32 };
struct batch_sweep {
    struct batch_point points[BATCH_POINTS];        /* by batch, each once */
    int n;
    int spot;                           /* the smallest within 5 % of the fastest, also where that may be noise; -1: none fits */
    bool open;                          /* the spot is the largest that was tried, and larger ones may be faster */
    bool noisy;                         /* nobody knows which is the spot: other work had the cores, the rounds of a size are further apart than sizes may be, or most vary by half of their time */
    int64_t given;                      /* train.batch_size of the config */
    double free_bytes;                  /* on the device, before; 0: not known */
    const char *device;                 /* "cpu", "cuda" */
    int64_t vocab;                      /* as of struct bench_result; so are the two below */
    bool vocab_assumed;
    double delayed_share;               /* of the size for which it was most */
    int threads;
    int64_t cycle;                      /* steps of which a turn has all */
    enum batch_end end;
};

struct batch_sweep_options {
    const int64_t *batches;             /* (n) ascending; n 0: powers of two, until one does not fit or nothing is won any more */
    int n;
    int64_t from;                       /* those begin here: 1, or more */
    double seconds;                     /* for each, in two parts with all others between them */
    const struct peaks *peaks;
    const volatile sig_atomic_t *stop;  /* may be NULL, like the next */
    void (*progress)(void *context, int64_t batch, int done);
    void *context;
};
enum status batch_sweep_run(struct batch_sweep *out, const struct config *c, const struct batch_sweep_options *o, struct error *err);

/* ---- batch_judge.c ---- */

/* Fills verdicts, spot, open and noisy from the points and the end. */
void batch_sweep_judge(struct batch_sweep *s);
const struct batch_point *batch_sweep_find(const struct batch_sweep *s, int64_t batch);      /* NULL: it is not among them, or does not fit */
/* A sentence on the spot, and one on the config's own batch (empty where it was not among them). */
enum { BATCH_WORDS = 256 };
void batch_sweep_words(const struct batch_sweep *s, char spot[BATCH_WORDS], char given[BATCH_WORDS]);
json_t *batch_sweep_json(const struct batch_sweep *s);      /* the caller's; NULL: no memory */

/* How train.lr goes with the samples of an update. Rules that people found to work, no proof: for Adam often the root, for plain gradient
 * descent the ratio. */
enum lr_rule { LR_SQRT, LR_LINEAR };
extern const char *const lr_rules[];                /* their names, up to NULL */
const char *lr_rule_name(enum lr_rule r);           /* "sqrt", "linear" */
/* The config with `times` as many samples in an update, in micro-batches of the same size: the learning rate by the rule, and as many samples between
 * two logs, evaluations and checkpoints, in the warm-up and in all, as before. Steps are rounded up. */
struct config config_with_update(const struct config *c, int64_t times, enum lr_rule rule);

#endif
