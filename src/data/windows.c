/* Samples that are windows of seq tokens, side by side. A training epoch takes them in an order of its own
 * (dataset.c) and starts them in each file at an offset of its own, so that later epochs cut the text elsewhere;
 * validation does neither. */
#include <stdbool.h>
#include <string.h>

#include "core/rng.h"
#include "data/data_int.h"

/* The range that holds window w of the part. */
static int range_of(const struct part *p, int64_t w)
{
    int low = 0, high = p->n_ranges - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (p->ranges[middle].before <= w)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* A mapped file can change under us: what was below the vocabulary at opening may not be now. */
static enum status check_ids(const struct dataset *d, const struct store *s, const int32_t *tokens, int32_t last,
                             struct error *err)
{
    bool bad = last < 0 || last >= d->vocab;
    for (int64_t i = 0; i < d->seq; i++)
        bad |= (uint32_t)tokens[i] >= (uint64_t)d->vocab;
    if (!bad)
        return OK;
    return error_set(err, BAD_INPUT,
                     "'%s' holds a token outside the vocabulary of %lld that it had when it was opened; it has "
                     "been changed since: restore it and start again", s->name, (long long)d->vocab);
}

enum status windows_sample(const struct dataset *d, enum split split, int64_t epoch, int64_t i, int32_t *tokens,
                           int32_t *targets, struct error *err)
{
    const struct part *p = &d->parts[split];
    const int at = range_of(p, i);
    const struct range *r = &p->ranges[at];
    int64_t first = r->first + (i - r->before) * d->seq;
    if (r->phases > 1)
        first += (int64_t)rng_below(d->phase_key, (uint64_t)epoch, (uint64_t)at, (uint64_t)r->phases);
    enum status st = store_read(r->store, first, d->seq, tokens, err);
    if (st == OK)
        st = store_read(r->store, first + d->seq, 1, &targets[d->seq - 1], err);
    if (st == OK)
        memcpy(targets, tokens + 1, sizeof *targets * (size_t)(d->seq - 1));
    return st == OK ? check_ids(d, r->store, tokens, targets[d->seq - 1], err) : st;
}
