/* The memory plan: values that are not alive at the same time share one workspace.
 *
 * 1. Lifetimes: from the op that writes a value to the last op that reads it.
 * 2. Buffers: where an op may write over an input that dies there, output and input become one buffer.
 * 3. Placement: buffers by size, largest first, each at the lowest offset that is free for its whole lifetime. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum { ALIGN = 64 };

struct buffer {
    int first, last;            /* ops */
    size_t bytes, offset;
    value_id owner;             /* buffers are named by their first value */
};

struct planner {
    const struct program *p;
    int *first, *last;          /* per value; first -1: never written, needs no memory */
    value_id *owner;            /* per value: the buffer that it lives in */
    struct buffer *buffers;
    int n;
};

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }
static bool planned(const struct planner *w, value_id v) { return w->first[v] >= 0; }

/* The host may read the value after the step. */
static void keep(struct planner *w, value_id v)
{
    if (v != NO_VALUE && planned(w, v))
        w->last[v] = w->p->n_ops;
}

static void find_lifetimes(struct planner *w)
{
    const struct program *p = w->p;
    for (int i = 0; i < p->n_values; i++)
        w->first[i] = w->last[i] = -1;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (int j = 0; j < op->n_in; j++)
            w->last[op->in[j]] = i;
        for (int j = 0; j < op->n_out; j++)
            if (!value_is_persistent(&p->values[op->out[j]])) {
                w->first[op->out[j]] = i;
                w->last[op->out[j]] = i;
            }
    }
    if (p->step == NO_VALUE)                    /* a training step is read for its loss alone */
        keep(w, p->logits);
    keep(w, p->loss);
    keep(w, p->count);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            keep(w, p->values[i].grad);
}

/* The input whose memory the first output of op i may take, or NO_VALUE. */
static value_id reusable_input(const struct planner *w, int i)
{
    const struct op *op = &w->p->ops[i];
    const unsigned reuse = op_info(op->kind)->reuse;
    for (int j = 0; j < op->n_in; j++) {
        const value_id v = op->in[j];
        bool twice = false;                     /* a value read twice by one op must stay intact */
        for (int k = 0; k < op->n_in; k++)
            twice |= k != j && op->in[k] == v;
        if (j < 32 && (reuse >> j & 1) && planned(w, v) && w->last[v] == i && !twice &&
            value_bytes(&w->p->values[v]) == value_bytes(&w->p->values[op->out[0]]))
            return v;
    }
    return NO_VALUE;
}

static void form_buffers(struct planner *w)
{
    const struct program *p = w->p;
    int *at = xcalloc((size_t)p->n_values, sizeof *at);         /* owner -> index in buffers */
    for (int i = 0; i < p->n_ops; i++)
        for (int j = 0; j < p->ops[i].n_out; j++) {
            const value_id v = p->ops[i].out[j];
            if (!planned(w, v) || w->first[v] != i)
                continue;
            const value_id from = j == 0 ? reusable_input(w, i) : NO_VALUE;
            w->owner[v] = from == NO_VALUE ? v : w->owner[from];
            if (from == NO_VALUE) {
                at[v] = w->n;
                w->buffers[w->n++] = (struct buffer){i, w->last[v], aligned(value_bytes(&p->values[v])), 0, v};
            } else if (w->buffers[at[w->owner[v]]].last < w->last[v]) {
                w->buffers[at[w->owner[v]]].last = w->last[v];
            }
        }
    free(at);
}

static int larger_first(const void *a, const void *b)
{
    const struct buffer *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->owner - y->owner;
}

/* The lowest offset at which `b` collides with none of the placed buffers that live at the same time; those are listed from
 * the lowest on. */
static size_t lowest_gap(const struct buffer *b, struct buffer *const *placed, int n)
{
    size_t at = 0;
    for (int i = 0; i < n && placed[i]->offset < at + b->bytes; i++) {
        const struct buffer *other = placed[i];
        const bool together = other->first <= b->last && b->first <= other->last;
        if (together && other->offset + other->bytes > at)
            at = other->offset + other->bytes;
    }
    return at;
}

/* Keeps the list of placed buffers in the order of their offsets. */
static void insert_placed(struct buffer **placed, int n, struct buffer *b)
{
    int i = n;
    for (; i > 0 && placed[i - 1]->offset > b->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] = b;
}

static size_t place(struct planner *w)
{
    struct buffer **placed = xcalloc((size_t)w->n, sizeof *placed);
    size_t top = 0;
    qsort(w->buffers, (size_t)w->n, sizeof *w->buffers, larger_first);
    for (int i = 0; i < w->n; i++) {
        struct buffer *b = &w->buffers[i];
        b->offset = lowest_gap(b, placed, i);
        insert_placed(placed, i, b);
        if (b->offset + b->bytes > top)
            top = b->offset + b->bytes;
    }
    free(placed);
    return top;
}

static void fill_plan(const struct planner *w, struct memory_plan *plan)
{
    size_t *offset_of = xcalloc((size_t)w->p->n_values, sizeof *offset_of);
    for (int i = 0; i < w->n; i++)
        offset_of[w->buffers[i].owner] = w->buffers[i].offset;
    for (int v = 0; v < w->p->n_values; v++) {
        plan->offset[v] = planned(w, v) ? offset_of[w->owner[v]] : SIZE_MAX;
        if (planned(w, v))
            plan->naive_bytes += aligned(value_bytes(&w->p->values[v]));
    }
    free(offset_of);
}

static struct planner planner_make(const struct program *p)
{
    const size_t n = (size_t)p->n_values;
    struct planner w = {.p = p, .first = xcalloc(n, sizeof(int)), .last = xcalloc(n, sizeof(int)),
                        .owner = xcalloc(n, sizeof(value_id)), .buffers = xcalloc(n, sizeof(struct buffer))};
    find_lifetimes(&w);
    form_buffers(&w);
    return w;
}

static void planner_release(struct planner *w)
{
    free(w->first);
    free(w->last);
    free(w->owner);
    free(w->buffers);
}

void pass_memory_plan(const struct program *p, struct memory_plan *plan)
{
    struct planner w = planner_make(p);
    *plan = (struct memory_plan){.offset = xcalloc((size_t)p->n_values, sizeof *plan->offset)};
    plan->workspace_bytes = place(&w);
    fill_plan(&w, plan);
    planner_release(&w);
}

double pass_planned_bytes(const struct program *p)
{
    struct planner w = planner_make(p);
    double bytes = (double)place(&w);
    for (int i = 0; i < p->n_values; i++)
        if (value_is_persistent(&p->values[i]))
            bytes += (double)aligned(value_bytes(&p->values[i]));
    planner_release(&w);
    return bytes;
}

static void count_persistent(const struct program *p, struct memory_point *point)
{
    for (int i = 0; i < p->n_values; i++) {
        const double bytes = (double)value_bytes(&p->values[i]);
        switch (p->values[i].kind) {
        case VALUE_PARAMETER: point->parameters += bytes; break;
        case VALUE_STATE: point->state += bytes; break;
        case VALUE_INPUT: case VALUE_HOST: point->inputs += bytes; break;
        case VALUE_TABLE: point->activations += bytes; break;
        default: break;
        }
    }
}

/* A buffer counts once while any of its values lives, under the kind of its first value. */
void pass_memory_timeline(const struct program *p, struct memory_point *points)
{
    struct planner w = planner_make(p);
    struct memory_point persistent = {0};
    count_persistent(p, &persistent);
    for (int i = 0; i < p->n_ops; i++)
        points[i] = persistent;
    for (int k = 0; k < w.n; k++) {
        const struct buffer *b = &w.buffers[k];
        const bool gradient = p->values[b->owner].kind == VALUE_GRADIENT;
        for (int i = b->first; i <= b->last && i < p->n_ops; i++)
            *(gradient ? &points[i].gradients : &points[i].activations) += (double)b->bytes;
    }
    planner_release(&w);
}

void memory_plan_release(struct memory_plan *plan)
{
    free(plan->offset);
    *plan = (struct memory_plan){0};
}
