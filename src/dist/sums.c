/* Sums, gathering and broadcasting as messages between pairs of ranks.
 *
 * A sum over ranks is a fixed tree in the order of ranks: pairs, then pairs of pairs. So it has the same bits however the numbers are cut
 * into buckets, and with as many shards, on however many ranks they are. Where the ranks are a power of two, a long bucket is
 * halved at every level of that tree: each of a pair adds up one half for both, and at the end every rank has an equal part of the
 * whole sum; the way back brings all parts to all. So 2 (W - 1) / W of the bytes are sent. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arena.h"
#include "core/clock.h"
#include "dist/dist_int.h"

enum { SHORT = 4096 };                              /* floats: not worth cutting up */
enum { CHUNK = 16 << 20 };                          /* bytes of one message of a broadcast */
enum { LOOKS = 200, SLEEP_NS = 50000 };             /* before it sleeps, and how long */

/* Waits for up to two messages; false: the group has failed, or a message has. */
static bool carried(struct dist *d, void *a, void *b)
{
    void *left[2] = {a, b};
    bool ok = a || b;
    for (int looks = 0; ok && (left[0] || left[1]); looks++) {
        for (int i = 0; i < 2 && ok; i++) {
            const enum carried_state s = left[i] ? d->t->look(d->t, left[i]) : CARRY_PENDING;
            ok = s != CARRY_FAILED;
            if (s != CARRY_PENDING)
                left[i] = NULL;
        }
        if (ok && !notes_beat(d))
            ok = false;
        if (looks > LOOKS && ok && (left[0] || left[1]))
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
    d->t->drop(d->t, left[0]);
    d->t->drop(d->t, left[1]);
    return ok;
}

static bool put(struct dist *d, int to, const void *data, size_t bytes)
{
    return carried(d, d->t->send(d->t, to, CHANNEL_DATA, data, bytes), NULL);
}

static bool get(struct dist *d, int from, void *data, size_t bytes)
{
    return carried(d, d->t->receive(d->t, from, CHANNEL_DATA, data, bytes), NULL);
}

static bool swap(struct dist *d, int with, const float *mine, int64_t n, float *theirs, int64_t m)
{
    void *in = d->t->receive(d->t, with, CHANNEL_DATA, theirs, (size_t)m * sizeof *theirs);
    return carried(d, in, d->t->send(d->t, with, CHANNEL_DATA, mine, (size_t)n * sizeof *mine));
}

static float *scratch(struct dist *d, int64_t n)
{
    if (n > d->scratch_n) {
        d->scratch = xrealloc(d->scratch, (size_t)n * sizeof *d->scratch);
        d->scratch_n = n;
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
        if (!swap(d, d->comm.rank ^ bit, x, n, theirs, n))
            return false;
        add(x, theirs, n);
    }
    return true;
}

struct part { int64_t lo, mid, hi; };               /* of a level: what both of a pair have; the upper half is the odd one's */

static bool sum_halves(struct dist *d, float *x, int64_t n)
{
    struct part parts[31];
    int levels = 0;
    int64_t lo = 0, hi = n;
    for (int bit = 1; bit < d->comm.size; bit *= 2, levels++) {
        const bool upper = d->comm.rank & bit;
        const struct part p = parts[levels] = (struct part){lo, lo + (hi - lo) / 2, hi};
        lo = upper ? p.mid : p.lo;
        hi = upper ? p.hi : p.mid;
        float *theirs = scratch(d, hi - lo);
        if (!swap(d, d->comm.rank ^ bit, x + (upper ? p.lo : p.mid), upper ? p.mid - p.lo : p.hi - p.mid, theirs, hi - lo))
            return false;
        add(x + lo, theirs, hi - lo);
    }
    while (levels-- > 0) {
        const bool upper = d->comm.rank >> levels & 1;
        const struct part p = parts[levels];
        const int64_t low = p.mid - p.lo, high = p.hi - p.mid;
        if (!swap(d, d->comm.rank ^ 1 << levels, x + (upper ? p.mid : p.lo), upper ? high : low, x + (upper ? p.lo : p.mid),
                  upper ? low : high))
            return false;
    }
    return true;
}

static bool broadcast(struct dist *d, char *data, int64_t n)
{
    int top = 1;
    while (top < d->comm.size)
        top *= 2;
    for (int64_t at = 0; at < n; at += CHUNK) {
        const size_t bytes = (size_t)(n - at < CHUNK ? n - at : CHUNK);
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

/* The tree for any number of ranks: sums go to rank 0, and from there to all. */
static bool sum_any(struct dist *d, float *x, int64_t n)
{
    const int rank = d->comm.rank;
    for (int bit = 1; bit < d->comm.size; bit *= 2) {
        if (rank & bit) {
            if (!put(d, rank - bit, x, (size_t)n * sizeof *x))
                return false;
            break;
        }
        if (rank + bit < d->comm.size) {
            float *theirs = scratch(d, n);
            if (!get(d, rank + bit, theirs, (size_t)n * sizeof *x))
                return false;
            add(x, theirs, n);
        }
    }
    return broadcast(d, (char *)x, n * (int64_t)sizeof *x);
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

bool job_run(struct dist *d, struct job *j)
{
    if (!group_works(d))
        return false;
    switch (j->kind) {
    case JOB_SUM: return sum(d, j->data, j->n);
    case JOB_GATHER: return gather(d, j->mine, j->data, j->n);
    case JOB_BROADCAST: return broadcast(d, j->data, j->n);
    }
    return false;
}
