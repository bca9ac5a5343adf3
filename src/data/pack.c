/* Several samples in a row: best fit, the longest first. A row holds samples one behind the other, each with positions from 0 on and the
 * place where it begins; what is left of a row is padding, as a sample of its own.
 *
 * The number of rows is one of two, for which there are programs: what some batches needed, and a little more; or, for a batch that
 * needs more than that, a row per sample. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "data/pack.h"

enum { BATCHES_LOOKED_AT = 16, SPARE = 50 };        /* one row in SPARE is added to what they needed */

void pack_init(struct pack *k, const struct dataset *d, int64_t size)
{
    const size_t n = (size_t)size, seq = (size_t)d->seq;
    *k = (struct pack){.size = size, .seq = d->seq};
    k->lengths = xcalloc(n, sizeof *k->lengths);
    k->row = xcalloc(n, sizeof *k->row);
    k->at = xcalloc(n, sizeof *k->at);
    k->used = xcalloc(n, sizeof *k->used);
    k->next = xcalloc(n, sizeof *k->next);
    k->order = xcalloc(n, sizeof *k->order);
    k->with_room = xcalloc(seq + 2, sizeof *k->with_room);
    k->words = xcalloc(seq * (4 + REGION_FEATURES), sizeof *k->words);
}

void pack_release(struct pack *k)
{
    free(k->lengths);
    free(k->row);
    free(k->at);
    free(k->used);
    free(k->next);
    free(k->order);
    free(k->with_room);
    free(k->words);
}

/* The longest first; those of one length as they were. */
static void sort_longest_first(struct pack *k)
{
    int64_t *counts = k->with_room;         /* (seq + 2), not needed yet */
    memset(counts, 0, (size_t)(k->seq + 2) * sizeof *counts);
    for (int64_t i = 0; i < k->size; i++)
        counts[k->seq - k->lengths[i] + 1]++;
    for (int64_t l = 0; l <= k->seq; l++)
        counts[l + 1] += counts[l];
    for (int64_t i = 0; i < k->size; i++)
        k->order[counts[k->seq - k->lengths[i]]++] = i;
}

/* with_room[r]: a row with r tokens left, and next[] the others; -1: none. */
static int64_t take_row(struct pack *k, int64_t length)
{
    for (int64_t room = length; room <= k->seq; room++) {
        const int64_t row = k->with_room[room];
        if (row < 0)
            continue;
        k->with_room[room] = k->next[row];
        return row;
    }
    k->used[k->rows] = 0;
    return k->rows++;
}

int64_t pack_place(struct pack *k)
{
    sort_longest_first(k);
    k->rows = 0;
    memset(k->with_room, 0xff, (size_t)(k->seq + 2) * sizeof *k->with_room);
    for (int64_t n = 0; n < k->size; n++) {
        const int64_t i = k->order[n], row = take_row(k, k->lengths[i]);
        k->row[i] = row;
        k->at[i] = k->used[row];
        k->used[row] += k->lengths[i];
        const int64_t room = k->seq - k->used[row];
        k->next[row] = k->with_room[room];
        k->with_room[room] = row;
    }
    return k->rows;
}

static int64_t rows_of(const struct dataset *one, int64_t size)
{
    struct pack k;
    int64_t most = 1;
    pack_init(&k, one, size);
    for (int64_t b = 0; b < BATCHES_LOOKED_AT; b++) {
        for (int64_t i = 0; i < size; i++)
            k.lengths[i] = dataset_length(one, b * size + i);
        const int64_t rows = pack_place(&k);
        most = rows > most ? rows : most;
    }
    pack_release(&k);
    most += most / SPARE;
    return most < size ? most : size;
}

/* Of all domains, which have one program. */
int64_t dataset_rows(const struct dataset *d, int64_t size)
{
    int64_t most = 1;
    for (int i = 0; i < dataset_domains(d); i++) {
        const int64_t rows = rows_of(dataset_domain(d, i), size);
        most = rows > most ? rows : most;
    }
    return most;
}

/* ---- filling ---- */

static struct sample staged(const struct pack *k, const struct batch *b)
{
    int32_t *at = k->words;
    return (struct sample){.tokens = at, .targets = at + k->seq, .segments = at + 2 * k->seq, .types = b->types ? at + 3 * k->seq : NULL,
                           .features = b->features ? (float *)(at + 4 * k->seq) : NULL};
}

/* The words [from, from + n) of a sample into its row, at `to`. */
static void put(struct batch *b, const struct sample *s, int64_t to, int64_t n)
{
    const size_t bytes = (size_t)n * sizeof *s->tokens;
    memcpy(b->tokens + to, s->tokens, bytes);
    memcpy(b->targets + to, s->targets, bytes);
    memcpy(b->segments + to, s->segments, bytes);
    if (b->types)
        memcpy(b->types + to, s->types, bytes);
    if (b->features)
        memcpy(b->features + to * REGION_FEATURES, s->features, bytes * REGION_FEATURES);
}

static void mark(struct batch *b, int64_t row, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        b->starts[row * b->seq + at + i] = (int32_t)at;
        if (b->positions)
            b->positions[row * b->seq + at + i] = (int32_t)i;
    }
}

static void pad(const struct dataset *d, struct batch *b, int64_t row, int64_t at)
{
    const int64_t to = row * b->seq + at, n = b->seq - at;
    const size_t bytes = (size_t)n * sizeof *b->tokens;
    memset(b->tokens + to, d->region ? 0xff : 0, bytes);
    memset(b->targets + to, 0xff, bytes);
    memset(b->segments + to, 0, bytes);
    if (b->types)
        memset(b->types + to, 0xff, bytes);
    if (b->features)
        memset(b->features + to * REGION_FEATURES, 0, bytes * REGION_FEATURES);
    mark(b, row, at, n);
}

/* Samples are made twice, the first time for their lengths alone: memory for all of them would be that of another batch. */
enum status pack_collate(const struct dataset *d, enum split split, const int64_t *samples, struct batch *b, struct pack *k, struct error *err)
{
    struct sample s = staged(k, b);
    enum status st = OK;
    b->filled = b->real_tokens = 0;
    b->seq = d->seq;
    for (int64_t i = 0; i < k->size && st == OK; i++) {
        st = dataset_fill(d, split, samples[i], &s, err);
        k->lengths[i] = s.length;
        b->filled += s.length;
    }
    if (st != OK)
        return st;
    const int64_t rows = pack_place(k);
    b->rows = rows <= k->usual ? k->usual : k->size;
    for (int64_t i = 0; i < k->size && st == OK; i++) {
        st = dataset_fill(d, split, samples[i], &s, err);
        put(b, &s, k->row[i] * b->seq + k->at[i], k->lengths[i]);
        mark(b, k->row[i], k->at[i], k->lengths[i]);
    }
    for (int64_t r = 0; r < b->rows; r++)
        pad(d, b, r, r < rows ? k->used[r] : 0);
    for (int64_t i = 0; i < b->rows * b->seq; i++)
        b->real_tokens += b->targets[i] >= 0;
    return st;
}
