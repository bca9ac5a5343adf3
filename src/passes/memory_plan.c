/* The memory plan: values that are not alive at the same time share one workspace.
 *
 * 1. Lifetimes: from the op that writes a value to the last op that reads it; of ops that are one call, from the first of them to the last.
 * 2. Buffers: where an op may write over an input that dies there, output and input become one buffer.
 * 3. Placement: buffers by size, largest first, each at an offset that is free for its whole lifetime: where another one of its size lies, or else the
 *    lowest; the lowest for all of them where likes would cost more than next to no memory. Where the program wants memory to linger, it is free for some ops more; sums of squares have theirs from
 *    the beginning, and what an op of several products makes of one input, or adds up, lies in one piece, part by part: one call can make parts
 *    that lie evenly apart. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "passes/buckets.h"
#include "passes/passes.h"
#include "passes/placement.h"

enum { ALIGN = 64 };

struct buffer {
    int first, last;            /* ops */
    size_t bytes, offset;
    value_id owner;             /* buffers are named by their first value */
};

struct planner {
    const struct program *p;
    int *first, *last;          /* per value; first -1: never written, needs no memory */
    struct op_call *call;       /* per op: those that run at the same time */
    value_id *owner;            /* per value: the buffer that it lives in */
    value_id *lead;             /* per owner: the one whose buffer has room for it, too; NO_VALUE: none */
    size_t *behind;             /* per owner: so far behind the lead's first byte */
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
        if (op->leave)
            w->last[op->leave->held] = i;
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

static void find_calls(struct planner *w)
{
    for (int i = 0; i < w->p->n_ops; i = w->call[i].end) {
        w->call[i] = program_call(w->p, i);
        for (int k = i + 1; k < w->call[i].end; k++)
            w->call[k] = w->call[i];
    }
}

/* When a value's memory is in use; last may be behind all ops. */
static int begin_of(const struct planner *w, value_id v) { return w->call[w->first[v]].first; }
static int end_of(const struct planner *w, int last) { return last < w->p->n_ops ? w->call[last].end - 1 : last; }

/* A value that one op reads twice must stay intact, and so must one that another op of the same call reads. */
static bool is_read_twice(const struct planner *w, int i, int j)
{
    int reads = 0;
    for (int other = w->call[i].first; other < w->call[i].end; other++)
        for (int k = 0; k < w->p->ops[other].n_in; k++)
            reads += w->p->ops[other].in[k] == w->p->ops[i].in[j];
    return reads > 1;
}

/* The input whose memory the first output of op i may take, or NO_VALUE. Of several the one that was written last: it is still in the cache of
 * the thread that wrote it, and most ops divide their work alike; what is older others have read meanwhile, and to write over it takes it from them. */
static value_id reusable_input(const struct planner *w, int i)
{
    const struct op *op = &w->p->ops[i];
    const unsigned reuse = op_info(op->kind)->reuse;
    value_id best = NO_VALUE;
    for (int j = 0; j < op->n_in && j < 32; j++) {
        const value_id v = op->in[j];
        if ((reuse >> j & 1) && planned(w, v) && w->last[v] == i &&
            value_bytes(&w->p->values[v]) == value_bytes(&w->p->values[op->out[0]]) &&
            w->p->values[v].dtype == w->p->values[op->out[0]].dtype && !is_read_twice(w, i, j) &&
            (best == NO_VALUE || w->first[v] > w->first[best]))
            best = v;
    }
    return best;
}

/* ---- parts in one piece ---- */

enum { PARTS_MOST = 8 };

/* Of an op of several products: the buffers of its parts, where they are alike and no others' parts. Returns how many, or 0. */
static int list_parts(const struct planner *w, const struct op *op, const int *at, int parts[PARTS_MOST])
{
    const value_id *list = op->kind == OP_PROJECT ? op->out : op->in;
    const int n = op->kind == OP_PROJECT || op->kind == OP_PROJECT_GRAD ? op->attrs.parts : 0;
    for (int i = 0; i < n && n <= PARTS_MOST; i++) {
        const value_id owner = planned(w, list[i]) ? w->owner[list[i]] : NO_VALUE;
        if (owner == NO_VALUE || w->lead[owner] != NO_VALUE || value_bytes(&w->p->values[list[i]]) != value_bytes(&w->p->values[list[0]]))
            return 0;
        parts[i] = at[owner];
        for (int j = 0; j < i; j++)
            if (parts[j] == parts[i])
                return 0;
        if (w->buffers[parts[i]].bytes != w->buffers[parts[0]].bytes)
            return 0;
    }
    return n <= PARTS_MOST ? n : 0;
}

/* The first one's buffer becomes that of all; the others have no bytes of their own. */
static void join_parts(struct planner *w, const int *parts, int n)
{
    struct buffer *all = &w->buffers[parts[0]];
    const size_t each = all->bytes;
    w->lead[all->owner] = all->owner;
    for (int i = 1; i < n; i++) {
        struct buffer *b = &w->buffers[parts[i]];
        w->lead[b->owner] = all->owner;
        w->behind[b->owner] = (size_t)i * each;
        all->bytes += each;
        all->first = b->first < all->first ? b->first : all->first;
        all->last = b->last > all->last ? b->last : all->last;
        b->bytes = 0;
    }
}

static void join_all_parts(struct planner *w, const int *at)
{
    for (int i = 0; i < w->p->n_ops && w->p->linger; i++) {
        int parts[PARTS_MOST];
        const int n = list_parts(w, &w->p->ops[i], at, parts);
        if (n > 1)
            join_parts(w, parts, n);
    }
}

enum { EARLY = 32 };                /* ops: of a layer's backward, and what sums its gradients */

/* Where ops need not run in their order, squares are summed up as gradients come, and a sum over rows is made by the op that makes the rows:
 * what is for them is nobody else's before. */
static int kept_from(const struct planner *w, const struct buffer *b)
{
    const enum op_kind kind = w->p->ops[b->first].kind;
    if (!w->p->linger || (kind != OP_SUM_SQUARES && kind != OP_SUM_LEADING))
        return b->first;
    return kind == OP_SUM_SQUARES || b->first < EARLY ? 0 : b->first - EARLY;
}

/* What belongs into a bucket is made there: its buffer has no bytes of its own. */
static void join_buckets(struct planner *w, const int *at)
{
    struct bucket_place *places = w->p->in_buckets ? buckets_find(w->p, w->first, w->last) : NULL;
    for (value_id v = 0; places && v < w->p->n_values; v++) {
        const value_id owner = w->owner[v], bucket = places[v].bucket;
        if (bucket == NO_VALUE || w->lead[owner] != NO_VALUE || w->buffers[at[owner]].bytes != aligned(value_bytes(&w->p->values[v])))
            continue;
        struct buffer *b = &w->buffers[at[owner]], *all = &w->buffers[at[bucket]];
        w->lead[owner] = bucket;
        w->behind[owner] = places[v].behind;
        all->first = kept_from(w, b) < all->first ? kept_from(w, b) : all->first;
        all->last = b->last > all->last ? b->last : all->last;
        b->bytes = 0;
    }
    free(places);
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
                w->buffers[w->n++] = (struct buffer){w->call[i].first, end_of(w, w->last[v]), aligned(value_bytes(&p->values[v])), 0, v};
            } else if (w->buffers[at[w->owner[v]]].last < end_of(w, w->last[v])) {
                w->buffers[at[w->owner[v]]].last = end_of(w, w->last[v]);
            }
        }
    join_all_parts(w, at);
    join_buckets(w, at);
    free(at);
}

static int larger_first(const void *a, const void *b)
{
    const struct buffer *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->owner - y->owner;
}

/* Until when a buffer's memory is not used again: the last op that touches it, or some ops later. */
static int kept_until(const struct planner *w, const struct buffer *b)
{
    const int last = b->last + w->p->linger;
    return last < w->p->n_ops ? last : w->p->n_ops;
}

/* Where the last buffers of one size lie, the latest first. Threads of a CPU cut values of one size at the same rows: what a thread writes there it wrote itself before,
 * and it waits for nobody. (Ops of a device that need not run in their order would wait for each other.) */
enum { PLACES = 8 };
struct places {
    size_t bytes, offsets[PLACES];
    int n;
};

static void remember(struct places *s, size_t offset)
{
    int at = 0;
    while (at < s->n && s->offsets[at] != offset)
        at++;
    s->n += at == s->n && s->n < PLACES;
    at = at < PLACES ? at : PLACES - 1;
    memmove(s->offsets + 1, s->offsets, (size_t)at * sizeof *s->offsets);
    s->offsets[0] = offset;
}

/* Returns the bytes that all take; `likes`: where buffers of one size lie they lie again. */
static size_t place_all(struct planner *w, bool likes)
{
    struct placement *placed = placement_new(w->p->n_ops + 1);          /* what is kept lives until after the last op */
    struct places alike = {0};
    size_t top = 0;
    for (int i = 0; i < w->n; i++) {
        struct buffer *b = &w->buffers[i];
        if (b->bytes == 0)
            continue;
        if (b->bytes != alike.bytes || !likes)
            alike = (struct places){.bytes = b->bytes};
        b->offset = placement_add(placed, kept_from(w, b), kept_until(w, b), b->bytes, alike.offsets, alike.n);
        remember(&alike, b->offset);
        if (b->offset + b->bytes > top)
            top = b->offset + b->bytes;
    }
    placement_free(placed);
    return top;
}

static double persistent_bytes(const struct program *p)
{
    double bytes = 0;
    for (int i = 0; i < p->n_values; i++)
        if (value_is_persistent(&p->values[i]))
            bytes += (double)aligned(value_bytes(&p->values[i]));
    return bytes;
}

static bool within_limit(const struct program *p, size_t workspace)
{
    return p->memory_limit <= 0 || (double)workspace + persistent_bytes(p) <= p->memory_limit;
}

/* Each at the lowest offset, or by likes if all of them together take next to no more. */
static size_t place(struct planner *w)
{
    qsort(w->buffers, (size_t)w->n, sizeof *w->buffers, larger_first);
    const size_t lowest = place_all(w, false);
    if (w->p->linger)
        return lowest;
    const size_t alike = place_all(w, true);
    return alike <= lowest + lowest / 128 && within_limit(w->p, alike) ? alike : place_all(w, false);
}

static void fill_plan(const struct planner *w, struct memory_plan *plan)
{
    size_t *offset_of = xcalloc((size_t)w->p->n_values, sizeof *offset_of);
    for (int i = 0; i < w->n; i++)
        offset_of[w->buffers[i].owner] = w->buffers[i].offset;
    for (int v = 0; v < w->p->n_values; v++)
        if (w->lead[v] != NO_VALUE && w->lead[v] != v)
            offset_of[v] = offset_of[w->lead[v]] + w->behind[v];
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
                        .owner = xcalloc(n, sizeof(value_id)), .lead = xcalloc(n, sizeof(value_id)), .behind = xcalloc(n, sizeof(size_t)),
                        .buffers = xcalloc(n, sizeof(struct buffer)), .call = xcalloc((size_t)p->n_ops + 1, sizeof(struct op_call))};
    memset(w.lead, 0xff, n * sizeof *w.lead);           /* all NO_VALUE */
    find_calls(&w);
    find_lifetimes(&w);
    form_buffers(&w);
    return w;
}

static void planner_release(struct planner *w)
{
    free(w->first);
    free(w->last);
    free(w->owner);
    free(w->lead);
    free(w->behind);
    free(w->buffers);
    free(w->call);
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
    const double bytes = (double)place(&w) + persistent_bytes(p);
    planner_release(&w);
    return bytes;
}

/* Per value: what backward makes, what the optimizer takes, and the sums of it over micro-batches. */
static bool *mark_gradients(const struct program *p)
{
    bool *gradient = xcalloc((size_t)p->n_values, sizeof *gradient);
    for (int i = 0; i < p->n_values; i++) {
        gradient[i] |= p->values[i].kind == VALUE_GRADIENT;
        if (p->values[i].kind == VALUE_PARAMETER && p->values[i].grad != NO_VALUE)
            gradient[p->values[i].grad] = true;
    }
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ACCUMULATE)
            gradient[p->ops[i].out[0]] = true;
    return gradient;
}

static void count_persistent(const struct program *p, const bool *gradient, struct memory_point *point)
{
    for (int i = 0; i < p->n_values; i++) {
        const double bytes = (double)value_bytes(&p->values[i]);
        switch (p->values[i].kind) {
        case VALUE_PARAMETER: point->parameters += bytes; break;
        case VALUE_STATE: *(gradient[i] ? &point->gradients : &point->state) += bytes; break;
        case VALUE_INPUT: case VALUE_HOST: case VALUE_TABLE: point->inputs += bytes; break;
        default: break;
        }
    }
}

/* A buffer counts under the value that is in it: from the op that writes one over another, under the new one. What begins and ends is
 * noted where it does, then summed up from op to op; bytes are whole numbers, so no sum depends on the order. */
void pass_memory_timeline(const struct program *p, struct memory_point *points)
{
    struct planner w = planner_make(p);
    struct memory_point now = {0};
    bool *gradient = mark_gradients(p);
    value_id *taker = xcalloc((size_t)p->n_values + 1, sizeof *taker);          /* per value: 1 + the one that takes its memory; 0: none */
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool makes = op->n_out > 0 && planned(&w, op->out[0]) && w.first[op->out[0]] == i;
        const value_id from = makes ? reusable_input(&w, i) : NO_VALUE;
        points[i] = (struct memory_point){0};
        if (from != NO_VALUE)
            taker[from] = 1 + op->out[0];
    }
    for (int v = 0; v < p->n_values; v++) {
        const double bytes = (double)aligned(value_bytes(&p->values[v]));
        if (!planned(&w, v))
            continue;
        const int begin = begin_of(&w, v), end = taker[v] ? begin_of(&w, taker[v] - 1) : end_of(&w, w.last[v]) + 1;
        *(gradient[v] ? &points[begin].gradients : &points[begin].activations) += bytes;
        if (end < p->n_ops)
            *(gradient[v] ? &points[end].gradients : &points[end].activations) -= bytes;
    }
    count_persistent(p, gradient, &now);
    for (int i = 0; i < p->n_ops; i++) {
        now.gradients += points[i].gradients;
        now.activations += points[i].activations;
        points[i] = now;
    }
    free(gradient);
    free(taker);
    planner_release(&w);
}

void memory_plan_release(struct memory_plan *plan)
{
    free(plan->offset);
    *plan = (struct memory_plan){0};
}
