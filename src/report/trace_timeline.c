/* The median step of an imported trace for the page: rows (threads, then streams), names, and events as short arrays, times
 * relative to the step's start. A step can have a million events, so the rows share a budget evenly, what one does not
 * need goes to the others, and each keeps its longest events. A few passes over the events, no sorting. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "report/report_int.h"

enum { MAX_EVENTS = 6000, MAX_ROWS_OF_KIND = 16, BUCKETS = 64 * 8 };

struct row {
    int64_t n, busy_ns, first_ns;
    int64_t *lengths;                   /* (BUCKETS) events by length, see bucket_of; NULL: the row is not shown */
    int shortest;                       /* the bucket below which events are left out */
    int64_t spare;                      /* events of that very bucket that still fit */
};

struct sheet {
    const struct trace *trace;
    int64_t start_ns, end_ns;
    struct row *rows;                   /* (n_tracks) */
    struct arena arena;
    int32_t *name_ids;                  /* (n_names) index into names + 1; 0: not used */
    json_t *step, *names, *events;
    int64_t left_out;
};

static int64_t end_of(const struct event *e) { return e->start_ns + e->duration_ns; }

/* Python frames are left out: their stacks are deeper than a page shows. */
static const char *kind_of(const struct event *e)
{
    switch (e->kind) {
    case EVENT_STEP: return "step";
    case EVENT_ANNOTATION: return "annotation";
    case EVENT_HOST_OP: return "op";
    case EVENT_RUNTIME: return "runtime";
    case EVENT_OVERHEAD: return "overhead";
    case EVENT_KERNEL: return "kernel";
    case EVENT_MEMCPY: return "memcpy";
    case EVENT_MEMSET: return "memset";
    default: return NULL;
    }
}

/* An event's step is an index into the diagnosis's steps, that of a step's own mark its number. Ranges that a user named
 * may be longer than their step. */
static bool is_of_step(const struct event *e, const struct diagnosis *d)
{
    if (e->kind == EVENT_STEP)
        return e->step == diagnosis_timeline_number(d);
    return e->step == d->timeline_step && kind_of(e) && e->kind != EVENT_ANNOTATION && e->kind != EVENT_OVERHEAD;
}

static void find_window(struct sheet *s, const struct diagnosis *d)
{
    const bool known = d->timeline_step >= 0 && d->timeline_step < d->n_steps;
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (int64_t i = 0; known && i < s->trace->n; i++) {
        const struct event *e = &s->trace->events[i];
        if (!is_of_step(e, d))
            continue;
        start = e->start_ns < start ? e->start_ns : start;
        end = end_of(e) > end ? end_of(e) : end;
    }
    s->start_ns = end > start ? start : 0;
    s->end_ns = end > start ? end : 0;
    s->step = known ? json_integer(diagnosis_timeline_number(d)) : json_null();
}

static bool is_shown(const struct sheet *s, const struct event *e)
{
    return e->duration_ns >= 0 && e->start_ns < s->end_ns && end_of(e) > s->start_ns && e->track >= 0 && e->track < s->trace->n_tracks &&
           e->name >= 0 && e->name < s->trace->n_names && kind_of(e);
}

static int64_t shown_ns(const struct sheet *s, const struct event *e)
{
    const int64_t start = e->start_ns > s->start_ns ? e->start_ns : s->start_ns;
    return (end_of(e) < s->end_ns ? end_of(e) : s->end_ns) - start;
}

/* Lengths in eighths of a power of two, so that a longer event is never in a lower bucket. */
static int bucket_of(int64_t ns)
{
    if (ns < 8)
        return (int)ns;
    const int power = 63 - __builtin_clzll((unsigned long long)ns);
    return 8 * (power - 2) + (int)(ns >> (power - 3) & 7);
}

static void count_rows(struct sheet *s)
{
    for (int64_t i = 0; i < s->trace->n; i++) {
        const struct event *e = &s->trace->events[i];
        if (!is_shown(s, e))
            continue;
        struct row *row = &s->rows[e->track];
        row->first_ns = !row->n || e->start_ns < row->first_ns ? e->start_ns : row->first_ns;
        row->busy_ns += shown_ns(s, e);
        row->n++;
        s->left_out++;
    }
}

/* Takes the rows of one kind that have the most time. */
static void choose_rows(struct sheet *s, enum track_kind kind)
{
    for (int chosen = 0; chosen < MAX_ROWS_OF_KIND; chosen++) {
        struct row *best = NULL;
        for (int i = 0; i < s->trace->n_tracks; i++) {
            struct row *row = &s->rows[i];
            if (s->trace->tracks[i].kind == kind && row->n && !row->lengths && (!best || row->busy_ns > best->busy_ns))
                best = row;
        }
        if (!best)
            return;
        best->lengths = arena_alloc(&s->arena, BUCKETS * sizeof *best->lengths);
    }
}

static void count_lengths(struct sheet *s)
{
    for (int64_t i = 0; i < s->trace->n; i++) {
        const struct event *e = &s->trace->events[i];
        if (is_shown(s, e) && s->rows[e->track].lengths)
            s->rows[e->track].lengths[bucket_of(shown_ns(s, e))]++;
    }
}

/* The most events a row may have so that all rows together stay within the budget. */
static int64_t share_of_a_row(const struct sheet *s)
{
    int64_t low = 0, high = MAX_EVENTS;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        int64_t sum = 0;
        for (int i = 0; i < s->trace->n_tracks; i++)
            if (s->rows[i].lengths)
                sum += s->rows[i].n < middle ? s->rows[i].n : middle;
        if (sum <= MAX_EVENTS)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void limit_rows(struct sheet *s)
{
    const int64_t share = share_of_a_row(s);
    for (int i = 0; i < s->trace->n_tracks; i++) {
        struct row *row = &s->rows[i];
        row->spare = share;
        row->shortest = BUCKETS - 1;
        while (row->lengths && row->shortest > 0 && row->lengths[row->shortest] <= row->spare)
            row->spare -= row->lengths[row->shortest--];
    }
}

static int name_id(struct sheet *s, int32_t name)
{
    if (!s->name_ids[name]) {
        s->names = report_array(s->names, report_name(s->trace->names[name]));
        s->name_ids[name] = (int32_t)json_array_size(s->names);
    }
    return s->name_ids[name] - 1;
}

static bool keep(struct row *row, int bucket)
{
    return bucket > row->shortest || (bucket == row->shortest && row->spare-- > 0);
}

static void put_events(struct sheet *s)
{
    for (int64_t i = 0; i < s->trace->n; i++) {
        const struct event *e = &s->trace->events[i];
        if (!is_shown(s, e) || !s->rows[e->track].lengths || !keep(&s->rows[e->track], bucket_of(shown_ns(s, e))))
            continue;
        const int64_t start = e->start_ns > s->start_ns ? e->start_ns - s->start_ns : 0;
        s->events = report_array(s->events, json_pack("[i,f,f,s,i]", e->track, (double)start / 1e3,
                                                      (double)shown_ns(s, e) / 1e3, kind_of(e), name_id(s, e->name)));
        s->left_out--;
    }
}

static json_t *track(const struct trace *t, int i)
{
    const struct trace_track *k = &t->tracks[i];
    const bool stream = k->kind == TRACK_DEVICE_STREAM, named = k->label >= 0 && k->label < t->n_names;
    char name[64];
    if (stream)
        snprintf(name, sizeof name, "GPU %lld stream %lld", (long long)k->pid, (long long)k->tid);
    else
        snprintf(name, sizeof name, "thread %lld", (long long)k->tid);
    return json_pack("{s:i,s:s,s:o,s:s}", "track", i, "name", name, "label", named ? report_name(t->names[k->label]) : json_null(),
                     "kind", stream ? "stream" : "thread");
}

/* Threads in the order in which they begin, so that the one that drives the step is the first; then streams by number. */
static bool comes_before(const struct sheet *s, int a, int b)
{
    const struct trace_track *x = &s->trace->tracks[a], *y = &s->trace->tracks[b];
    if (x->kind != y->kind)
        return x->kind < y->kind;
    if (x->kind == TRACK_HOST_THREAD)
        return s->rows[a].first_ns < s->rows[b].first_ns;
    return x->pid != y->pid ? x->pid < y->pid : x->tid < y->tid;
}

static json_t *tracks(const struct sheet *s)
{
    int order[2 * MAX_ROWS_OF_KIND], n = 0;
    for (int i = 0; i < s->trace->n_tracks; i++) {
        int at = n;
        if (!s->rows[i].lengths)
            continue;
        for (; at > 0 && comes_before(s, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        n++;
    }
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        list = report_array(list, track(s->trace, order[i]));
    return list;
}

json_t *report_trace_timeline(const struct diagnosis *d)
{
    static const struct trace none;
    struct sheet s = {.trace = d->trace ? d->trace : &none, .names = json_array(), .events = json_array()};
    s.rows = xcalloc((size_t)s.trace->n_tracks + 1, sizeof *s.rows);
    s.name_ids = xcalloc((size_t)s.trace->n_names + 1, sizeof *s.name_ids);
    find_window(&s, d);
    count_rows(&s);
    choose_rows(&s, TRACK_HOST_THREAD);
    choose_rows(&s, TRACK_DEVICE_STREAM);
    count_lengths(&s);
    limit_rows(&s);
    put_events(&s);
    json_t *timeline = json_pack("{s:o,s:f,s:I,s:[s,s,s,s,s],s:o,s:o,s:o}", "step", s.step, "us",
                                 (double)(s.end_ns - s.start_ns) / 1e3, "left_out", (json_int_t)s.left_out, "fields",
                                 "track", "start_us", "us", "kind", "name", "tracks", tracks(&s), "names", s.names,
                                 "events", s.events);
    arena_release(&s.arena);
    free(s.rows);
    free(s.name_ids);
    return timeline;
}
