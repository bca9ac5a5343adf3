/* The device's side of a replay: which device events waited for another stream, and how long each device was busy. */
#include <stdlib.h>

#include "analyze/traced/replay_int.h"

enum { MOST_STREAMS = 512 };
static const int64_t NEAR_NS = 15000;       /* a kernel that starts so soon after another's end may have waited for it */
static const int64_t LATE_NS = 20000;       /* launched so long ago, it did not wait for its launch */

/* The rows of devices; 0 where there are so many that looking at each for every event takes too long. */
static int list_streams(const struct trace *t, int streams[MOST_STREAMS])
{
    int n = 0;
    for (int i = 0; i < t->n_tracks; i++) {
        if (t->tracks[i].kind != TRACK_DEVICE_STREAM)
            continue;
        if (n == MOST_STREAMS)
            return 0;
        streams[n++] = i;
    }
    return n;
}

/* A device event that was launched long ago, whose stream was free, and that started right behind the end of an event of
 * another stream, waited for it: a collective for its gradients, the optimizer for the collective. */
static void find_stream_waits(struct replay *r)
{
    const struct view *v = r->v;
    int streams[MOST_STREAMS];
    const int n_streams = list_streams(v->trace, streams);
    int64_t *stream_end = xcalloc((size_t)v->trace->n_tracks + 1, sizeof *stream_end);
    int32_t *stream_last = xcalloc((size_t)v->trace->n_tracks + 1, sizeof *stream_last);
    r->waits_for = xrealloc(NULL, ((size_t)v->n_device + 1) * sizeof *r->waits_for);
    for (int t = 0; t <= v->trace->n_tracks; t++)
        stream_end[t] = INT64_MIN / 2, stream_last[t] = -1;
    for (int32_t d = 0; d < v->n_device; d++) {
        const struct event *e = view_event(v, v->device + d);
        const int32_t launch = v->launch[d];
        const int64_t launched = launch >= 0 ? view_event(v, launch)->start_ns : e->start_ns;
        r->waits_for[d] = -1;
        if (e->start_ns - launched > LATE_NS && (stream_last[e->track] < 0 || e->start_ns - stream_end[e->track] > NEAR_NS))
            for (int k = 0; k < n_streams; k++) {
                const int t = streams[k];
                if (t != e->track && stream_last[t] >= 0 && stream_end[t] <= e->start_ns &&
                    e->start_ns - stream_end[t] < NEAR_NS)
                    r->waits_for[d] = stream_last[t];
            }
        stream_end[e->track] = event_end(e);
        stream_last[e->track] = d;
    }
    free(stream_end);
    free(stream_last);
}

/* Whether the replay has the device event: what launched it, or itself where no launch is known, lies in the replayed steps. */
bool replay_has(const struct replay *r, int32_t d)
{
    const struct event *e = view_event(r->v, r->v->device + d);
    const int32_t launch = r->v->launch[d];
    if (e->step < r->first_step || e->step >= r->end_step)
        return false;
    const int64_t at = launch >= 0 ? view_event(r->v, launch)->start_ns : e->start_ns;
    return r->n_steps >= 1 || (at >= r->start_ns && at < r->end_ns);
}

/* How long each device, and some device, was busy as recorded: work of several streams at one time once. */
static void find_busy(struct replay *r)
{
    const struct view *v = r->v;
    const size_t n = (size_t)v->trace->n_tracks + 1;
    int64_t *until_ns = xcalloc(n, sizeof *until_ns), all_until_ns = INT64_MIN;
    r->busy_ns = xcalloc(2 * n, sizeof *r->busy_ns);
    r->work_ns = r->busy_ns + n;
    for (size_t i = 0; i < n; i++)
        until_ns[i] = INT64_MIN;
    for (int32_t d = 0; d < v->n_device; d++) {                 /* by start */
        const struct event *e = view_event(v, v->device + d);
        if (!replay_has(r, d))
            continue;
        const int device = r->device_of[e->track];
        const int64_t from = e->start_ns > until_ns[device] ? e->start_ns : until_ns[device];
        r->work_ns[device] += (double)e->duration_ns;
        if (event_end(e) > from) {
            r->busy_ns[device] += (double)(event_end(e) - from);
            until_ns[device] = event_end(e);
        }
        r->all_work_ns += (double)e->duration_ns;
        if (event_end(e) > all_until_ns) {
            r->all_busy_ns += (double)(event_end(e) - (e->start_ns > all_until_ns ? e->start_ns : all_until_ns));
            all_until_ns = event_end(e);
        }
    }
    free(until_ns);
}

static void find_devices(struct replay *r)
{
    r->device_of = view_devices(r->v);
    for (int32_t d = 0; d < r->v->n_device; d++)
        r->linked |= r->v->launch[d] >= 0;
}

void replay_find_streams(struct replay *r)
{
    find_stream_waits(r);
    find_devices(r);
    find_busy(r);
}
