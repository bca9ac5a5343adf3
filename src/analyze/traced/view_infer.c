/* Steps of a trace without marks. What a training or decoding loop does once in every turn cuts its thread's time into steps: the
 * optimizer's step, the next batch of the loader, or what is called again and again with equally many launches between and moves
 * data to or from the device each time (a layer is called again and again too, but moves none). What is left is one step: from
 * the device's first event to its last, whatever the host did before and behind. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/view_int.h"
#include "analyze/traced/view_sort.h"
#include "core/stats.h"

enum { LEAST_TURNS = 3, MOST_CANDIDATES = 12, MOST_THREADS = 4 };
static const double ALIKE = 0.3;            /* launches of a turn differ from the median by no more */
static const double MOST_OF = 0.8;          /* of the turns are alike */
static const double COVERED = 0.6;          /* of the device's time is launched in them */

/* ---- what all threads together launch and move ---- */

struct call {                               /* one that launches or moves; after sorting with all before it */
    int64_t at_ns;
    double device_ns;
    int32_t launches, moves;                /* moves: copies to and from the host, and waits */
};

static inline bool call_before(const struct call *a, const struct call *b) { return a->at_ns < b->at_ns; }

SORT_DEFINE(sort_calls, struct call, call_before)

struct along {
    struct call *calls;                     /* (n) by start */
    int32_t n;
    double all_ns;                          /* of the device */
};

static bool is_move(const struct view *v, int32_t call)
{
    const int32_t d = v->launched[call];
    if (d >= 0 && view_event(v, d)->kind == EVENT_MEMCPY)
        return strstr(view_name(v, d), "HtoD") || strstr(view_name(v, d), "DtoH");
    return view_call_waits(v, call);
}

static bool counts(const struct view *v, int32_t i)
{
    const struct event *e = view_event(v, i);
    return e->kind == EVENT_RUNTIME && !v->watches[e->track] && (v->launched[i] >= 0 || view_call_waits(v, i));
}

static struct along along_make(const struct view *v)
{
    struct along a = {0};
    for (int32_t i = 0; i < v->n_host; i++)
        a.n += counts(v, i);
    a.calls = xcalloc((size_t)a.n + 1, sizeof *a.calls);
    int32_t k = 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        if (!counts(v, i))
            continue;
        struct call *c = &a.calls[k++];
        *c = (struct call){.at_ns = view_event(v, i)->start_ns, .launches = v->launched[i] >= 0, .moves = is_move(v, i)};
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            c->device_ns += (double)view_event(v, d)->duration_ns;
    }
    sort_calls(a.calls, a.n);
    for (k = 1; k < a.n; k++) {
        a.calls[k].launches += a.calls[k - 1].launches;
        a.calls[k].moves += a.calls[k - 1].moves;
        a.calls[k].device_ns += a.calls[k - 1].device_ns;
    }
    for (int32_t d = 0; d < v->n_device; d++)
        a.all_ns += (double)view_event(v, v->device + d)->duration_ns;
    return a;
}

/* Of all calls before a moment. */
static struct call before(const struct along *a, int64_t at_ns)
{
    int32_t low = 0, high = a->n;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (a->calls[mid].at_ns < at_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? a->calls[low - 1] : (struct call){0};
}

/* ---- threads ---- */

struct thread {                             /* host events [from, to) */
    int32_t from, to;
    int64_t own;                            /* ops and ranges outside of backward nodes: the user's code runs here */
};

static int by_own(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    return x->own != y->own ? (x->own < y->own) - (x->own > y->own) : (x->from > y->from) - (x->from < y->from);
}

/* Those with most of the user's own ops first; returns how many. The caller frees. */
static int list_threads(const struct view *v, struct thread **out)
{
    struct thread *t = xcalloc((size_t)v->trace->n_tracks + 1, sizeof *t);
    int n = 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (!i || view_event(v, i - 1)->track != e->track)
            t[n++] = (struct thread){.from = i};
        t[n - 1].to = i + 1;
        t[n - 1].own += e->kind != EVENT_RUNTIME && v->parent[i] < 0 && !strstr(view_name(v, i), "evaluate_function");
    }
    qsort(t, (size_t)n, sizeof *t, by_own);
    *out = t;
    return n;
}

/* ---- turns ---- */

struct turns { int64_t *at_ns; int n; };    /* where each begins; the last is where the one before it ends */

static bool are_alike(const struct along *a, const struct turns *t)
{
    const int n = t->n - 1;
    double *launches = xcalloc((size_t)n, sizeof *launches), device_ns = 0;
    bool moves = true;
    for (int i = 0; i < n && moves; i++) {
        const struct call from = before(a, t->at_ns[i]), to = before(a, t->at_ns[i + 1]);
        launches[i] = to.launches - from.launches;
        moves = to.moves > from.moves;
        device_ns += to.device_ns - from.device_ns;
    }
    stats_sort(launches, n);
    const double usual = stats_percentile(launches, n, 0.5);
    int alike = 0;
    for (int i = 0; i < n; i++)
        alike += launches[i] >= (1 - ALIKE) * usual && launches[i] <= (1 + ALIKE) * usual;
    free(launches);
    return moves && usual > 0 && alike >= MOST_OF * n && device_ns >= COVERED * a->all_ns;
}

/* Where calls with the name begin, or end. */
static struct turns turns_of(const struct view *v, const struct thread *on, int32_t name, bool ends)
{
    struct turns t = {0};
    for (int pass = 0; pass < 2; pass++) {
        t.n = 0;
        for (int32_t i = on->from; i < on->to; i++) {
            const struct event *e = view_event(v, i);
            if (e->name != name || (t.n && pass && e->start_ns < t.at_ns[t.n - 1]))
                continue;
            if (pass)
                t.at_ns[t.n] = ends ? event_end(e) : e->start_ns;
            t.n++;
        }
        if (!pass)
            t.at_ns = xcalloc((size_t)t.n + 1, sizeof *t.at_ns);
    }
    return t;
}

static bool take(struct view *v, const struct turns *t, const char *by)
{
    v->steps = arena_alloc(&v->arena, ((size_t)t->n + 1) * sizeof *v->steps);
    for (int i = 0; i + 1 < t->n; i++)
        if (t->at_ns[i + 1] > t->at_ns[i]) {
            v->steps[v->n_steps] = step_window_new(v->n_steps, t->at_ns[i], t->at_ns[i + 1]);
            v->n_steps++;
        }
    v->steps_by = by;
    return v->n_steps > 0;
}

/* ---- several updates that make a step: of networks that are trained in turns ---- */

enum { MOST_UPDATES = 8 };                  /* of one step */

static int by_value(const void *a, const void *b) { return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b); }

static int32_t count_before(const int64_t *sorted, int32_t n, int64_t at)
{
    int32_t low = 0, high = n;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (sorted[mid] < at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* (t->n - 1) how many parameters have got a gradient in each turn. The caller frees. */
static int32_t *count_gradients(const struct view *v, const struct turns *t)
{
    int64_t *at = xcalloc((size_t)v->n_host + 1, sizeof *at);
    int32_t *count = xcalloc((size_t)t->n, sizeof *count), n = 0;
    for (int32_t i = 0; i < v->n_host; i++)
        if (strstr(view_name(v, i), "evaluate_function: torch::autograd::AccumulateGrad"))
            at[n++] = view_event(v, i)->start_ns;
    qsort(at, (size_t)n, sizeof *at, by_value);
    for (int i = 0; i + 1 < t->n; i++)
        count[i] = count_before(at, n, t->at_ns[i + 1]) - count_before(at, n, t->at_ns[i]);
    free(at);
    return count;
}

static bool repeats_after(const int32_t *count, int n, int period)
{
    for (int i = 0; i + period < n; i++)
        if (count[i] != count[i + period])
            return false;
    return true;
}

/* Turns of different networks come in the same order again and again: of each round the last cut stays. A recording begins where a round does. */
static void join_rounds(const struct view *v, struct turns *t)
{
    int32_t *count = count_gradients(v, t);
    const int n = t->n - 1;
    int period = 1;
    while (period <= MOST_UPDATES && !repeats_after(count, n, period))
        period++;
    free(count);
    if (period == 1 || period > MOST_UPDATES || n < 2 * period)
        return;
    int kept = 0;
    for (int i = period - 1; i < t->n; i += period)
        t->at_ns[kept++] = t->at_ns[i];
    t->n = kept;
}

/* By a call that is known to happen once in a step. */
static bool by_known(struct view *v, const struct thread *on, const char *start, const char *part, bool ends, const char *by)
{
    for (int32_t i = on->from; i < on->to; i++) {
        const char *name = view_name(v, i);
        if (view_event(v, i)->kind == EVENT_RUNTIME || strncmp(name, start, strlen(start)) || !strstr(name, part))
            continue;
        struct turns t = turns_of(v, on, view_event(v, i)->name, ends);
        if (ends && t.n >= 2)
            join_rounds(v, &t);
        const bool taken = t.n >= 2 && take(v, &t, by);
        free(t.at_ns);
        return taken;
    }
    return false;
}

/* Outermost ops, the user's ranges, and launches of graphs. */
static bool may_begin(const struct view *v, int32_t i)
{
    const struct event *e = view_event(v, i);
    if (e->kind == EVENT_RUNTIME)
        return v->call_kinds[e->name] == CALL_GRAPH;
    return e->kind == EVENT_ANNOTATION || v->parent[i] < 0 || view_op_around(v, v->parent[i]) < 0;
}

struct candidate { int32_t name, count, first, last; };       /* first, last: events */

static int by_count(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count) - (x->count < y->count) : (x->first > y->first) - (x->first < y->first);
}

/* Names that begin something often enough and over most of what the thread launched; the rarest first. The caller frees. */
static struct candidate *find_candidates(const struct view *v, const struct along *a, const struct thread *on, int *n)
{
    const int32_t names = v->trace->n_names;
    struct candidate *c = xcalloc((size_t)names + 1, sizeof *c);
    *n = 0;
    for (int32_t i = on->from; i < on->to; i++) {
        struct candidate *k = &c[view_event(v, i)->name];
        if (!may_begin(v, i))
            continue;
        k->first = k->count++ ? k->first : i;
        k->last = i;
    }
    for (int32_t name = 0; name < names; name++) {
        const struct candidate k = {name, c[name].count, c[name].first, c[name].last};
        if (k.count < LEAST_TURNS)
            continue;
        const double ns = before(a, view_event(v, k.last)->start_ns).device_ns - before(a, view_event(v, k.first)->start_ns).device_ns;
        if (ns >= COVERED * a->all_ns)
            c[(*n)++] = k;
    }
    qsort(c, (size_t)*n, sizeof *c, by_count);
    return c;
}

static bool by_turns(struct view *v, const struct along *a, const struct thread *on)
{
    int n;
    struct candidate *c = find_candidates(v, a, on, &n);
    bool taken = false;
    for (int i = 0; i < n && i < MOST_CANDIDATES && !taken; i++) {
        struct turns t = turns_of(v, on, c[i].name, false);
        taken = are_alike(a, &t) && take(v, &t, v->trace->names[c[i].name]);
        free(t.at_ns);
    }
    free(c);
    return taken;
}

/* ---- one step ---- */

/* The device's time; of the host, what lies beside it and what follows the first launch. Without a device all there is. */
static void take_whole(struct view *v)
{
    struct step_window w = step_window_new(0, v->first_ns, v->last_ns + 1);
    if (v->n_device) {
        w.start_ns = INT64_MAX, w.end_ns = INT64_MIN;
        for (int32_t d = v->device; d < v->device + v->n_device; d++) {
            const struct event *e = view_event(v, d);
            if (!e->start_ns && !e->duration_ns)
                continue;
            w.start_ns = e->start_ns < w.start_ns ? e->start_ns : w.start_ns;
            w.end_ns = event_end(e) > w.end_ns ? event_end(e) : w.end_ns;
        }
        if (w.start_ns > w.end_ns)
            w.start_ns = v->first_ns, w.end_ns = v->last_ns;
        w.host_start_ns = w.start_ns;
        w.host_end_ns = ++w.end_ns;
        for (int32_t i = 0; i < v->n_host; i++)
            if (v->launched[i] >= 0 && view_event(v, i)->start_ns < w.host_start_ns)
                w.host_start_ns = view_event(v, i)->start_ns;
        w.device_end_ns = w.start_ns;
    }
    v->steps = arena_alloc(&v->arena, sizeof *v->steps);
    v->steps[v->n_steps++] = w;
}

void view_infer_steps(struct view *v)
{
    struct thread *threads = NULL;
    const int n = list_threads(v, &threads), some = n < MOST_THREADS ? n : MOST_THREADS;
    bool taken = false;
    for (int i = 0; i < some && !taken; i++)
        taken = by_known(v, &threads[i], "Optimizer.step#", "", true, "Optimizer.step");
    for (int i = 0; i < some && !taken; i++)
        taken = by_known(v, &threads[i], "enumerate(DataLoader)", "__next__", false, "the loader's batches");
    if (!taken && n && v->n_device) {
        struct along a = along_make(v);
        for (int i = 0; i < some && !taken; i++)
            taken = by_turns(v, &a, &threads[i]);
        free(a.calls);
    }
    if (!taken)
        take_whole(v);
    free(threads);
}
