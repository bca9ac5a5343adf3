/* Samples of a model that grow by a token at a time: keys and values of the tokens before are kept, so that a new token costs one token.
 *
 * The model sees model.seq tokens at most. Where they are all in use the older half of them goes, and what is kept of the newer half is made
 * anew, since places move and what stands there has seen what went. So it sees half of model.seq tokens or more, and a new token costs
 * two on the average. */
#ifndef HONE_TRAIN_DECODER_H
#define HONE_TRAIN_DECODER_H

#include "exec/exec.h"
#include "train/train_int.h"

struct decoder {
    const struct config *config;
    struct backend *backend;
    struct exec *step;                  /* one token of every sample; not owned */
    struct exec *begin;                 /* several tokens, of the shape that was needed last; NULL: none yet */
    int64_t begin_batch, begin_tokens;
    int64_t samples, length;            /* tokens that the model sees of each sample */
    int32_t newline;                    /* of the tokenizer, for segments */
    int32_t *windows;                   /* (samples, seq): these tokens */
    int32_t *row;                       /* (samples, seq): room for inputs */
    int32_t *segments;                  /* (seq): of one sample */
    float *logits;                      /* (samples, vocab): behind the last token of each sample */
};

/* `step` is that of decoder_program, with the model's weights, and outlives the decoder; so does the config. */
enum status decoder_program(struct program **out, const struct config *c, int64_t samples, struct error *err);
enum status decoder_init(struct decoder *d, const struct config *c, struct backend *b, struct exec *step, int64_t samples, int32_t newline,
                         struct error *err);
void decoder_release(struct decoder *d);

/* All samples begin anew with these n >= 1 tokens, of which the model sees the last. */
enum status decoder_begin(struct decoder *d, const int32_t *tokens, int64_t n, struct error *err);
/* One more token of each (samples); below 0: the sample is done, and its logits mean nothing from here on. */
enum status decoder_push(struct decoder *d, const int32_t *tokens, struct error *err);

#endif
