/* Finds the collectives of a rank: kernels of NCCL and its kind, and what gloo's threads work on. */
#include "analyze/traced/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/study_int.h"

/* ---- what it is ---- */

struct word { const char *word, *name; };

static const struct word names[] = {        /* narrow ones first */
    {"all_reduce", "all_reduce"},   {"allreduce", "all_reduce"},     {"cross_device_reduce", "all_reduce"}, {"reduce_scatter", "reduce_scatter"},
    {"reducescatter", "reduce_scatter"}, {"all_gather", "all_gather"}, {"allgather", "all_gather"}, {"all_to_all", "all_to_all"},
    {"alltoall", "all_to_all"},     {"broadcast", "broadcast"},      {"sendrecv", "send_recv"},     {"dispatch", "dispatch"},
    {"combine", "combine"},         {"barrier", "barrier"},          {"gather", "gather"},          {"scatter", "scatter"},
    {"reduce", "reduce"},           {"send", "send"},                {"recv", "recv"},
};

static const char *find_name(const char *text)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasestr(text, names[i].word))
            return names[i].name;
    return NULL;
}

/* Bytes of a number, by the name of its type in any of the ways that traces write it. */
static int64_t type_bytes(const char *text)
{
    static const struct { const char *word; int64_t bytes; } types[] = {
        {"bfloat16", 2}, {"float8", 1}, {"float16", 2}, {"half", 2}, {"short", 2}, {"double", 8}, {"float64", 8}, {"long", 8}, {"int64", 8},
        {"byte", 1}, {"char", 1}, {"bool", 1}, {"int8", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasestr(text, types[i].word))
            return types[i].bytes;
    return 4;
}

static const char *text_at(const struct view *v, int32_t name) { return name >= 0 ? v->trace->names[name] : ""; }

static struct collective read_one(const struct view *v, int32_t i, bool on_host)
{
    const struct event *e = view_event(v, i);
    const struct event_args *a = e->args >= 0 ? &v->trace->args[e->args] : NULL;
    struct collective c = {.bytes = -1, .start_ns = e->start_ns, .end_ns = event_end(e), .step = e->step, .on_host = on_host};
    c.group = a && a->group_size > 0 ? a->group_size : v->trace->origin.world_size;
    c.name = a ? find_name(text_at(v, a->collective)) : NULL;
    c.name = c.name ? c.name : find_name(view_name(v, i));
    c.name = c.name ? c.name : "other";
    if (a && a->elements >= 0)
        c.bytes = a->elements * type_bytes(text_at(v, a->dtype));
    else if (a && on_host && a->dims >= 0) {
        const int64_t elements = dims_elements(dims_read(text_at(v, a->dims), 0));
        c.bytes = elements > 0 && elements < INT64_MAX / 8 ? elements * type_bytes(text_at(v, a->types)) : -1;
    }
    return c;
}

/* ---- which there are ---- */

static int by_start(const void *a, const void *b)
{
    const struct collective *x = a, *y = b;
    if (x->on_host != y->on_host)
        return x->on_host < y->on_host ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_step(const void *a, const void *b)
{
    const struct collective *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool is_on_device(const struct view *v, int32_t i)
{
    const struct event *e = view_event(v, i);
    return e->kind == EVENT_KERNEL && e->duration_ns > 0 && view_kernel_kind(v, i) == KERNEL_COMM;
}

static bool is_on_host(const struct view *v, int32_t i) { return view_event(v, i)->duration_ns > 0 && view_is_collective(v, i); }

/* Counts them, or puts them into out->at: first those of the device, of which there are *on_device. */
static void go_through(struct rank_comm *out, const struct view *v, bool put, int *on_device)
{
    out->n = 0;
    for (int32_t i = v->device; i < v->device + v->n_device; i++)
        if (is_on_device(v, i)) {
            if (put)
                out->at[out->n] = read_one(v, i, false);
            out->n++;
        }
    *on_device = out->n;
    for (int32_t i = 0; i < v->n_host; i++)
        if (is_on_host(v, i)) {
            if (put)
                out->at[out->n] = read_one(v, i, true);
            out->n++;
        }
}

static int collect(struct rank_comm *out, const struct view *v)
{
    int on_device;
    go_through(out, v, false, &on_device);
    out->at = xcalloc((size_t)out->n + 1, sizeof *out->at);
    go_through(out, v, true, &on_device);
    if (out->n)
        qsort(out->at, (size_t)out->n, sizeof *out->at, by_start);
    return on_device;
}

/* ---- what hides them ---- */

/* Collectives take their time one after the other: one that starts inside an earlier one counts from its end. */
struct hiding {
    struct collective *at;
    int n, first;
    int64_t start_ns, end_ns;               /* of the work that goes on; they are hidden when it is over */
    bool any;
};

static void expose(struct collective *at, int n)
{
    int64_t until = INT64_MIN;
    for (int i = 0; i < n; i++) {
        at[i].alone_ns = at[i].start_ns > until ? at[i].start_ns : until;
        at[i].exposed_ns = at[i].end_ns > at[i].alone_ns ? at[i].end_ns - at[i].alone_ns : 0;
        until = at[i].end_ns > until ? at[i].end_ns : until;
    }
}

static void hide(struct hiding *h)
{
    while (h->any && h->first < h->n && (h->at[h->first].end_ns <= h->start_ns || h->at[h->first].end_ns <= h->at[h->first].alone_ns))
        h->first++;
    for (int i = h->first; h->any && i < h->n && h->at[i].alone_ns < h->end_ns; i++) {
        struct collective *c = &h->at[i];
        const int64_t from = c->alone_ns > h->start_ns ? c->alone_ns : h->start_ns, to = c->end_ns < h->end_ns ? c->end_ns : h->end_ns;
        c->exposed_ns -= to > from ? to - from : 0;
    }
}

static void work(struct hiding *h, const struct event *e)
{
    if (h->any && e->start_ns <= h->end_ns) {
        h->end_ns = event_end(e) > h->end_ns ? event_end(e) : h->end_ns;
        return;
    }
    hide(h);
    *h = (struct hiding){h->at, h->n, h->first, e->start_ns, event_end(e), true};
}

static void hide_on_device(struct hiding h, const struct view *v)
{
    for (int32_t i = v->device; h.n && i < v->device + v->n_device; i++)
        if (view_event(v, i)->kind != EVENT_MEMCPY && view_kernel_kind(v, i) != KERNEL_COMM)
            work(&h, view_event(v, i));
    hide(&h);
}

static void hide_on_host(struct hiding h, const struct view *v)
{
    if (!h.n)
        return;
    struct sweep sweep = sweep_start(v);
    for (int32_t i; (i = sweep_next(&sweep)) >= 0;)
        if (i < v->n_host && view_event(v, i)->kind == EVENT_HOST_OP && !view_is_collective(v, i))
            work(&h, view_event(v, i));
    hide(&h);
    sweep_release(&sweep);
}

static void sum_steps(struct rank_comm *out, const struct view *v)
{
    out->n_steps = v->n_steps;
    out->steps = xcalloc((size_t)v->n_steps + 1, sizeof *out->steps);
    for (int i = 0; i < v->n_steps; i++)
        out->steps[i] = (struct comm_step){.number = v->steps[i].number, .start_ns = v->steps[i].start_ns};
    for (int i = 0; i < out->n; i++)
        if (out->at[i].step >= 0 && out->at[i].step < v->n_steps)
            out->steps[out->at[i].step].exposed_ns += (double)out->at[i].exposed_ns;
}

void collectives_find(struct rank_comm *out, const struct view *v)
{
    *out = (struct rank_comm){.rank = v->trace->origin.rank};
    const int on_device = collect(out, v);
    expose(out->at, on_device);
    expose(out->at + on_device, out->n - on_device);
    hide_on_device((struct hiding){.at = out->at, .n = on_device}, v);
    hide_on_host((struct hiding){.at = out->at + on_device, .n = out->n - on_device}, v);
    if (out->n)
        qsort(out->at, (size_t)out->n, sizeof *out->at, by_step);
    sum_steps(out, v);
}

void collectives_release(struct rank_comm *c)
{
    free(c->at);
    free(c->steps);
    *c = (struct rank_comm){0};
}

static double over_steps(const struct rank_comm *c, double ns) { return ns / (c->n_steps > 0 ? c->n_steps : 1) / 1e3; }

double collectives_us(const struct rank_comm *c)
{
    double ns = 0;
    for (int i = 0; i < c->n; i++)
        ns += c->at[i].step >= 0 ? (double)(c->at[i].end_ns - c->at[i].start_ns) : 0;
    return over_steps(c, ns);
}

double collectives_exposed_us(const struct rank_comm *c)
{
    double ns = 0;
    for (int i = 0; i < c->n_steps; i++)
        ns += c->steps[i].exposed_ns;
    return over_steps(c, ns);
}
