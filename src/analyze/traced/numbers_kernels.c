/* Kernels of one name, launching op and stream together, over all kernels of the trace; those whose launch is not in it
 * have no op (""). Copies and fills are no kernels. The time by kind counts the kernels of recorded steps only. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers_int.h"

struct group {
    int32_t name, op;                       /* names; op -1: unknown */
    int16_t track;
    enum kernel_kind kind;
    int64_t count;
    double sum_ns, min_ns, max_ns, occupancy_ns, known_ns;  /* occupancy times length; length of those with occupancy */
};

struct groups {
    struct group *at;
    int32_t *slots;                         /* (2 cap) index + 1; 0: free */
    int n, cap;
};

static uint64_t mix(const struct group *g)
{
    uint64_t h = ((uint64_t)(uint32_t)g->name << 32 | (uint32_t)g->op) * 0x9e3779b97f4a7c15u + (uint16_t)g->track;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

static int32_t *find_slot(const struct groups *t, const struct group *key)
{
    const uint64_t mask = 2 * (uint64_t)t->cap - 1;
    for (uint64_t at = mix(key) & mask;; at = (at + 1) & mask) {
        const struct group *g = t->slots[at] ? &t->at[t->slots[at] - 1] : NULL;
        if (!g || (g->name == key->name && g->op == key->op && g->track == key->track))
            return &t->slots[at];
    }
}

static void grow(struct groups *t)
{
    t->cap = t->cap ? 2 * t->cap : 256;
    t->at = xrealloc(t->at, (size_t)t->cap * sizeof *t->at);
    free(t->slots);
    t->slots = xcalloc(2 * (size_t)t->cap, sizeof *t->slots);
    for (int i = 0; i < t->n; i++)
        *find_slot(t, &t->at[i]) = i + 1;
}

static struct group *find_group(struct groups *t, const struct group *key)
{
    if (t->n == t->cap)
        grow(t);
    int32_t *slot = find_slot(t, key);
    if (!*slot) {
        t->at[t->n] = *key;
        *slot = ++t->n;
    }
    return &t->at[*slot - 1];
}

static double occupancy_of(const struct view *v, const struct event *e)
{
    return e->args >= 0 && e->args < v->trace->n_args ? (double)v->trace->args[e->args].occupancy : -1;
}

static void add_kernel(struct groups *t, const struct view *v, int32_t i, enum kernel_kind kind)
{
    const struct event *e = view_event(v, i);
    const int32_t op = view_op_of(v, i);
    const struct group key = {.name = e->name, .op = op < 0 ? -1 : view_event(v, op)->name, .track = e->track, .kind = kind};
    struct group *g = find_group(t, &key);
    const double ns = (double)e->duration_ns, occupancy = occupancy_of(v, e);
    g->min_ns = g->count && g->min_ns < ns ? g->min_ns : ns;
    g->max_ns = g->max_ns > ns ? g->max_ns : ns;
    g->sum_ns += ns;
    g->count++;
    if (occupancy >= 0) {
        g->occupancy_ns += occupancy * ns;
        g->known_ns += ns;
    }
}

static int by_total(const void *a, const void *b)
{
    const struct trace_kernel *x = a, *y = b;
    if (x->total_us != y->total_us)
        return x->total_us < y->total_us ? 1 : -1;
    return x->count < y->count ? 1 : x->count > y->count ? -1 : strcmp(x->name, y->name);
}

static void list_kernels(struct diagnosis *d, const struct view *v, const struct groups *t)
{
    const struct trace *trace = v->trace;
    double sum_ns = 0, occupancy_ns = 0, known_ns = 0;
    for (int i = 0; i < t->n; i++) {
        sum_ns += t->at[i].sum_ns;
        occupancy_ns += t->at[i].occupancy_ns;
        known_ns += t->at[i].known_ns;
    }
    d->n_kernels = t->n;
    d->kernels = arena_alloc(&d->arena, ((size_t)t->n + 1) * sizeof *d->kernels);
    d->mean_occupancy = known_ns > 0 ? occupancy_ns / known_ns : -1;
    for (int i = 0; i < t->n; i++) {
        const struct group *g = &t->at[i];
        const bool on_track = g->track >= 0 && g->track < trace->n_tracks;
        d->kernels[i] = (struct trace_kernel){
            .name = trace->names[g->name], .op = g->op < 0 ? "" : trace->names[g->op], .kind = kernel_kind_names[g->kind],
            .stream = on_track ? trace->tracks[g->track].tid : -1, .count = g->count, .total_us = us_of(g->sum_ns),
            .mean_us = us_of(g->sum_ns / (double)g->count), .min_us = us_of(g->min_ns), .max_us = us_of(g->max_ns),
            .share = sum_ns > 0 ? g->sum_ns / sum_ns : 0,
            .occupancy = g->known_ns > 0 ? g->occupancy_ns / g->known_ns : -1,
        };
    }
    qsort(d->kernels, (size_t)t->n, sizeof *d->kernels, by_total);
    numbers_names(d);
}

static int by_us(const void *a, const void *b)
{
    const struct profile_part *x = a, *y = b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : 0;
}

static void list_kinds(struct diagnosis *d, const double *ns, int n_steps)
{
    d->kinds = arena_alloc(&d->arena, KERNEL_KINDS * sizeof *d->kinds);
    d->n_kinds = 0;
    for (int k = 0; k < KERNEL_KINDS; k++)
        if (ns[k] > 0)
            d->kinds[d->n_kinds++] = (struct profile_part){kernel_kind_names[k], us_of(ns[k] / n_steps)};
    qsort(d->kinds, (size_t)d->n_kinds, sizeof *d->kinds, by_us);
}

void numbers_kernels(struct diagnosis *d, const struct view *v)
{
    struct groups t = {0};
    double ns[KERNEL_KINDS] = {0};
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        const struct event *e = view_event(v, i);
        if (e->kind != EVENT_KERNEL)
            continue;
        const enum kernel_kind kind = view_kernel_kind(v, i);
        add_kernel(&t, v, i, kind);
        if (e->step >= 0)
            ns[kind] += (double)e->duration_ns;
    }
    list_kernels(d, v, &t);
    list_kinds(d, ns, v->n_steps);
    free(t.at);
    free(t.slots);
}
