/* Steps: the marks on host threads (ProfilerStep#N) as windows (without marks: view_infer.c), and which of them an event belongs to. A host event
 * belongs to the window in which it starts, a device event to that of its launch. Where no launch is in the trace
 * device events go by their own time. */
#include <assert.h>
#include <stdlib.h>

#include "analyze/traced/view_int.h"
#include "analyze/traced/view_sort.h"

static inline bool window_before(const struct step_window *a, const struct step_window *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->end_ns > b->end_ns;
}

SORT_DEFINE(sort_windows, struct step_window, window_before)

static bool is_mark(const struct trace *t, const struct event *e)
{
    return e->kind == EVENT_STEP && e->duration_ns > 0 && e->track >= 0 && e->track < t->n_tracks &&
           t->tracks[e->track].kind == TRACK_HOST_THREAD;
}

static void collect(struct view *v)
{
    const struct trace *t = v->trace;
    const int64_t from = view_first_other(v);
    int64_t n = 0;
    for (int64_t i = from; i < t->n; i++)
        n += is_mark(t, &t->events[i]);
    v->steps = arena_alloc(&v->arena, (size_t)(n + 1) * sizeof *v->steps);
    for (int64_t i = from; i < t->n; i++) {
        const struct event *e = &t->events[i];
        if (is_mark(t, e))
            v->steps[v->n_steps++] = step_window_new(e->step, e->start_ns, event_end(e));
    }
    sort_windows(v->steps, v->n_steps);
}

/* The same step marked twice, as an annotation and an operator or by several processes, is one. */
static void merge_alike(struct view *v)
{
    int n = 0;
    for (int i = 0; i < v->n_steps; i++) {
        const struct step_window w = v->steps[i];
        struct step_window *last = n ? &v->steps[n - 1] : NULL;
        if (last && last->number == w.number && w.start_ns < last->end_ns)
            last->end_ns = last->host_end_ns = w.end_ns > last->end_ns ? w.end_ns : last->end_ns;
        else
            v->steps[n++] = w;
    }
    v->n_steps = n;
}

/* Numbers that jump, and time for at least half a step between the marks: some are missing. */
static void find_gaps(struct view *v)
{
    for (int i = 1; i < v->n_steps; i++) {
        const struct step_window *before = &v->steps[i - 1];
        struct step_window *w = &v->steps[i];
        const int64_t a = before->end_ns - before->start_ns, b = w->end_ns - w->start_ns;
        w->after_gap = w->number > before->number && w->number - 1 > before->number && w->start_ns - before->end_ns >= (a < b ? a : b) / 2;
    }
}

/* How many windows start no later. */
static int steps_begun(const struct view *v, int64_t at_ns)
{
    int from = 0;
    assert(v->steps || v->n_steps == 0);
    for (int to = v->n_steps; from < to;) {
        const int middle = from + (to - from) / 2;
        if (v->steps[middle].host_start_ns <= at_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The last window that starts no later, if the moment lies in it. */
static int32_t step_at(const struct view *v, int64_t at_ns)
{
    const int begun = steps_begun(v, at_ns);
    assert(v->steps || !begun);
    return begun && at_ns < v->steps[begun - 1].host_end_ns ? begun - 1 : -1;
}

/* Work that was launched where marks are missing: the step behind them begins when it is done. */
static void add_to_gap(struct view *v, const struct event *e, int32_t launch)
{
    const int next = launch >= 0 ? steps_begun(v, view_event(v, launch)->start_ns) : v->n_steps;
    assert(v->steps || next >= v->n_steps);
    if (next < v->n_steps && v->steps[next].after_gap && event_end(e) > v->steps[next].gap_end_ns)
        v->steps[next].gap_end_ns = event_end(e);
}

static bool any_launch(const struct view *v)
{
    for (int32_t i = 0; i < v->n_device; i++)
        if (v->launch[i] >= 0)
            return true;
    return false;
}

struct span view_step_span(const struct step_window *w, int64_t *before_ns)
{
    const int64_t before = w->gap_end_ns > *before_ns ? w->gap_end_ns : *before_ns;
    const int64_t start = w->start_ns > before ? w->start_ns : before;
    const int64_t end = w->device_end_ns > w->end_ns ? w->device_end_ns : w->end_ns;
    *before_ns = end > start ? end : start;
    return (struct span){start, *before_ns};
}

void view_mark_steps(struct view *v)
{
    struct event *events = v->trace->events;
    collect(v);
    merge_alike(v);
    find_gaps(v);
    v->no_step_marks = !v->n_steps;
    if (v->no_step_marks)
        view_infer_steps(v);

    for (int32_t i = 0; i < v->n_host; i++)
        events[i].step = step_at(v, events[i].start_ns);
    const bool by_launch = any_launch(v);
    for (int32_t i = 0; i < v->n_device; i++) {
        struct event *e = &events[v->device + i];
        if (by_launch && v->no_step_marks && !v->steps_by)
            e->step = 0;                    /* the step is the device's time, whoever launched */
        else if (by_launch)
            e->step = v->launch[i] < 0 ? -1 : events[v->launch[i]].step;
        else
            e->step = step_at(v, e->start_ns);
        struct step_window *w = e->step < 0 ? NULL : &v->steps[e->step];
        if (!w)
            add_to_gap(v, e, v->launch[i]);
        else if (event_end(e) > w->device_end_ns)
            w->device_end_ns = event_end(e);
    }
    for (int64_t i = view_first_other(v); i < v->trace->n; i++)
        if (events[i].kind != EVENT_STEP)
            events[i].step = step_at(v, events[i].start_ns);
}
