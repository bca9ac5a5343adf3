/* Token data: where tokens come from, how samples are cut and ordered, and the loader that prepares batches ahead.
 *
 * A sample is addressed by its global index, never by who asks: sample i of a split lies in epoch i / samples and is
 * window perm_epoch(i % samples), so every worker count, rank count and restart sees the same data in the same order. */
#ifndef HONE_DATA_DATA_H
#define HONE_DATA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "core/error.h"
#include "data/tokenizer.h"

enum split { SPLIT_TRAIN, SPLIT_VAL };

struct dataset;

/* Opens what config.data describes for sequences of config.model.seq tokens. */
enum status dataset_open(struct dataset **out, const struct config *c, struct error *err);
/* The same in the vocabulary of a model that was trained: data that it has no words for is refused. */
enum status dataset_open_for(struct dataset **out, const struct config *c, const struct tokenizer *given, struct error *err);
/* Uniform random tokens in [0, vocab): what benchmarks train on. */
enum status dataset_open_random(struct dataset **out, int64_t vocab, int64_t seq, int64_t segments, uint64_t seed,
                                struct error *err);
void dataset_free(struct dataset *d);

/* The lengths that batches may have, ascending, the last is seq; returns how many. */
enum { LENGTHS_MAX = 64 };
int dataset_lengths(const struct dataset *d, int64_t lengths[LENGTHS_MAX]);

int64_t dataset_vocab(const struct dataset *d);                         /* token ids are in [0, vocab) */
int64_t dataset_tokens(const struct dataset *d, enum split split);
int64_t dataset_samples(const struct dataset *d, enum split split);     /* samples in one epoch; 0 for an absent val */
double dataset_entropy(const struct dataset *d);                        /* nats per token, the best possible loss; NAN if unknown */
const struct tokenizer *dataset_tokenizer(const struct dataset *d);
const char *dataset_describe(const struct dataset *d);                  /* one line for people; owned by d */
/* What the user should know of data that can be used all the same, i = 0, 1, ...; NULL: no more. Owned by d. */
const char *dataset_warning(const struct dataset *d, int i);

/* Data of several domains (data.domains) is a dataset of datasets, with one vocabulary. Its training samples are train.steps steps of
 * the first, then so many of the next; the last goes on. Other datasets have one domain: themselves. */
int dataset_domains(const struct dataset *d);
const struct dataset *dataset_domain(const struct dataset *d, int i);
const char *dataset_name(const struct dataset *d);                      /* of one of several domains; NULL: it has no name */

/* Rows that batches of `size` samples have where samples share rows; one that needs more has `size` of them. */
int64_t dataset_rows(const struct dataset *d, int64_t size);

/* The share of tokens that are of no sample in batches of `size` training samples, as those with these data.bucket (0: all of seq) and
 * data.group would be; from the first some thousands of samples. */
double dataset_padding(const struct dataset *d, int64_t size, int64_t bucket, int64_t group);
/* Tokens in rows of the first validation batches with this data.bucket, over those in rows of seq tokens; of a dataset of one domain. */
double dataset_validation_rows(const struct dataset *d, int64_t size, int64_t batches, int64_t bucket);

/* Writes sample `index` (any index >= 0; epochs follow each other): seq tokens, the seq targets that follow them
 * (-1 where there is none: padding), and segment ids (segments may be NULL). Thread-safe. Fails when the file behind
 * the tokens has shrunk or holds an id outside the vocabulary. */
enum status dataset_sample(const struct dataset *d, enum split split, int64_t index, int32_t *tokens, int32_t *targets,
                           int32_t *segments, struct error *err);

/* Segment ids of seq tokens, of which the first n are no padding, below `of`: how many newlines came before, modulo `of`; where no
 * token is a newline (-1), 0 in the first half and 1 in the second (0 if there is one segment only). Padding has segment 0. */
void data_segments(int32_t *segments, const int32_t *tokens, int64_t n, int64_t seq, int64_t of, int32_t newline);

struct batch {
    int64_t index;          /* of the batch: samples index * size ... */
    int64_t size;           /* samples */
    int64_t rows;           /* of all that follows, in place of size: as many, or fewer where samples share them */
    int64_t seq;            /* where data.bucket is set, no longer than its longest sample needs */
    int32_t *tokens;        /* (size, seq) */
    int32_t *targets;       /* (size, seq), -1: padding */
    int32_t *segments;      /* (size, seq) */
    int32_t *starts;        /* (size, seq): where in its row the sample of a token begins; NULL: every row is one sample */
    int32_t *positions;     /* (size, seq); NULL: the model does not ask for them */
    int32_t *types;         /* (size, seq), -1: none; NULL but for regions, as what follows */
    float *features;        /* (size, seq, REGION_FEATURES) */
    int64_t filled;         /* of size * seq, those that are tokens of a sample */
    int64_t real_tokens;    /* targets that are not padding */
    int worker;             /* that prepared it, and when; -1: whoever asked for it */
    int64_t prepare_start_ns, prepare_end_ns;
};

struct loader;

/* Starts preparing batches first, first + 1, ... of `size` samples on `workers` threads, at most `prefetch` ahead per
 * worker. workers 0 prepares each batch when it is asked for. The dataset must outlive the loader. */
enum status loader_new(struct loader **out, const struct dataset *d, enum split split, int64_t size, int64_t first,
                       int workers, int prefetch, struct error *err);
/* The same where batches of `size` are parts of larger ones, as a step over several ranks has them (docs/ranks.md): a step is `accumulate`
 * batches, each cut into `shards` parts, and the caller has the parts from `first` on, `here` of them; all batches of one part come
 * before those of the next. `first_batch` counts the caller's own. */
struct batch_division {
    int64_t shards, first, here, accumulate;
    int64_t group;          /* so many batches have their samples sorted by length among them; 0, 1: none */
    bool pack;              /* samples share rows */
};
enum status loader_new_divided(struct loader **out, const struct dataset *d, enum split split, int64_t size, struct batch_division division,
                               int64_t first_batch, int workers, int prefetch, struct error *err);
/* The next batch in order; valid until the next call. NULL on failure, with err filled. */
const struct batch *loader_next(struct loader *l, struct error *err);
int64_t loader_wait_ns(const struct loader *l);         /* time spent in loader_next so far */
int64_t loader_ahead(struct loader *l);                 /* batches that are ready to be read */
/* Nothing is begun until a batch is read. Waits for those that are under way, and returns how many they were. */
int loader_rest(struct loader *l);
void loader_free(struct loader *l);                     /* stops the workers; NULL is fine */

#endif
