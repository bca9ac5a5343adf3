/* One trace for each rank. A profiler that records again and again (schedule's repeat) leaves several of each rank in one folder: those of one
 * cycle go on together, the last one that has most ranks. Ranks whose clocks are so far apart that none overlap have their last ones. Traces of
 * one process that does not say its rank are told by their names. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/together.h"

struct recording {
    int at, rank;                           /* at: among all traces; rank: below -1 a number for the process, where the rank is unknown */
    int64_t first_ns, last_ns;
};

/* How much of the path names the process; 0: none of it does. */
static size_t process_length(const char *path)
{
    const char *end = path ? strstr(path, ".pt.trace.json") : NULL, *from = end;
    while (from && from > path && isdigit((unsigned char)from[-1]))
        from--;
    return from && from < end && from > path && from[-1] == '.' ? (size_t)(from - path) : 0;
}

bool is_one_process(const struct trace_origin *a, const struct trace_origin *b)
{
    const size_t n = process_length(a->path);
    return n && n == process_length(b->path) && !strncmp(a->path, b->path, n);
}

/* -1: neither rank nor process is known. */
static int rank_or_process(struct diagnosis **each, int at)
{
    const struct trace_origin *o = &each[at]->trace->origin;
    for (int i = 0; o->rank < 0 && i <= at; i++)
        if (is_one_process(&each[i]->trace->origin, o))
            return -2 - i;
    return o->rank;
}

static struct recording recording_of(struct diagnosis **each, int at)
{
    const struct trace *t = each[at]->trace;
    struct recording r = {at, rank_or_process(each, at), INT64_MAX, INT64_MIN};
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t end = t->events[i].start_ns + t->events[i].duration_ns;
        r.first_ns = t->events[i].start_ns < r.first_ns ? t->events[i].start_ns : r.first_ns;
        r.last_ns = end > r.last_ns ? end : r.last_ns;
    }
    return r;
}

/* By rank, then by time. */
static int by_rank(const void *a, const void *b)
{
    const struct recording *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->at - y->at;
}

/* For half of the shorter of both. */
static bool at_one_time(const struct recording *a, const struct recording *b)
{
    const int64_t from = a->first_ns > b->first_ns ? a->first_ns : b->first_ns, to = a->last_ns < b->last_ns ? a->last_ns : b->last_ns;
    const int64_t shorter = a->last_ns - a->first_ns < b->last_ns - b->first_ns ? a->last_ns - a->first_ns : b->last_ns - b->first_ns;
    return to - from >= shorter - shorter / 2;
}

/* Marks what was recorded at the time of `with`; returns how many ranks that are. */
static int mark_cycle(const struct recording *all, int n, const struct recording *with, bool *in)
{
    int ranks = 0, last = -1;
    for (int i = 0; i < n; i++) {
        in[all[i].at] = at_one_time(&all[i], with);
        if (in[all[i].at] && all[i].rank != last) {
            last = all[i].rank;
            ranks++;
        }
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

/* Two traces of one rank that were recorded one after the other. */
static bool is_repeated(const struct recording *all, int n)
{
    for (int i = 1; i < n; i++)
        if (all[i].rank == all[i - 1].rank && !at_one_time(&all[i], &all[i - 1]))
            return true;
    return false;
}

/* All are named: which ones are judged must not be guessed. */
static char *tell_cycle(struct diagnosis **each, const struct recording *all, int n, const bool *in)
{
    struct arena *arena = NULL;
    const char *names = "";
    int out = 0;
    for (int i = 0; i < n && !arena; i++)
        arena = in[all[i].at] ? &each[all[i].at]->arena : NULL;
    for (int i = 0; i < n; i++)
        if (!in[all[i].at])
            names = arena_printf(arena, "%s%s'%s'", names, out++ ? ", " : "", each[all[i].at]->trace->origin.path);
    const char *are = out == 1 ? "is" : "are";
    if (out == n - 1 && all[0].rank < 0)
        return arena_printf(arena, "several traces are of one process: the one that was recorded last is judged, and %d %s left out: %s", out, are, names);
    return arena_printf(arena, "several traces are of one rank: those that were recorded together last are judged, one of each rank, and %d %s left out: %s", out, are, names);
}

/* At one time a rank is one process: one of the two has a wrong number. One sentence is enough. */
static char *tell_twins(struct diagnosis **each, const struct recording *all, int n, const bool *in)
{
    for (int i = 1; i < n; i++) {
        const struct recording *a = &all[i - 1], *b = &all[i];
        if (a->rank >= 0 && a->rank == b->rank && in[a->at] && in[b->at])
            return arena_printf(&each[a->at]->arena, "'%s' and '%s' both say that they are rank %d; give each rank of a job once", each[a->at]->trace->origin.path,
                                each[b->at]->trace->origin.path, a->rank);
    }
    return NULL;
}

char *job_cycle(struct diagnosis **each, int n, bool *in)
{
    struct recording *all = xcalloc((size_t)n, sizeof *all);
    int known = 0;
    for (int i = 0; i < n; i++)
        if (in[i] && rank_or_process(each, i) != -1)
            all[known++] = recording_of(each, i);
    if (known)
        qsort(all, (size_t)known, sizeof *all, by_rank);
    const bool repeated = is_repeated(all, known);
    if (repeated)
        mark_best(all, known, in);
    char *words = repeated ? tell_cycle(each, all, known, in) : tell_twins(each, all, known, in);
    free(all);
    return words;
}
