/* Tokens from shard files: finds them, opens them, and looks once at every id to know the vocabulary. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data_int.h"

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static enum status add_shard(struct dataset *d, const char *path, bool val, struct error *err)
{
    struct store s;
    const enum status st = shard_open(&s, path, err);
    if (st != OK)
        return st;
    s.val = val;
    *dataset_add_store(d) = s;
    if (s.count > d->seq)
        return OK;
    char smaller[64] = "";
    if (!d->trained)
        snprintf(smaller, sizeof smaller, ", or set model.seq to %lld or less", (long long)(s.count > 1 ? s.count - 1 : 1));
    return error_set(err, BAD_INPUT, "'%s' has %lld tokens; model.seq %lld needs at least %lld: leave the shard out%s", path, (long long)s.count, (long long)d->seq,
                     (long long)d->seq + 1, smaller);
}

/* Adds the file of that name or, if there is none, the files that match it, in the order of their names. */
static enum status add_shards(struct dataset *d, const char *pattern, bool val, struct error *err)
{
    glob_t found = {.gl_pathc = 0};
    if (access(pattern, F_OK) == 0 || !strpbrk(pattern, "*?["))
        return add_shard(d, pattern, val, err);
    const int failed = glob(pattern, GLOB_NOSORT, NULL, &found);
    enum status st = OK;
    if (failed == GLOB_NOSPACE)
        st = error_no_memory(err, "the list of shards", 0);
    else if (failed)
        st = error_set(err, BAD_INPUT, "no file matches '%s'", pattern);
    else
        qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], compare_names);
    for (size_t i = 0; i < found.gl_pathc && st == OK; i++)
        st = add_shard(d, found.gl_pathv[i], val, err);
    globfree(&found);
    return st;
}

/* Where none was found, that is the fault of the key that names them. */
static enum status add_named(struct dataset *d, const struct config *c, const char *key, const char *pattern, bool val, struct error *err)
{
    const int before = d->n_stores;
    const enum status st = add_shards(d, pattern, val, err);
    return st != OK && d->n_stores == before && access(pattern, F_OK) < 0 ? config_blame_path(c, key, pattern, err) : st;
}

/* `given`: the model is there already, and has no room for more. */
static enum status scan(struct dataset *d, const struct store *s, int64_t model_vocab, bool given, struct error *err)
{
    const int64_t limit = model_vocab > 0 ? model_vocab : INT32_MAX;
    uint32_t max;
    int64_t at;
    const enum status st = store_max(s, &max, &at, err);
    if (st != OK)
        return st;
    if (max >= limit && given)
        return error_set(err, BAD_INPUT, "'%s' holds token %u (at place %lld), and the model has a vocabulary of %lld: it was trained on "
                         "other tokens", s->name, max, (long long)at, (long long)model_vocab);
    if (max >= limit)
        return error_set(err, BAD_INPUT,
                         "'%s' holds token %u (at place %lld), and model.vocab is %lld; tokens must be below "
                         "it: set model.vocab to %lld or more", s->name, max, (long long)at, (long long)model_vocab,
                         (long long)max + 1);
    if ((int64_t)max + 1 > d->vocab)
        d->vocab = (int64_t)max + 1;
    return OK;
}

/* Ids are those of a tokenizer, which has more of them perhaps. */
static enum status take_tokenizer(struct dataset *d, const struct tokenizer *t, struct error *err)
{
    if (d->vocab > t->n)
        return error_set(err, BAD_INPUT, "'%s' holds tokens up to %lld, and the tokenizer has %d: the shards were written with another one", d->stores[0].name,
                         (long long)d->vocab - 1, t->n);
    d->vocab = t->n;
    return tokenizer_copy(&d->tokenizer, t, err);
}

enum status source_bin(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    if (c->data.samples == SAMPLES_LINES)
        return error_set(err, BAD_INPUT,
                         "data.samples is lines, and a shard of token ids has no lines; set it to windows");
    enum status st = add_named(d, c, "data.path", c->data.path, false, err);
    if (st == OK && c->data.val_path[0])
        st = add_named(d, c, "data.val_path", c->data.val_path, true, err);
    for (int i = 0; i < d->n_stores && st == OK; i++)
        st = scan(d, &d->stores[i], c->model.vocab, d->trained, err);
    d->entropy = NAN;
    if (st == OK && given && given->kind == TOKENIZER_BPE)
        return take_tokenizer(d, given, err);
    return st == OK ? tokenizer_init(&d->tokenizer, TOKENIZER_NONE, NULL, (int32_t)d->vocab, err) : st;
}
