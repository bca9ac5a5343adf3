/* Inside the data room: token stores, the dataset and the parts that fill it. */
#ifndef HONE_DATA_DATA_INT_H
#define HONE_DATA_DATA_INT_H

#include "core/map.h"
#include "data/data.h"
#include "data/files.h"

/* A row of token ids, 1, 2 or 4 bytes each, in memory or in a mapped file. */
struct store {
    char *name;             /* for messages: the file, or what made the tokens */
    void *memory;           /* (count * width bytes), or NULL: the tokens are in the map */
    struct map map;
    size_t offset;          /* of the first token in the map, in bytes */
    int width;
    int64_t count;
    bool val;               /* comes from data.val_path */
};

void store_release(struct store *s);
/* Reads tokens [first, first + n) as they stand; ids above INT32_MAX come out negative. */
enum status store_read(const struct store *s, int64_t first, int64_t n, int32_t *out, struct error *err);
/* The largest id and the first place where it stands, in one pass. The store must not be empty. */
enum status store_max(const struct store *s, uint32_t *max, int64_t *at, struct error *err);
/* Allocates room in memory for `count` ids below `vocab`, in the smallest width. */
enum status store_init_memory(struct store *s, const char *name, int64_t count, int64_t vocab, struct error *err);
void store_set(struct store *s, int64_t at, int32_t id);

/* Opens a shard of tokens: nanoGPT's raw uint16, or llm.c's with a header. See shard.c for the formats. */
enum status shard_open(struct store *out, const char *path, struct error *err);

enum { DATA_WARNINGS = 4, DATA_WARNING = 2 * CONFIG_PATH_MAX + 512 };

/* A stretch of a store that belongs to one split; windows do not leave it. */
struct range {
    const struct store *store;
    int64_t first, count;
    int64_t windows;        /* in one epoch */
    int64_t before;         /* windows in the ranges before this one */
    int64_t phases;         /* an epoch's windows start at one of [0, phases) */
};

/* One sample on its way into a row of a batch; what is NULL is not asked for. */
struct sample {
    int32_t *tokens, *targets, *segments;   /* (seq) */
    int32_t *types;         /* (seq) targets of another kind: the type of what comes next; -1: none */
    float *features;        /* (seq, REGION_FEATURES) */
    int64_t length;         /* out: tokens that are no padding, at least one */
};

/* Lines of a part, those longer than seq, and their tokens that are neither input nor target. */
struct line_counts { int64_t lines, cut, cut_tokens; };

struct part {
    struct range *ranges;
    int n_ranges;
    int64_t tokens, samples;
    int64_t *lines;         /* SAMPLES_LINES: (samples), where each line starts in ranges[0].store */
    struct line_counts counts;          /* SAMPLES_LINES */
};

struct dataset {
    struct store *stores;
    int n_stores;
    struct part parts[2];               /* by enum split */
    struct tokenizer tokenizer;
    int64_t vocab, seq, segments;
    int32_t newline;                    /* the id of a newline; -1: tokens are ids without text */
    enum data_samples samples;
    uint64_t order_key, phase_key;
    int64_t bucket;                     /* lengths of batches are multiples of it; 0: seq */
    bool positions;                     /* batches say which position every token has */
    int64_t region;                     /* transitions of a region; 0: samples are tokens */
    uint64_t region_key;
    bool random;                        /* no stores: tokens come from order_key */
    double entropy;
    bool trained;                       /* the vocabulary is that of a model that is there already */
    char *name;                         /* one of several domains: as data.domains has it; else NULL */
    struct dataset **domains;           /* several (domains.c): all else but tokenizer, vocab, newline and sums of parts is in these */
    int n_domains;
    bool cut;                           /* data.max_chars left something of a text out, */
    double text_bytes;                  /* whose files, with those of the others, have so many */
    int64_t stage_samples;              /* that each of them is trained on, one after the other */
    char description[CONFIG_PATH_MAX + 256];
    char warning[DATA_WARNINGS][DATA_WARNING];
    int n_warnings;
};

struct dataset *dataset_new(const struct config *c);
void overlap_warn(struct dataset *d, const struct config *c);       /* of files that are trained on and validated on */
void dataset_warn(struct dataset *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sources: each fills stores, tokenizer, vocab and entropy. `given` (NULL: none): the vocabulary to take. */
typedef enum status source_fn(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err);
source_fn source_corpus, source_text, source_bin, source_domains, source_regions;
double source_corpus_entropy(enum data_domain domain, const struct config_data *c);

/* A text on its way to tokens. What is left of the bytes is the caller's to free, also after a failure. */
struct text {
    struct dataset *to;     /* whose store it becomes */
    bool val;               /* it comes from data.val_path */
    const char *name;       /* for messages; the path must outlive it */
    char *bytes;
    size_t size;
    struct file_list files; /* that it is read from */
    size_t *starts;         /* (files.n): where each begins in bytes; `size` where it was not read */
    int64_t chars;          /* characters in bytes[0..size), once they are counted */
    bool cut;               /* data.max_chars ended it, and there is more */
    double file_bytes;      /* of its files, as they lie */
    bool is_corpus;         /* printed by the grammar of `domain` */
    enum data_domain domain;
};
enum status text_read(struct text *t, const char *path, const struct config_data *c, bool bytes, struct error *err);
void text_release(struct text *t);
enum status text_generate(struct text *t, enum data_domain domain, const struct config_data *c, struct error *err);
bool text_is_bytes(const struct config_data *c, const struct tokenizer *given);      /* one token per byte: data.max_chars counts bytes */
/* Gives each its store, and their datasets one vocabulary: the given one, or that of all texts. */
enum status texts_tokenize(struct text *texts, int n, const struct config_data *c, const struct tokenizer *given,
                           struct error *err);
struct store *dataset_add_store(struct dataset *d);     /* zeroed; the pointer is valid until the next call */

/* What to say where the tokenizer beside shards is another one than data.tokenizer names, or than a model has (beside.c). */
void beside_warn(struct dataset *d, const struct config *c, const struct bpe *named, const char *folder);
enum status beside_check(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err);

/* dataset_sample with all that a sample can have. */
enum status dataset_fill(const struct dataset *d, enum split split, int64_t index, struct sample *out, struct error *err);
/* About how long training sample `index` is: lines that are apart by more than a newline seem longer. */
int64_t dataset_length(const struct dataset *d, int64_t index);
void regions_sample(const struct dataset *d, enum split split, int64_t i, struct sample *out);
int64_t regions_length(const struct dataset *d, int64_t i);

/* Cuts the stores into the two splits and counts their samples (split.c). */
enum status split_init(struct dataset *d, const struct config *c, struct error *err);
void split_release(struct dataset *d);

/* The same of a dataset of several domains (domains.c), and its samples. */
enum status domains_split(struct dataset *d, const struct config *c, struct error *err);
void domains_release(struct dataset *d);
enum status domains_sample(const struct dataset *d, enum split split, int64_t index, struct sample *out, struct error *err);

/* Window or line i of a part; windows start at an offset that depends on the epoch (windows.c, lines.c). */
enum status windows_sample(const struct dataset *d, enum split split, int64_t epoch, int64_t i, int32_t *tokens,
                           int32_t *targets, struct error *err);
enum status lines_sample(const struct dataset *d, enum split split, int64_t i, int32_t *tokens, int32_t *targets,
                         struct error *err);
int64_t lines_length(const struct dataset *d, int64_t i);      /* of the training part, up to the next one */
enum status lines_index(struct part *part, int32_t newline, int64_t seq, struct error *err);
/* Where the line that holds token `at` of an in-memory store starts. */
int64_t lines_start(const struct store *s, int64_t at, int32_t newline);

#endif
