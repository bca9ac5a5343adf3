/* The split of each step. A step starts with its mark, or with the end of the step before when that is later (where its mark is missing, of what it launched), and ends
 * with its mark or with the last device event that was launched in it. Each moment of it goes to the first of these that
 * is active: kernel, copy, fill, communication, runtime call, data loader, host op, communication on the host, other. Host events of all threads
 * count; of device events those that were launched in a recorded step. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/view_int.h"
#include "core/stats.h"

enum role { ROLE_KERNEL, ROLE_MEMCPY, ROLE_MEMSET, ROLE_COMM, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_HOST_COMM, ROLE_OTHER, N_ROLES };

static enum role device_role(const struct view *v, int32_t event)
{
    switch (view_event(v, event)->kind) {
    case EVENT_MEMCPY:
        return ROLE_MEMCPY;
    case EVENT_MEMSET:
        return ROLE_MEMSET;
    default:
        return view_kernel_kind(v, event) == KERNEL_COMM ? ROLE_COMM : ROLE_KERNEL;
    }
}

/* "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" */
static bool is_loader(const char *name)
{
    return !strncmp(name, "enumerate(DataLoader)", 21) && strstr(name, "__next__");
}

static enum role host_role(const struct view *v, int32_t event)
{
    const int kind = view_event(v, event)->kind;
    if (kind == EVENT_RUNTIME)
        return v->watches[view_event(v, event)->track] ? ROLE_OTHER : ROLE_RUNTIME;
    if (is_loader(view_name(v, event)))
        return ROLE_DATALOADER;
    if (view_is_collective(v, event))
        return ROLE_HOST_COMM;              /* ops beside it are the step's work, as kernels are on a device */
    return kind == EVENT_HOST_OP ? ROLE_CPU : ROLE_OTHER;
}

static enum role role_of(const struct view *v, int32_t event)
{
    if (event < v->n_host)
        return host_role(v, event);
    return view_event(v, event)->step >= 0 ? device_role(v, event) : ROLE_OTHER;
}

struct window {                             /* a step; they follow each other and do not overlap */
    int64_t start_ns, end_ns;
    int64_t part_ns[N_ROLES];
};

static struct window *make_windows(const struct view *v)
{
    struct window *windows = xcalloc((size_t)v->n_steps, sizeof *windows);
    int64_t before = INT64_MIN;
    for (int i = 0; i < v->n_steps; i++) {
        const struct span span = view_step_span(&v->steps[i], &before);
        windows[i].start_ns = span.start_ns;
        windows[i].end_ns = span.end_ns;
    }
    return windows;
}

struct split {
    struct window *windows;
    int n, at;                              /* at: windows before it are over */
    int64_t now_ns;                         /* time up to here is given away */
    int64_t until_ns[N_ROLES];              /* a role is active until then, by the events that have started */
};

/* Gives the time from now on to a role, where it lies in steps. */
static void give(struct split *s, enum role role, int64_t to_ns)
{
    for (; s->at < s->n && s->windows[s->at].start_ns < to_ns; s->at++) {
        struct window *w = &s->windows[s->at];
        const int64_t from = s->now_ns > w->start_ns ? s->now_ns : w->start_ns, to = to_ns < w->end_ns ? to_ns : w->end_ns;
        w->part_ns[role] += to > from ? to - from : 0;
        if (w->end_ns > to_ns)
            break;
    }
    s->now_ns = to_ns;
}

/* No event starts before to_ns: roles only end until there. */
static void advance(struct split *s, int64_t to_ns)
{
    while (s->now_ns < to_ns) {
        enum role role = 0;
        while (role < ROLE_OTHER && s->until_ns[role] <= s->now_ns)
            role++;
        give(s, role, role < ROLE_OTHER && s->until_ns[role] < to_ns ? s->until_ns[role] : to_ns);
    }
}

static void split_windows(struct window *windows, const struct view *v)
{
    struct split s = {.windows = windows, .n = v->n_steps, .now_ns = windows[0].start_ns};
    struct sweep sweep = sweep_start(v);
    for (int role = 0; role < N_ROLES; role++)
        s.until_ns[role] = INT64_MIN;
    for (int32_t i; (i = sweep_next(&sweep)) >= 0;) {
        const struct event *e = view_event(v, i);
        const enum role role = role_of(v, i);
        if (role == ROLE_OTHER || e->duration_ns <= 0)
            continue;
        advance(&s, e->start_ns);
        s.until_ns[role] = event_end(e) > s.until_ns[role] ? event_end(e) : s.until_ns[role];
    }
    advance(&s, windows[v->n_steps - 1].end_ns);
    sweep_release(&sweep);
}

static void fill_step(struct trace_step *s, const struct window *w, int64_t number, int64_t first_ns)
{
    double *const parts[N_ROLES] = {&s->kernel_us, &s->memcpy_us, &s->memset_us, &s->comm_us, &s->runtime_us,
                                    &s->dataloader_us, &s->cpu_us, &s->comm_us, &s->other_us};
    s->number = number;
    s->start_us = us_of((double)(w->start_ns - first_ns));
    s->total_us = us_of((double)(w->end_ns - w->start_ns));
    for (int role = 0; role < N_ROLES; role++)
        *parts[role] += us_of((double)w->part_ns[role]);
    for (int role = ROLE_KERNEL; role <= ROLE_COMM; role++)     /* the device's come first, so that nothing else hides them */
        s->busy_us += us_of((double)w->part_ns[role]);
}

static void count_events(struct trace_step *steps, const struct view *v)
{
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        const struct event *e = view_event(v, i);
        if (e->step >= 0)
            steps[e->step].kernels += e->kind == EVENT_KERNEL;
    }
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->step < 0)
            continue;
        steps[e->step].host_ops += e->kind == EVENT_HOST_OP;
        steps[e->step].launches += e->kind == EVENT_RUNTIME && kind_is_work(v->call_kinds[e->name]);
    }
}

static struct trace_step mean_of(const struct trace_step *steps, int n)
{
    struct trace_step m = {0};
    for (int i = 0; i < n; i++) {
        const struct trace_step *s = &steps[i];
        m.total_us += s->total_us / n;
        m.kernel_us += s->kernel_us / n;
        m.memcpy_us += s->memcpy_us / n;
        m.memset_us += s->memset_us / n;
        m.comm_us += s->comm_us / n;
        m.runtime_us += s->runtime_us / n;
        m.dataloader_us += s->dataloader_us / n;
        m.cpu_us += s->cpu_us / n;
        m.other_us += s->other_us / n;
        m.busy_us += s->busy_us / n;
        m.kernels += s->kernels;
        m.launches += s->launches;
        m.host_ops += s->host_ops;
    }
    m.kernels = (m.kernels + n / 2) / n;
    m.launches = (m.launches + n / 2) / n;
    m.host_ops = (m.host_ops + n / 2) / n;
    return m;
}

/* The step whose time is the median; of an even number the shorter of the two in the middle. */
static int median_step(const struct trace_step *steps, int n)
{
    double *sorted = xcalloc((size_t)n, sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = steps[i].total_us;
    stats_sort(sorted, n);
    const double median = sorted[(n - 1) / 2];
    free(sorted);
    int found = 0;
    while (steps[found].total_us != median)
        found++;
    return found;
}

void numbers_steps(struct diagnosis *d, const struct view *v)
{
    struct trace_step *steps = xcalloc((size_t)v->n_steps, sizeof *steps);
    struct window *windows = make_windows(v);
    split_windows(windows, v);
    for (int i = 0; i < v->n_steps; i++)
        fill_step(&steps[i], &windows[i], v->steps[i].number, v->first_ns);
    count_events(steps, v);
    free(windows);
    d->no_step_marks = v->no_step_marks;
    d->steps_by = v->steps_by;
    d->mean = mean_of(steps, v->n_steps);
    numbers_show_steps(d, steps, v->n_steps, median_step(steps, v->n_steps));
    free(steps);
}
