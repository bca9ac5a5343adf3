/* Runs a replay: one pass over the items, several times, until the device's lag behind the host is that of a long run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/replay.h"
#include "core/arena.h"

enum { PASSES = 4 };                        /* the last one is measured */
static const double MOST_NS = 10000;        /* that the profiler takes of one stretch, per event in it */
static const double LONG_STRETCH = 5;       /* limits: a stretch so long is work of its own, of which nothing stays when it is moved */
static const double SHORT = 4;              /* usual gaps between two ops: what is shorter goes with calls, and is as slow as they are */
static const double LATENCY_NS = 2000;      /* from the end of a launch call to the start of the work */

struct run {
    const struct replay *r;
    const struct edit *e;                   /* NULL: none */
    double host_ns;                         /* the host's clock */
    double work_ns, wait_ns;                /* of this pass */
    double *stream_ns, latest_ns;           /* (n_tracks) when each stream is free; when all are */
    double *all_ns_of;                      /* (n_tracks) of the device: work of this pass on all its streams, as recorded */
    double *work_ns_of, *same_ns_of;        /* (n_tracks) of it, what the edit leaves; what it leaves alone */
    double *end_ns;                         /* (n_device) of this pass, where something waits for it */
    int last_stream;                        /* of the latest launch */
};

static double kept(const struct run *x, int32_t event)
{
    return x->e && event >= 0 ? x->e->host[event] / (double)KEEP_ALL : 1;
}

double replay_stretch_ns(const struct replay_item *item) { return fmax((double)(item->ns - item->comm_ns) - MOST_NS * (double)item->overhead, 0); }

/* What stays of the time between two ops: of a stretch that is long for itself, not for the frames recorded in it, what is usual. */
static double limited(const struct edit *e, const struct replay_item *item, double ns)
{
    const double own = replay_stretch_ns(item);
    if (!(own > e->gap_limit_ns))
        return ns;
    return fmin(ns, own > LONG_STRETCH * e->gap_limit_ns ? fmin(e->gap_left_ns, e->gap_limit_ns) : e->gap_limit_ns);
}

static double waits_ns(const struct replay_item *item) { return (double)(item->comm_ns < item->ns ? item->comm_ns : item->ns); }

/* In the loader long stretches wait for files, locks or other processes, as far as a trace can tell: they are no slower on a machine that is. */
double replay_own_ns(const struct replay *r, const struct replay_item *item)
{
    const double recorded = (double)item->ns - waits_ns(item);
    const bool is_work = !item->loader || recorded < SHORT * r->typical_gap_ns;
    return fmax(recorded - MOST_NS * (double)item->overhead, r->cost.left * recorded) * (item->loader ? r->cost.loader : 1) * (is_work ? r->cost.scale : 1);
}

/* The host's time before an item, without the profiler and after the edit. */
static double host_time(const struct run *x, const struct replay_item *item)
{
    const struct replay *r = x->r;
    const double comm = waits_ns(item) * (x->e ? x->e->comm_factor : 1);
    double ns = replay_own_ns(r, item);
    if (!x->e)
        return ns + comm;
    if (item->owner >= 0)
        return ns * kept(x, item->owner) * (item->loader ? 1 : x->e->host_factor) + comm;
    /* what leads to a call goes with it: no more than is usual, but all of it between two calls that go */
    const double before = item > r->items ? kept(x, item[-1].event) : 1, goes = 1 - kept(x, item->event);
    ns = limited(x->e, item, ns);
    const double led = before < 1 ? ns : fmin(ns, SHORT * r->typical_gap_ns);
    ns -= led * goes;
    return ns - fmin(ns, SHORT * r->typical_gap_ns) * (1 - x->e->host_factor) + comm;
}

static double left_of(double gone, double all) { return 1 - fmin(fmax(gone / all, 0), 1); }

/* How long some device is busy: devices and streams overlap as they were recorded to, and what is left of their work takes its part of that; none
 * is done before its own. What no call of the trace launched stays. */
static double busy(const struct run *x, const double *left_ns_of)
{
    const struct replay *r = x->r;
    double ns = 0, all = 0;
    for (int i = 0; i < r->v->trace->n_tracks; i++)
        if (r->work_ns[i] > 0) {
            const double gone = x->all_ns_of[i] - left_ns_of[i];
            ns = fmax(ns, r->busy_ns[i] * left_of(gone, r->work_ns[i]));
            all += gone;
        }
    return r->all_work_ns > 0 ? fmax(ns, r->all_busy_ns * left_of(all, r->all_work_ns)) : 0;
}

static void launch(struct run *x, int32_t call)
{
    const struct view *v = x->r->v;
    for (int32_t i = v->launched[call]; i >= 0; i = v->next_launched[i - v->device]) {
        const int32_t d = i - v->device;
        const struct event *e = view_event(v, i);
        const double factor = x->e ? (double)x->e->device[d] * x->e->device_factor : 1;
        x->all_ns_of[x->r->device_of[e->track]] += (double)e->duration_ns;
        if (factor <= 0)
            continue;
        double start = fmax(x->host_ns + LATENCY_NS, x->stream_ns[e->track]);
        if (x->r->waits_for[d] >= 0)
            start = fmax(start, x->end_ns[x->r->waits_for[d]]);
        const double end = start + (double)e->duration_ns * factor;
        x->stream_ns[e->track] = x->end_ns[d] = end;
        x->latest_ns = fmax(x->latest_ns, end);
        x->last_stream = e->track;
        x->work_ns_of[x->r->device_of[e->track]] += (double)e->duration_ns * factor;
        x->same_ns_of[x->r->device_of[e->track]] += factor < 1 ? 0 : (double)e->duration_ns * factor;
    }
}

static void wait_for_device(struct run *x, int32_t call)
{
    const int kind = x->r->v->call_kinds[view_event(x->r->v, call)->name];
    const bool all = kind == CALL_SYNC_DEVICE || kind == CALL_FREE;
    const double ready = all ? x->latest_ns : x->stream_ns[x->last_stream];
    if (ready > x->host_ns) {
        x->wait_ns += ready - x->host_ns;
        x->host_ns = ready;
    }
}

static void pass(struct run *x)
{
    const struct replay *r = x->r;
    x->work_ns = x->wait_ns = 0;
    memset(x->all_ns_of, 0, (size_t)r->v->trace->n_tracks * sizeof *x->all_ns_of);
    memset(x->work_ns_of, 0, (size_t)r->v->trace->n_tracks * sizeof *x->work_ns_of);
    memset(x->same_ns_of, 0, (size_t)r->v->trace->n_tracks * sizeof *x->same_ns_of);
    for (int32_t k = 0; k < r->n_items; k++) {
        const struct replay_item *item = &r->items[k];
        const double ns = host_time(x, item);
        x->host_ns += ns;
        x->work_ns += ns;
        if (item->effect == EFFECT_NONE)
            continue;
        if (r->v->launched[item->event] >= 0)
            launch(x, item->event);
        if (item->effect == EFFECT_WAIT && kept(x, item->event) > 0)
            wait_for_device(x, item->event);
    }
    const double added = x->e ? x->e->added_ns * x->e->host_factor * r->n_steps : 0;
    x->host_ns += added;
    x->work_ns += added;
}

/* No launch is in the trace: the device's work is as long as it was, and what an edit takes of it is taken from the step
 * where nothing else is known, else from the longer of both sides. */
static struct replay_result run_unlinked(struct run *x)
{
    const struct replay *r = x->r;
    const struct view *v = r->v;
    const struct edit *e = x->e;
    const double before = busy(x, x->all_ns_of), n = r->n_steps;
    for (int32_t d = 0; d < v->n_device; d++)
        if (replay_has(r, d)) {
            const struct event *work = view_event(v, v->device + d);
            const double factor = e ? (double)e->device[d] * e->device_factor : 1;
            x->all_ns_of[r->device_of[work->track]] += (double)work->duration_ns;
            x->work_ns_of[r->device_of[work->track]] += (double)work->duration_ns * factor;
            x->same_ns_of[r->device_of[work->track]] += factor < 1 ? 0 : (double)work->duration_ns;
        }
    const double after = busy(x, x->work_ns_of), same = busy(x, x->same_ns_of);
    if (!v->n_host)
        return (struct replay_result){.step_ns = ((double)r->span_ns - (before - after)) / n, .device_ns = after / n,
                                      .untouched_ns = same / n};
    pass(x);
    return (struct replay_result){.step_ns = fmax(x->work_ns, after) / n, .host_ns = x->work_ns / n, .device_ns = after / n,
                                  .untouched_ns = same / n};
}

static struct replay_result run_linked(struct run *x)
{
    double before = 0, after = 0;
    for (int i = 0; i < PASSES; i++) {
        before = after;
        pass(x);
        after = fmax(x->host_ns, x->latest_ns);
    }
    const double n = x->r->n_steps;
    return (struct replay_result){.step_ns = (after - before) / n, .host_ns = x->work_ns / n, .device_ns = busy(x, x->work_ns_of) / n,
                                  .wait_ns = x->wait_ns / n, .untouched_ns = busy(x, x->same_ns_of) / n};
}

struct replay_result replay_run(const struct replay *r, const struct edit *e)
{
    const size_t n = (size_t)r->v->trace->n_tracks + 1;
    struct run x = {.r = r, .e = e};
    x.stream_ns = xcalloc(4 * n, sizeof *x.stream_ns);
    x.all_ns_of = x.stream_ns + n;
    x.work_ns_of = x.all_ns_of + n;
    x.same_ns_of = x.work_ns_of + n;
    x.end_ns = xcalloc((size_t)r->v->n_device + 1, sizeof *x.end_ns);
    const struct replay_result result = r->linked || !r->v->n_device ? run_linked(&x) : run_unlinked(&x);
    free(x.stream_ns);
    free(x.end_ns);
    return result;
}

void edit_init(struct edit *e, const struct view *v)
{
    *e = (struct edit){.gap_limit_ns = INFINITY, .gap_left_ns = INFINITY, .comm_factor = 1, .host_factor = 1, .device_factor = 1};
    e->host = xcalloc((size_t)v->n_host + 1, 1);
    memset(e->host, KEEP_ALL, (size_t)v->n_host);
    e->device = xcalloc((size_t)v->n_device + 1, sizeof *e->device);
    for (int32_t i = 0; i < v->n_device; i++)
        e->device[i] = 1;
}

void edit_release(struct edit *e)
{
    free(e->host);
    free(e->device);
    *e = (struct edit){0};
}

/* What both take away is taken once: the smaller part stays. */
void edit_add(struct edit *to, const struct view *v, const struct edit *more)
{
    for (int32_t i = 0; i < v->n_host; i++)
        if (more->host[i] < to->host[i])
            to->host[i] = more->host[i];
    for (int32_t i = 0; i < v->n_device; i++)
        if (more->device[i] < to->device[i])
            to->device[i] = more->device[i];
    to->added_ns += more->added_ns;
    to->gap_limit_ns = fmin(to->gap_limit_ns, more->gap_limit_ns);
    to->comm_factor = fmin(to->comm_factor, more->comm_factor);
    to->gap_left_ns = fmin(to->gap_left_ns, more->gap_left_ns);
    to->host_factor = fmin(to->host_factor, more->host_factor);
    to->device_factor = fmin(to->device_factor, more->device_factor);
}
