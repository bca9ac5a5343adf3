/* Which run is the best, of those whose losses say something about each other: losses of other data, or of other tokens of the same data, are
 * other numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "runs/runs.h"

/* Keys of data that change how a run is fed, and not what its loss is of. */
static bool is_of_loss(const char *key)
{
    static const char *const other[] = {"data.workers", "data.prefetch", "data.bucket", "data.group", "data.pack"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(key, other[i]))
            return false;
    return !strncmp(key, "data.", 5);
}

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/* The length of the built-in corpus says nothing of a run whose data is a file. */
static bool is_idle(const struct run *x, const char *key) { return x->config && config_is_idle(x->config, key); }

static bool same_data(const struct runs *r, const struct run_keys *k, int a, int b)
{
    for (int i = 0; i < k->n; i++) {
        const struct run_key *key = &k->key[i];
        if (is_of_loss(key->key) && !same_text(key->value[a], key->value[b]) && !(is_idle(&r->run[a], key->key) && is_idle(&r->run[b], key->key)))
            return false;
    }
    return true;
}

static struct run_best *find_or_add(struct run_bests *b, const struct runs *r, const struct run_keys *k, int run)
{
    for (int i = 0; i < b->n; i++)
        if (same_data(r, k, b->list[i].best, run))
            return &b->list[i];
    b->list = xrealloc(b->list, (size_t)(b->n + 1) * sizeof *b->list);
    b->list[b->n] = (struct run_best){.best = run, .also = -1};
    return &b->list[b->n++];
}

static double loss_of(const struct run *x, bool by_validation) { return by_validation ? x->val_loss : x->loss; }

double run_best_loss(const struct runs *r, const struct run_best *b) { return loss_of(&r->run[b->best], b->by_validation); }

/* Where one of them has a validation loss, it is that which counts. */
static void take(struct run_best *b, const struct runs *r, int i)
{
    const struct run *x = &r->run[i];
    const bool validated = isfinite(x->val_loss);
    if (validated > b->by_validation)
        b->runs = 0;
    b->runs += validated >= b->by_validation;
    if (validated > b->by_validation || (validated == b->by_validation && (validated ? x->val_loss : x->loss) < run_best_loss(r, b)))
        b->best = i;
    b->by_validation |= validated;
}

static bool counts(const struct run *x) { return x->state == RUN_FINISHED && (isfinite(x->val_loss) || isfinite(x->loss)); }

/* Who reads two equal numbers is not to be told that one of them is the lowest. */
static void tie(struct run_best *b, const struct runs *r, int i)
{
    char best[352], this[352];
    snprintf(best, sizeof best, "%.4f", run_best_loss(r, b));
    snprintf(this, sizeof this, "%.4f", loss_of(&r->run[i], b->by_validation));
    if (strcmp(best, this))
        return;
    b->tied++;
    if (i != b->best && b->also < 0)
        b->also = i;
}

/* Tokens that its evaluations look at, if there are as many; 0: not known. */
static double looked_at(const struct run *x)
{
    const struct config *c = x->config;
    return c ? (double)c->eval.batches * (double)c->eval.batch_size * (double)c->model.seq : 0;
}

/* The same weights have another loss on the first 40 samples of a split than on all of it. */
static void look_alike(struct run_best *b, const struct runs *r, int i)
{
    const double best = looked_at(&r->run[b->best]), this = looked_at(&r->run[i]);
    b->unlike |= b->by_validation && isfinite(r->run[i].val_loss) && best > 0 && this > 0 && best != this;
}

void run_bests_init(struct run_bests *b, const struct runs *r, const struct run_keys *k)
{
    *b = (struct run_bests){0};
    for (int i = 0; i < r->n; i++)
        if (counts(&r->run[i]))
            take(find_or_add(b, r, k, i), r, i);
    for (int i = 0; i < r->n; i++)
        if (counts(&r->run[i])) {
            tie(find_or_add(b, r, k, i), r, i);
            look_alike(find_or_add(b, r, k, i), r, i);
        }
}

void run_best_names(const struct runs *r, const struct run_best *b, char *out, size_t size)
{
    const int n = snprintf(out, size, "%s", r->run[b->best].name);
    if (n < 0 || (size_t)n >= size || b->tied < 2)
        return;
    if (b->tied == 2)
        snprintf(out + n, size - (size_t)n, " and %s", r->run[b->also].name);
    else
        snprintf(out + n, size - (size_t)n, " and %d more", b->tied - 1);
}

void run_bests_release(struct run_bests *b)
{
    free(b->list);
    *b = (struct run_bests){0};
}

void run_best_data(const struct runs *r, const struct run_keys *k, const struct run_best *b, char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (int i = 0; i < k->n && n < size; i++)
        if (is_of_loss(k->key[i].key) && !is_idle(&r->run[b->best], k->key[i].key)) {
            const char *value = k->key[i].value[b->best];
            n += (size_t)snprintf(out + n, size - n, "%s%s %s", n ? ", " : "", k->key[i].key, value && *value ? value : "–");
        }
}
