/* A token drawn from what a model says. */
#ifndef HONE_TRAIN_SAMPLER_H
#define HONE_TRAIN_SAMPLER_H

#include <stdint.h>

struct candidate {
    float logit;
    int32_t id;
};

struct sampler {
    double temperature;             /* logits are divided by it; 0: the likeliest is taken */
    int64_t top_k;                  /* so many likeliest can be drawn; 0: all */
    double top_p;                   /* of those, the likeliest that have this probability together can be; 1: all */
    int32_t n;                      /* tokens */
    struct candidate *list;         /* (n) */
    double *weights;                /* (n) */
};

void sampler_init(struct sampler *s, double temperature, int64_t top_k, double top_p, int32_t n);
void sampler_release(struct sampler *s);

/* Draws by u of [0, 1) from softmax(logits / temperature) over those that can be drawn, in the order of ids; logits (n) are finite. Of equal
 * ones the lower id counts as the likelier. */
int32_t sampler_draw(struct sampler *s, const float *logits, double u);
/* log softmax(logits) (n) at an id: what the model itself gives it, among all that it knows, whatever is drawn how. */
double sampler_logprob(const float *logits, int32_t n, int32_t id);

#endif
