/* Training runs: the loop with evaluation, logging and checkpoints; generation from a checkpoint; whole-step timing.
 * Nothing here prints: what happens is told to an observer, and src/cli shows it. */
#ifndef HONE_TRAIN_TRAIN_H
#define HONE_TRAIN_TRAIN_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"
#include "core/error.h"
#include "core/evaluations.h"
#include "core/gpu.h"
#include "exec/exec.h"
#include "passes/optimize.h"
#include "trace/trace.h"

/* What a run over data.domains knew of each of them, and when: mean losses in nats per token on their validation parts. */
enum { DOMAINS_MAX = CONFIG_LIST_MAX };
struct forgetting {
    int n;                              /* domains; 0: the run has none */
    int rows;                           /* known: one before the first step, then one per stage that has ended */
    int64_t steps_each;
    double entropy[DOMAINS_MAX];        /* the best possible loss; NAN if unknown */
    double loss[DOMAINS_MAX + 1][DOMAINS_MAX];
};
/* How much worse a domain is after the last stage that has ended than after its own: in nats, or as a perplexity in percent. NAN where
 * no stage came after it. */
double forgetting_nats(const struct forgetting *f, int domain);
double forgetting_percent(const struct forgetting *f, int domain);
/* The mean over the domains of what later stages won for them, in nats: below 0 they were forgotten. */
double forgetting_transfer(const struct forgetting *f);

struct train_info {                     /* known before the first step */
    const char *data, *device;
    const char *device_name;            /* "NVIDIA H200"; NULL: the machine's CPU */
    int64_t parameters, total_steps, first_step, steps_per_epoch, tokens_per_step;
    double entropy;                     /* the best possible loss; NAN if unknown, or of several domains */
    const struct forgetting *domains;   /* their number, steps and entropies */
    int threads;
    const char *threads_words;          /* why so many, where that was not said; empty: all cores */
    struct exec_memory memory;
    const char *passes;                 /* what they changed, as train_passes_text says it */
    int init_tensors;                   /* parameters that train.init gave; 0: none */
    const char *init_title, *init_types;
    const char *changed;                /* of the config since the checkpoint that the run goes on from: "train.lr 0.001 -> 0.0005"; empty: nothing */
};

struct train_log {
    int64_t step, epoch;
    int stage;                          /* of data.domains, from 0 */
    const char *domain;                 /* NULL: the run has none */
    double loss;                        /* mean since the last log */
    double lr, grad_norm;
    double steps_per_s, steps_per_s_overall, samples_per_s, tokens_per_s;
    double padding_share;               /* of these tokens: they are of no sample */
    double seconds;                     /* of training so far, without evaluation and checkpoints */
    double data_wait_share;             /* of the time since the last log */
    int64_t skipped;                    /* steps without an update because loss or gradient was not finite */
    const int32_t *nodes;               /* of a tree: those that the newest step selected, n_nodes of them */
    int n_nodes;
    const struct gpu_state *gpus;       /* (n_gpus) what the GPU of each rank tells of itself at this moment */
    int n_gpus;                         /* as many as ranks; 0: no GPU tells anything */
    int ranks;                          /* below: where there are several */
    double rank_wait_share;             /* of the time since the last log: what rank 0 waited for others */
    double compute_least_s, compute_most_s;     /* seconds per step that ranks needed without waiting for others */
    int slowest_rank;
};

struct train_epoch {
    int64_t step, epoch;                /* step: its last one */
    int64_t steps, steps_whole;         /* that were timed: fewer than all where the run was resumed on the way */
    const char *domain;                 /* NULL: the run has none */
    double loss, seconds, samples_per_s;
    double first_samples_per_s;         /* of the first epoch since the start or resume; NAN: this is it */
    double data_wait_share;             /* of its time */
    double mfu_percent;                 /* NAN: the peak of the machine is not known */
    const char *verdict;                /* "low", "fair", "good", "high", "first"; later "steady", "slower", "faster"; "waits for data" */
    char words[160];                    /* what that is about */
};
/* Fills verdict and words from the rest. */
void epoch_judge(struct train_epoch *e);

/* Any function may be NULL. */
struct train_observer {
    void *context;
    void (*on_start)(void *context, const struct train_info *info);
    void (*on_step)(void *context, int64_t step, double loss);          /* after every step; loss: the newest known, or NAN */
    void (*on_log)(void *context, const struct train_log *log);
    void (*on_eval)(void *context, int64_t step, double val_loss);
    void (*on_epoch)(void *context, const struct train_epoch *epoch);
    void (*on_checkpoint)(void *context, int64_t step, const char *path);
    void (*on_sample)(void *context, int64_t step, const char *text);           /* any bytes but NUL */
    void (*on_warning)(void *context, const char *text);
    /* Of a run over data.domains: a stage begins or goes on; and instead of on_eval, the losses of all domains. */
    void (*on_stage)(void *context, int stage);
    void (*on_domains)(void *context, int64_t step, const double *losses);
};

struct train_options {
    const char *out;                    /* folder of the run */
    bool resume;
    bool import;                        /* the folder is for weights that are brought: nothing there is continued */
    bool anew;                          /* what a run of this config left in the folder that has saved nothing is taken away first */
    bool tensorboard;                   /* write the metrics to OUT/tensorboard too */
    int64_t record_first, record_last;  /* record these steps (counted from 1) into OUT/trace.json; 0: none */
    int64_t sample_tokens;              /* text of so many tokens at every checkpoint, into OUT/samples.jsonl; 0: none */
    bool save_first;                    /* also before the first step, so that there is always something to go on from */
    const volatile sig_atomic_t *stop;  /* set from a signal handler: save and return; may be NULL */
};

struct train_result {
    int64_t steps;
    double loss, val_loss;              /* val_loss NAN when there was no evaluation */
    double samples_per_s, tokens_per_s;
    double padding_share;               /* of these tokens */
    struct gpu_watch gpu;               /* as it was at the logs */
    struct forgetting forgetting;       /* as far as it went; OUT/forgetting.json has the same */
    bool interrupted;
    char checkpoint[CONFIG_PATH_MAX];   /* empty when there is none: interrupted before the first step could begin */
};

enum status train_run(const struct config *c, const struct train_options *options, const struct train_observer *observer,
                      struct train_result *result, struct error *err);

/* The same to its end with another seed, quietly, for who makes several runs of one config: what there is of it in the folder already is
 * continued. Refused where the folder holds a run of another config. `progress` (may be NULL) is told after every step; *stop set:
 * saves and returns with result->interrupted. */
enum status train_quietly(const struct config *c, int64_t seed, const char *out, const volatile sig_atomic_t *stop,
                          void (*progress)(void *context, int64_t step, int64_t total), void *context,
                          struct train_result *result, struct error *err);
/* Is there a checkpoint of such a run in the folder, from which it would be continued? Refused as train_quietly refuses it. What a run left that has saved
 * nothing is no hindrance: it begins anew. Nobody holds the folder meanwhile, so it is only what was so for a moment: train_quietly looks again. */
enum status train_look(const struct config *c, int64_t seed, const char *out, bool *begun, struct error *err);

/* How many steps a run over so many samples has; refused where they cannot be counted. */
struct step_counts { int64_t per_epoch, total; };
enum status train_count_steps(struct step_counts *out, const struct config_train *t, int64_t samples, struct error *err);
/* How many checkpoints it writes in so many steps, the last one at its end. */
int64_t train_checkpoints(struct interval every, int64_t steps_per_epoch, int64_t steps);

/* The program of a training step of a configuration whose vocabulary is known, after its passes. places[PASSES_MAX] (may be
 * NULL) gets in how many places each pass changed something. The caller frees the program. */
enum status train_step_program(struct program **out, const struct config *c, int64_t total_steps, int *places,
                               struct error *err);

/* The same for one of so many ranks, each of which works on the config's batch, a shard of its own: the program that it would run. */
enum status train_rank_program(struct program **out, const struct config *c, int ranks, struct error *err);

/* What a step of such a configuration would take here: it is planned; no memory is taken for it, and nothing is run. */
struct step_plan {
    double bytes;                       /* parameters, state, inputs, workspace and scratch */
    double beside;                      /* more that a GPU uses where it is there, for ops that run side by side */
    double kept;                        /* in a checkpoint: weights and state of the optimizer */
    double ops;                         /* per step */
    bool fits;                          /* in the memory that is free now */
};
enum status train_plan_step(struct step_plan *out, const struct config *c, struct error *err);
/* The same of one rank of so many on CPUs, as many on each machine; `fits`: all of this one do. */
enum status train_plan_rank(struct step_plan *out, const struct config *c, int ranks, int machines, struct error *err);

/* That a step that is planned with so many bytes is above optimize.memory; NULL: it is not. */
enum { MEMORY_WORDS = 192 };
const char *train_memory_warning(const struct config *c, double bytes, char out[MEMORY_WORDS]);

/* About the largest train.batch_size whose step fits into so many bytes (n of them, ascending) of a GPU, as planned; 0: not even one sample does.
 * `*_MOST`, or the config's own where that is more: so many fit, and more were not asked for; the config's own is never judged by guess. Needs no GPU. As the config is but without recompute; or with what saves memory. */
enum { LARGEST_BATCH_MOST = 1 << 16 };
enum { SAVE_BF16 = 1, SAVE_RECOMPUTE = 2, SAVERS = 4 };         /* flags; so many sets of them */
enum status train_largest_batches(const struct config *c, int savers, const double *bytes, int64_t *batch, int n, struct error *err);

/* What to do with a batch on a GPU of such a memory: most[s] is the largest with the savers s. */
struct memory_fit {
    int gb;
    int64_t most[SAVERS];
    bool narrow;                        /* the config is of 16 bits already */
};
enum { FIT_WORDS = 300 };
const char *memory_fit_words(const struct memory_fit *f, const struct config_train *train, char out[FIT_WORDS]);

/* "flash-attention ×4, fuse-qkv ×4", or "none". Returns `out`. */
enum { PASSES_TEXT_MAX = 512 };
const char *train_passes_text(const int *places, char out[PASSES_TEXT_MAX]);

/* Prints the training program of a configuration, after its passes; before them with optimize.passes: none. */
enum status train_print_program(const struct config *c, FILE *to, struct error *err);

struct generate_options {
    const char *prompt;
    const char *device;                 /* "cpu" or "cuda"; NULL: as it was trained */
    int64_t tokens;
    double temperature;                 /* 0: always the most likely */
    int64_t top_k;                      /* only the so many most likely are drawn; 0: all */
    double top_p;                       /* only the most likely that have this probability together are; 0 and 1: all */
    const char *const *stop_texts;      /* a sample ends before the first of these; none is empty */
    int n_stop_texts;
    uint64_t seed;                      /* sample i is the same for any number of samples */
    int64_t samples;                    /* 0: one */
    bool logprobs;                      /* tell them */
    const volatile sig_atomic_t *stop;
    /* The prompt and then the text of every sample, one sample after the other and each as it is made, in pieces that end with a character as far
     * as there are any. May be NULL. */
    void (*on_text)(void *context, int64_t sample, const char *text, size_t length);
    /* In tokens of all samples, where none of them ends before. May be NULL. */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;              /* of both */
};

struct generated_token {
    int32_t id;
    double logprob;                     /* that the model gives it, at temperature 1 and of all tokens; NAN: not asked for */
    size_t first, end;                  /* its bytes among those of the sample's text */
};
enum generate_end { END_NOT, END_TOKENS, END_STOP, END_INTERRUPTED };      /* END_TOKENS: as many as were asked for */
struct generated {
    char *text;                         /* of all tokens, any bytes; a NUL behind them */
    size_t length;                      /* of it, what counts: without a stop text and what follows it */
    struct generated_token *tokens;
    int64_t n, room;
    enum generate_end end;
};
struct generate_result {
    char checkpoint[CONFIG_PATH_MAX];
    int64_t step;                       /* of the checkpoint */
    int64_t context;                    /* tokens that the model sees at most */
    char *prompt;                       /* its text, as its tokens have it, without a space that a tokenizer puts before a text */
    int32_t *prompt_tokens;
    int64_t n_prompt;
    struct generated *samples;
    int64_t n;
    double prompt_s, tokens_s;          /* seconds that all prompts, and that all other tokens took */
};

/* Continues the prompt with the model of a checkpoint. An empty one begins with the tokenizer's token for the end of a text, where it has one, or
 * else with token 0. *out is to be released in any case. */
enum status generate_run(const char *checkpoint, const struct generate_options *options, struct generate_result *out, struct error *err);
void generate_release(struct generate_result *r);
/* Prints the program that makes a token of each of so many samples. */
enum status generate_print_program(const char *checkpoint, int64_t samples, FILE *to, struct error *err);

struct eval_options {
    const char *const *sets;            /* "data.domain=code": other data, or how to run */
    int n_sets;
    const char *device;                 /* "cpu" or "cuda"; NULL: as it was trained */
    bool train;                         /* the training part of the data, not the validation part */
    int64_t batches;                    /* at most so many of each domain; 0: as many as eval.batches among `sets` says, or all */
    const volatile sig_atomic_t *stop;
    void (*progress)(void *context, int64_t done, int64_t total);       /* in batches; may be NULL */
    void *context;
};

/* Of some data: a domain, or all. */
struct eval_loss {
    const char *name;                   /* of the domain; NULL: all */
    double loss, entropy;               /* mean and best possible, nats per token; entropy NAN: not known */
    double tokens, bytes;               /* bytes 0: tokens are no text */
};
struct eval_result {
    char checkpoint[CONFIG_PATH_MAX];
    int64_t step;                       /* of the checkpoint */
    char data[CONFIG_PATH_MAX + 256];   /* in words */
    struct eval_loss all, domains[DOMAINS_MAX];
    int n;                              /* domains; 0: the data has none */
    struct config_names names;          /* that names above point into */
    bool interrupted;                   /* not all of it was looked at */
    int64_t first;                      /* so many batches of each domain, as was asked for; 0: all */
    bool lines;                         /* its samples are lines, not windows */
};

/* The loss of a model on its data, or on other data that its tokenizer can read. Samples count once each. */
enum status eval_run(const char *checkpoint, const struct eval_options *options, struct eval_result *out, struct error *err);

enum { BENCH_VOCAB = 256 };              /* different tokens where the config leaves that to its data, which is not read */

struct bench_result {
    double ms_per_step, ms_spread;      /* median, and the distance between the 10th and 90th percentile */
    double samples_per_s, tokens_per_s, tflops, mfu_percent, loss;
    double peak_mb;                     /* that the process held at once, on the device that it ran on */
    struct products_peak mfu_peak;      /* what MFU is relative to */
    double planned_mb;                  /* parameters, state and workspace */
    double recorded_ms;                 /* median step while ops are timed, in turns with unrecorded_ms; 0: not measured */
    double unrecorded_ms;
    const char *device;                 /* "cpu" or "cuda" */
    char device_name[96];               /* "NVIDIA H200"; empty: the machine's CPU */
    int threads;
    int64_t steps;
    int ops;                            /* that run in a step, in all of its micro-batches */
    double kernels;                     /* of a GPU per step; below 0: not known */
    struct gpu_watch gpu;               /* while it was timed */
    double delayed_share;               /* meanwhile, by other work; see delay_share; below 0: not known, or no matter of the cores */
    int64_t vocab;                      /* tokens that there are; of regions, as their data has it */
    bool vocab_assumed;                 /* the config leaves it to the data, which is not read */
    int places[PASSES_MAX];             /* what the passes changed */
};

/* A part of the step, from the ops that belong to it: forward, one block, attention, ...; last what no op takes: waits of threads and what lies between ops, which has no floor. */
struct bench_component {
    const char *name;
    double us, floor_us;                /* measured per step, and its roofline */
    int ops;
};
enum { BENCH_COMPONENTS = 11 };

/* Times whole training steps of a configuration on random tokens for about `seconds`; the peaks give MFU. With `components`
 * (room for BENCH_COMPONENTS; may be NULL) some more steps are measured op by op. *stop (may be NULL) set while steps are timed: an error that says so. */
enum status bench_run(const struct config *c, double seconds, const struct peaks *peaks, const volatile sig_atomic_t *stop, struct bench_result *out,
                      struct bench_component *components, int *n_components, struct error *err);

/* A JSON string of any bytes; what is not UTF-8 becomes question marks. */
json_t *json_text(const char *text);

/* Tokens that are of no sample, as shares of all that a step works on. */
struct padding {
    double now;                         /* as the configuration has it: data.bucket, data.group */
    double least;                       /* with the bucket and group below */
    double packed;                      /* with data.pack: on */
    double rows;                        /* with rows of model.seq tokens, one for each sample */
    int64_t bucket, group;              /* 0: lengths of samples do not differ */
};

/* A rank of several, per step without events; the mean of the middle half of the steps. Step = compute + loader + exposed + wait. */
struct measured_rank {
    char host[64];
    double step_us;
    double compute_us;                  /* all that is not one of the following */
    double loader_us;                   /* waited for its batch */
    double exposed_us;                  /* waited for sums that every rank waits for: communication that nothing hides */
    double wait_us;                     /* waited for ranks that were later with the step than this one */
    double sums_us;                     /* that sums took, hidden or not; also until the last rank had come */
    double hidden_share;                /* of the bytes of sums, what travelled before the last rank's backward had ended; below 0: not known */
    double memory_bytes;                /* the process's peak */
    double delayed_share;               /* as below */
};

/* Steps of a configuration, measured without and with events in turns. Where the config has ranks all of them do it together. */
struct measured {
    double *step_us;                    /* (n): whole steps without events; on a GPU, and with k1.every, the mean of some in a row */
    double *wait_us, *upload_us;        /* (n): what each of them waited for its batch, and took to upload it, unless a device was busy meanwhile */
    double *comm_us;                    /* (n): what each of them waited for sums with other ranks */
    struct pace *pace;                  /* (n): what the cores had right behind each; 0: not known */
    double *hidden;                     /* (n): of the bytes of those sums, the share that travelled before this rank's backward had ended */
    int n;
    int64_t turn;                       /* steps of each of them */
    struct measured_rank *ranks;        /* (n_ranks), the same on every rank; 0: there is one, alone */
    int n_ranks;
    struct trace *trace;                /* as many steps with events, and one evaluation */
    double evaluation_us;               /* of one evaluation, with rows of model.seq tokens; 0: none; NAN: not known, as it was stopped */
    double evaluation_scale;            /* tokens of its rows in the run over those; 1: data.bucket makes none shorter */
    struct evaluations evaluations;     /* how often the whole run evaluates */
    int64_t total_steps;                /* of the whole run that these are steps of */
    double data_wait_us;                /* per step, without events */
    double loss, norm;                  /* of the last step; the gradient's: not finite, and the update was left out */
    double rss_peak_bytes, model_flops;
    double tokens_per_step;
    double padding_share;               /* of the tokens of these steps, whose batches are all of model.seq tokens a row */
    struct padding padding;             /* of batches as the configuration has them, and as they could be */
    double preemptions_per_s;           /* how often other work took a core away */
    double delayed_share;               /* of the time of the threads: ready to run and without a core; below 0: not known */
    bool has_counters;                  /* of the CPU, per step; where the system lets them be read */
    double instructions, cycles, cache_misses;
    struct gpu_watch gpu;               /* how the GPU was meanwhile; no look: there is none, or it tells nothing */
    double kernels_per_step;            /* below 0: not known */
    const char *device_name;            /* "NVIDIA H200"; NULL: the machine's CPU */
    const char *timed_by;               /* how ops were timed; NULL: by the threads themselves */
    bool times_kernels;                 /* of ops: those of kernels alone */
    double *occupancy;                  /* per op of a GPU; 0: not known */
    struct exec_memory memory;
    int threads;
    const struct program *program;      /* lives as long as this struct */
    const char **kernels;               /* per op */
    struct config config;               /* with the vocabulary resolved */
    char passes[PASSES_TEXT_MAX];       /* what they changed */
    struct model_run *run;
};

/* Warms up, then measures `steps` steps of each kind. `progress` (may be NULL) is told after every step; *stop set: ends with
 * what there is, or with an error when there is nothing. */
enum status measure_steps(struct measured *out, const struct config *c, int steps, const volatile sig_atomic_t *stop,
                          void (*progress)(void *context, int done, int total), void *context, struct error *err);
/* The same for who measures nothing after it in this process: kernels of a GPU are traced, which leaves the process slower. All steps
 * without events, and the evaluation, come before those with. */
enum status measure_steps_traced(struct measured *out, const struct config *c, int steps, const volatile sig_atomic_t *stop,
                                 void (*progress)(void *context, int done, int total), void *context, struct error *err);
double measured_evaluation_us(const struct measured *m);       /* per training step of the run, with the rows that it has there; 0: none; NAN: not known */
const char *measured_data_warning(const struct measured *m, int i);         /* as dataset_warning */
void measured_release(struct measured *m);

/* How long the whole run takes here, without its checkpoints: from the median of some of its steps, at most `steps` turns of them and about so many
 * seconds, and from a few batches of its evaluation. Where data.bucket makes rows shorter, from what is left of them. Trains nothing, and writes into no folder. */
struct train_estimate {
    int64_t timed;                      /* steps */
    double step_s, evaluation_s, run_s;
    int64_t steps, evaluations;         /* of the run */
    double delayed_share;               /* of the time of the threads meanwhile, what other work had of the cores; below 0: not known */
};
enum status train_estimate(struct train_estimate *out, const struct config *c, int steps, double seconds, struct error *err);

/* Are there more threads than cores? Then in words; else NULL. */
enum { THREADS_WORDS = 128 };
const char *train_threads_warning(const struct config *c, char out[THREADS_WORDS]);

/* Where `threads` is 0 and one rank computes on a CPU: sets settled_threads to as many as a step is fastest on, which is measured where it is not
 * remembered (train/threads.c). `words`: what is to say about it; empty: it has all cores. */
void train_settle_threads(struct config *c, char words[THREADS_WORDS]);

/* Opens the device that a configuration asks for. */
enum status train_open_backend(struct backend **out, const struct config *c, struct error *err);
/* Memory that can still be had on it; SIZE_MAX: unknown. */
size_t train_available_bytes(const struct config *c);

#endif
