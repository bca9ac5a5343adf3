/* The judged steps by modules of the model (or by ranges that the user named), and by Python functions. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/study.h"

enum { MOST_MODULES = 200, MOST_FRAMES = 200 };
static const char module_head[] = "nn.Module: ";

static bool is_module(const struct view *v, int32_t frame) { return !strncmp(view_name(v, frame), module_head, sizeof module_head - 1); }

/* Of a thread that makes the step, within the judged ones. */
static bool frame_counts(const struct study *s, int32_t frame)
{
    const struct event *e = view_event(s->v, frame);
    return s->replay->training[e->track] && replay_covers(s->replay, e->start_ns);
}

/* Frames that are open while all are gone through in their order. One inside of another of its name, as a call of itself is, has its
 * time there already. */
struct open_frames {
    const struct study *s;
    int32_t *depth;                         /* (names) how many that count are open */
    int32_t last;                           /* the innermost; -1: none */
};

static struct open_frames open_frames(const struct study *s)
{
    return (struct open_frames){s, xcalloc((size_t)s->v->trace->n_names + 1, sizeof(int32_t)), -1};
}

/* Returns whether the frame, which counts or not, is in no other of its name that does. */
static bool open_frame(struct open_frames *o, int32_t frame)
{
    const struct event *e = view_event(o->s->v, frame);
    while (o->last >= 0 && o->last != e->step) {
        const struct event *closed = view_event(o->s->v, o->last);
        o->depth[closed->name] -= frame_counts(o->s, o->last);
        o->last = closed->step;
    }
    o->last = frame;
    o->depth[e->name] += frame_counts(o->s, frame);
    return o->depth[e->name] <= 1;
}

/* ---- modules and ranges ---- */

struct sums {
    struct trace_module *at;
    int32_t *index;                         /* (names) row + 1 */
    int32_t *last;                          /* (names) the device event that a name got last, + 1 */
    int n, cap;
};

static struct trace_module *row_of(struct sums *m, const struct view *v, int32_t name, bool module)
{
    if (!m->index[name]) {
        if (m->n == m->cap) {
            m->cap = m->cap ? 2 * m->cap : 64;
            m->at = xrealloc(m->at, (size_t)m->cap * sizeof *m->at);
        }
        m->at[m->n] = (struct trace_module){.name = v->trace->names[name] + (module ? sizeof module_head - 1 : 0)};
        m->index[name] = ++m->n;
    }
    return &m->at[m->index[name] - 1];
}

struct work { int32_t event, host; bool backward; };        /* of the device, and the call or op that it belongs to */

/* Once for a name, however many of it are inside each other. */
static void add_to_name(const struct study *s, struct sums *m, int32_t name, const struct work *w, bool module)
{
    if (m->last[name] == w->event + 1)
        return;
    m->last[name] = w->event + 1;
    struct trace_module *row = row_of(m, s->v, name, module);
    *(w->backward ? &row->backward_us : &row->forward_us) += (double)view_event(s->v, w->event)->duration_ns / 1e3;
}

/* Adds to all modules around a call. */
static void add_to_modules(const struct study *s, struct sums *m, const struct work *w)
{
    const struct view *v = s->v;
    const struct event *e = view_event(v, w->host);
    for (int32_t frame = view_python_at(v, e->track, e->start_ns, true); frame >= 0; frame = view_event(v, frame)->step)
        if (is_module(v, frame))
            add_to_name(s, m, view_event(v, frame)->name, w, true);
}

static void add_to_ranges(const struct study *s, struct sums *m, const struct work *w)
{
    for (int32_t i = s->v->parent[w->host]; i >= 0; i = s->v->parent[i])
        if (study_is_range(s, i))
            add_to_name(s, m, view_event(s->v, i)->name, w, false);
}

static void add_frames(const struct study *s, struct sums *m)
{
    const struct view *v = s->v;
    struct open_frames open = open_frames(s);
    for (int32_t f = v->python; f < v->python + v->n_python; f++) {
        const bool outermost = open_frame(&open, f);
        if (is_module(v, f) && frame_counts(s, f)) {
            struct trace_module *row = row_of(m, v, view_event(v, f)->name, true);
            row->count++;
            row->host_us += outermost ? (double)view_event(v, f)->duration_ns / 1e3 : 0;
        }
    }
    free(open.depth);
}

/* Nesting of the host's events is bounded (view_nest.c). */
static bool is_inside_its_name(const struct study *s, int32_t range)
{
    for (int32_t i = s->v->parent[range]; i >= 0; i = s->v->parent[i])
        if (view_event(s->v, i)->name == view_event(s->v, range)->name && study_has(s, i) && study_is_range(s, i))
            return true;
    return false;
}

static void add_ranges(const struct study *s, struct sums *m)
{
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (study_has(s, i) && study_is_range(s, i)) {
            struct trace_module *row = row_of(m, s->v, view_event(s->v, i)->name, false);
            row->count++;
            row->host_us += is_inside_its_name(s, i) ? 0 : (double)view_event(s->v, i)->duration_ns / 1e3;
        }
}

static int by_device(const void *a, const void *b)
{
    const struct trace_module *x = a, *y = b;
    const double p = x->forward_us + x->backward_us, q = y->forward_us + y->backward_us;
    if (p != q)
        return p < q ? 1 : -1;
    return x->host_us < y->host_us ? 1 : x->host_us > y->host_us ? -1 : strcmp(x->name, y->name);
}

/* What a call launched goes to what is around it, and where that is a backward node also to what is around the op of forward. */
static double add_work(const struct study *s, struct sums *m, bool ranges)
{
    const struct view *v = s->v;
    double all = 0;
    for (int32_t d = 0; d < v->n_device; d++) {
        const int32_t call = v->launch[d];
        if (call < 0 || !study_has(s, call))
            continue;
        const int32_t forward = study_forward_of(s, call);
        const struct work w = {v->device + d, forward >= 0 ? forward : call, forward >= 0};
        all += (double)view_event(v, w.event)->duration_ns / 1e3;
        (ranges ? add_to_ranges : add_to_modules)(s, m, &w);
    }
    return all;
}

void study_modules(struct study *s)
{
    struct diagnosis *d = s->d;
    const size_t names = (size_t)s->v->trace->n_names + 1;
    struct sums m = {.index = xcalloc(names, sizeof *m.index), .last = xcalloc(names, sizeof *m.last)};
    add_frames(s, &m);
    const bool ranges = !m.n;
    if (ranges)
        add_ranges(s, &m);
    const double all = m.n ? add_work(s, &m, ranges) : 0;
    if (m.n)
        qsort(m.at, (size_t)m.n, sizeof *m.at, by_device);
    d->modules_are_ranges = ranges;
    d->n_modules = m.n < MOST_MODULES ? m.n : MOST_MODULES;
    d->modules = arena_alloc(&d->arena, (size_t)(d->n_modules + 1) * sizeof *d->modules);
    assert(m.at || d->n_modules == 0);
    for (int i = 0; i < d->n_modules; i++) {
        const struct trace_module *r = &m.at[i];
        d->modules[i] = (struct trace_module){r->name, per_step(s, r->count), per_step(s, r->host_us), per_step(s, r->forward_us),
                                              per_step(s, r->backward_us), all > 0 ? (r->forward_us + r->backward_us) / all : 0};
    }
    free(m.at);
    free(m.index);
    free(m.last);
}

/* ---- Python's own time ---- */

struct own {
    struct trace_frame *at;
    int32_t *index;
    int n, cap;
};

static struct trace_frame *own_of(struct own *o, const struct view *v, int32_t name)
{
    if (!o->index[name]) {
        if (o->n == o->cap) {
            o->cap = o->cap ? 2 * o->cap : 64;
            o->at = xrealloc(o->at, (size_t)o->cap * sizeof *o->at);
        }
        o->at[o->n] = (struct trace_frame){.name = v->trace->names[name]};
        o->index[name] = ++o->n;
    }
    return &o->at[o->index[name] - 1];
}

static int by_self(const void *a, const void *b)
{
    const struct trace_frame *x = a, *y = b;
    if (x->self_us != y->self_us)
        return x->self_us < y->self_us ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Ops and calls are not the function's own time; ranges are. */
static void take_out_calls(const struct study *s, struct own *o)
{
    const struct view *v = s->v;
    for (int32_t i = 0; i < v->n_host;) {
        const struct event *e = view_event(v, i);
        const bool op = e->kind != EVENT_ANNOTATION;
        const int32_t frame = op && study_has(s, i) ? view_python_at(v, e->track, e->start_ns, true) : -1;
        if (frame >= 0 && frame_counts(s, frame))
            own_of(o, v, view_event(v, frame)->name)->self_us -= (double)e->duration_ns / 1e3;
        i = op ? v->end[i] : i + 1;
    }
}

/* What calls it has its time taken out all the same: it is no part of the program. */
static void leave_out_hones(struct own *o)
{
    int n = 0;
    for (int i = 0; i < o->n; i++)
        if (!frame_is_hones(o->at[i].name))
            o->at[n++] = o->at[i];
    o->n = n;
}

void study_frames(struct study *s)
{
    const struct view *v = s->v;
    struct diagnosis *d = s->d;
    struct own o = {.index = xcalloc((size_t)v->trace->n_names + 1, sizeof *o.index)};
    struct open_frames open = open_frames(s);
    for (int32_t f = v->python; f < v->python + v->n_python; f++) {
        const struct event *e = view_event(v, f);
        const bool outermost = open_frame(&open, f);
        if (!frame_counts(s, f))
            continue;
        const double us = (double)e->duration_ns / 1e3;
        struct trace_frame *row = own_of(&o, v, e->name);
        row->count++;
        row->total_us += outermost ? us : 0;
        row->self_us += us;
        if (e->step >= 0 && frame_counts(s, e->step))
            own_of(&o, v, view_event(v, e->step)->name)->self_us -= us;
    }
    free(open.depth);
    if (o.n) {
        take_out_calls(s, &o);
        leave_out_hones(&o);
        qsort(o.at, (size_t)o.n, sizeof *o.at, by_self);
    }
    d->n_frames = o.n < MOST_FRAMES ? o.n : MOST_FRAMES;
    d->frames = arena_alloc(&d->arena, (size_t)(d->n_frames + 1) * sizeof *d->frames);
    assert(o.at || d->n_frames == 0);
    for (int i = 0; i < d->n_frames; i++)
        d->frames[i] = (struct trace_frame){o.at[i].name, per_step(s, o.at[i].count), per_step(s, o.at[i].self_us > 0 ? o.at[i].self_us : 0),
                                            per_step(s, o.at[i].total_us)};
    free(o.at);
    free(o.index);
}
