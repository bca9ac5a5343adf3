/* Whether data is what it was, or what it is elsewhere. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "train/train_int.h"

/* Data of no more tokens, padding counted, is looked at whole, in half a second; of more, files may differ in a place that is not looked at. */
enum { TOKENS_ALL = 1 << 24, SAMPLES_LOOKED_AT = 32 };

/* Samples from all over the data, `most` of them. */
static enum status hash_samples(XXH3_state_t *h, const struct dataset *d, enum split split, int64_t seq, int64_t most, struct error *err)
{
    const int64_t n = dataset_samples(d, split);
    int32_t *tokens = xcalloc((size_t)seq * 2, sizeof *tokens);
    enum status st = OK;
    XXH3_64bits_update(h, &n, sizeof n);
    for (int64_t i = 0; i < most && i < n && st == OK; i++) {
        st = dataset_sample(d, split, n <= most ? i : n / most * i, tokens, tokens + seq, NULL, err);
        XXH3_64bits_update(h, tokens, (size_t)seq * 2 * sizeof *tokens);
    }
    free(tokens);
    return st;
}

/* Tokens behind the last sample count: with more of them, the border between training and validation moves. */
static enum status hash_domain(XXH3_state_t *h, const struct dataset *d, enum split split, int64_t seq, struct error *err)
{
    const int64_t tokens = dataset_tokens(d, split);
    XXH3_64bits_update(h, &tokens, sizeof tokens);
    return hash_samples(h, d, split, seq, dataset_samples(d, split) <= TOKENS_ALL / seq ? TOKENS_ALL : SAMPLES_LOOKED_AT, err);
}

enum status data_hash(uint64_t *out, const struct dataset *d, enum split split, int64_t seq, struct error *err)
{
    XXH3_state_t *h = xneed(XXH3_createState());
    enum status st = OK;
    XXH3_64bits_reset(h);
    for (int i = 0; i < dataset_domains(d) && st == OK; i++)
        st = hash_domain(h, dataset_domain(d, i), split, seq, err);
    *out = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    return st;
}

enum status data_hash_of_some(uint64_t *out, const struct dataset *d, int64_t seq, struct error *err)
{
    XXH3_state_t *h = xneed(XXH3_createState());
    XXH3_64bits_reset(h);
    const enum status st = hash_samples(h, d, SPLIT_TRAIN, seq, SAMPLES_LOOKED_AT, err);
    *out = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    return st;
}

enum status model_run_hash(uint64_t *out, struct model_run *r, enum split split, struct error *err)
{
    enum status st = OK;
    if (!r->hashed[split])
        st = data_hash(&r->hash[split], r->dataset, split, r->config.model.seq, err);
    r->hashed[split] = st == OK;
    *out = r->hash[split];
    return st;
}

const char *data_hash_of(const json_t *manifest, enum split split)
{
    return json_string_value(json_object_get(manifest, split == SPLIT_TRAIN ? "train_data" : "val_data"));
}

bool data_hash_is(const char *text, uint64_t hash)
{
    char has[32];
    snprintf(has, sizeof has, "%016llx", (unsigned long long)hash);
    return !strcmp(text, has);
}

enum status data_changed(bool *changed, const json_t *manifest, const struct dataset *d, enum split split, int64_t seq, struct error *err)
{
    const char *was = data_hash_of(manifest, split);
    uint64_t hash;
    const enum status st = was ? data_hash(&hash, d, split, seq, err) : OK;
    *changed = was && st == OK && !data_hash_is(was, hash);
    return st;
}
