/* Single steps that take many times as long as the others: one that saves a checkpoint, or evaluates. Their mean with the others is the time of no step, so they
 * are taken out of the steps, like time between marks, and told of on their own. Cold steps at the start stay: replay_cold.c has them. So do those
 * that wait for data or for other ranks: that is what all steps do, and what is looked for. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/view_int.h"
#include "core/stats.h"

static const double ODD = 3;                /* times as long as the median */
static const double WAITS = 0.5;            /* of what it takes longer: no other work */
enum { LEAST_STEPS = 4, MOST_PART = 10 };   /* of fewer steps none is odd; nor are they where there are several, and more than one in ten */

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* As long as a step takes with the device's work, from the end of the one before. */
static double *lengths(const struct view *v)
{
    double *ns = xcalloc((size_t)v->n_steps, sizeof *ns);
    int64_t before = INT64_MIN;
    for (int i = 0; i < v->n_steps; i++) {
        const struct step_window *w = &v->steps[i];
        const int64_t start = most(most(before, w->gap_end_ns), w->start_ns), end = most(most(w->end_ns, w->device_end_ns), start);
        ns[i] = (double)(end - start);
        before = end;
    }
    return ns;
}

static double median(const double *x, int n)
{
    double *sorted = xcalloc((size_t)n, sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = x[i];
    stats_sort(sorted, n);
    const double middle = stats_percentile(sorted, n, 0.5);
    free(sorted);
    return middle;
}

/* What a step spends in the loader and in collectives, of its threads and of the device. */
static double waits_ns(const struct view *v, const struct step_window *w)
{
    double ns = 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        const bool waits = view_is_collective(v, i) || !strncmp(view_name(v, i), "enumerate(DataLoader)", 21);
        ns += waits && view_begins_in(v, i, w) ? (double)view_event(v, i)->duration_ns : 0;
    }
    for (int32_t i = v->device; i < v->device + v->n_device; i++)
        ns += name_is_collective(view_name(v, i)) && view_begins_in(v, i, w) ? (double)view_event(v, i)->duration_ns : 0;
    return ns;
}

static int count_restarts(const struct view *v)
{
    struct restart r;
    int n = 0;
    for (int32_t i = 0; i < v->n_host; i++)
        n += view_restart_at(v, i, &r);
    return n;
}

/* Of epochs that start more than once the length is in the trace, and starting the loader's workers is waiting for data like any other. Of one
 * that starts once nobody knows how long it is: its step is no part of the mean. */
static bool is_odd(const struct view *v, const struct step_window *w, double longer_ns, int restarts)
{
    struct restart r;
    if (restarts && view_restart_in(v, w, &r))
        return restarts == 1;
    return waits_ns(v, w) < WAITS * longer_ns;
}

/* (n_steps) which are odd; how many in *n. */
static bool *find_odd(const struct view *v, const double *ns, double usual, int cold, int *n)
{
    bool *odd = xcalloc((size_t)v->n_steps, sizeof *odd);
    const int restarts = count_restarts(v);
    *n = 0;
    for (int i = cold; i < v->n_steps; i++) {
        odd[i] = ns[i] > ODD * usual && is_odd(v, &v->steps[i], ns[i] - usual, restarts);
        *n += odd[i];
    }
    if (*n > 1 && *n * MOST_PART > v->n_steps)
        *n = 0;
    return odd;
}

static void keep_odd(struct view *v, const bool *odd, const double *ns, double usual, int n)
{
    v->odd = arena_alloc(&v->arena, (size_t)n * sizeof *v->odd);
    for (int i = 0; i < v->n_steps; i++)
        if (odd[i])
            v->odd[v->n_odd++] = (struct odd_step){v->steps[i], ns[i], usual};
}

/* Takes them out of the steps; (n_steps) the new index of each, -1 for an odd one. */
static int32_t *close_up(struct view *v, const bool *odd)
{
    int32_t *to = xcalloc((size_t)v->n_steps, sizeof *to);
    int n = 0;
    for (int i = 0; i < v->n_steps; i++) {
        to[i] = odd[i] ? -1 : n;
        if (odd[i])
            continue;
        struct step_window w = v->steps[i];
        for (int k = i - 1; k >= 0 && odd[k]; k--) {
            w.after_gap = w.after_odd = true;
            w.gap_end_ns = most(w.gap_end_ns, v->steps[k].device_end_ns);
        }
        v->steps[n++] = w;
    }
    v->n_steps = n;
    return to;
}

static void renumber(struct event *e, int64_t n, const int32_t *to)
{
    for (int64_t i = 0; i < n; i++)
        if (e[i].kind != EVENT_STEP && e[i].step >= 0)
            e[i].step = to[e[i].step];
}

void view_renumber(struct view *v, const int32_t *to)
{
    struct event *events = v->trace->events;
    const int64_t others = view_first_other(v);
    renumber(events, v->n_host, to);
    renumber(events + v->device, v->n_device, to);
    renumber(events + others, v->trace->n - others, to);
}

void view_take_out_odd(struct view *v, int cold)
{
    if (v->n_steps < LEAST_STEPS)
        return;
    double *ns = lengths(v);
    const double usual = median(ns, v->n_steps);
    int n;
    bool *odd = find_odd(v, ns, usual, cold, &n);
    if (n && usual > 0) {
        keep_odd(v, odd, ns, usual, n);
        int32_t *to = close_up(v, odd);
        view_renumber(v, to);
        free(to);
    }
    free(odd);
    free(ns);
}
