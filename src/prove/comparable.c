/* Which two configs can be held against each other: the same model on the same data from the same seed. How it is computed,
 * and what is logged and saved, may differ. */
#include <string.h>

#include "prove/prove_int.h"

/* Keys, or beginnings of keys, that may differ. The batch is looked at on its own, and evaluation is that of the first. */
static const char *const FREE[] = {"optimize.", "backend.", "device", "threads", "eval.", "checkpoint.", "log.", "verify.",
                                   "data.workers", "data.prefetch", "data.bucket", "data.pack", "train.batch_size", "train.accumulate", "train.on_nan",
                                   "dist.bucket_mb"};

static bool is_free(const char *key)
{
    for (size_t i = 0; i < sizeof FREE / sizeof *FREE; i++)
        if (!strncmp(key, FREE[i], strlen(FREE[i])))
            return true;
    return false;
}

static const char *kind_of_difference(const char *key)
{
    return !strncmp(key, "model.", 6)      ? "are of different models"
           : !strncmp(key, "data.", 5)     ? "learn from different data"
           : !strcmp(key, "train.seed")    ? "start from different seeds"
                                           : "are trained in different ways";
}

/* 0 is "as many as the data has": the parameters will tell. */
static bool open_vocabulary(const char *key, const char *a, const char *b)
{
    return !strcmp(key, "model.vocab") && (!strcmp(a, "0") || !strcmp(b, "0"));
}

static bool says_nothing(const struct config *a, const struct config *b, const char *key) { return config_is_idle(a, key) && config_is_idle(b, key); }

static enum status compare_keys(const struct config *a, const struct config *b, struct error *err)
{
    struct config_difference d;
    for (int at = 0; config_differ(&d, a, b, &at);)
        if (!is_free(d.key) && !says_nothing(a, b, d.key) && !open_vocabulary(d.key, d.a, d.b))
            return error_set(err, BAD_INPUT, "'%.200s' and '%.200s' %s: %s is %.150s and %.150s", a->file, b->file,
                             kind_of_difference(d.key), d.key, d.a, d.b);
    return OK;
}

static enum status compare_batches(const struct config *a, const struct config *b, struct error *err)
{
    const struct config_train *x = &a->train, *y = &b->train;
    if (x->batch_size * x->accumulate != y->batch_size * y->accumulate)
        return error_set(err, BAD_INPUT, "train.batch_size × train.accumulate is %lld × %lld in '%.200s' and %lld × %lld in "
                         "'%.200s'; the samples of one update must be as many in both",
                         (long long)x->batch_size, (long long)x->accumulate, a->file, (long long)y->batch_size,
                         (long long)y->accumulate, b->file);
    if (x->batch_size != y->batch_size && a->model.dropout > 0)
        return error_set(err, BAD_INPUT, "train.batch_size is %lld and %lld, and dropout falls on other samples in other "
                         "batches; compare with --set model.dropout=0", (long long)x->batch_size, (long long)y->batch_size);
    if (a->data.bucket != b->data.bucket && a->model.dropout > 0)
        return error_set(err, BAD_INPUT, "data.bucket is %lld and %lld, and dropout falls on other tokens in rows of other lengths; compare "
                         "with --set model.dropout=0", (long long)a->data.bucket, (long long)b->data.bucket);
    return OK;
}

enum status comparable_configs(const struct config *a, const struct config *b, struct error *err)
{
    const enum status st = compare_keys(a, b, err);
    return st == OK ? compare_batches(a, b, err) : st;
}

/* Every parameter of p is in q, with the same shape. */
static enum status has_parameters(const struct program *p, const struct program *q, struct error *err)
{
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->kind != VALUE_PARAMETER)
            continue;
        const value_id other = program_find(q, v->name);
        char mine[64], theirs[64];
        if (other == NO_VALUE || q->values[other].kind != VALUE_PARAMETER)
            return error_set(err, BAD_INPUT, "different models: only one of them has the parameter '%s'", v->name);
        if (!shape_equal(v->shape, q->values[other].shape))
            return error_set(err, BAD_INPUT, "different models: the parameter '%s' is %s and %s", v->name,
                             shape_text(v->shape, mine), shape_text(q->values[other].shape, theirs));
    }
    return OK;
}

enum status comparable_programs(const struct program *a, const struct program *b, struct error *err)
{
    const enum status st = has_parameters(a, b, err);
    return st == OK ? has_parameters(b, a, err) : st;
}
