/* Puts the events of a trace in the order of a view, in place: distributed over buckets (a host thread's calls, its
 * Python frames, the devices' work, the rest) by following cycles, then sorted inside each bucket. While this runs
 * event.step holds the place in the file, which orders events of equal times: parents are written before children. */
#include <stdlib.h>

#include "analyze/traced/view_int.h"
#include "analyze/traced/view_sort.h"

/* Times beyond these are damage; within them sums and differences fit. */
static const int64_t most_start_ns = (int64_t)1 << 61, most_duration_ns = (int64_t)1 << 58;

/* By start, the longest first; of equal ones annotations before ops before runtime calls (the order of the kinds). */
static inline bool call_before(const struct event *a, const struct event *b)
{
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns;
    if (a->duration_ns != b->duration_ns)
        return a->duration_ns > b->duration_ns;
    return a->kind != b->kind ? a->kind < b->kind : a->step < b->step;
}

static inline bool work_before(const struct event *a, const struct event *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->step < b->step;
}

static inline bool other_before(const struct event *a, const struct event *b)
{
    return a->kind != b->kind ? a->kind < b->kind : work_before(a, b);
}

SORT_DEFINE(sort_calls, struct event, call_before)
SORT_DEFINE(sort_work, struct event, work_before)
SORT_DEFINE(sort_others, struct event, other_before)

/* Buckets: the calls of each track, the Python frames of each track, device work, the rest. */
static int bucket_of(const struct trace *t, const struct event *e)
{
    const bool on_host = e->track >= 0 && e->track < t->n_tracks && t->tracks[e->track].kind == TRACK_HOST_THREAD;
    switch (e->kind) {
    case EVENT_ANNOTATION:
    case EVENT_HOST_OP:
    case EVENT_RUNTIME:
        return on_host ? e->track : 2 * t->n_tracks + 1;
    case EVENT_PYTHON:
        return on_host ? t->n_tracks + e->track : 2 * t->n_tracks + 1;
    case EVENT_KERNEL:
    case EVENT_MEMCPY:
    case EVENT_MEMSET:
        return 2 * t->n_tracks;
    default:
        return 2 * t->n_tracks + 1;
    }
}

bool view_places(const struct trace *t, const struct event *e)
{
    const int bucket = bucket_of(t, e);
    return bucket < t->n_tracks || bucket == 2 * t->n_tracks;
}

static void make_possible(struct trace *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        struct event *e = &t->events[i];
        if (e->start_ns > most_start_ns || e->start_ns < -most_start_ns)
            e->start_ns = e->start_ns > 0 ? most_start_ns : -most_start_ns;
        if (e->duration_ns < 0 || e->duration_ns > most_duration_ns)
            e->duration_ns = 0;
        if (e->kind != EVENT_STEP)
            e->step = (int32_t)i;
    }
}

/* Moves every event into its bucket's range; to[b] is where bucket b ends. */
static void distribute(struct trace *t, int64_t *next, const int64_t *to, int n_buckets)
{
    for (int b = 0; b < n_buckets; b++)
        while (next[b] < to[b]) {
            struct event e = t->events[next[b]];
            for (int home = bucket_of(t, &e); home != b; home = bucket_of(t, &e)) {
                const struct event out = t->events[next[home]];
                t->events[next[home]++] = e;
                e = out;
            }
            t->events[next[b]++] = e;
        }
}

static void sort_buckets(struct trace *t, const int64_t *to, int n_buckets)
{
    for (int b = 0; b < n_buckets; b++) {
        const int64_t from = b ? to[b - 1] : 0, n = to[b] - from;
        if (b < 2 * t->n_tracks)
            sort_calls(t->events + from, n);
        else if (b == 2 * t->n_tracks)
            sort_work(t->events + from, n);
        else
            sort_others(t->events + from, n);
    }
}

void view_order(struct view *v)
{
    struct trace *t = v->trace;
    const int n_buckets = 2 * t->n_tracks + 2;
    int64_t *to = xcalloc((size_t)n_buckets, sizeof *to), *next = xcalloc((size_t)n_buckets, sizeof *next);

    make_possible(t);
    for (int64_t i = 0; i < t->n; i++)
        to[bucket_of(t, &t->events[i])]++;
    for (int b = 1; b < n_buckets; b++) {
        next[b] = to[b - 1];
        to[b] += to[b - 1];
    }
    distribute(t, next, to, n_buckets);
    sort_buckets(t, to, n_buckets);

    v->n_host = t->n_tracks ? (int32_t)to[t->n_tracks - 1] : 0;
    v->python = v->n_host;
    v->device = t->n_tracks ? (int32_t)to[2 * t->n_tracks - 1] : 0;
    v->n_python = v->device - v->python;
    v->n_device = (int32_t)to[2 * t->n_tracks] - v->device;
    free(to);
    free(next);
}

int64_t view_first_other(const struct view *v)
{
    return (int64_t)v->device + v->n_device;
}
