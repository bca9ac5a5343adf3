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

static bool same_data(const struct run_keys *k, int a, int b)
{
    for (int i = 0; i < k->n; i++)
        if (is_of_loss(k->key[i].key) && !same_text(k->key[i].value[a], k->key[i].value[b]))
            return false;
    return true;
}

static struct run_best *find_or_add(struct run_bests *b, const struct run_keys *k, int run)
{
    for (int i = 0; i < b->n; i++)
        if (same_data(k, b->list[i].best, run))
            return &b->list[i];
    b->list = xrealloc(b->list, (size_t)(b->n + 1) * sizeof *b->list);
    b->list[b->n] = (struct run_best){.best = run};
    return &b->list[b->n++];
}

double run_best_loss(const struct runs *r, const struct run_best *b) { return b->by_validation ? r->run[b->best].val_loss : r->run[b->best].loss; }

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

void run_bests_init(struct run_bests *b, const struct runs *r, const struct run_keys *k)
{
    *b = (struct run_bests){0};
    for (int i = 0; i < r->n; i++)
        if (r->run[i].state == RUN_FINISHED && (isfinite(r->run[i].val_loss) || isfinite(r->run[i].loss)))
            take(find_or_add(b, k, i), r, i);
}

void run_bests_release(struct run_bests *b)
{
    free(b->list);
    *b = (struct run_bests){0};
}

void run_best_data(const struct run_keys *k, const struct run_best *b, char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (int i = 0; i < k->n && n < size; i++)
        if (is_of_loss(k->key[i].key)) {
            const char *value = k->key[i].value[b->best];
            n += (size_t)snprintf(out + n, size - n, "%s%s %s", n ? ", " : "", k->key[i].key, value && *value ? value : "–");
        }
}
