/* Traces to replay in tests: made by traced_text.h, played with and without edits. */
#ifndef HONE_TESTS_REPLAYED_H
#define HONE_TESTS_REPLAYED_H

#include "unit/traced_text.h"

#include "analyze/traced/replay.h"

static const double near_ns = 1;            /* times in traces are whole ns */

enum { STEPS = 4 };

struct played {
    struct view view;
    struct replay replay;
};

/* At first no time is the profiler's: the cost is 1. */
static inline struct played play(struct trace *t)
{
    struct played p = {.view = traced_view(t)};
    return p;
}

static inline void start(struct played *p)
{
    struct error err;
    assert_ok(replay_init(&p->replay, &p->view, &err), err);
}

static inline void release(struct played *p)
{
    struct trace *t = p->view.trace;
    replay_release(&p->replay);
    view_release(&p->view);
    trace_free(t);
}

static inline double step_us(const struct played *p, const struct edit *e) { return replay_run(&p->replay, e).step_ns / 1e3; }

/* Keeps this part of all calls with the name, or of device events; 0 to 1. */
static inline void keep(struct edit *e, const struct view *v, const char *name, double part)
{
    for (int32_t i = 0; i < v->n_host; i++)
        if (!strcmp(view_name(v, i), name))
            e->host[i] = (uint8_t)lround(part * KEEP_ALL);
    for (int32_t d = 0; d < v->n_device; d++)
        if (!strcmp(view_name(v, v->device + d), name))
            e->device[d] = (float)part;
}

/* The step when this part of everything with the name is kept. */
static inline double step_with(const struct played *p, const char *name, double part)
{
    struct edit e;
    edit_init(&e, &p->view);
    keep(&e, &p->view, name, part);
    const double us = step_us(p, &e);
    edit_release(&e);
    return us;
}

/* Each step: `ops` ops of host_us with a kernel each, one behind the other. */
static inline struct played plain(int ops, double host_us, double kernel_us)
{
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < ops; k++)
            traced_run(&m, "aten::mm", host_us, "gemm", kernel_us);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    return p;
}

#endif
