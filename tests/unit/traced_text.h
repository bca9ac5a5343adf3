/* Small traces as the profiler would have written them, for the tests of the view, its numbers and the rules. Three ways:
 *
 *   - a little machine with a host clock and one stream, which starts and ends ops, launches and waits:
 *         struct traced m = traced_new();
 *         traced_step_begin(&m, 1);
 *         traced_run(&m, "aten::mm", 20, "sm90_xmma_gemm_bf16", 50);     // 20 µs on the host launch 50 µs of work
 *         traced_wait(&m, "cudaStreamSynchronize");                      // until the stream is done
 *         traced_step_end(&m);
 *   - events at given times: traced_at and traced_work_at;
 *   - the profiler's own text: traced_json.
 *
 * m.trace belongs to the test (trace_free). Times are µs from 0; an event is named by its index until a view sorts them. */
#ifndef HONE_TESTS_TRACED_TEXT_H
#define HONE_TESTS_TRACED_TEXT_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/traced/numbers.h"
#include "import/import.h"
#include "support/check.h"

enum { TRACED_DEEPEST = 64 };

struct traced {
    struct trace *trace;
    int host, stream;                   /* tracks that are added to */
    double now_us, free_us;             /* the host's clock; when the stream has done all that was launched */
    double launch_us;                   /* length of a launch call */
    double latency_us;                  /* from the start of a launch call to the earliest start of its work */
    int64_t link;                       /* of the last launch */
    const char *launch_call, *copy_call;        /* names of the runtime's calls */
    int64_t open[TRACED_DEEPEST];       /* begun and not ended */
    int n_open;
};

/* ---- tracks and events at given times ---- */

static inline int traced_track(struct traced *m, enum track_kind kind, int64_t pid, int64_t tid)
{
    struct trace *t = m->trace;
    for (int i = 0; i < t->n_tracks; i++)
        if (t->tracks[i].kind == kind && t->tracks[i].pid == pid && t->tracks[i].tid == tid)
            return i;
    t->tracks = xrealloc(t->tracks, ((size_t)t->n_tracks + 1) * sizeof *t->tracks);
    t->tracks[t->n_tracks] = (struct trace_track){kind, pid, tid, -1};
    return t->n_tracks++;
}

/* What follows happens on this thread, or stream of device 0. */
static inline void traced_on_thread(struct traced *m, int64_t tid) { m->host = traced_track(m, TRACK_HOST_THREAD, 1, tid); }
static inline void traced_on_stream(struct traced *m, int64_t stream) { m->stream = traced_track(m, TRACK_DEVICE_STREAM, 0, stream); }

static inline struct traced traced_new(void)
{
    struct traced m = {.trace = trace_new(), .launch_us = 4, .latency_us = 6, .launch_call = "cudaLaunchKernel",
                       .copy_call = "cudaMemcpyAsync"};
    m.trace->origin.path = "test";
    m.trace->origin.rank = m.trace->origin.backend = -1;
    traced_on_thread(&m, 1);
    traced_on_stream(&m, 7);
    return m;
}

static inline bool traced_on_device(enum event_kind kind)
{
    return kind == EVENT_KERNEL || kind == EVENT_MEMCPY || kind == EVENT_MEMSET || kind == EVENT_STREAM_WAIT;
}

/* Any event; its index. */
static inline int64_t traced_at(struct traced *m, enum event_kind kind, const char *name, double start_us, double us)
{
    struct trace *t = m->trace;
    if (t->n == t->cap)
        trace_reserve(t, 64);
    t->events[t->n] = (struct event){
        .start_ns = llround(start_us * 1000), .duration_ns = llround(us * 1000), .name = trace_name(t, name), .step = -1,
        .args = -1, .track = (int16_t)(traced_on_device(kind) ? m->stream : m->host), .kind = (int16_t)kind, .link = -1};
    return t->n++;
}

/* The event itself; good until the next one is added. */
static inline struct event *traced_get(struct traced *m, int64_t event) { return &m->trace->events[event]; }

/* A call and the work that it starts; the index of the work. */
static inline int64_t traced_work_at(struct traced *m, const char *call, double at_us, double call_us, enum event_kind kind,
                                     const char *work, double start_us, double us)
{
    const int64_t launch = traced_at(m, EVENT_RUNTIME, call, at_us, call_us);
    traced_get(m, launch)->link = ++m->link;
    const int64_t event = traced_at(m, kind, work, start_us, us);
    traced_get(m, event)->link = m->link;
    return event;
}

static inline void traced_step_at(struct traced *m, int number, double start_us, double us)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    traced_get(m, traced_at(m, EVENT_STEP, name, start_us, us))->step = number;
}

static inline void traced_memory_at(struct traced *m, double at_us, double bytes)
{
    traced_get(m, traced_at(m, EVENT_COUNTER, "memory device 0", at_us, 0))->value = bytes;
}

/* ---- what an event says besides its times ---- */

/* The args of an event, to be filled; good until the next event gets some. */
static inline struct event_args *traced_args(struct traced *m, int64_t event)
{
    struct trace *t = m->trace;
    if (t->events[event].args < 0) {
        t->args = xrealloc(t->args, ((size_t)t->n_args + 1) * sizeof *t->args);
        t->args[t->n_args] = (struct event_args){
            .registers = -1, .shared_bytes = -1, .occupancy = -1, .bytes = -1, .elements = -1, .dims = -1, .types = -1,
            .values = -1, .collective = -1, .dtype = -1, .stack = -1};
        t->events[event].args = t->n_args++;
    }
    return &t->args[t->events[event].args];
}

/* Inputs of a host op as the profiler writes them: "[[32, 256], []]" and "[\"float\", \"Scalar\"]"; NULL: not recorded. */
static inline void traced_inputs(struct traced *m, int64_t event, const char *dims, const char *types)
{
    struct event_args *a = traced_args(m, event);
    a->dims = dims ? trace_name(m->trace, dims) : -1;
    a->types = types ? trace_name(m->trace, types) : -1;
    m->trace->origin.has_shapes = true;
}

/* ---- the machine ---- */

static inline void traced_idle(struct traced *m, double us) { m->now_us += us; }    /* the host does nothing that is recorded */

/* Starts an event that lasts until traced_end; its index. */
static inline int64_t traced_begin(struct traced *m, enum event_kind kind, const char *name)
{
    assert(m->n_open < TRACED_DEEPEST);
    return m->open[m->n_open++] = traced_at(m, kind, name, m->now_us, 0);
}

static inline void traced_end(struct traced *m)
{
    assert(m->n_open > 0);
    struct event *e = traced_get(m, m->open[--m->n_open]);
    e->duration_ns = llround(m->now_us * 1000) - e->start_ns;
}

static inline void traced_step_begin(struct traced *m, int number)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    traced_get(m, traced_begin(m, EVENT_STEP, name))->step = number;
}

static inline void traced_step_end(struct traced *m) { traced_end(m); }

/* An op of the host alone; its index. */
static inline int64_t traced_op(struct traced *m, const char *name, double us)
{
    const int64_t op = traced_at(m, EVENT_HOST_OP, name, m->now_us, us);
    m->now_us += us;
    return op;
}

/* A call that starts work, which runs when the stream is free; the index of the work. */
static inline int64_t traced_start(struct traced *m, const char *call, enum event_kind kind, const char *work, double us)
{
    const double start_us = fmax(m->now_us + m->latency_us, m->free_us);
    const int64_t event = traced_work_at(m, call, m->now_us, m->launch_us, kind, work, start_us, us);
    m->now_us += m->launch_us;
    m->free_us = start_us + us;
    return event;
}

static inline int64_t traced_launch(struct traced *m, const char *kernel, double us)
{
    return traced_start(m, m->launch_call, EVENT_KERNEL, kernel, us);
}

/* An op that takes host_us and launches a kernel at its end; the index of the op. */
static inline int64_t traced_run(struct traced *m, const char *op, double host_us, const char *kernel, double kernel_us)
{
    const int64_t event = traced_begin(m, EVENT_HOST_OP, op);
    traced_idle(m, fmax(host_us - m->launch_us, 0));
    traced_launch(m, kernel, kernel_us);
    traced_end(m);
    return event;
}

/* A copy of so many bytes, "Memcpy HtoD (Pageable -> Device)"; the index of the work. */
static inline int64_t traced_copy(struct traced *m, const char *name, int64_t bytes, double us)
{
    const int64_t event = traced_start(m, m->copy_call, EVENT_MEMCPY, name, us);
    traced_args(m, event)->bytes = bytes;
    return event;
}

/* A call in which the host waits until the stream is done; the index of the call. */
static inline int64_t traced_wait(struct traced *m, const char *call)
{
    const double end_us = fmax(m->now_us + 2, m->free_us);
    const int64_t event = traced_at(m, EVENT_RUNTIME, call, m->now_us, end_us - m->now_us);
    traced_get(m, event)->link = ++m->link;
    m->now_us = end_us;
    return event;
}

/* ---- what tests do with it ---- */

/* The profiler's own text; the trace belongs to the test. */
static inline struct trace *traced_json(const char *text)
{
    struct trace *t = NULL;
    struct error err;
    assert_ok(import_read_memory(&t, "test", text, strlen(text), &err), err);
    return t;
}

static inline struct view traced_view(struct trace *t)
{
    struct view v;
    struct error err;
    assert_ok(view_init(&v, t, &err), err);
    return v;
}

/* All numbers of a view; for arena_release(&d.arena). */
static inline struct diagnosis traced_numbers(const struct view *v)
{
    struct diagnosis d = {.name = "test", .trace = v->trace};
    numbers_steps(&d, v);
    numbers_gpu(&d, v);
    numbers_kernels(&d, v);
    numbers_ops(&d, v);
    numbers_launches(&d, v);
    numbers_memory(&d, v);
    return d;
}

/* The first event of a view with this name; fails when there is none. */
static inline int32_t traced_find(const struct view *v, const char *name)
{
    for (int32_t i = 0; i < v->trace->n; i++)
        if (!strcmp(view_name(v, i), name))
            return i;
    fail_msg("there is no event '%s'", name);
    return -1;
}

#endif
