/* Host ops by name, over those that start in a recorded step. Times inside an op of the same name count once. */
#include <math.h>
#include <stdlib.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/view_int.h"

struct open_op {                            /* host ops around the current event, from the outermost inwards */
    int32_t event;
    double inside_ns, device_ns;            /* in ops inside; on the device, by it and the ops inside */
};

struct sums {
    struct trace_op *ops;                   /* (names that occur) */
    int32_t *index, *depth;                 /* (names) op + 1; how many of the name are open */
    int n, cap;
    struct open_op *open;
    int n_open, cap_open;
};

static struct trace_op *op_of(struct sums *s, const struct view *v, int32_t name)
{
    if (!s->index[name]) {
        if (s->n == s->cap) {
            s->cap = s->cap ? 2 * s->cap : 64;
            s->ops = xrealloc(s->ops, (size_t)s->cap * sizeof *s->ops);
        }
        s->ops[s->n] = (struct trace_op){.name = v->trace->names[name]};
        s->index[name] = ++s->n;
    }
    return &s->ops[s->index[name] - 1];
}

static void push_op(struct sums *s, const struct view *v, int32_t event)
{
    if (s->n_open == s->cap_open) {
        s->cap_open = s->cap_open ? 2 * s->cap_open : 64;
        s->open = xrealloc(s->open, (size_t)s->cap_open * sizeof *s->open);
    }
    s->open[s->n_open++] = (struct open_op){.event = event};
    s->depth[view_event(v, event)->name]++;
}

static void close_op(struct sums *s, const struct view *v)
{
    const struct open_op o = s->open[--s->n_open];
    const struct event *e = view_event(v, o.event);
    const double ns = (double)e->duration_ns;
    struct trace_op *op = op_of(s, v, e->name);
    if (s->n_open) {
        s->open[s->n_open - 1].inside_ns += ns;
        s->open[s->n_open - 1].device_ns += o.device_ns;
    }
    const bool outermost = --s->depth[e->name] == 0;
    if (e->step < 0)
        return;
    op->count++;
    op->self_us += us_of(ns > o.inside_ns ? ns - o.inside_ns : 0);
    op->total_us += outermost ? us_of(ns) : 0;
    op->device_us += outermost ? us_of(o.device_ns) : 0;
}

static void add_launch(struct sums *s, const struct view *v, int32_t call)
{
    if (!s->n_open || v->launched[call] < 0)
        return;
    struct open_op *o = &s->open[s->n_open - 1];
    double ns = 0;
    for (int32_t i = v->launched[call]; i >= 0; i = v->next_launched[i - v->device])
        ns += (double)view_event(v, i)->duration_ns;
    o->device_ns += ns;
    if (view_event(v, o->event)->step < 0)
        return;
    struct trace_op *op = op_of(s, v, view_event(v, o->event)->name);
    op->launches++;
    op->device_self_us += us_of(ns);
}

static int by_device_then_host(const void *a, const void *b)
{
    const struct trace_op *x = a, *y = b;
    if (x->device_self_us != y->device_self_us)
        return x->device_self_us < y->device_self_us ? 1 : -1;
    return x->self_us < y->self_us ? 1 : x->self_us > y->self_us ? -1 : 0;
}

/* What ran on the device for recorded steps, whoever launched it. */
static double all_device_us(const struct view *v)
{
    double ns = 0;
    for (int32_t i = v->device; i < v->device + v->n_device; i++)
        ns += view_event(v, i)->step >= 0 ? (double)view_event(v, i)->duration_ns : 0;
    return us_of(ns);
}

static void list_ops(struct diagnosis *d, const struct view *v, const struct sums *s)
{
    double device_us = 0, host_us = 0;
    d->ops = arena_alloc(&d->arena, ((size_t)s->n + 1) * sizeof *d->ops);
    d->n_ops = 0;
    for (int i = 0; i < s->n; i++) {
        if (!s->ops[i].count)
            continue;
        device_us += s->ops[i].device_self_us;
        host_us += s->ops[i].self_us;
        d->ops[d->n_ops++] = s->ops[i];
    }
    const double all_us = fmax(all_device_us(v), device_us);    /* an op can outlast its step, and launch behind it */
    d->no_op_share = all_us > 0 ? 1 - device_us / all_us : 0;
    for (int i = 0; i < d->n_ops; i++) {
        struct trace_op *op = &d->ops[i];
        op->share = device_us > 0 ? op->device_self_us / all_us : host_us > 0 ? op->self_us / host_us : 0;
    }
    qsort(d->ops, (size_t)d->n_ops, sizeof *d->ops, by_device_then_host);
}

void numbers_ops(struct diagnosis *d, const struct view *v)
{
    const size_t names = (size_t)v->trace->n_names + 1;
    struct sums s = {.index = xcalloc(names, sizeof *s.index), .depth = xcalloc(names, sizeof *s.depth)};
    for (int32_t i = 0; i < v->n_host; i++) {
        while (s.n_open && v->end[s.open[s.n_open - 1].event] <= i)
            close_op(&s, v);
        if (view_event(v, i)->kind == EVENT_HOST_OP)
            push_op(&s, v, i);
        else if (view_event(v, i)->kind == EVENT_RUNTIME)
            add_launch(&s, v, i);
    }
    while (s.n_open)
        close_op(&s, v);
    list_ops(d, v, &s);
    free(s.ops);
    free(s.index);
    free(s.depth);
    free(s.open);
}
