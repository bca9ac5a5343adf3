/* The ops' order as a graph, by the memory that they touch; then a list schedule: time goes on from one start of an op to the next, and of
 * the ops that could start first the one with the longest way behind it does. */
#include "ops/cuda/lanes.h"

#include <stdint.h>
#include <stdlib.h>

/* Rough, and the same for every GPU: they decide who goes beside whom, and no result. A kernel takes a few microseconds however small it
 * is; an op that waits for one of another lane starts later than behind one of its own. */
static const double KERNEL_US = 3, CROSSING_US = 1.5, FLOPS_PER_US = 2e8, BYTES_PER_US = 2.5e6;
static const double SURELY = 0.9;   /* of the longest way: an op that is done so early holds nobody up, even if the guess is wrong */

typedef uint64_t word;
enum { BITS = 64 };

struct planner {
    const struct bound_op *ops;
    const size_t *scratch;
    int n, lanes;
    size_t words;                   /* of a set of ops */
    word *before;                   /* (n, words): all that must be done before an op */
    word *direct;                   /* (n, words): of these, those that the others do not imply */
    double *us, *head, *tail;       /* (n): of the op; of the longest way to its start; of the longest way from it to the end, with itself */
    double longest;                 /* of all ways */
    double *end;                    /* (n): of those that have a place */
    int *waits_for;                 /* (n): how many of `direct` have no place yet; -1: the op has one */
    double free_at[LANES_MOST];
};

static bool has(const word *set, int i) { return set[i / BITS] >> (i % BITS) & 1; }
static void put(word *set, int i) { set[i / BITS] |= (word)1 << (i % BITS); }

/* The next op of the set from i on; -1: none. */
static int next_of(const struct planner *w, const word *set, int i)
{
    for (size_t k = (size_t)i / BITS; i < w->n && k < w->words; k++, i = (int)k * BITS) {
        const word rest = set[k] >> (i % BITS);
        if (rest)
            return i + __builtin_ctzll(rest);
    }
    return -1;
}
#define EACH_OF(i, w, set) for (int i = next_of(w, set, 0); i >= 0; i = next_of(w, set, i + 1))

/* ---- what must come before what ---- */

struct span { uintptr_t lo, hi; };

static struct span span_of(const struct bound_op *b, bool written, int i)
{
    const uintptr_t at = (uintptr_t)(written ? b->out[i] : b->in[i]);
    return (struct span){at, at + value_bytes(&b->program->values[written ? b->op->out[i] : b->op->in[i]])};
}

/* a writes what b reads, or writes where b is asked for that. */
static bool writes_what(const struct bound_op *a, const struct bound_op *b, bool written)
{
    const int n = written ? b->op->n_out : b->op->n_in;
    for (int i = 0; i < a->op->n_out; i++) {
        const struct span x = span_of(a, true, i);
        for (int j = 0; j < n; j++) {
            const struct span y = span_of(b, written, j);
            if (x.lo < y.hi && y.lo < x.hi)
                return true;
        }
    }
    return false;
}

static bool keeps_order(const struct bound_op *a, const struct bound_op *b)
{
    return writes_what(a, b, false) || writes_what(a, b, true) || writes_what(b, a, false);
}

/* From the nearest op backwards: what a nearer one comes after already needs no look. */
static void find_order(struct planner *w)
{
    for (int i = 0; i < w->n; i++) {
        word *before = w->before + (size_t)i * w->words;
        for (int j = i - 1; j >= 0; j--) {
            if (has(before, j) || !keeps_order(&w->ops[j], &w->ops[i]))
                continue;
            put(before, j);
            put(w->direct + (size_t)i * w->words, j);
            for (size_t k = 0; k < w->words; k++)
                before[k] |= w->before[(size_t)j * w->words + k];
        }
    }
}

static const word *direct_of(const struct planner *w, int i) { return w->direct + (size_t)i * w->words; }

static void find_ways(struct planner *w)
{
    for (int i = 0; i < w->n; i++) {
        const struct bound_op *b = &w->ops[i];
        const double arithmetic = op_flops(b->program, b->op) / FLOPS_PER_US, traffic = op_bytes(b->program, b->op) / BYTES_PER_US;
        w->us[i] = w->tail[i] = KERNEL_US + (arithmetic > traffic ? arithmetic : traffic);
        EACH_OF(j, w, direct_of(w, i)) {
            w->head[i] = w->head[j] + w->us[j] > w->head[i] ? w->head[j] + w->us[j] : w->head[i];
            w->waits_for[i]++;
        }
    }
    for (int i = w->n - 1; i >= 0; i--) {
        w->longest = w->tail[i] > w->longest ? w->tail[i] : w->longest;
        EACH_OF(j, w, direct_of(w, i))
            w->tail[j] = w->us[j] + w->tail[i] > w->tail[j] ? w->us[j] + w->tail[i] : w->tail[j];
    }
}

/* ---- lanes ---- */

static double start_in(const struct planner *w, const struct lane_plan *plan, int i, int lane)
{
    double at = w->free_at[lane];
    EACH_OF(j, w, direct_of(w, i)) {
        const double ready = w->end[j] + (plan->ops[j].lane == lane ? 0 : CROSSING_US);
        at = ready > at ? ready : at;
    }
    return at;
}

struct choice { int op, lane; double start; };

/* The first lane beside lane 0 that has time enough for it, so that few ops wait for another lane; else where it can start first. To leave
 * lane 0, where the longest way is, and to come back costs two crossings: an op that has not so much time leaves it only to win more. */
static struct choice lane_for(const struct planner *w, const struct lane_plan *plan, int i)
{
    const double spare = w->longest - w->head[i] - w->tail[i], cost = spare < 2 * CROSSING_US ? 2 * CROSSING_US : 0;
    struct choice first = {i, 0, start_in(w, plan, i, 0)};
    for (int lane = 1; lane < w->lanes && w->scratch[i] <= LANE_SCRATCH; lane++) {
        const struct choice c = {i, lane, start_in(w, plan, i, lane)};
        if (c.start + w->tail[i] < SURELY * w->longest)
            return c;
        if (c.start + (first.lane ? 0 : cost) < first.start)
            first = c;
    }
    return first;
}

static struct choice first_to_start(const struct planner *w, const struct lane_plan *plan)
{
    struct choice best = {.op = -1};
    for (int i = 0; i < w->n; i++) {
        if (w->waits_for[i])
            continue;
        const struct choice c = lane_for(w, plan, i);
        if (best.op < 0 || c.start < best.start || (c.start == best.start && w->tail[i] > w->tail[best.op]))
            best = c;
    }
    return best;
}

static void choose_lanes(struct planner *w, struct lane_plan *plan)
{
    for (int k = 0; k < w->n; k++) {
        const struct choice c = first_to_start(w, plan);
        plan->order[k] = c.op;
        plan->ops[c.op].lane = c.lane;
        plan->used[c.lane] = true;
        if (w->scratch[c.op] > plan->scratch[c.lane])
            plan->scratch[c.lane] = w->scratch[c.op];
        w->waits_for[c.op] = -1;
        w->end[c.op] = w->free_at[c.lane] = c.start + w->us[c.op];
        plan->us = w->end[c.op] > plan->us ? w->end[c.op] : plan->us;
        for (int i = c.op + 1; i < w->n; i++)
            w->waits_for[i] -= has(direct_of(w, i), c.op);
    }
}

/* ---- who waits for whom ---- */

/* Of every lane: how many of its ops are done when an op is. */
struct done { int n[LANES_MOST]; };

static void join(struct done *to, const struct done *more)
{
    for (int l = 0; l < LANES_MOST; l++)
        to->n[l] = more->n[l] > to->n[l] ? more->n[l] : to->n[l];
}

/* The last op of every other lane that op i comes after. */
static void find_last(const struct planner *w, struct lane_plan *plan, const struct done *done, int i)
{
    struct lane_op *op = &plan->ops[i];
    EACH_OF(j, w, direct_of(w, i)) {
        const int l = plan->ops[j].lane;
        if (l != op->lane && (op->after[l] < 0 || done[j].n[l] > done[op->after[l]].n[l]))
            op->after[l] = j;
    }
}

static void leave_out_implied(struct lane_plan *plan, const struct done *done, const struct done *own, int i)
{
    struct lane_op *op = &plan->ops[i];
    for (int l = 0; l < LANES_MOST; l++) {
        const int j = op->after[l];
        bool implied = j >= 0 && own->n[l] >= done[j].n[l];
        for (int m = 0; m < LANES_MOST && j >= 0; m++)
            implied |= m != l && op->after[m] >= 0 && done[op->after[m]].n[l] >= done[j].n[l];
        if (implied)
            op->after[l] = -1;
    }
}

static void find_waits(const struct planner *w, struct lane_plan *plan, struct done *done)
{
    struct done last[LANES_MOST] = {0};         /* of the last op of each lane so far */
    for (int k = 0; k < w->n; k++) {
        const int i = plan->order[k];
        struct lane_op *op = &plan->ops[i];
        for (int l = 0; l < LANES_MOST; l++)
            op->after[l] = -1;
        find_last(w, plan, done, i);
        leave_out_implied(plan, done, &last[op->lane], i);
        done[i] = last[op->lane];
        for (int l = 0; l < LANES_MOST; l++)
            if (op->after[l] >= 0) {
                plan->ops[op->after[l]].awaited = true;
                join(&done[i], &done[op->after[l]]);
            }
        done[i].n[op->lane]++;
        last[op->lane] = done[i];
    }
}

/* ---- */

static void planner_release(struct planner *w)
{
    free(w->before);
    free(w->direct);
    free(w->us);
    free(w->waits_for);
}

static bool planner_init(struct planner *w, const struct bound_op *ops, const size_t *scratch, int n, int lanes)
{
    const size_t count = (size_t)n;
    *w = (struct planner){.ops = ops, .scratch = scratch, .n = n, .lanes = lanes < LANES_MOST ? lanes : LANES_MOST,
                          .words = (count + BITS - 1) / BITS};
    w->before = calloc(count * w->words + 1, sizeof *w->before);
    w->direct = calloc(count * w->words + 1, sizeof *w->direct);
    w->us = calloc(4 * count + 1, sizeof *w->us);
    w->waits_for = calloc(count + 1, sizeof *w->waits_for);
    if (!w->before || !w->direct || !w->us || !w->waits_for) {
        planner_release(w);
        return false;
    }
    w->head = w->us + count;
    w->tail = w->head + count;
    w->end = w->tail + count;
    return true;
}

bool lanes_plan(struct lane_plan *out, const struct bound_op *ops, const size_t *scratch, int n, int lanes)
{
    struct planner w;
    struct done *done = calloc((size_t)n + 1, sizeof *done);
    *out = (struct lane_plan){.n = n, .ops = calloc((size_t)n + 1, sizeof *out->ops), .order = calloc((size_t)n + 1, sizeof *out->order)};
    if (!done || !out->ops || !out->order || !planner_init(&w, ops, scratch, n, lanes)) {
        free(done);
        lanes_release(out);
        return false;
    }
    find_order(&w);
    find_ways(&w);
    choose_lanes(&w, out);
    find_waits(&w, out, done);
    planner_release(&w);
    free(done);
    return true;
}

void lanes_release(struct lane_plan *plan)
{
    free(plan->ops);
    free(plan->order);
    *plan = (struct lane_plan){0};
}
