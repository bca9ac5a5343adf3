/* Text to shards of tokens, and text to a tokenizer: block by block, so that texts may be larger than memory. */
#ifndef HONE_DATA_TOKENIZE_H
#define HONE_DATA_TOKENIZE_H

#include <signal.h>
#include <stdint.h>

#include "core/error.h"
#include "data/bpe_train.h"

typedef void tokenize_progress_fn(void *context, int64_t bytes, int64_t total);     /* of the files as they lie */

struct tokenize_options {
    const char *const *texts;           /* files, folders, patterns */
    int n_texts;
    const char *tokenizer, *out;
    const char *between;                /* a special token behind every file; NULL: none */
    int64_t shard_tokens;
    int threads;                        /* 0: all cores */
    const volatile sig_atomic_t *stop;
    tokenize_progress_fn *progress;
    void *context;
};

struct tokenize_result {
    int64_t files, bytes, tokens, vocab;
    int shards, width;
    double seconds;
    bool interrupted;                   /* what was written is whole shards of a part of the text */
};

/* Writes OUT/tokens-000000.bin and so on, and OUT/tokenizer.json. */
enum status tokenize_run(const struct tokenize_options *o, struct tokenize_result *r, struct error *err);

struct tokenizer_train_options {
    const char *const *texts;
    int n_texts;
    const char *out;                    /* the tokenizer.json */
    struct bpe_training how;
    int threads;
    const volatile sig_atomic_t *stop;
    tokenize_progress_fn *progress;
    void *context;
};
struct tokenizer_train_result {
    int64_t files, bytes, vocab;
    double seconds;
};
enum status tokenizer_train_run(const struct tokenizer_train_options *o, struct tokenizer_train_result *r, struct error *err);

#endif
