/* Makes byte pairs from text. */
#ifndef HONE_DATA_BPE_TRAIN_H
#define HONE_DATA_BPE_TRAIN_H

#include "data/bpe.h"
#include "data/pieces.h"

struct bpe_training {
    int32_t vocab;                      /* tokens in the end, or fewer where the text has no more pairs that come `least` times */
    int64_t least;
    const char *const *specials;        /* have the first ids */
    int n_specials;
    struct cutting cutting;
};

struct bpe_trainer;
struct bpe_trainer *bpe_trainer_new(const struct bpe_training *how, int threads);
/* Counts the pieces of a text; text that comes in parts is cut where bpe_trainer_cut says (0: nowhere). */
enum status bpe_trainer_add(struct bpe_trainer *t, const char *text, size_t length, struct error *err);
size_t bpe_trainer_cut(const struct bpe_trainer *t, const char *text, size_t length);
/* Once, at the end. The caller owns *out. */
enum status bpe_trainer_finish(struct bpe_trainer *t, struct bpe **out, struct error *err);
void bpe_trainer_free(struct bpe_trainer *t);

#endif
