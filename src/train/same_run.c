/* Whether a checkpoint's run is the one that a config describes: settings that decide which sample comes when, and what
 * the numbers mean, cannot change between two parts of a run. Others (learning rate, steps, logging) may. */
#include <string.h>

#include "train/train_int.h"

enum kept_type { KEPT_INT, KEPT_REAL, KEPT_WORD };

struct kept {
    const char *key;
    enum kept_type type;
    double was, now;                /* every number of a config is exact in a double */
};

static void show(const struct kept *k, double value, char out[64])
{
    if (k->type == KEPT_WORD)
        snprintf(out, 64, "%s", config_word(k->key, (int)value));
    else if (k->type == KEPT_INT)
        snprintf(out, 64, "%lld", (long long)value);
    else
        snprintf(out, 64, "%.9g", value);
}

static enum status refuse(const struct checkpoint *ck, const struct kept *k, struct error *err)
{
    char was[64], now[64];
    show(k, k->was, was);
    show(k, k->now, now);
    return error_set(err, BAD_INPUT, "cannot resume '%s': %s was %s and is now %s; keep it, or start a new run with "
                     "another --out", ck->path, k->key, was, now);
}

static enum status same_config(const struct config *was, const struct config *now, const struct checkpoint *ck,
                               struct error *err)
{
#define INT(section, key)  {#section "." #key, KEPT_INT, (double)was->section.key, (double)now->section.key}
#define REAL(section, key) {#section "." #key, KEPT_REAL, was->section.key, now->section.key}
#define WORD(section, key) {#section "." #key, KEPT_WORD, was->section.key, now->section.key}
    const struct kept keys[] = {
        WORD(model, arch), WORD(model, head), INT(model, dim), INT(model, layers), INT(model, heads), INT(model, kv_heads), INT(model, ffn),
        INT(model, seq), INT(model, vocab), INT(model, segments), INT(model, positions), REAL(model, rope_base), WORD(model, rope_scaling), REAL(model, rope_factor), REAL(model, rope_low),
        REAL(model, rope_high), INT(model, rope_context), REAL(model, norm_eps),
        INT(train, batch_size), INT(train, accumulate), INT(train, seed),
        WORD(data, source), WORD(data, domain), WORD(data, tokens), WORD(data, samples), INT(data, chars),
        INT(data, max_chars), REAL(data, val_fraction), INT(data, region), INT(data, group), WORD(data, pack),
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].was != keys[i].now && !(config_is_idle(was, keys[i].key) && config_is_idle(now, keys[i].key)))
            return refuse(ck, &keys[i], err);
    const struct kept steps = INT(train, steps);            /* may change, but for where one stage ends and the next begins */
    if (now->data.domains.n && steps.was != steps.now)
        return refuse(ck, &steps, err);
    const struct kept dropout = REAL(model, dropout);       /* may change, but only a run that drops keeps a tick */
    return (dropout.was > 0) == (dropout.now > 0) ? OK : refuse(ck, &dropout, err);
}

static enum status same_domains(const struct config *was, const struct config *now, const struct checkpoint *ck, struct error *err)
{
    struct config_difference d;
    for (int at = 0; config_differ(&d, was, now, &at);)
        if (!strcmp(d.key, "data.domains"))
            return error_set(err, BAD_INPUT, "cannot resume '%s': data.domains was %.200s and is now %.200s; keep it, or start a new "
                             "run with another --out", ck->path, d.a, d.b);
    return OK;
}

/* A tree, and how its nodes are selected. */
static enum status same_tree(const struct config *was, const struct config *now, const struct checkpoint *ck, struct error *err)
{
    struct config_difference d;
    const bool trees = was->model.arch == ARCH_K1 && now->model.arch == ARCH_K1;
    for (int at = 0; trees && config_differ(&d, was, now, &at);)
        if (!strcmp(d.key, "model.tree") || !strncmp(d.key, "k1.", 3))
            return error_set(err, BAD_INPUT, "cannot resume '%s': %s was %.200s and is now %.200s; keep it, or start a new run with "
                             "another --out", ck->path, d.key, d.a, d.b);
    return OK;
}

/* A checkpoint of before there were hashes of whole splits has one of some samples, or none. */
static enum status same_samples(struct model_run *r, const struct checkpoint *ck, struct error *err)
{
    const char *some = json_string_value(json_object_get(ck->manifest, "data")),
               *train = data_hash_of(ck->manifest, SPLIT_TRAIN), *val = data_hash_of(ck->manifest, SPLIT_VAL), *other = NULL;
    uint64_t hash;
    enum status st = OK;
    if (train || some)
        st = train ? model_run_hash(&hash, r, SPLIT_TRAIN, err) : data_hash_of_some(&hash, r->dataset, r->config.model.seq, err);
    if (st == OK && (train || some) && !data_hash_is(train ? train : some, hash))
        other = "data";
    if (st == OK && val && !other)
        st = model_run_hash(&hash, r, SPLIT_VAL, err);
    if (st == OK && val && !other && !data_hash_is(val, hash))
        other = "validation data";
    if (st != OK || !other)
        return st;
    return error_set(err, BAD_INPUT, "cannot resume '%s': the %s holds other samples than it held; bring it back, or start a new run "
                     "with another --out, from these weights with train.init", ck->path, other);
}

/* The files may have moved, but they must hold what they held. */
static enum status same_data(struct model_run *r, const struct checkpoint *ck, struct error *err)
{
    const struct dataset *all = r->dataset;
    for (int i = 0; r->stage_steps && i < dataset_domains(all); i++) {
        const struct dataset *d = dataset_domain(all, i);
        const json_t *of = json_array_get(json_object_get(ck->manifest, "domain_samples"), (size_t)i);
        if (json_integer_value(of) != dataset_samples(d, SPLIT_TRAIN))
            return error_set(err, BAD_INPUT, "cannot resume '%s': '%s' had %lld training samples and has %lld now; bring it back, or "
                             "start a new run with another --out", ck->path, dataset_name(d), (long long)json_integer_value(of),
                             (long long)dataset_samples(d, SPLIT_TRAIN));
    }
    const long long was = json_integer_value(json_object_get(ck->manifest, "train_samples")),
                    now = dataset_samples(r->dataset, SPLIT_TRAIN);
    if (was != now)
        return error_set(err, BAD_INPUT, "cannot resume '%s': the data had %lld training samples and has %lld now; bring "
                         "the data back, or start a new run with another --out", ck->path, was, now);
    json_t *tokens = tokenizer_json(dataset_tokenizer(r->dataset));
    if (!tokens)
        return error_set(err, CANNOT, "out of memory while '%s' was compared with the data", ck->path);
    const bool same = json_equal(tokens, json_object_get(ck->manifest, "tokenizer"));
    json_decref(tokens);
    return same ? same_samples(r, ck, err) : error_set(err, BAD_INPUT, "cannot resume '%s': the data has other characters than it had; bring "
                                                       "the data back, or start a new run with another --out", ck->path);
}

/* A warm-up that ends with the steps was cut to them, or is now: nobody changed it. */
static bool follows_from_steps(const char *key, const struct config *was, const struct config *now)
{
    const struct config_train *a = &was->train, *b = &now->train;
    return !strcmp(key, "train.warmup") && a->steps != b->steps && (a->warmup == a->steps || b->warmup == b->steps);
}

/* What may change and has: whoever resumes a run with another config should see it. */
static void list_changes(char out[CHANGED_MAX], const struct config *was, const struct config *now)
{
    struct config_difference d;
    size_t used = 0;
    *out = '\0';
    for (int at = 0; used < CHANGED_MAX && config_differ(&d, was, now, &at);)
        used += (size_t)snprintf(out + used, CHANGED_MAX - used, "%s%s%s from %.60s to %.60s", used ? ", " : "",
                                 follows_from_steps(d.key, was, now) ? "and with it " : "", d.key, d.a, d.b);
    if (used >= CHANGED_MAX)
        snprintf(out + CHANGED_MAX - 4, 4, "...");
}

enum status same_run(struct model_run *r, const struct checkpoint *ck, struct error *err)
{
    const char *text = json_string_value(json_object_get(ck->manifest, "config"));
    struct config was;
    if (!text)
        return error_set(err, BAD_INPUT, "'%s/manifest.json' holds no config", ck->path);
    enum status st = config_parse_saved(&was, ck->path, text, strlen(text), NULL, 0, err);
    if (st == OK)
        st = same_domains(&was, &r->config, ck, err);
    if (st == OK)
        st = same_tree(&was, &r->config, ck, err);
    if (st == OK)
        st = same_config(&was, &r->config, ck, err);
    if (st == OK)
        list_changes(r->changed, &was, &r->config);
    return st == OK ? same_data(r, ck, err) : st;
}
