/* Samples into one batch: rows of one preallocated block, as long as the longest of them needs.
 *
 * A sample is written into a row of seq tokens, where its place is known before its length is; then rows are moved together to the
 * length of the batch, the next multiple of data.bucket. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "data/collate.h"
#include "data/permute.h"

/* ---- memory ---- */

enum status collate_bytes(const struct dataset *d, int64_t size, bool pack, int64_t *bytes)
{
    const int64_t words = 3 + pack + d->positions + (d->region ? 1 + REGION_FEATURES : 0);
    int64_t each, all;
    if (__builtin_mul_overflow(size, d->seq, &each) || __builtin_mul_overflow(each, words, &all) ||
        __builtin_mul_overflow(all, (int64_t)sizeof(int32_t), bytes))
        return CANNOT;
    return OK;
}

void collate_bind(const struct dataset *d, struct batch *b, int64_t size, bool pack, void *memory)
{
    const int64_t each = size * d->seq;
    int32_t *at = memory;
    *b = (struct batch){.size = size, .rows = size, .seq = d->seq, .tokens = at, .targets = at + each, .segments = at + 2 * each};
    at += 3 * each;
    if (pack) {
        b->starts = at;
        at += each;
    }
    if (d->positions) {
        b->positions = at;
        at += each;
    }
    if (d->region) {
        b->types = at;
        b->features = (float *)(at + each);
    }
}

/* ---- which samples ---- */

/* A stable counting sort by length; counts (seq + 2). */
static void sort_by_length(const struct dataset *d, int64_t first, int64_t n, int64_t *order, int64_t *counts)
{
    memset(counts, 0, (size_t)(d->seq + 2) * sizeof *counts);
    for (int64_t i = 0; i < n; i++)
        counts[dataset_length(d, first + i) + 1]++;
    for (int64_t k = 0; k <= d->seq; k++)
        counts[k + 1] += counts[k];
    for (int64_t i = 0; i < n; i++)
        order[counts[dataset_length(d, first + i)]++] = first + i;
}

void collate_choose(const struct dataset *d, int64_t index, int64_t size, const struct batch_division *v, struct collate_order *o)
{
    if (v->group <= 1) {
        for (int64_t i = 0; i < size; i++)
            o->samples[i] = index * size + i;
        return;
    }
    const int64_t batch = index / v->shards, whole = size * v->shards, window = batch / v->group;
    const int64_t place = (int64_t)permute_index(d->phase_key, (uint64_t)window, (uint64_t)v->group, (uint64_t)(batch % v->group));
    const int64_t *sorted = o->sorted + place * whole + index % v->shards;
    sort_by_length(d, window * v->group * whole, v->group * whole, o->sorted, o->counts);
    for (int64_t i = 0; i < size; i++)
        o->samples[i] = sorted[i * v->shards];
}

void collate_order_init(struct collate_order *o, const struct dataset *d, int64_t size, const struct batch_division *v)
{
    o->samples = xcalloc((size_t)size, sizeof *o->samples);
    if (v->group <= 1)
        return;
    o->sorted = xcalloc((size_t)(size * v->shards * v->group), sizeof *o->sorted);
    o->counts = xcalloc((size_t)d->seq + 2, sizeof *o->counts);
}

void collate_order_release(struct collate_order *o)
{
    free(o->samples);
    free(o->sorted);
    free(o->counts);
}

/* ---- rows ---- */

static struct sample row_of(const struct dataset *d, const struct batch *b, int64_t i)
{
    const int64_t at = i * d->seq;
    return (struct sample){.tokens = b->tokens + at, .targets = b->targets + at, .segments = b->segments + at,
                           .types = b->types ? b->types + at : NULL, .features = b->features ? b->features + at * REGION_FEATURES : NULL};
}

/* Rows of `from` words become rows of `to`, which is no more. */
static void shorten(void *rows, int64_t n, int64_t from, int64_t to)
{
    int32_t *words = rows;
    for (int64_t i = 1; i < n && words; i++)
        memmove(words + i * to, words + i * from, (size_t)to * sizeof *words);
}

/* Tokens of a row where the longest of its batch has so many. */
static int64_t row_tokens(const struct dataset *d, int64_t longest, int64_t bucket)
{
    const int64_t up = bucket ? (longest + bucket - 1) / bucket * bucket : d->seq;
    return up < d->seq ? up : d->seq;
}

static void set_length(const struct dataset *d, struct batch *b, int64_t longest)
{
    b->seq = row_tokens(d, longest, d->bucket);
    if (b->seq == d->seq)
        return;
    shorten(b->tokens, b->size, d->seq, b->seq);
    shorten(b->targets, b->size, d->seq, b->seq);
    shorten(b->segments, b->size, d->seq, b->seq);
    shorten(b->types, b->size, d->seq, b->seq);
    shorten(b->features, b->size, d->seq * REGION_FEATURES, b->seq * REGION_FEATURES);
}

static void count(struct batch *b)
{
    b->real_tokens = 0;
    for (int64_t i = 0; i < b->size * b->seq; i++)
        b->real_tokens += b->targets[i] >= 0;
    for (int64_t i = 0; b->positions && i < b->size * b->seq; i++)
        b->positions[i] = (int32_t)(i % b->seq);
}

enum status collate(const struct dataset *d, enum split split, const int64_t *samples, struct batch *b, struct error *err)
{
    int64_t longest = 1;
    enum status st = OK;
    b->filled = 0;
    for (int64_t i = 0; i < b->size && st == OK; i++) {
        struct sample s = row_of(d, b, i);
        st = dataset_fill(d, split, samples[i], &s, err);
        longest = s.length > longest ? s.length : longest;
        b->filled += s.length;
    }
    if (st == OK) {
        set_length(d, b, longest);
        count(b);
    }
    return st;
}

/* ---- how much is padding ---- */

enum { LOOKED_AT = 1 << 14 };           /* samples, at least */

static bool lengths_differ(const struct dataset *one) { return one->samples != SAMPLES_WINDOWS || one->region; }

double dataset_padding(const struct dataset *d, int64_t size, int64_t bucket, int64_t group)
{
    const struct dataset *one = dataset_domain(d, 0);
    const int64_t most = group > 1 ? group : 1, window = most * size, windows = (LOOKED_AT + window - 1) / window;
    double positions = 0, filled = 0;
    if (!bucket && !lengths_differ(one))
        return 0;
    int64_t *sorted = xcalloc((size_t)window, sizeof *sorted), *counts = xcalloc((size_t)one->seq + 2, sizeof *counts);
    for (int64_t w = 0; w < windows; w++) {
        sort_by_length(one, w * window, window, sorted, counts);
        for (int64_t i = 0; i < window; i++)
            filled += (double)dataset_length(one, sorted[i]);
        for (int64_t part = 1; part <= most; part++)
            positions += (double)(size * row_tokens(one, dataset_length(one, sorted[part * size - 1]), bucket));
    }
    free(sorted);
    free(counts);
    return 1 - filled / positions;
}

/* Of validation samples, which are read for it; those that cannot be read are as long as a row. */
static int64_t longest_of(const struct dataset *d, int64_t first, int64_t size, struct sample *row)
{
    struct error ignored;
    int64_t longest = 1;
    for (int64_t i = first; i < first + size && longest < d->seq; i++) {
        const enum status st = dataset_fill(d, SPLIT_VAL, i, row, &ignored);
        longest = st != OK ? d->seq : row->length > longest ? row->length : longest;
    }
    return longest;
}

double dataset_validation_rows(const struct dataset *d, int64_t size, int64_t batches, int64_t bucket)
{
    const int64_t enough = LOOKED_AT / size + 1, n = batches < enough ? batches : enough;
    struct batch b;
    int64_t bytes;
    double tokens = 0;
    if (!bucket || !lengths_differ(d) || n < 1 || collate_bytes(d, 1, false, &bytes) != OK)
        return 1;
    void *memory = xcalloc(1, (size_t)bytes);
    collate_bind(d, &b, 1, false, memory);
    struct sample row = row_of(d, &b, 0);
    for (int64_t k = 0; k < n; k++)
        tokens += (double)row_tokens(d, longest_of(d, k * size, size, &row), bucket);
    free(memory);
    return tokens / (double)(n * d->seq);
}
