/* Builds a view of an imported trace and answers questions about its events. */
#include "analyze/traced/view.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/traced/view_int.h"

static void find_collectives(struct view *v)
{
    const struct trace *t = v->trace;
    for (int32_t i = 0; i < t->n_names; i++) {
        if (!name_is_collective(t->names[i]))
            continue;
        if (!v->collectives)
            v->collectives = memset(arena_alloc(&v->arena, (size_t)t->n_names * sizeof(bool)), 0, (size_t)t->n_names * sizeof(bool));
        v->collectives[i] = true;
    }
}

/* Some events have no time at all (0, for 0); they do not count unless all are like that. */
static void find_bounds(struct view *v)
{
    const int64_t n = view_first_other(v);
    v->first_ns = INT64_MAX;
    v->last_ns = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        const struct event *e = &v->trace->events[i];
        if (!e->start_ns && !e->duration_ns)
            continue;
        v->first_ns = e->start_ns < v->first_ns ? e->start_ns : v->first_ns;
        v->last_ns = event_end(e) > v->last_ns ? event_end(e) : v->last_ns;
    }
    if (v->first_ns > v->last_ns)
        v->first_ns = v->last_ns = 0;
}

int16_t *view_devices(const struct view *v)
{
    const struct trace *t = v->trace;
    int16_t *first_of = xcalloc((size_t)t->n_tracks + 1, sizeof *first_of);
    for (int i = 0; i < t->n_tracks; i++) {
        int first = 0;
        while (t->tracks[first].kind != t->tracks[i].kind || t->tracks[first].pid != t->tracks[i].pid)
            first++;
        first_of[i] = (int16_t)first;
    }
    return first_of;
}

void view_name_kinds(struct view *v)
{
    const struct trace *t = v->trace;
    enum { UNSEEN = UINT8_MAX };
    v->kernel_kinds = arena_alloc(&v->arena, (size_t)t->n_names + 1);
    v->call_kinds = arena_alloc(&v->arena, (size_t)t->n_names + 1);
    find_collectives(v);
    memset(v->kernel_kinds, UNSEEN, (size_t)t->n_names);
    memset(v->call_kinds, UNSEEN, (size_t)t->n_names);
    const int64_t n = view_first_other(v);
    for (int64_t i = 0; i < n; i++) {
        const int32_t name = t->events[i].name;
        const int kind = t->events[i].kind;
        if (kind == EVENT_RUNTIME && v->call_kinds[name] == UNSEEN)
            v->call_kinds[name] = (uint8_t)kind_of_call(t->names[name]);
        else if (kind == EVENT_KERNEL && v->kernel_kinds[name] == UNSEEN)
            v->kernel_kinds[name] = (uint8_t)kind_of_kernel(t->names[name]);
        else if (kind == EVENT_HOST_OP && v->kernel_kinds[name] == UNSEEN)
            v->kernel_kinds[name] = (uint8_t)kind_of_op(t->names[name]);
    }
    for (int32_t i = 0; i < t->n_names; i++) {      /* 0 is OTHER in both */
        v->kernel_kinds[i] = v->kernel_kinds[i] == UNSEEN ? KERNEL_OTHER : v->kernel_kinds[i];
        v->call_kinds[i] = v->call_kinds[i] == UNSEEN ? CALL_OTHER : v->call_kinds[i];
    }
}

void view_find_watchers(struct view *v)
{
    const int n = v->trace->n_tracks;
    bool *works = xcalloc((size_t)n + 1, sizeof *works);
    v->watches = arena_alloc(&v->arena, (size_t)n + 1);
    memset(v->watches, 0, (size_t)n + 1);
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        works[e->track] |= e->kind != EVENT_RUNTIME || v->launched[i] >= 0 || kind_is_work(v->call_kinds[e->name]);
        v->watches[e->track] = true;
    }
    bool any = false;
    for (int t = 0; t < n; t++)
        any |= works[t];
    for (int t = 0; t < n; t++)
        v->watches[t] &= any && !works[t];
    free(works);
}

/* One int32 per event and array, in one block. */
static enum status make_arrays(struct view *v, struct error *err)
{
    const size_t n = 3 * (size_t)v->n_host + 2 * (size_t)v->n_device;
    int32_t *at = malloc((n + 1) * sizeof *at);
    if (!at)
        return error_no_memory(err, "the links of a trace's events", n * sizeof *at);
    v->parent = at;
    v->end = v->parent + v->n_host;
    v->launched = v->end + v->n_host;
    v->launch = v->launched + v->n_host;
    v->next_launched = v->launch + v->n_device;
    return OK;
}

enum status view_check(const struct trace *t, struct error *err)
{
    const char *path = t->origin.path ? t->origin.path : "the trace";
    if (t->n >= INT32_MAX)
        return error_set(err, CANNOT, "'%s' has %lld events, more than %d; record fewer steps", path,
                         (long long)t->n, INT32_MAX - 1);
    for (int64_t i = 0; i < t->n; i++)
        if (view_places(t, &t->events[i]))
            return OK;
    return error_set(err, BAD_INPUT, "'%s' has no host op, runtime call or device event; record with "
                     "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]", path);
}

enum status view_init(struct view *v, struct trace *t, struct error *err)
{
    *v = (struct view){.trace = t};
    enum status st = view_check(t, err);
    if (st != OK)
        return st;
    view_order(v);
    st = make_arrays(v, err);
    if (st != OK)
        return st;
    find_bounds(v);
    view_nest(v);
    view_nest_python(v);
    view_name_kinds(v);
    view_link(v);
    view_link_captures(v);
    view_find_watchers(v);
    view_mark_steps(v);
    return OK;
}

void view_release(struct view *v)
{
    free(v->parent);
    arena_release(&v->arena);
    *v = (struct view){0};
}

int32_t view_op_around(const struct view *v, int32_t host)
{
    while (host >= 0 && view_event(v, host)->kind != EVENT_HOST_OP)
        host = v->parent[host];
    return host;
}

int32_t view_op_of(const struct view *v, int32_t device_event)
{
    const int32_t d = device_event - v->device;
    if (v->captured && v->captured[d] >= 0)
        return view_op_around(v, v->captured[d]);
    return v->launch[d] < 0 ? -1 : view_op_around(v, v->launch[d]);
}

/* A copy to ordinary memory returns when it is done; so does one that is not asynchronous by name, and one that was seen to. */
static bool copy_waits(const struct view *v, int32_t host)
{
    static const int64_t LEAST_SEEN_NS = 20000;     /* a shorter copy is over before its call returns by chance */
    if (!strcasestr(view_name(v, host), "async"))
        return true;
    if (v->launched[host] < 0)
        return false;
    const struct event *e = view_event(v, host), *work = view_event(v, v->launched[host]);
    const char *copy = v->trace->names[work->name];
    if (strstr(copy, "DtoH") && strstr(copy, "Pageable"))
        return true;
    return work->duration_ns >= LEAST_SEEN_NS && !strstr(copy, "Pinned") && !strstr(copy, "DtoD") &&
           event_end(e) - work->start_ns >= work->duration_ns / 2;
}

bool view_call_waits(const struct view *v, int32_t host)
{
    const struct event *e = view_event(v, host);
    const enum call_kind kind = e->kind == EVENT_RUNTIME ? v->call_kinds[e->name] : CALL_OTHER;
    return kind == CALL_SYNC_DEVICE || kind == CALL_SYNC_STREAM || kind == CALL_SYNC_EVENT || (kind == CALL_COPY && copy_waits(v, host));
}

/* "[\"float\", \"c10::BFloat16\", ...]": whether the first two types are given and differ: 1; equal: 0; unknown: -1. */
static int types_differ(const char *types)
{
    const char *first = strchr(types, '"'), *first_end = first ? strchr(first + 1, '"') : NULL;
    const char *second = first_end ? strchr(first_end + 1, '"') : NULL, *second_end = second ? strchr(second + 1, '"') : NULL;
    if (!second_end || first_end - first == 1 || second_end - second == 1)
        return -1;
    return first_end - first != second_end - second || memcmp(first, second, (size_t)(first_end - first)) != 0;
}

/* Of a kernel that copies: whether it changes the type on the way. The types of the op say so; without them, the op
 * around it that is only there for that. */
static enum kernel_kind copy_or_cast(const struct view *v, int32_t op, enum kernel_kind by_name)
{
    const struct event *e = view_event(v, op);
    const struct event_args *args = e->args >= 0 && e->args < v->trace->n_args ? &v->trace->args[e->args] : NULL;
    const bool told = args && args->types >= 0 && !strcmp(view_name(v, op), "aten::copy_");
    const int differ = told ? types_differ(v->trace->names[args->types]) : -1;
    if (differ >= 0)
        return differ ? KERNEL_CAST : KERNEL_COPY;
    const int32_t around = v->parent[op] < 0 ? -1 : view_op_around(v, v->parent[op]);
    return around >= 0 && v->kernel_kinds[view_event(v, around)->name] == KERNEL_CAST ? KERNEL_CAST : by_name;
}

enum kernel_kind view_kernel_kind(const struct view *v, int32_t device_event)
{
    const struct event *e = view_event(v, device_event);
    if (e->kind != EVENT_KERNEL)
        return e->kind == EVENT_MEMSET ? KERNEL_FILL : KERNEL_COPY;
    const enum kernel_kind kind = v->kernel_kinds[e->name];
    const int32_t op = view_op_of(v, device_event);
    if (op < 0)
        return kind;
    if (kind == KERNEL_COPY || kind == KERNEL_CAST)
        return copy_or_cast(v, op, kind);
    return kind == KERNEL_OTHER ? v->kernel_kinds[view_event(v, op)->name] : kind;
}
