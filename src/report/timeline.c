/* The events of one step for the page: rows, names, and events as short arrays, times relative to the step's start, and scaled so that
 * the step is as long as one without events: the page has one step time. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "report/report_int.h"

enum { MAX_EVENTS = 60000 };        /* what a page still shows smoothly; beyond it the shortest events are left out */

struct window {
    int64_t start_ns, end_ns;
    double us_per_ns;               /* 0.001, and what takes the recorded step to the length of one without events */
};

static int64_t end_of(const struct event *e) { return e->start_ns + e->duration_ns; }

/* From the step's own event, which is drawn as long as `step_us`, else from all events that belong to it. */
static struct window step_window(const struct trace *t, int step, double step_us)
{
    struct window w = {INT64_MAX, INT64_MIN, 1e-3};
    for (int64_t i = 0; i < t->n; i++) {
        const struct event *e = &t->events[i];
        if (e->step != step || e->kind == EVENT_COUNTER)
            continue;
        if (e->kind == EVENT_STEP)
            return (struct window){e->start_ns, end_of(e), step_us > 0 && e->duration_ns > 0 ? step_us / (double)e->duration_ns : 1e-3};
        if (e->start_ns < w.start_ns)
            w.start_ns = e->start_ns;
        if (end_of(e) > w.end_ns)
            w.end_ns = end_of(e);
    }
    return w;
}

static bool is_shown(const struct event *e, struct window w, int64_t shortest_ns)
{
    return e->kind != EVENT_COUNTER && e->start_ns < w.end_ns && end_of(e) > w.start_ns &&
           e->duration_ns >= shortest_ns;
}

static int longer_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

/* The duration below which events are left out so that no more than MAX_EVENTS remain; `*left_out` counts them. */
static int64_t shortest_shown(const struct trace *t, struct window w, int64_t *left_out)
{
    int64_t n = 0, *durations = xcalloc((size_t)t->n + 1, sizeof *durations);
    for (int64_t i = 0; i < t->n; i++)
        if (is_shown(&t->events[i], w, 0))
            durations[n++] = t->events[i].duration_ns;
    qsort(durations, (size_t)n, sizeof *durations, longer_first);
    const int64_t limit = n > MAX_EVENTS ? durations[MAX_EVENTS] + 1 : 0;
    *left_out = 0;
    for (int64_t i = 0; i < n; i++)
        *left_out += durations[i] < limit;
    free(durations);
    return limit;
}

static json_t *track(const struct trace *t, int id)
{
    char name[TRACK_NAME];
    return json_pack("{s:i,s:s}", "track", id, "name", trace_track_name(t, id, name));
}

static json_t *tracks(const struct trace *t, struct window w, int64_t shortest_ns)
{
    bool *used = xcalloc(INT16_MAX + 1, sizeof *used);
    for (int64_t i = 0; i < t->n; i++)
        if (is_shown(&t->events[i], w, shortest_ns) && t->events[i].track >= 0)
            used[t->events[i].track] = true;
    json_t *list = json_array();
    for (int id = 0; id <= INT16_MAX; id++)
        if (used[id])
            list = report_array(list, track(t, id));
    free(used);
    return list;
}

static json_t *event(const struct event *e, struct window w, const struct profile *p)
{
    static const char *const kinds[] = {"step", "phase", "op", "wait", "loader", "counter", "launch", "copy", "kernel", "sums", "help"};
    const int64_t start = e->start_ns > w.start_ns ? e->start_ns : w.start_ns;
    const int64_t end = end_of(e) < w.end_ns ? end_of(e) : w.end_ns;
    const int op = e->op >= 0 && e->op < p->n_ops ? e->op : -1;
    return json_pack("[i,f,f,s,i,i]", e->track, (double)(start - w.start_ns) * w.us_per_ns, (double)(end - start) * w.us_per_ns,
                     e->kind >= EVENT_STEP && e->kind <= EVENT_HELP ? kinds[e->kind] : "other", op, e->name);
}

static json_t *names(const struct trace *t)
{
    json_t *list = json_array();
    for (int i = 0; i < t->n_names; i++)
        list = report_array(list, report_words(t->names[i]));
    return list;
}

json_t *report_timeline(const struct profile *p)
{
    static const struct trace none;
    const struct trace *t = p->trace ? p->trace : &none;
    struct window w = step_window(t, p->timeline_step, p->step_us);
    if (w.end_ns <= w.start_ns)
        w = (struct window){0, 0, 0};
    int64_t left_out;
    const int64_t shortest_ns = shortest_shown(t, w, &left_out);
    json_t *list = json_array();
    for (int64_t i = 0; i < t->n; i++)
        if (is_shown(&t->events[i], w, shortest_ns))
            list = report_array(list, event(&t->events[i], w, p));
    return json_pack("{s:i,s:f,s:I,s:[s,s,s,s,s,s],s:o,s:o,s:o}", "step", p->timeline_step, "us",
                     (double)(w.end_ns - w.start_ns) * w.us_per_ns, "left_out", (json_int_t)left_out, "fields", "track",
                     "start_us", "us", "kind", "op", "name", "tracks", tracks(t, w, shortest_ns), "names", names(t),
                     "events", list);
}
