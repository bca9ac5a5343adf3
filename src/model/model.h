/* Models: config -> forward program, in the plain form that people write first. */
#ifndef HONE_MODEL_MODEL_H
#define HONE_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "core/error.h"
#include "program/program.h"

struct model_options {
    int64_t batch;
    bool loss;              /* take targets and compute the loss; else logits are the result */
    bool dropout;           /* training: the config's dropout is on */
    uint64_t seed;          /* of dropout */
    int64_t first_sample;   /* of a larger batch, which dropout counts by */
    int64_t packed;         /* samples that share the `batch` rows, each with positions of its own; 0: every row is one sample */
    /* Generation. Keys and values of tokens are kept in tables, m->seq places of each sample; positions, an input, say which place a token has;
     * where that is below 0 the token is none. */
    int64_t samples;        /* that there is room for; 0: nothing is kept */
    bool begins;            /* tokens are the first of their samples, all of them where `batch` is 1: they see each other and are kept, and
                               there are no logits. Else a token sees what is kept, which it is part of */
};

/* Builds the forward program for (batch, m->seq) tokens; m->vocab must be known. The caller owns *out. */
enum status model_build(struct program **out, const struct config_model *m, struct model_options options,
                        struct error *err);

/* FLOPs of one training step that the model needs by the usual count: 6 per weight of a matrix product and token, plus
 * attention (causal: half of the square). What MFU divides by. */
double model_step_flops(const struct program *p, const struct config_model *m, int64_t batch);

#endif
