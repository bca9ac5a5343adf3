/* Whether data is what it was, or what it is elsewhere. */
#include <stdlib.h>
#include <xxhash.h>

#include "core/arena.h"
#include "train/train_int.h"

enum { SAMPLES_LOOKED_AT = 32 };

/* Samples from all over the data; files may differ in a place that is not looked at. */
static enum status hash_split(XXH3_state_t *h, const struct dataset *d, enum split split, int64_t seq, struct error *err)
{
    const int64_t n = dataset_samples(d, split);
    int32_t *tokens = xcalloc((size_t)seq * 2, sizeof *tokens);
    enum status st = OK;
    XXH3_64bits_update(h, &n, sizeof n);
    for (int64_t i = 0; i < SAMPLES_LOOKED_AT && i < n && st == OK; i++) {
        st = dataset_sample(d, split, n <= SAMPLES_LOOKED_AT ? i : n / SAMPLES_LOOKED_AT * i, tokens, tokens + seq, NULL, err);
        XXH3_64bits_update(h, tokens, (size_t)seq * 2 * sizeof *tokens);
    }
    free(tokens);
    return st;
}

enum status data_hash(uint64_t *out, const struct dataset *d, int64_t seq, bool val, struct error *err)
{
    XXH3_state_t *h = xneed(XXH3_createState());
    XXH3_64bits_reset(h);
    enum status st = hash_split(h, d, SPLIT_TRAIN, seq, err);
    if (st == OK && val && dataset_samples(d, SPLIT_VAL))
        st = hash_split(h, d, SPLIT_VAL, seq, err);
    *out = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    return st;
}
