/* Models that people bring, and take with them: weights of others as a checkpoint, and a checkpoint as weights of others. */
#ifndef HONE_TRAIN_BRING_H
#define HONE_TRAIN_BRING_H

#include "config/config.h"
#include "core/error.h"
#include "data/tokenizer.h"

/* Characters or bytes of a model, which no file of others has a place for, as its manifest has them. */
#define TOKENS_FILE "tokens.json"
enum { TOKENS_MOST = 64 << 20 };        /* bytes of one */

struct import_options {
    const char *out;                    /* folder of the run whose first checkpoint it becomes */
    const char *const *sets;            /* "model.heads=12": what the files do not say */
    int n_sets;
};

struct import_result {
    char from[CONFIG_PATH_MAX], checkpoint[CONFIG_PATH_MAX];
    const char *title;                  /* "GPT-2 of Hugging Face" */
    char types[64];                     /* "f16" */
    const char *note;                   /* what ours does otherwise; NULL: nothing */
    char tokens[512];                   /* its tokenizer, in words */
    bool has_tokenizer;
    int files, tensors;                 /* that were read; that ours has */
    int64_t parameters;
    struct config config;
};

/* Reads a model of others and saves it as OUT/checkpoints/step-00000000, with OUT/config.yaml. */
enum status import_run(const char *path, const struct import_options *o, struct import_result *r, struct error *err);

enum export_form { EXPORT_HF, EXPORT_TORCH };
enum { EXPORT_FILES_MAX = 8 };
struct export_result {
    const char *files[EXPORT_FILES_MAX];    /* that were written, by their names in the folder */
    int n_files;
    enum tokenizer_kind tokens;
    int32_t n_tokens;
    char checkpoint[CONFIG_PATH_MAX];
    struct config config;
};

/* Writes the model of a checkpoint into a folder, which must be empty or missing. */
enum status export_run(const char *checkpoint, enum export_form form, const char *out, struct export_result *r, struct error *err);

#endif
