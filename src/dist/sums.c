/* Sums, gathering and broadcasting as messages between pairs of ranks.
 *
 * A sum over ranks is a fixed tree in the order of ranks: pairs, then pairs of pairs. So it has the same bits however the numbers are cut
 * into buckets, and with as many shards, on however many ranks they are. Where the ranks are a power of two, a long bucket is
 * halved at every level of that tree: each of a pair adds up one half for both, and at the end every rank has an equal part of the
 * whole sum; the way back brings all parts to all. So 2 (W - 1) / W of the bytes are sent. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "dist/dist_int.h"

enum { SHORT = 4096 };                              /* floats: not worth cutting up */

static bool carried(struct dist *d, void *a) { return carried_all(d, &a, 1); }

static int64_t message(int64_t left) { return left < MESSAGE_MOST ? left : MESSAGE_MOST; }

static bool put(struct dist *d, int to, const void *data, int64_t bytes)
{
    bool ok = true;
    for (int64_t at = 0; at < bytes && ok; at += MESSAGE_MOST)
        ok = carried(d, d->t->send(d->t, to, CHANNEL_DATA, (const char *)data + at, (size_t)message(bytes - at)));
    return ok;
}

static bool get(struct dist *d, int from, void *data, int64_t bytes)
{
    bool ok = true;
    for (int64_t at = 0; at < bytes && ok; at += MESSAGE_MOST)
        ok = carried(d, d->t->receive(d->t, from, CHANNEL_DATA, (char *)data + at, (size_t)message(bytes - at)));
    return ok;
}

static float *scratch(struct dist *d, int64_t n)
{
    if (n > d->scratch_n || !d->scratch) {
        d->scratch_n = n > 0 ? n : 1;           /* a slice may be empty */
        d->scratch = xrealloc(d->scratch, (size_t)d->scratch_n * sizeof *d->scratch);
    }
    return d->scratch;
}

static void add(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* Of a pair both add up the whole. */
static bool sum_whole(struct dist *d, float *x, int64_t n)
{
    for (int bit = 1; bit < d->comm.size; bit *= 2) {
        float *theirs = scratch(d, n);
        if (!exchange_numbers(d, d->comm.rank ^ bit, x, n, theirs, n, false))
            return false;
        add(x, theirs, n);
    }
    return true;
}

/* What is divided over all ranks: slice k is [cut_at(k), cut_at(k + 1)). Without cuts they are alike. */
struct cutting { const int64_t *cuts; int64_t n; int size; };

static int64_t cut_at(const struct cutting *c, int k) { return c->cuts ? c->cuts[k] : c->n / c->size * k + c->n % c->size * k / c->size; }

/* Of a level: the slices that both of a pair have; the upper half is the odd one's. */
struct part { int lo, mid, hi; };
enum { LEVELS_MOST = 31 };

/* Every level of the tree halves what a rank has; at the end it has the sum of its slice. Returns the levels; -1: it failed. */
static int halve(struct dist *d, float *x, const struct cutting *c, struct part parts[LEVELS_MOST])
{
    int levels = 0, lo = 0, hi = d->comm.size;
    for (int bit = 1; bit < d->comm.size; bit *= 2, levels++) {
        const bool upper = d->comm.rank & bit;
        const struct part p = parts[levels] = (struct part){lo, (lo + hi) / 2, hi};
        lo = upper ? p.mid : p.lo;
        hi = upper ? p.hi : p.mid;
        const int64_t from = cut_at(c, lo), n = cut_at(c, hi) - from;
        const int64_t other = cut_at(c, upper ? p.lo : p.mid), m = cut_at(c, upper ? p.mid : p.hi) - other;
        if (!exchange_numbers(d, d->comm.rank ^ bit, x + other, m, x + from, n, true))
            return -1;
    }
    return levels;
}

/* The way back brings all slices to all. */
static bool sum_halves(struct dist *d, float *x, int64_t n)
{
    struct part parts[LEVELS_MOST];
    const struct cutting c = {NULL, n, d->comm.size};
    int levels = halve(d, x, &c, parts);
    if (levels < 0)
        return false;
    while (levels-- > 0) {
        const bool upper = d->comm.rank >> levels & 1;
        const struct part p = parts[levels];
        const int64_t lo = cut_at(&c, p.lo), mid = cut_at(&c, p.mid), hi = cut_at(&c, p.hi);
        if (!exchange_numbers(d, d->comm.rank ^ 1 << levels, x + (upper ? mid : lo), upper ? hi - mid : mid - lo, x + (upper ? lo : mid),
                              upper ? mid - lo : hi - mid, false))
            return false;
    }
    return true;
}

static bool broadcast(struct dist *d, char *data, int64_t n)
{
    int top = 1;
    while (top < d->comm.size)
        top *= 2;
    for (int64_t at = 0; at < n; at += MESSAGE_MOST) {
        const int64_t bytes = message(n - at);
        for (int bit = top / 2; bit > 0; bit /= 2) {
            const int rank = d->comm.rank, low = rank & (2 * bit - 1);
            if (low == 0 && rank + bit < d->comm.size && !put(d, rank + bit, data + at, bytes))
                return false;
            if (low == bit && !get(d, rank - bit, data + at, bytes))
                return false;
        }
    }
    return true;
}

/* The tree for any number of ranks: sums go to rank 0. */
static bool sum_to_first(struct dist *d, float *x, int64_t n)
{
    const int rank = d->comm.rank;
    for (int bit = 1; bit < d->comm.size; bit *= 2) {
        if (rank & bit) {
            return put(d, rank - bit, x, n * (int64_t)sizeof *x);
        }
        if (rank + bit < d->comm.size) {
            float *theirs = scratch(d, n);
            if (!get(d, rank + bit, theirs, n * (int64_t)sizeof *x))
                return false;
            add(x, theirs, n);
        }
    }
    return true;
}

static bool sum_any(struct dist *d, float *x, int64_t n)
{
    return sum_to_first(d, x, n) && broadcast(d, (char *)x, n * (int64_t)sizeof *x);
}

/* Numbers of ranks that are no power of two take their slices from rank 0. */
static bool scatter_any(struct dist *d, float *x, const int64_t *cuts)
{
    const int rank = d->comm.rank, size = d->comm.size;
    if (!sum_to_first(d, x, cuts[size]))
        return false;
    if (rank)
        return get(d, 0, x + cuts[rank], (cuts[rank + 1] - cuts[rank]) * (int64_t)sizeof *x);
    for (int r = 1; r < size; r++)
        if (!put(d, r, x + cuts[r], (cuts[r + 1] - cuts[r]) * (int64_t)sizeof *x))
            return false;
    return true;
}

static bool scatter(struct dist *d, float *x, const int64_t *cuts)
{
    struct part unused[LEVELS_MOST];
    const struct cutting c = {cuts, cuts[d->comm.size], d->comm.size};
    if (d->comm.size & (d->comm.size - 1))
        return scatter_any(d, x, cuts);
    return c.n < SHORT ? sum_whole(d, x, c.n) : halve(d, x, &c, unused) >= 0;
}

static bool sum(struct dist *d, float *x, int64_t n)
{
    if (d->comm.size & (d->comm.size - 1))
        return sum_any(d, x, n);
    return n < SHORT || n < d->comm.size ? sum_whole(d, x, n) : sum_halves(d, x, n);
}

static bool gather(struct dist *d, const void *mine, char *all, int64_t n)
{
    memcpy(all + d->comm.rank * n, mine, (size_t)n);
    if (d->comm.rank != 0)
        return put(d, 0, mine, (size_t)n) && broadcast(d, all, n * d->comm.size);
    for (int r = 1; r < d->comm.size; r++)
        if (!get(d, r, all + r * n, (size_t)n))
            return false;
    return broadcast(d, all, n * d->comm.size);
}

/* ---- parts that rank 0 has whole ---- */

static bool collect(struct dist *d, const void *mine, char *all, const struct dist_part *parts)
{
    if (d->comm.rank)
        return put(d, 0, mine, parts[d->comm.rank].bytes);
    if (parts[0].bytes)
        memcpy(all + parts[0].from, mine, (size_t)parts[0].bytes);
    for (int r = 1; r < d->comm.size; r++)
        if (!get(d, r, all + parts[r].from, parts[r].bytes))
            return false;
    return true;
}

static bool deal(struct dist *d, const char *all, void *own, const struct dist_part *parts)
{
    if (d->comm.rank)
        return get(d, 0, own, parts[d->comm.rank].bytes);
    if (parts[0].bytes)
        memcpy(own, all + parts[0].from, (size_t)parts[0].bytes);
    for (int r = 1; r < d->comm.size; r++)
        if (!put(d, r, all + parts[r].from, parts[r].bytes))
            return false;
    return true;
}

bool broadcast_bytes(struct dist *d, char *data, int64_t n) { return broadcast(d, data, n); }

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The first swap is where both meet, and is not timed. x (2 n) */
static bool probe(struct dist *d, struct probe *p, float *x, int64_t n)
{
    const int with = d->comm.rank ^ p->bit;
    double *seconds = xcalloc((size_t)p->rounds + 1, sizeof *seconds);
    bool ok = true;
    for (int i = 0; i <= p->rounds && ok && with < d->comm.size; i++) {
        const int64_t start = clock_ns();
        ok = exchange_numbers(d, with, x, n, x + n, n, true);
        seconds[i] = (double)(clock_ns() - start) * 1e-9;
    }
    qsort(seconds + 1, (size_t)p->rounds, sizeof *seconds, by_time);
    p->seconds = seconds[1 + p->rounds / 2];
    free(seconds);
    return ok;
}

bool job_run(struct dist *d, struct job *j)
{
    if (!group_works(d))
        return false;
    switch (j->kind) {
    case JOB_SUM: return sum(d, j->data, j->n);
    case JOB_SCATTER: return scatter(d, j->data, j->cuts);
    case JOB_SLICES: return slices_gather(d, j);
    case JOB_COLLECT: return collect(d, j->mine, j->data, j->parts);
    case JOB_DEAL: return deal(d, j->mine, j->own, j->parts);
    case JOB_GATHER: return gather(d, j->mine, j->data, j->n);
    case JOB_BROADCAST: return broadcast(d, j->data, j->n);
    case JOB_PROBE: return probe(d, j->probe, j->data, j->n);
    }
    return false;
}
