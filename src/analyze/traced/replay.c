/* Builds a replay: picks steps and threads, and cuts the host's time at every begin and end of a call. */
#include "analyze/traced/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/replay_int.h"
#include "core/stats.h"

enum { MOST_HOST_EVENTS = 100000 };
/* The profiler's cost lies before an event begins (it collects the inputs first) and less of it behind its end. Calls of the
 * runtime are recorded more cheaply, Python frames cheaper still. */
static const float OP_BEGIN = 1.0f, OP_END = 0.5f, CALL_BEGIN = 0.2f, CALL_END = 0.2f, FRAME = 0.1f;
static const float NODE = 0.1f;             /* of every kernel of a graph, which the profiler follows in its launch */
static const double BLOCKED = 5;            /* usual launch calls, from which on one waited for room in the queue */
static const int64_t LEAST_BLOCKED_NS = 30000;


struct cut {                                /* a begin or an end */
    int64_t at_ns;
    int32_t event;
    int32_t order;                          /* among cuts at one time: ends of outer calls last, begins of outer calls first */
};

static int by_time(const void *a, const void *b)
{
    const struct cut *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* ---- which steps, which threads ---- */

/* Host events per step; -1 steps are left out. */
static int64_t *count_events(const struct view *v)
{
    int64_t *count = xcalloc((size_t)v->n_steps + 1, sizeof *count);
    for (int32_t i = 0; i < v->n_host; i++)
        if (view_event(v, i)->step >= 0)
            count[view_event(v, i)->step]++;
    return count;
}

/* Of one step that is too long, as a trace without marks is: its middle, as a part of a step. */
static void take_middle(struct replay *r, double part)
{
    const double length = (double)(r->end_ns - r->start_ns);
    r->start_ns += (int64_t)(length * (1 - part) / 2);
    r->end_ns = r->start_ns + (int64_t)(length * part) + 1;
    r->n_steps = part;
}

/* Marks that are missing between the picked steps. */
static void find_gaps(struct replay *r)
{
    r->span_ns = r->end_ns - r->start_ns;
    for (int i = r->first_step + 1; i < r->end_step; i++) {
        const struct step_window *w = &r->v->steps[i];
        if (!w->after_gap)
            continue;
        if (!r->gaps.at)
            r->gaps.at = xcalloc((size_t)(r->end_step - i), sizeof *r->gaps.at);
        r->gaps.at[r->gaps.n++] = (struct span){w[-1].host_end_ns, w->host_start_ns};
        r->span_ns -= w->host_start_ns - w[-1].host_end_ns;
    }
}

bool replay_covers(const struct replay *r, int64_t at_ns)
{
    int low = 0, high = r->gaps.n;
    while (low < high) {                    /* the first gap that ends later */
        const int mid = (low + high) / 2;
        if (r->gaps.at[mid].end_ns <= at_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return at_ns >= r->start_ns && at_ns < r->end_ns && (low == r->gaps.n || at_ns < r->gaps.at[low].start_ns);
}

/* All steps that are not cold, or as many consecutive ones around the middle as the bound allows; at least one. */
static void pick_steps(struct replay *r)
{
    const struct view *v = r->v;
    const int least = r->all_cold ? 0 : r->cold_steps;
    int64_t *count = count_events(v), sum = 0;
    int first = least + (v->n_steps - least) / 2, end = first;
    for (bool grew = true; grew;) {
        grew = false;
        if (end < v->n_steps && (end == first || sum + count[end] <= MOST_HOST_EVENTS))
            sum += count[end++], grew = true;
        if (first > least && sum + count[first - 1] <= MOST_HOST_EVENTS)
            sum += count[--first], grew = true;
    }
    free(count);
    r->first_step = first;
    r->end_step = end;
    r->n_steps = end - first;
    r->start_ns = v->steps[first].host_start_ns;
    r->end_ns = v->steps[end - 1].host_end_ns;
    if (sum > 2 * MOST_HOST_EVENTS)
        take_middle(r, (double)MOST_HOST_EVENTS / (double)sum);
    find_gaps(r);
}

static bool is_backward(const char *name) { return strstr(name, "autograd::engine::evaluate_function") != NULL; }

/* Threads whose work makes the step: the one with the step marks (or the busiest), those that run backward, and those
 * that launch a noticeable part of the device's work. Loader threads run beside the step and are left out. */
static void pick_threads(struct replay *r)
{
    const struct view *v = r->v;
    const int n = v->trace->n_tracks;
    int64_t *launches = xcalloc((size_t)n + 1, sizeof *launches), *events = xcalloc((size_t)n + 1, sizeof *events), all = 0;
    r->training = xcalloc((size_t)n + 1, sizeof *r->training);
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (!replay_covers(r, e->start_ns))
            continue;
        events[e->track] += !v->watches[e->track];
        if (v->launched[i] >= 0)
            launches[e->track]++, all++;
        if (e->kind == EVENT_HOST_OP && is_backward(view_name(v, i)))
            r->training[e->track] = true;
    }
    int busiest = 0;
    for (int t = 0; t < n; t++) {
        r->training[t] |= launches[t] * 20 > all;
        if (launches[t] > launches[busiest] || (launches[t] == launches[busiest] && events[t] > events[busiest]))
            busiest = t;
    }
    if (n > 0)
        r->training[busiest] = true;
    for (int64_t i = 0; i < v->trace->n; i++)
        if (v->trace->events[i].kind == EVENT_STEP)
            r->training[v->trace->events[i].track] = true;
    free(launches);
    free(events);
}

/* ---- items ---- */

/* Annotations are not work; time inside them belongs to what is around. Waiting for the data loader is. */
static bool is_transparent(const struct view *v, int32_t i)
{
    return view_event(v, i)->kind == EVENT_ANNOTATION && !strstr(view_name(v, i), "DataLoader");
}

static int32_t around(const struct view *v, int32_t i)
{
    do
        i = v->parent[i];
    while (i >= 0 && is_transparent(v, i));
    return i;
}

/* (n_host) whether each call waits for data or is inside one that does. The caller frees. */
static bool *find_loading(const struct view *v)
{
    bool *loads = xcalloc((size_t)v->n_host + 1, sizeof *loads);
    for (int32_t i = 0; i < v->n_host; i++)         /* parents come first */
        loads[i] = (v->parent[i] >= 0 && loads[v->parent[i]]) || strstr(view_name(v, i), "DataLoader");
    return loads;
}

static bool is_wait(const struct view *v, int32_t i)
{
    const struct event *e = view_event(v, i);
    const int call = e->kind == EVENT_RUNTIME ? v->call_kinds[e->name] : CALL_OTHER;
    if (call == CALL_FREE)
        return true;                        /* the driver gives memory back only when the device is done */
    return view_call_waits(v, i) && (call != CALL_COPY || v->launched[i] >= 0);
}

static struct cut *make_cuts(struct replay *r, int64_t *n)
{
    const struct view *v = r->v;
    int64_t count = 0;
    struct cut *cuts = NULL;
    for (int pass = 0; pass < 2; pass++) {
        if (pass)
            cuts = xcalloc((size_t)count + 1, sizeof *cuts);
        count = 0;
        for (int32_t i = 0; i < v->n_host; i++) {
            const struct event *e = view_event(v, i);
            if (!r->training[e->track] || !replay_covers(r, e->start_ns) || is_transparent(v, i))
                continue;
            if (pass) {
                cuts[count] = (struct cut){e->start_ns, i, 2 * i + 1};
                cuts[count + 1] = (struct cut){event_end(e), i, e->duration_ns > 0 ? -2 * i : 2 * i + 2};
            }
            count += 2;
        }
    }
    qsort(cuts, (size_t)count, sizeof *cuts, by_time);
    *n = count;
    return cuts;
}

/* Adds the Python frames that begin or end between cuts to the overhead of the later one. */
static void count_frames(struct replay *r, const struct cut *cuts)
{
    const struct view *v = r->v;
    for (int32_t p = v->python; p < v->python + v->n_python; p++) {
        const struct event *e = view_event(v, p);
        if (!r->training[e->track] || !replay_covers(r, e->start_ns))
            continue;
        int32_t low = 0, high = r->n_items - 1;
        while (low < high) {                /* the first item at or after the frame's begin */
            const int32_t mid = (low + high) / 2;
            if (cuts[mid].at_ns < e->start_ns)
                low = mid + 1;
            else
                high = mid;
        }
        r->items[low].overhead += 2 * FRAME;
        r->events++;
    }
}

/* What of a waiting call is its own work: the time behind the end of what it waited for. */
static int64_t own_ns(const struct event *call, int64_t awaited_ns)
{
    const int64_t from = awaited_ns > call->start_ns ? awaited_ns : call->start_ns;
    return event_end(call) > from ? event_end(call) - from : 0;
}

/* The recorded end of the latest device event that was launched so far. */
static int64_t latest_end(const struct view *v, int32_t call, int64_t latest)
{
    for (int32_t d = v->launched[call]; d >= 0; d = v->next_launched[d - v->device])
        latest = event_end(view_event(v, d)) > latest ? event_end(view_event(v, d)) : latest;
    return latest;
}

/* The profiler's events in a launch of a whole graph, besides the call. */
static float graph_overhead(const struct view *v, int32_t call)
{
    float nodes = 0;
    if (view_event(v, call)->kind != EVENT_RUNTIME || v->call_kinds[view_event(v, call)->name] != CALL_GRAPH)
        return 0;
    for (int32_t d = v->launched[call]; d >= 0; d = v->next_launched[d - v->device])
        nodes++;
    return NODE * nodes;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void make_items(struct replay *r)
{
    const struct view *v = r->v;
    int64_t n;
    struct cut *cuts = make_cuts(r, &n);
    bool *loads = find_loading(v);
    struct spans collectives = replay_find_collectives(r);
    int span = 0, gap = 0;
    r->items = xcalloc((size_t)n + 1, sizeof *r->items);
    int64_t at = r->start_ns, launched_end = INT64_MIN / 2;
    for (int64_t k = 0; k < n; k++) {
        const int32_t i = cuts[k].event;
        const struct event *e = view_event(v, i);
        const bool begins = cuts[k].order > 0 && (cuts[k].order & 1), call = e->kind == EVENT_RUNTIME;
        struct replay_item *item = &r->items[k];
        const int64_t left_out = cuts[k].at_ns > at ? spans_overlap(&r->gaps, &gap, at, cuts[k].at_ns) : 0;
        *item = (struct replay_item){.ns = cuts[k].at_ns - at - left_out, .event = i, .owner = begins ? around(v, i) : i};
        item->loader = item->owner >= 0 && loads[item->owner];
        if (collectives.n && cuts[k].at_ns > at && (item->owner < 0 || view_is_collective(v, item->owner)))
            item->comm_ns = least(spans_overlap(&collectives, &span, at, cuts[k].at_ns), item->ns);
        item->overhead = begins ? (call ? CALL_BEGIN : OP_BEGIN) : (call ? CALL_END + graph_overhead(v, i) : OP_END);
        const bool beside = k && cuts[k - 1].event != i && view_event(v, cuts[k - 1].event)->track != e->track;
        if (!begins)                        /* where another thread goes on meanwhile, the host as a whole does not wait */
            item->effect = is_wait(v, i) && !beside ? EFFECT_WAIT : v->launched[i] >= 0 ? EFFECT_LAUNCH : EFFECT_NONE;
        r->events += begins;
        r->n_ops += begins && e->kind == EVENT_HOST_OP;
        at = cuts[k].at_ns > at ? cuts[k].at_ns : at;
        if (!begins)
            launched_end = latest_end(v, i, launched_end);
        if (item->effect == EFFECT_WAIT && item->ns > own_ns(e, launched_end))
            item->ns = own_ns(e, launched_end);
        if (item->ns < 0)
            item->ns = 0;
    }
    r->n_items = (int32_t)n;
    if (n)
        count_frames(r, cuts);
    const bool ends_with_device = v->no_step_marks && !v->steps_by;     /* the host is done before: what it did then is no work */
    const int64_t rest = r->end_ns > at && !ends_with_device ? r->end_ns - at - spans_overlap(&r->gaps, &gap, at, r->end_ns) : 0;
    r->items[r->n_items++] = (struct replay_item){.ns = rest, .event = -1, .owner = -1};
    r->events /= r->n_steps;
    free(collectives.at);
    free(loads);
    free(cuts);
}

static double median(double *values, int n)
{
    stats_sort(values, n);
    return n ? stats_percentile(values, n, 0.5) : 0;
}

static void find_usual(struct replay *r)
{
    double *gaps = xcalloc((size_t)r->n_items, sizeof *gaps), *calls = xcalloc((size_t)r->n_items, sizeof *calls);
    int n_gaps = 0, n_calls = 0;
    for (int32_t k = 0; k < r->n_items; k++) {
        const struct replay_item *item = &r->items[k];
        if (item->owner < 0 && item->event >= 0)
            gaps[n_gaps++] = (double)(item->ns - item->comm_ns);
        if (item->effect == EFFECT_LAUNCH)
            calls[n_calls++] = (double)item->ns;
    }
    r->typical_gap_ns = median(gaps, n_gaps);
    r->launch_ns = median(calls, n_calls);
    free(gaps);
    free(calls);
}

/* A long launch call while the device has work waited for room in the device's queue. The host was not working. */
static void take_out_blocked(struct replay *r)
{
    int64_t launched_end = INT64_MIN / 2;
    for (int32_t k = 0; k < r->n_items; k++) {
        struct replay_item *item = &r->items[k];
        if (item->effect == EFFECT_NONE)
            continue;
        const int64_t end = event_end(view_event(r->v, item->event));
        if (item->effect == EFFECT_LAUNCH && (double)item->ns > BLOCKED * r->launch_ns && item->ns > LEAST_BLOCKED_NS &&
            launched_end > end)
            item->ns = (int64_t)r->launch_ns;
        launched_end = latest_end(r->v, item->event, launched_end);
    }
}

enum status replay_init(struct replay *r, const struct view *v, struct error *err)
{
    if (v->n_steps < 1)
        return error_set(err, BAD_INPUT, "the trace has no step to replay");
    *r = (struct replay){.v = v, .cost = {1, 1, 1}};
    replay_find_cold(r);
    pick_steps(r);
    pick_threads(r);
    make_items(r);
    find_usual(r);
    take_out_blocked(r);
    replay_take_out_cold(r);
    replay_find_streams(r);
    return OK;
}

void replay_release(struct replay *r)
{
    free(r->items);
    free(r->waits_for);
    free(r->device_of);
    free(r->busy_ns);
    free(r->training);
    free(r->gaps.at);
    free(r->cold);
    *r = (struct replay){0};
}
