/* Tokens from shard files: finds them, opens them, and looks once at every id to know the vocabulary. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data_int.h"

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Shards of a pattern that have no room for a window: the last one of many is as long as what was left of the text. */
struct left_out {
    int n;
    char longest[CONFIG_PATH_MAX];
    int64_t tokens;                     /* in the longest */
};

static enum status refuse_short(const struct dataset *d, const struct store *s, struct error *err)
{
    char smaller[64] = "";
    if (!d->trained)
        snprintf(smaller, sizeof smaller, ", or set model.seq to %lld or less", (long long)(s->count > 1 ? s->count - 1 : 1));
    return error_set(err, BAD_INPUT, "'%s' has %lld tokens; model.seq %lld needs at least %lld: leave the shard out%s", s->name, (long long)s->count,
                     (long long)d->seq, (long long)d->seq + 1, smaller);
}

static void leave_out(struct left_out *l, const struct store *s)
{
    if (!l->n++ || s->count > l->tokens) {
        snprintf(l->longest, sizeof l->longest, "%s", s->name);
        l->tokens = s->count;
    }
}

/* `left_out` NULL: the file was asked for by its name, and one that is too short is refused. */
static enum status add_shard(struct dataset *d, const char *path, bool val, struct left_out *left_out, struct error *err)
{
    struct store s;
    enum status st = shard_open(&s, path, err);
    if (st != OK)
        return st;
    s.val = val;
    if (s.count > d->seq) {
        *dataset_add_store(d) = s;
        return OK;
    }
    if (left_out)
        leave_out(left_out, &s);
    else
        st = refuse_short(d, &s, err);
    store_release(&s);
    return st;
}

static void warn_of_left_out(struct dataset *d, const struct left_out *l, const char *pattern)
{
    char others[CONFIG_PATH_MAX + 64] = "the shard is";
    if (l->n > 1)
        snprintf(others, sizeof others, "it and %d more of '%s', no longer than it, are", l->n - 1, pattern);
    if (l->n)
        dataset_warn(d, "'%s' has %lld token%s, and model.seq %lld needs at least %lld: %s left out", l->longest, (long long)l->tokens, l->tokens == 1 ? "" : "s",
                     (long long)d->seq, (long long)d->seq + 1, others);
}

static enum status refuse_all(const struct dataset *d, const struct left_out *l, const char *pattern, struct error *err)
{
    char smaller[64] = "give longer ones";
    if (!d->trained && l->tokens > 1)
        snprintf(smaller, sizeof smaller, "set model.seq to %lld or less", (long long)l->tokens - 1);
    return error_set(err, BAD_INPUT, "no shard of '%.300s' has the %lld tokens that model.seq %lld needs; the longest, '%.300s', has %lld: %s", pattern,
                     (long long)d->seq + 1, (long long)d->seq, l->longest, (long long)l->tokens, smaller);
}

/* All files of a list, in the order of their names. */
static enum status add_list(struct dataset *d, const glob_t *found, const char *pattern, bool val, struct error *err)
{
    struct left_out left_out = {.n = 0};
    enum status st = OK;
    qsort(found->gl_pathv, found->gl_pathc, sizeof found->gl_pathv[0], compare_names);
    for (size_t i = 0; i < found->gl_pathc && st == OK; i++)
        st = add_shard(d, found->gl_pathv[i], val, &left_out, err);
    if (st == OK && left_out.n == (int)found->gl_pathc)
        return refuse_all(d, &left_out, pattern, err);
    warn_of_left_out(d, &left_out, pattern);
    return st;
}

static bool is_pattern(const char *path) { return access(path, F_OK) < 0 && strpbrk(path, "*?["); }

/* Adds the file of that name or, if there is none, the files that match it. Where none was found, that is the fault of the key. */
static enum status add_named(struct dataset *d, const struct config *c, const char *key, const char *path, bool val, struct error *err)
{
    glob_t found = {.gl_pathc = 0};
    if (!is_pattern(path)) {
        const enum status st = add_shard(d, path, val, NULL, err);
        return st != OK && access(path, F_OK) < 0 ? config_blame_path(c, key, path, err) : st;
    }
    enum status st;
    const int failed = glob(path, GLOB_NOSORT, NULL, &found);
    if (failed == GLOB_NOSPACE)
        st = error_no_memory(err, "the list of shards", 0);
    else if (failed) {
        error_set(err, BAD_INPUT, "no file matches '%s'", path);
        st = config_blame_path(c, key, path, err);
    } else
        st = add_list(d, &found, path, val, err);
    globfree(&found);
    return st;
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
