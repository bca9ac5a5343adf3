/* The split of each step. A step starts with its mark, or with the end of the step before when that is later, and ends
 * with its mark or with the last device event that was launched in it. Each moment of it goes to the first of these that
 * is active: kernel, copy, fill, communication, runtime call, data loader, host op, other. Host events of all threads
 * count; of device events those that were launched in a recorded step. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/view_int.h"
#include "core/stats.h"

enum role { ROLE_KERNEL, ROLE_MEMCPY, ROLE_MEMSET, ROLE_COMM, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, N_ROLES };

struct piece {                              /* time of a step that no role has taken yet */
    int64_t start, end;
    int32_t step;
};

struct pieces {
    struct piece *at;
    int64_t n, cap;
};

static void add_piece(struct pieces *p, int64_t start, int64_t end, int32_t step)
{
    if (start >= end)
        return;
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap + p->cap / 2 : 256;
        p->at = xrealloc(p->at, (size_t)p->cap * sizeof *p->at);
    }
    p->at[p->n++] = (struct piece){start, end, step};
}

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
        return ROLE_RUNTIME;
    if (is_loader(view_name(v, event)))
        return ROLE_DATALOADER;
    return kind == EVENT_HOST_OP ? ROLE_CPU : N_ROLES;
}

/* One role at a time, as their spans can be many. */
static struct spans collect(const struct view *v, enum role role)
{
    struct spans s = {0};
    for (int32_t i = v->device; role <= ROLE_COMM && i < v->device + v->n_device; i++)
        if (view_event(v, i)->step >= 0 && device_role(v, i) == role)
            spans_add(&s, view_event(v, i));
    for (int32_t i = 0; role > ROLE_COMM && i < v->n_host; i++)
        if (host_role(v, i) == role)
            spans_add(&s, view_event(v, i));
    spans_join(&s);
    return s;
}

static struct pieces step_windows(struct diagnosis *d, const struct view *v)
{
    struct pieces p = {0};
    int64_t before = INT64_MIN;
    for (int i = 0; i < v->n_steps; i++) {
        const struct step_window *w = &v->steps[i];
        const int64_t start = w->start_ns > before ? w->start_ns : before;
        int64_t end = w->device_end_ns > w->end_ns ? w->device_end_ns : w->end_ns;
        end = end > start ? end : start;
        d->steps[i].number = w->number;
        d->steps[i].start_us = us_of((double)(start - v->first_ns));
        d->steps[i].total_us = us_of((double)(end - start));
        add_piece(&p, start, end, i);
        before = end;
    }
    return p;
}

static double *part_of(struct trace_step *s, enum role role)
{
    double *const parts[N_ROLES] = {&s->kernel_us, &s->memcpy_us, &s->memset_us, &s->comm_us, &s->runtime_us,
                                     &s->dataloader_us, &s->cpu_us};
    return parts[role];
}

/* Gives the role what it covers of the pieces and leaves the rest of them. */
static void take(struct diagnosis *d, struct pieces *p, const struct spans *spans, enum role role)
{
    struct pieces rest = {0};
    int64_t j = 0;
    for (int64_t i = 0; i < p->n; i++) {
        struct piece x = p->at[i];
        double *part = part_of(&d->steps[x.step], role);
        while (j < spans->n && spans->at[j].end <= x.start)
            j++;
        for (int64_t k = j; k < spans->n && spans->at[k].start < x.end; k++) {
            const int64_t start = spans->at[k].start > x.start ? spans->at[k].start : x.start;
            const int64_t end = spans->at[k].end < x.end ? spans->at[k].end : x.end;
            add_piece(&rest, x.start, start, x.step);
            *part += us_of((double)(end - start));
            x.start = end;
        }
        add_piece(&rest, x.start, x.end, x.step);
    }
    free(p->at);
    *p = rest;
}

static void count_events(struct diagnosis *d, const struct view *v)
{
    int64_t *ended = xcalloc((size_t)v->n_steps, sizeof *ended);    /* of the step's device events so far */
    for (int i = 0; i < v->n_steps; i++)
        ended[i] = INT64_MIN;
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        const struct event *e = view_event(v, i);
        if (e->step < 0)
            continue;
        const int64_t start = e->start_ns > ended[e->step] ? e->start_ns : ended[e->step];
        d->steps[e->step].kernels += e->kind == EVENT_KERNEL;
        if (event_end(e) > start) {
            d->steps[e->step].busy_us += us_of((double)(event_end(e) - start));
            ended[e->step] = event_end(e);
        }
    }
    free(ended);
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->step < 0)
            continue;
        d->steps[e->step].host_ops += e->kind == EVENT_HOST_OP;
        d->steps[e->step].launches += e->kind == EVENT_RUNTIME && kind_is_work(v->call_kinds[e->name]);
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
    d->n_steps = v->n_steps;
    d->no_step_marks = v->no_step_marks;
    d->steps = arena_alloc(&d->arena, (size_t)v->n_steps * sizeof *d->steps);

    struct pieces rest = step_windows(d, v);
    for (enum role role = 0; role < N_ROLES; role++) {
        struct spans spans = collect(v, role);
        take(d, &rest, &spans, role);
        spans_release(&spans);
    }
    for (int64_t i = 0; i < rest.n; i++)
        d->steps[rest.at[i].step].other_us += us_of((double)(rest.at[i].end - rest.at[i].start));
    free(rest.at);
    count_events(d, v);
    d->mean = mean_of(d->steps, d->n_steps);
    d->timeline_step = median_step(d->steps, d->n_steps);
}
