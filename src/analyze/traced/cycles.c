/* One trace for each rank. A profiler that records again and again (schedule's repeat) leaves several of each rank in one folder: those of one
 * cycle go on together, the last one that has most ranks. Ranks whose clocks are so far apart that none overlap have their last ones. */
#include <stdlib.h>

#include "analyze/traced/together.h"

struct recording {
    int at, rank;                           /* at: among all traces */
    int64_t first_ns, last_ns;
};

static struct recording recording_of(const struct diagnosis *d, int at)
{
    const struct trace *t = d->trace;
    struct recording r = {at, t->origin.rank, INT64_MAX, INT64_MIN};
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t end = t->events[i].start_ns + t->events[i].duration_ns;
        r.first_ns = t->events[i].start_ns < r.first_ns ? t->events[i].start_ns : r.first_ns;
        r.last_ns = end > r.last_ns ? end : r.last_ns;
    }
    return r;
}

/* By rank, then by time; of two at one time the one that was given first is the later, and so the one that is kept. */
static int by_rank(const void *a, const void *b)
{
    const struct recording *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return y->at - x->at;
}

static int64_t overlap_ns(const struct recording *a, const struct recording *b)
{
    const int64_t from = a->first_ns > b->first_ns ? a->first_ns : b->first_ns, to = a->last_ns < b->last_ns ? a->last_ns : b->last_ns;
    return to - from;
}

/* Of each rank the recording that overlaps `with` longest is marked; returns of how many ranks there is one. */
static int mark_cycle(const struct recording *all, int n, const struct recording *with, bool *in)
{
    int ranks = 0;
    for (int i = 0, next; i < n; i = next) {
        int best = -1;
        for (next = i; next < n && all[next].rank == all[i].rank; next++) {
            in[all[next].at] = false;
            if (overlap_ns(&all[next], with) > 0 && (best < 0 || overlap_ns(&all[next], with) >= overlap_ns(&all[best], with)))
                best = next;
        }
        if (best >= 0)
            in[all[best].at] = true;
        ranks += best >= 0;
    }
    return ranks;
}

static void mark_last(const struct recording *all, int n, bool *in)
{
    for (int i = 0; i < n; i++)
        in[all[i].at] = i + 1 == n || all[i + 1].rank != all[i].rank;
}

/* Marks those of the last cycle that has most ranks. */
static void mark_best(const struct recording *all, int n, bool *in)
{
    int best = 0, most = 0;
    for (int i = 0; i < n; i++) {
        const int ranks = mark_cycle(all, n, &all[i], in);
        if (ranks > most || (ranks == most && all[i].first_ns > all[best].first_ns))
            most = ranks, best = i;
    }
    if (most > 1)
        mark_cycle(all, n, &all[best], in);
    else
        mark_last(all, n, in);
}

static int repeated(const struct recording *all, int n)
{
    int again = 0;
    for (int i = 1; i < n; i++)
        again += all[i].rank == all[i - 1].rank;
    return again;
}

/* All are named: which one is judged must not be guessed. */
static char *tell(struct diagnosis **each, const struct recording *all, int n, const bool *in)
{
    struct arena *arena = NULL;
    const char *names = "";
    int out = 0;
    for (int i = 0; i < n && !arena; i++)
        arena = in[all[i].at] ? &each[all[i].at]->arena : NULL;
    for (int i = 0; i < n; i++)
        if (!in[all[i].at])
            names = arena_printf(arena, "%s%s'%s'", names, out++ ? ", " : "", each[all[i].at]->trace->origin.path);
    return arena_printf(arena, "several traces are of one rank: those that were recorded together last are judged, one of each rank, and %d %s left out: %s", out,
                        out == 1 ? "is" : "are", names);
}

char *job_cycle(struct diagnosis **each, int n, bool *in)
{
    struct recording *all = xcalloc((size_t)n, sizeof *all);
    int known = 0;
    char *words = NULL;
    for (int i = 0; i < n; i++)
        if (in[i] && each[i]->trace->origin.rank >= 0)
            all[known++] = recording_of(each[i], i);
    if (known)
        qsort(all, (size_t)known, sizeof *all, by_rank);
    if (repeated(all, known)) {
        mark_best(all, known, in);
        words = tell(each, all, known, in);
    }
    free(all);
    return words;
}
