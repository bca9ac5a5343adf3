/* Steps of a trace without marks. What a training or decoding loop does once in every turn cuts its thread's time into steps: the
 * optimizer's step, the next batch of the loader, or what is called again and again with equally many launches between and moves
 * data to or from the device each time (a layer is called again and again too, but moves none). What is left is one step: from
 * the device's first event to its last, whatever the host did before and behind. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/view_int.h"
#include "core/stats.h"

enum { LEAST_TURNS = 3, MOST_CANDIDATES = 12 };
static const double ALIKE = 0.3;            /* launches of a turn differ from the median by no more */
static const double MOST_OF = 0.8;          /* of the turns are alike */
static const double COVERED = 0.6;          /* of the device's time is launched in them */

/* ---- the thread whose turns are looked at ---- */

/* The one that launches most; of equal ones the one with most ops. */
static int main_track(const struct view *v)
{
    const int n = v->trace->n_tracks;
    int64_t *launches = xcalloc((size_t)n + 1, sizeof *launches), *ops = xcalloc((size_t)n + 1, sizeof *ops);
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        launches[e->track] += v->launched[i] >= 0;
        ops[e->track] += e->kind != EVENT_RUNTIME;
    }
    int best = 0;
    for (int t = 1; t < n; t++)
        if (launches[t] > launches[best] || (launches[t] == launches[best] && ops[t] > ops[best]))
            best = t;
    free(launches);
    free(ops);
    return best;
}

/* ---- what is counted along that thread ---- */

struct along {                              /* its runtime calls by start, with sums of all before and including each */
    int64_t *at_ns;
    int32_t *launches, *moves;              /* moves: copies to and from the host, and waits */
    double *device_ns;
    int32_t n;
    int32_t from, to;                       /* the thread's host events */
    double all_ns;                          /* of the device, by any thread */
};

static bool is_move(const struct view *v, int32_t call)
{
    const int32_t d = v->launched[call];
    if (d >= 0 && view_event(v, d)->kind == EVENT_MEMCPY)
        return strstr(view_name(v, d), "HtoD") || strstr(view_name(v, d), "DtoH");
    return view_call_waits(v, call);
}

static struct along along_make(const struct view *v, int track)
{
    struct along a = {0};
    while (a.from < v->n_host && view_event(v, a.from)->track != track)
        a.from++;
    for (a.to = a.from; a.to < v->n_host && view_event(v, a.to)->track == track; a.to++)
        a.n += view_event(v, a.to)->kind == EVENT_RUNTIME;
    a.at_ns = xcalloc((size_t)a.n + 1, sizeof *a.at_ns);
    a.launches = xcalloc(2 * ((size_t)a.n + 1), sizeof *a.launches);
    a.moves = a.launches + a.n + 1;
    a.device_ns = xcalloc((size_t)a.n + 1, sizeof *a.device_ns);
    int32_t k = 0;
    for (int32_t i = a.from; i < a.to; i++) {
        if (view_event(v, i)->kind != EVENT_RUNTIME)
            continue;
        a.at_ns[k] = view_event(v, i)->start_ns;
        a.launches[k + 1] = a.launches[k] + (v->launched[i] >= 0);
        a.moves[k + 1] = a.moves[k] + is_move(v, i);
        a.device_ns[k + 1] = a.device_ns[k];
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            a.device_ns[k + 1] += (double)view_event(v, d)->duration_ns;
        k++;
    }
    for (int32_t d = 0; d < v->n_device; d++)
        a.all_ns += (double)view_event(v, v->device + d)->duration_ns;
    return a;
}

static void along_release(struct along *a)
{
    free(a->at_ns);
    free(a->launches);
    free(a->device_ns);
}

static int32_t calls_before(const struct along *a, int64_t at_ns)
{
    int32_t low = 0, high = a->n;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (a->at_ns[mid] < at_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* ---- turns ---- */

struct turns { int64_t *at_ns; int n; };    /* where each begins; the last is where the one before it ends */

static bool are_alike(const struct along *a, const struct turns *t)
{
    const int n = t->n - 1;
    double *launches = xcalloc((size_t)n, sizeof *launches), device_ns = 0;
    bool moves = true;
    for (int i = 0; i < n && moves; i++) {
        const int32_t from = calls_before(a, t->at_ns[i]), to = calls_before(a, t->at_ns[i + 1]);
        launches[i] = a->launches[to] - a->launches[from];
        moves = a->moves[to] > a->moves[from];
        device_ns += a->device_ns[to] - a->device_ns[from];
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
static struct turns turns_of(const struct view *v, const struct along *a, int32_t name, bool ends)
{
    struct turns t = {0};
    for (int pass = 0; pass < 2; pass++) {
        t.n = 0;
        for (int32_t i = a->from; i < a->to; i++) {
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

/* By a call that is known to happen once in a step. */
static bool by_known(struct view *v, const struct along *a, const char *start, const char *part, bool ends, const char *by)
{
    for (int32_t i = a->from; i < a->to; i++) {
        const char *name = view_name(v, i);
        if (view_event(v, i)->kind == EVENT_RUNTIME || strncmp(name, start, strlen(start)) || !strstr(name, part))
            continue;
        struct turns t = turns_of(v, a, view_event(v, i)->name, ends);
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
static struct candidate *find_candidates(const struct view *v, const struct along *a, int *n)
{
    const int32_t names = v->trace->n_names;
    struct candidate *c = xcalloc((size_t)names + 1, sizeof *c);
    *n = 0;
    for (int32_t i = a->from; i < a->to; i++) {
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
        const double ns = a->device_ns[calls_before(a, view_event(v, k.last)->start_ns)] -
                          a->device_ns[calls_before(a, view_event(v, k.first)->start_ns)];
        if (ns >= COVERED * a->all_ns)
            c[(*n)++] = k;
    }
    qsort(c, (size_t)*n, sizeof *c, by_count);
    return c;
}

static bool by_turns(struct view *v, const struct along *a)
{
    int n;
    struct candidate *c = find_candidates(v, a, &n);
    bool taken = false;
    for (int i = 0; i < n && i < MOST_CANDIDATES && !taken; i++) {
        struct turns t = turns_of(v, a, c[i].name, false);
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
    bool taken = false;
    if (v->n_host) {
        struct along a = along_make(v, main_track(v));
        taken = by_known(v, &a, "Optimizer.step#", "", true, "Optimizer.step") ||
                by_known(v, &a, "enumerate(DataLoader)", "__next__", false, "the loader's batches") ||
                (v->n_device && by_turns(v, &a));
        along_release(&a);
    }
    if (!taken)
        take_whole(v);
}
