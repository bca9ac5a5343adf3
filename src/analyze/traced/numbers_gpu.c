/* The device's time, busy and idle, from its first event to its last. Counted are device events whose launch is in the
 * trace; all of them where none is (a trace of the device only) and where the device's time is the step. Fills count as
 * computation.
 *
 * Idle time between two busy spans is told by the event that ends it. Launched after the device fell idle: the device
 * waited for the host. Launched before, and a gap of at most kernel_wait_us: the usual way from one kernel to the next.
 * Otherwise it waited for another stream or an event.
 *
 * Times are added up as doubles in µs on the clock of the file, as the tools do that others compare with, where that
 * rounds by less than a ns; on the clock of the trace where numbers are too large for it. */
#include <math.h>
#include <stdlib.h>

#include "analyze/traced/numbers_int.h"

static const double kernel_wait_us = 4;         /* two to three are usual between kernels that depend on each other */
static const int64_t exact_ns = (int64_t)1 << 53;       /* doubles hold whole numbers up to here */

struct cover {                              /* how much time events cover together; they come by start */
    double us, start, end;                  /* of the spans that are over; the current one */
    bool any;
};

static void cover_add(struct cover *c, double start, double end)
{
    if (c->any && start <= c->end) {
        c->end = fmax(c->end, end);
        return;
    }
    c->us += c->end - c->start;
    *c = (struct cover){c->us, start, end, true};
}

static double cover_us(const struct cover *c) { return c->us + (c->end - c->start); }

struct device_time {
    struct cover computation, comm, copies, kernels, busy;  /* kernels: computation and communication */
};

static bool any_launch(const struct view *v)
{
    for (int32_t i = 0; i < v->n_device; i++)
        if (v->launch[i] >= 0)
            return true;
    return false;
}

static void add_idle(struct trace_gpu *g, const struct view *v, int32_t next, double us, int64_t idle_from_ns)
{
    const int32_t launch = v->launch[next - v->device];
    if (launch >= 0 && view_event(v, launch)->start_ns > idle_from_ns)
        g->idle_host_us += us;
    else if (us <= kernel_wait_us)
        g->idle_kernel_us += us;
    else
        g->idle_other_us += us;
}

/* Where a step is odd (view_odd.c), neither its work counts nor the time in which the device had none. */
static bool in_odd(const struct view *v, int32_t device_event)
{
    for (int i = 0; i < v->n_odd; i++)
        if (view_begins_in(v, device_event, &v->odd[i].window))
            return true;
    return false;
}

static double odd_between(const struct view *v, int64_t from_ns, int64_t to_ns)
{
    double us = 0;
    for (int i = 0; i < v->n_odd; i++) {
        const struct step_window *w = &v->odd[i].window;
        const int64_t end = w->device_end_ns > w->end_ns ? w->device_end_ns : w->end_ns;
        const int64_t from = from_ns > w->start_ns ? from_ns : w->start_ns, to = to_ns < end ? to_ns : end;
        us += to > from ? us_of((double)(to - from)) : 0;
    }
    return us;
}

static void add_event(struct device_time *t, const struct view *v, int32_t i, double start, double end)
{
    const int kind = view_event(v, i)->kind;
    cover_add(&t->busy, start, end);
    if (kind == EVENT_MEMCPY) {
        cover_add(&t->copies, start, end);
        return;
    }
    cover_add(kind == EVENT_KERNEL && view_kernel_kind(v, i) == KERNEL_COMM ? &t->comm : &t->computation, start, end);
    cover_add(&t->kernels, start, end);
}

/* Streams and devices with work, and how long the busiest device alone is busy. */
static void count_devices(struct trace_gpu *g, const struct view *v, bool all)
{
    const size_t n = (size_t)v->trace->n_tracks + 1;
    struct cover *covers = xcalloc(n, sizeof *covers);
    bool *seen = xcalloc(2 * n, sizeof *seen), *seen_device = seen + n;
    int16_t *devices = view_devices(v);
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        const struct event *e = view_event(v, i);
        const double start = us_of((double)(e->start_ns - v->first_ns));
        if (e->track < 0 || e->track >= v->trace->n_tracks)
            continue;
        g->streams += !seen[e->track];
        g->devices += !seen_device[devices[e->track]];
        seen[e->track] = seen_device[devices[e->track]] = true;
        if ((all || v->launch[i - v->device] >= 0) && !in_odd(v, i))
            cover_add(&covers[devices[e->track]], start, start + us_of((double)e->duration_ns));
    }
    for (size_t i = 0; i < n; i++)
        g->busiest_us = fmax(g->busiest_us, cover_us(&covers[i]));
    free(devices);
    free(seen);
    free(covers);
}

void numbers_gpu(struct diagnosis *d, const struct view *v)
{
    struct trace_gpu *g = &d->gpu;
    struct device_time t = {0};
    const bool all = !any_launch(v) || (v->no_step_marks && !v->steps_by);
    const int64_t zero_ns = v->first_ns > -exact_ns && v->last_ns < exact_ns ? 0 : v->first_ns;
    int64_t idle_from_ns = 0;
    double first = 0, odd = 0;

    *g = (struct trace_gpu){0};
    count_devices(g, v, all);
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        if ((!all && v->launch[i - v->device] < 0) || in_odd(v, i))
            continue;
        const struct event *e = view_event(v, i);
        const double start = us_of((double)(e->start_ns - zero_ns)), end = start + us_of((double)e->duration_ns);
        if (!t.busy.any)
            first = start;
        else if (start > t.busy.end) {
            const double left_out = odd_between(v, idle_from_ns, e->start_ns);
            add_idle(g, v, i, start - t.busy.end - left_out, idle_from_ns);
            odd += left_out;
        }
        idle_from_ns = t.busy.any && idle_from_ns > event_end(e) ? idle_from_ns : event_end(e);
        add_event(&t, v, i, start, end);
    }
    g->total_us = t.busy.end - first - odd;
    g->busy_us = cover_us(&t.busy);
    g->idle_us = g->total_us - g->busy_us;
    g->computation_us = cover_us(&t.computation);
    g->comm_us = cover_us(&t.comm);
    g->exposed_comm_us = cover_us(&t.kernels) - g->computation_us;
    g->memcpy_us = cover_us(&t.copies);
    g->exposed_memcpy_us = g->busy_us - cover_us(&t.kernels);
}
