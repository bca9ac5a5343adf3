/* Every rank has updated its slice of some values, and all of them get all. The values stay where they are: a slice goes as a message, or several, for
 * every value that it is of. */
#include <stdlib.h>

#include "core/arena.h"
#include "dist/dist_int.h"

/* So many numbers to a rank or from it; more messages are under way then. */
static void begin(struct dist *d, int with, bool sends, float *data, int64_t n)
{
    enum { MOST = MESSAGE_MOST / sizeof(float) };
    for (int64_t at = 0; at < n; at += MOST) {
        const size_t bytes = (size_t)(n - at < MOST ? n - at : MOST) * sizeof *data;
        if (d->under_way_n == d->under_way_cap) {
            d->under_way_cap = d->under_way_cap ? 2 * d->under_way_cap : 64;
            d->under_way = xrealloc(d->under_way, (size_t)d->under_way_cap * sizeof *d->under_way);
        }
        d->under_way[d->under_way_n++] = sends ? d->t->send(d->t, with, CHANNEL_DATA, data + at, bytes) : d->t->receive(d->t, with, CHANNEL_DATA, data + at, bytes);
    }
}

/* Numbers [lo, hi) of the values, one after the other. */
static void begin_range(struct dist *d, const struct job *j, int with, bool sends, int64_t lo, int64_t hi)
{
    int64_t start = 0;
    for (int i = 0; i < j->op->n_in; i++) {
        const int64_t end = start + shape_count(j->program->values[j->op->in[i]].shape);
        const int64_t from = lo > start ? lo : start, to = hi < end ? hi : end;
        if (from < to)
            begin(d, with, sends, (float *)j->memory[i] + (from - start), to - from);
        start = end;
    }
}

static bool finish(struct dist *d)
{
    const int n = d->under_way_n;
    d->under_way_n = 0;
    return carried_all(d, d->under_way, n);
}

/* Of slices: those that a rank has by now. A pair shows each other theirs, then pairs of pairs, from the highest bit down. */
static bool gather_pairs(struct dist *d, const struct job *j)
{
    const int size = d->comm.size;
    int lo = slice_place(d->comm.rank, size), n = 1;
    for (int bit = size / 2; bit > 0; bit /= 2, n *= 2) {
        const int theirs = d->comm.rank & bit ? lo - n : lo + n;
        begin_range(d, j, d->comm.rank ^ bit, false, j->cuts[theirs], j->cuts[theirs + n]);
        begin_range(d, j, d->comm.rank ^ bit, true, j->cuts[lo], j->cuts[lo + n]);
        if (!finish(d))
            return false;
        lo = theirs < lo ? theirs : lo;
    }
    return true;
}

/* Numbers of ranks that are no power of two: all to rank 0, and from there to all. */
static bool gather_any(struct dist *d, const struct job *j)
{
    const int rank = d->comm.rank;
    for (int r = 1; r < d->comm.size; r++)
        if (rank == 0 || rank == r)
            begin_range(d, j, rank ? 0 : r, rank != 0, j->cuts[r], j->cuts[r + 1]);
    bool ok = finish(d);
    for (int i = 0; i < j->op->n_in && ok; i++)
        ok = broadcast_bytes(d, j->memory[i], shape_count(j->program->values[j->op->in[i]].shape) * (int64_t)sizeof(float));
    return ok;
}

bool slices_gather(struct dist *d, const struct job *j)
{
    const int size = d->comm.size;
    return size & (size - 1) ? gather_any(d, j) : gather_pairs(d, j);
}
