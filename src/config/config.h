/* One configuration file: the struct, its loader and its checks. The schema (keys, types, ranges, defaults, one line of
 * help each) is one table in schema.c; the file reader, --set, the printer and docs/config.md all come from it. */
#ifndef HONE_CONFIG_CONFIG_H
#define HONE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"
#include "passes/optimize.h"

enum arch { ARCH_GPT, ARCH_LLAMA, ARCH_POSTLN, ARCH_K1, ARCH_REGIONS };
enum head_choice { HEAD_AUTO, HEAD_TIED, HEAD_OWN };
enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 };
enum data_source { SOURCE_CORPUS, SOURCE_TEXT, SOURCE_BIN, SOURCE_REGIONS };
enum data_domain { DOMAIN_PROSE, DOMAIN_CODE, DOMAIN_FORMULAS };
enum data_tokens { TOKENS_CHAR, TOKENS_BYTE };
enum data_samples { SAMPLES_WINDOWS, SAMPLES_LINES };   /* windows of seq tokens, or one line of text per sample, padded */
enum data_pack { PACK_OFF, PACK_ON };
enum schedule { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT };
enum decay { DECAY_MATRICES, DECAY_ALL };               /* matrices: not on norms, biases and embeddings */
enum on_nan { ON_NAN_STOP, ON_NAN_SKIP };
enum k1_score { SCORE_L2, SCORE_SUM };                  /* of a node: the norm of its gradient, or the sum of its tensors' norms */
enum k1_select { SELECT_NORM, SELECT_RANDOM, SELECT_ALL };
enum pass_choice { PASSES_ALL, PASSES_NONE, PASSES_LISTED };
enum pass_switch { PASS_AUTO, PASS_ON, PASS_OFF };       /* auto: as optimize.passes says */
enum precision { PRECISION_F32, PRECISION_TF32, PRECISION_BF16, PRECISION_F16 };
enum kernel_choice { KERNELS_TUNED, KERNELS_REFERENCE };
enum shard_choice { SHARD_NONE, SHARD_OPTIMIZER };
enum transport_choice { TRANSPORT_AUTO, TRANSPORT_NONE, TRANSPORT_MPI, TRANSPORT_NCCL };
enum device_choice { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };

/* "every: 200" is 200 steps, "every: 2 epochs" is 2 epochs, 0 is never. */
struct interval {
    int64_t n;
    bool epochs;
};

/* optimize.passes: `all`, `none`, or exactly those that are listed. */
struct pass_list {
    enum pass_choice choice;
    pass_set listed;                        /* 0 unless choice is PASSES_LISTED */
};

/* "tree: [3, 3]". What is behind the n-th is 0. */
enum { CONFIG_LIST_MAX = 16 };
struct config_list {
    int64_t n, at[CONFIG_LIST_MAX];
};

enum { CONFIG_PATH_MAX = 1024, CONFIG_NAME_MAX = 128, CONFIG_NAMES_BYTES = 2048 };

/* "domains: [prose, notes.txt]": words and paths, at most CONFIG_LIST_MAX, each with its NUL behind the one before; then zeros. */
struct config_names {
    int64_t n;
    char text[CONFIG_NAMES_BYTES];
};
const char *config_name(const struct config_names *names, int64_t i);

struct config_model {
    enum arch arch;
    int64_t vocab;          /* 0: as many as the data has */
    int64_t dim, layers, heads;
    struct config_list tree;                /* children of a node, level by level: layers is the number of nodes; empty: no tree */
    int64_t kv_heads;       /* 0 in the file: as heads; never 0 after config_load */
    int64_t ffn;            /* 0 in the file: 4 * dim; never 0 after config_load */
    int64_t seq;
    int64_t segments;       /* token-type embeddings; 0: none */
    int64_t positions;      /* rows of the table of learned positions; 0: seq */
    bool given_positions;   /* no key: positions are an input of its programs, and not simply all of the table */
    int64_t rows;           /* no key: of this program's batches, where samples share them; 0: not known, as many as samples */
    int64_t length;         /* no key: tokens of a row of this program, where batches may be shorter than seq; 0: seq */
    enum head_choice head;  /* HEAD_AUTO: as the architecture has it */
    enum rope_scaling rope_scaling;         /* llama: angles for a longer context than the model was first trained on */
    double rope_factor, rope_low, rope_high;
    int64_t rope_context;
    double dropout, rope_base, norm_eps;    /* norm_eps 0 in the file: 1e-6 for llama, 1e-5 for the others */
};

struct config_data {
    enum data_source source;
    char path[CONFIG_PATH_MAX];             /* text or bin; a bin path may hold a glob: several shards */
    char val_path[CONFIG_PATH_MAX];         /* optional validation file(s); else val_fraction of path */
    enum data_domain domain;
    struct config_names domains;            /* learned one after the other, words of `domain` or text files; empty: no stages */
    enum data_tokens tokens;
    char tokenizer[CONFIG_PATH_MAX];        /* byte pairs instead; of shards: whose tokens they hold. Empty: none, or the one beside the shards */
    enum data_samples samples;
    int64_t chars;                          /* length of the built-in corpus */
    int64_t max_chars;                      /* read at most this many characters of a text file, or bytes where a token is a byte; 0: all */
    double val_fraction;
    int64_t region;                         /* source regions: transitions of a whole region */
    int64_t bucket;                         /* a batch is as long as its longest sample, up to a multiple of this; 0: seq */
    enum data_pack pack;                    /* samples share rows of seq tokens while training */
    int64_t group;                          /* so many batches have their samples sorted by length among them */
    int64_t workers, prefetch;
};

/* Samples of regions (data/regions.c) and the model of them (model/regions.c). */
enum { REGION_FEATURES = 10, REGION_ACTIONS = 5, REGION_TYPES = 3, REGION_SIDE = 9, REGION_CELLS = REGION_SIDE * REGION_SIDE,
       REGION_IDS = 2 + REGION_CELLS };                                 /* start, end, and a number for every cell */
static inline int64_t config_region_longest(int64_t region) { return 2 * region + 3; }     /* tokens of a sample */

struct config_train {
    int64_t batch_size, steps;
    int64_t epochs;                         /* 0: `steps` steps; else so many epochs */
    double lr, min_lr;                      /* the schedule ends at min_lr */
    enum schedule schedule;
    int64_t warmup;
    double weight_decay, beta1, beta2, eps;
    enum decay decay;
    double clip;                            /* 0: no clipping */
    int64_t accumulate, seed;
    enum on_nan on_nan;
    char init[CONFIG_PATH_MAX];             /* start from the weights in this file or folder */
};

struct config_k1 {
    int64_t k;                              /* nodes that are updated in a step */
    enum k1_score score;
    enum k1_select select;
    int64_t every;                          /* steps that a selection is kept for */
};

struct comm;
struct config_dist {
    enum transport_choice transport;
    int64_t bucket_mb, shards;              /* shards 0: as many as ranks */
    enum shard_choice shard;
    struct comm *comm;                      /* no key: to the other ranks of this run, set by who starts it; NULL: there are none */
};

struct config {
    char file[CONFIG_PATH_MAX];             /* where it was read, for messages */
    char name[CONFIG_NAME_MAX];             /* the file's name without .yaml */
    struct config_model model;
    struct config_data data;
    struct config_train train;
    struct config_k1 k1;
    struct { struct interval every; int64_t batches, batch_size; } eval;
    struct { struct interval every; int64_t keep; } checkpoint;
    struct { int64_t every; } log;
    struct { struct pass_list passes; enum pass_switch pass[PASSES_MAX]; enum precision precision; int64_t memory; } optimize;
    struct {
        int64_t steps;
        double seconds, gradients, gradients_bf16, loss, validation, memory, min_gain, regression;
    } verify;
    struct { enum kernel_choice kernels; } backend;
    struct config_dist dist;
    enum device_choice device;
    int64_t threads;                        /* 0: all cores, or as many as were measured to be faster */
    int settled_threads;                    /* where threads is 0: so many; 0: all. Of no file (train/threads.c) */
};

/* "quickstart" of "configs/quickstart.yaml": c->name of the config of that file. */
void config_name_of(char name[CONFIG_NAME_MAX], const char *file);
/* Reads `path` (a file, or the name of a config shipped with hone: "quickstart"), applies the overrides ("a.b=c") in
 * order, fills derived defaults and checks everything. On failure *out is untouched. */
enum status config_load(struct config *out, const char *path, const char *const *sets, int n_sets, struct error *err);

/* The same from text in memory; `file` is only the name used in messages. */
enum status config_parse(struct config *out, const char *file, const char *text, size_t length,
                         const char *const *sets, int n_sets, struct error *err);

/* The same for what a checkpoint kept, which another version of hone may have written. Keys that this one does not know are left out
 * where they only say how the run worked; in model, data and train, which say what it is, they are refused as ever. */
enum status config_parse_saved(struct config *out, const char *file, const char *text, size_t length, const char *const *sets,
                               int n_sets, struct error *err);

/* Writes the whole configuration as YAML that config_load reads back to an equal struct. */
void config_print(const struct config *c, FILE *to);

/* The same as text in memory that the caller frees; NULL when there is no memory. */
char *config_text(const struct config *c);

/* Writes the reference of all keys as Markdown (docs/config.md is its output). */
void config_print_reference(FILE *to);

/* For a terminal: the keys of a section, or one key, with default, what is allowed and what it is; of all sections where `of` is NULL. False: there is no
 * section and no key of that name. */
bool config_print_keys(const char *of, FILE *to);
bool config_is_key(const char *name);                   /* a key or a section */
bool config_is_like_key(const char *name);              /* behind the name of a section, and no file of YAML */
enum status config_unknown(const char *name, struct error *err);        /* refuses a key that there is not, with what may have been meant */
const char *config_nearest(const char *asked);          /* the key or section that may have been meant; NULL: none is near */
/* A whole file with every key at its default and a comment to each, which config_load reads. */
void config_print_example(FILE *to);

/* Names of configs that can be given without a path, and of all keys. */
typedef void config_name_fn(const char *name, void *context);
void config_tell_names(config_name_fn *tell, void *context);
void config_tell_keys(config_name_fn *tell, void *context);

/* The word of an enum value as it stands in the file: config_word("model.arch", ARCH_GPT) is "gpt". */
const char *config_word(const char *key, int value);

/* The domain of the built-in corpus that a name of data.domains is; false: it is a file. */
bool config_domain(const char *name, enum data_domain *out);

/* Sets model.given_positions, where data.bucket or data.pack was changed. */
static inline void config_give_positions(struct config *c)
{
    c->model.given_positions = c->model.arch != ARCH_LLAMA &&
                               (c->data.bucket || c->data.pack == PACK_ON || c->model.positions || c->model.arch == ARCH_REGIONS);
}

/* Do embeddings and head share a matrix? */
static inline bool config_head_is_tied(const struct config_model *m)
{
    return m->head == HEAD_AUTO ? m->arch == ARCH_GPT || m->arch == ARCH_LLAMA : m->head == HEAD_TIED;
}

/* How many stages a run has: one for each of data.domains, or one. */
int config_stages(const struct config *c);

/* Where a key got its value, for messages: "'my.yaml' line 7", "--set model.vocab=5", or the file alone. Reads the file again. */
enum { CONFIG_WHERE_MAX = 512 };
const char *config_where(const struct config *c, const char *key, char out[CONFIG_WHERE_MAX]);

/* An error about the path that a key names begins with where that stands; where there is no such file it ends with the folder that relative
 * paths start from. Returns the error's status. */
enum status config_blame_path(const struct config *c, const char *key, const char *path, struct error *err);

/* Keys in which two configurations differ, one after the other: *at is 0 at the first call; false: there are no more. Values are as
 * they stand in the file, cut where they are long. */
enum { CONFIG_VALUE_MAX = CONFIG_NAMES_BYTES + 4 * CONFIG_LIST_MAX };
struct config_difference {
    const char *key;                        /* "train.lr" */
    char a[CONFIG_VALUE_MAX], b[CONFIG_VALUE_MAX];
};
bool config_differ(struct config_difference *out, const struct config *a, const struct config *b, int *at);

/* Does a key say nothing in this config, as another one stands? Two configs that differ in such a key alone say the same. */
bool config_is_idle(const struct config *c, const char *key);
/* Those that are not at their default, one after the other, with the reason, as a sentence; *at is 0 at the first call. */
enum { CONFIG_IDLE_WORDS = 224 };
bool config_tell_idle(const struct config *c, int *at, char words[CONFIG_IDLE_WORDS]);

/* Passes by their index in pass_table (passes/optimize.h), which is the only list of them. */
int config_pass_find(const char *name);     /* a name that there is */
/* What optimize.passes, the pass's own switch and optimize.precision say together. */
bool config_pass_is_on(const struct config *c, int pass);
pass_set config_pass_set(const struct config *c);               /* all that are on */
/* Does the configuration switch this pass on or off by its own key? */
bool config_pass_is_named(const struct config *c, int pass);
/* Switches a pass that is not named so: in the list where there is one, else by its key. */
void config_pass_switch(struct config *c, int pass, bool on);

#endif
