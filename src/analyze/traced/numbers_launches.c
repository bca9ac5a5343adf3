/* Launches of recorded steps, and how many were under way at a time: from the start of the call to the end of the work. */
#include <stdlib.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/view_int.h"
#include "analyze/traced/view_sort.h"
#include "core/stats.h"

static inline bool time_before(const int64_t *a, const int64_t *b) { return *a < *b; }

SORT_DEFINE(sort_times, int64_t, time_before)

static bool counts(const struct view *v, int32_t i)
{
    return v->launch[i] >= 0 && view_event(v, v->device + i)->step >= 0;
}

static double call_length(const struct view *v, int32_t i) { return (double)view_event(v, v->launch[i])->duration_ns; }
static double work_length(const struct view *v, int32_t i) { return (double)view_event(v, v->device + i)->duration_ns; }

static double delay_of(const struct view *v, int32_t i)
{
    const int64_t ns = view_event(v, v->device + i)->start_ns - event_end(view_event(v, v->launch[i]));
    return ns > 0 ? (double)ns : 0;
}

/* Sorted values over the launches (of a graph its first event) or, with `all`, over the device events; returns how many. */
static int gather(double *values, const struct view *v, double (*of)(const struct view *, int32_t), bool all)
{
    int n = 0;
    for (int32_t i = 0; i < v->n_device; i++)
        if (counts(v, i) && (all || v->launched[v->launch[i]] == v->device + i))
            values[n++] = us_of(of(v, i));
    stats_sort(values, n);
    return n;
}

static void measure_launches(struct trace_launches *l, const struct view *v)
{
    double *values = xcalloc((size_t)v->n_device + 1, sizeof *values);
    int n = gather(values, v, call_length, false);
    l->count = n;
    l->per_step = (double)n / v->n_steps;
    if (n) {
        l->call_us = stats_percentile(values, n, 0.5);
        gather(values, v, delay_of, false);
        l->delay_us = stats_percentile(values, n, 0.5);
        l->delay_p90_us = stats_percentile(values, n, 0.9);
        n = gather(values, v, work_length, true);
        l->kernel_us = stats_percentile(values, n, 0.5);
    }
    for (int32_t i = 0; i < v->n_device; i++)
        l->shorter_than_call += counts(v, i) && work_length(v, i) < call_length(v, i);
    free(values);
}

static void count_calls(struct trace_launches *l, const struct view *v)
{
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->kind != EVENT_RUNTIME || e->step < 0 || v->watches[e->track])
            continue;
        l->graphs += v->call_kinds[e->name] == CALL_GRAPH;
        if (view_call_waits(v, i)) {
            l->syncs++;
            l->sync_us += us_of((double)e->duration_ns);
        }
    }
}

/* Times at which the queue grows (odd) and shrinks (even), doubled to hold that; ends sort before starts. */
static int64_t queue_edges(int64_t *edges, const struct view *v)
{
    int64_t n = 0;
    for (int32_t i = 0; i < v->n_device; i++) {
        if (!counts(v, i))
            continue;
        const int64_t start = view_event(v, v->launch[i])->start_ns, end = event_end(view_event(v, v->device + i));
        edges[n++] = 2 * start + 1;
        edges[n++] = 2 * (end > start ? end : start) + 2 * (end <= start);      /* never ends before it starts */
    }
    sort_times(edges, n);
    return n;
}

/* Where marks are missing no launch counts, and no time. */
static int64_t gaps_ns(const struct view *v)
{
    int64_t ns = 0;
    for (int i = 1; i < v->n_steps; i++)
        if (v->steps[i].after_gap)
            ns += v->steps[i].host_start_ns - v->steps[i - 1].host_end_ns;
    return ns;
}

static void measure_queue(struct diagnosis *d, const struct view *v)
{
    int64_t *edges = xcalloc(2 * (size_t)v->n_device + 1, sizeof *edges);
    const int64_t n = queue_edges(edges, v);
    const int64_t from = n ? edges[0] >> 1 : 0, to = n ? edges[n - 1] >> 1 : 0;
    struct thinner t = thinner_start(&d->arena, from, to, v->first_ns);
    int64_t queued = 0;
    double area = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i)
            area += (double)queued * (double)((edges[i] >> 1) - (edges[i - 1] >> 1));
        queued += edges[i] & 1 ? 1 : -1;
        d->launches.queue_max = queued > d->launches.queue_max ? queued : d->launches.queue_max;
        thinner_add(&t, edges[i] >> 1, (double)queued);
    }
    const int64_t over_ns = to - from - gaps_ns(v);
    const double mean = over_ns > 0 ? area / (double)over_ns : 0;
    d->launches.queue_mean = mean < (double)d->launches.queue_max ? mean : (double)d->launches.queue_max;      /* work may be queued across a gap */
    d->queue = t.points;
    d->n_queue = thinner_end(&t);
    free(edges);
}

void numbers_launches(struct diagnosis *d, const struct view *v)
{
    d->launches = (struct trace_launches){0};
    measure_launches(&d->launches, v);
    count_calls(&d->launches, v);
    measure_queue(d, v);
}
