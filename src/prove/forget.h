/* Learned against forgotten: configs that were trained over a sequence of domains, with several seeds each, side by side. Runs that
 * are missing are made (forget_train); what their folders tell (forgetting.json, nodes.jsonl) is read, averaged over seeds and judged:
 * does choosing nodes by their gradient beat choosing as many at random, and choosing all? docs/k1.md has the rule. Nothing here
 * prints. */
#ifndef HONE_PROVE_FORGET_H
#define HONE_PROVE_FORGET_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "core/arena.h"
#include "core/error.h"
#include "train/train.h"

enum { FORGET_DOMAINS = DOMAINS_MAX, FORGET_NAME = 128, FORGET_PATH = CONFIG_PATH_MAX, FORGET_NODES = 4096, FORGET_LEVELS = 16, FORGET_SEEDS = 100, FORGET_CONFIGS = 32,
       FORGET_WORDS = 1024 };

/* ---- what a run's folder tells ---- */

struct forget_log {                         /* a line of nodes.jsonl */
    int64_t step, steps;                    /* the last step, and how many it sums up */
    int domain;                             /* index; -1: not one of the run's */
    double *norm_mean, *norm_max;           /* (nodes) */
    double *selected;                       /* (nodes) in how many of these steps */
};

struct forget_run {
    int64_t seed;
    char folder[CONFIG_PATH_MAX];
    bool done;                              /* forgetting.json has every stage */
    int n_domains, n_stages;                /* finished ones */
    char domains[FORGET_DOMAINS][FORGET_PATH];            /* words, or paths of files */
    double entropy[FORGET_DOMAINS];         /* nats per token; NAN: not known */
    int64_t steps_per_domain;
    double loss[FORGET_DOMAINS + 1][FORGET_DOMAINS];    /* (1 + n_stages, n_domains); first row: before training */
    int nodes, n_logs;                      /* 0: no nodes.jsonl, or nothing in it */
    struct forget_log *logs;
};

/* forgetting.json of a folder. Fails where it is missing or is not one, and says why. */
enum status forget_read_losses(struct forget_run *r, struct error *err);
/* nodes.jsonl: its leading good lines, in the arena. `warning` gets a sentence where it is missing or lines were left out, else "". */
enum status forget_read_nodes(struct forget_run *r, struct arena *arena, char warning[FORGET_WORDS], struct error *err);

/* ---- numbers ---- */

struct forget_spread {                      /* over seeds */
    double mean, sd;                        /* NAN where there are too few */
    int n;
};
struct forget_spread forget_spread(const double *values, int n);        /* those that are not finite are left out */

/* Of one run that is done; NAN where there is no such number (one domain only). */
struct forget_numbers {
    double new_loss;        /* domains after the first, each right after its stage: nats above the entropy where all are known, else loss */
    double learned;         /* before training less right after its stage, mean of the same domains */
    double forgotten;       /* at the end less right after its stage, mean of the domains before the last; nats */
    double percent;         /* the same as 100 (PPL_end / PPL_own - 1) */
    double end_loss;        /* all domains at the end, as new_loss */
};
struct forget_numbers forget_numbers(const struct forget_run *r);
double forget_nats(const struct forget_run *r, int domain);             /* NAN of the last one */
double forget_percent(double nats);
bool forget_entropy_known(const struct forget_run *r);                  /* of every domain */

/* ---- configs ---- */

enum forget_choice { CHOICE_NONE, CHOICE_GRADIENT, CHOICE_RANDOM, CHOICE_ALL, CHOICE_OTHER };      /* none: it has no tree */
const char *forget_choice_word(enum forget_choice c);

struct forget_config {
    char name[FORGET_NAME], arch[32];
    int64_t layers;
    enum forget_choice choice;
    int k, nodes;                           /* of the tree; 0: none */
    int64_t every;                          /* steps that a choice is kept for */
    int levels, tree[FORGET_LEVELS];        /* children per node, level by level */
    const char *unlike[FORGET_CONFIGS];     /* of another config: in what it differs, that is not the choice of nodes: "train.lr is 0.1 and 0.3"; NULL: in nothing */
    struct forget_run *runs;                /* (n_runs), one per seed */
    int n_runs;
};

struct forget {
    struct arena arena;                     /* of runs and logs */
    struct forget_config configs[FORGET_CONFIGS];
    int n_configs;
    int64_t seeds;                          /* 1 ... seeds */
    bool interrupted;
    char warnings[FORGET_CONFIGS][FORGET_WORDS];
    int n_warnings;
};
/* What will be compared: each config with seeds 1 ... `seeds`, in OUT/runs/NAME-seedS. Refuses configs that cannot be compared. The
 * forget is zeroed before. */
enum status forget_plan(struct forget *f, const struct config *configs, int n, const char *out, int64_t seeds, struct error *err);

/* Makes one run; as train_quietly. */
typedef enum status forget_train_fn(const struct config *c, int64_t seed, const char *out, const volatile sig_atomic_t *stop,
                                    void (*progress)(void *context, int64_t step, int64_t total), void *context,
                                    struct train_result *result, struct error *err);
struct forget_progress {
    const char *name;                       /* of the config */
    int64_t seed, step, steps;              /* steps: 0, not known yet */
    int run, runs;                          /* the how many-th of all, those that were done before included */
    double part;                            /* of the work that there was, 0 to 1 */
};
struct forget_options {
    const volatile sig_atomic_t *stop;      /* may be NULL */
    void (*on_progress)(void *context, const struct forget_progress *p);        /* may be NULL */
    void *context;
    forget_train_fn *train;                 /* NULL: train_quietly */
};
/* Makes the runs that are not done, one after the other, all configs of a seed before the next seed. What was begun goes on where it
 * was; a folder of another config is refused. *stop: the run in progress is saved, and f->interrupted set. */
enum status forget_train(struct forget *f, const struct config *configs, const struct forget_options *o, struct error *err);

/* Reads the folders of all runs. What is missing or damaged is left out with a warning; only a lack of memory is an error. */
enum status forget_collect(struct forget *f, struct error *err);
void forget_release(struct forget *f);
const struct forget_run *forget_first_done(const struct forget_config *c);      /* NULL: none */
int forget_parent(const struct forget_config *c, int node);                     /* -1: the root */

/* ---- the judgement ---- */

enum forget_outcome { FORGET_BEATS, FORGET_TIES, FORGET_WORSE, FORGET_NO_OVERLAP, FORGET_TOO_FEW };
const char *forget_outcome_word(enum forget_outcome o);

struct forget_difference {                  /* a less b over the seeds of both, with the interval that holds 95 % */
    double mean, low, high;
    int n;
};
struct forget_comparison {
    int a, b;                               /* configs */
    struct forget_difference new_loss, forgotten;
    enum forget_outcome outcome;
};
struct forget_comparison forget_compare(const struct forget *f, int a, int b);

enum forget_answer { ANSWER_YES, ANSWER_NOT, ANSWER_UNSAID };
const char *forget_answer_word(enum forget_answer a);

/* One config that chooses by gradient, and those that it is judged by. */
struct forget_verdict {
    int gradient, random, all;              /* configs; -1: there is none */
    struct forget_comparison by_random, by_all;
    bool has_line;                          /* the config learns as much as some mixture of random and all */
    double line_part;                       /* of `all` in it */
    struct forget_difference line;          /* forgotten, less that of the mixture */
    enum forget_outcome line_outcome;
    enum forget_answer beats_random, beats_all;
    char random_words[FORGET_WORDS], all_words[FORGET_WORDS];
};
/* How many, at most `room`. */
int forget_judge(const struct forget *f, struct forget_verdict *out, int room);
void forget_headline(const struct forget *f, char out[FORGET_WORDS]);

/* ---- the report ---- */

json_t *forget_json(const struct forget *f);            /* the caller's; NULL: no memory */

#endif
