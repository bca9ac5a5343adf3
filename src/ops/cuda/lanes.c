/* The items' order as a graph, by the memory that they touch; then a list schedule: time goes on from one start of an item to the next, and
 * of the items that could start first the one with the longest way behind it does. */
#include "ops/cuda/lanes.h"

#include <stdint.h>
#include <stdlib.h>

/* Rough, and the same for every GPU: they decide who goes beside whom, and no result. A kernel takes a few microseconds however small it
 * is; an item that waits for one of another lane starts later than behind one of its own. */
static const double KERNEL_US = 3, CROSSING_US = 1.5, FLOPS_PER_US = 2e8, BYTES_PER_US = 2.5e6;
static const double SURELY = 0.9;   /* of the longest way: an item that is done so early holds nobody up, even if the guess is wrong */

typedef uint64_t word;
enum { BITS = 64 };

struct planner {
    const struct lane_item *items;
    int n, lanes;
    size_t words;                   /* of a set of items */
    word *before;                   /* (n, words): all that must be done before an item */
    word *direct;                   /* (n, words): of these, those that the others do not imply */
    double *us, *head, *tail;       /* (n): of the item; of the longest way to its start; of the longest way from it to the end, with itself */
    double longest;                 /* of all ways */
    double *end;                    /* (n): of those that have a place */
    int *waits_for;                 /* (n): how many of `direct` have no place yet; -1: the item has one */
    double free_at[LANES_MOST];
};

static bool has(const word *set, int i) { return set[i / BITS] >> ((unsigned)i % BITS) & 1; }
static void put(word *set, int i) { set[i / BITS] |= (word)1 << ((unsigned)i % BITS); }

/* The next item of the set from i on; -1: none. */
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

static bool meet(const struct lane_touch *a, const struct lane_touch *b)
{
    const uintptr_t x = (uintptr_t)a->at, y = (uintptr_t)b->at;
    return (a->written || b->written) && x < y + b->bytes && y < x + a->bytes;
}

static bool keeps_order(const struct lane_item *a, const struct lane_item *b)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            if (meet(&a->touches[i], &b->touches[j]))
                return true;
    return false;
}

/* From the nearest item backwards: what a nearer one comes after already needs no look. */
static void find_order(struct planner *w)
{
    for (int i = 0; i < w->n; i++) {
        word *before = w->before + (size_t)i * w->words;
        for (int j = i - 1; j >= 0; j--) {
            if (has(before, j) || !keeps_order(&w->items[j], &w->items[i]))
                continue;
            put(before, j);
            put(w->direct + (size_t)i * w->words, j);
            for (size_t k = 0; k < w->words; k++)
                before[k] |= w->before[(size_t)j * w->words + k];
        }
    }
}

static const word *direct_of(const struct planner *w, int i) { return w->direct + (size_t)i * w->words; }

double lanes_guess_us(const struct program *p, const struct op *op)
{
    const double arithmetic = op_flops(p, op) / FLOPS_PER_US, traffic = op_bytes(p, op) / BYTES_PER_US;
    return KERNEL_US + (arithmetic > traffic ? arithmetic : traffic);
}

size_t lanes_most_bytes(const size_t *scratch, int n, int lanes, size_t fixed)
{
    size_t most = 0;
    for (int i = 0; i < n; i++)
        if (scratch[i] <= LANE_SCRATCH && scratch[i] > most)
            most = scratch[i];
    return lanes > 1 ? (size_t)(lanes - 1) * (fixed + most) : 0;
}

static void find_ways(struct planner *w)
{
    for (int i = 0; i < w->n; i++) {
        w->us[i] = w->tail[i] = w->items[i].us;
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
        const double ready = w->end[j] + (plan->places[j].lane == lane ? 0 : CROSSING_US);
        at = ready > at ? ready : at;
    }
    return at;
}

struct choice { int item, lane; double start; };

/* The first lane beside lane 0 that has time enough for it, so that few items wait for another lane; else where it can start first. To leave
 * lane 0, where the longest way is, and to come back costs two crossings: an item that has not so much time leaves it only to win more. */
static struct choice lane_for(const struct planner *w, const struct lane_plan *plan, int i)
{
    const double spare = w->longest - w->head[i] - w->tail[i], cost = spare < 2 * CROSSING_US ? 2 * CROSSING_US : 0;
    struct choice first = {i, 0, start_in(w, plan, i, 0)};
    for (int lane = 1; lane < w->lanes && w->items[i].scratch <= LANE_SCRATCH; lane++) {
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
    struct choice best = {.item = -1};
    for (int i = 0; i < w->n; i++) {
        if (w->waits_for[i])
            continue;
        const struct choice c = lane_for(w, plan, i);
        if (best.item < 0 || c.start < best.start || (c.start == best.start && w->tail[i] > w->tail[best.item]))
            best = c;
    }
    return best;
}

static void choose_lanes(struct planner *w, struct lane_plan *plan)
{
    for (int k = 0; k < w->n; k++) {
        const struct choice c = first_to_start(w, plan);
        plan->order[k] = c.item;
        plan->places[c.item].lane = c.lane;
        plan->used[c.lane] = true;
        if (w->items[c.item].scratch > plan->scratch[c.lane])
            plan->scratch[c.lane] = w->items[c.item].scratch;
        w->waits_for[c.item] = -1;
        w->end[c.item] = w->free_at[c.lane] = c.start + w->us[c.item];
        plan->us = w->end[c.item] > plan->us ? w->end[c.item] : plan->us;
        for (int i = c.item + 1; i < w->n; i++)
            w->waits_for[i] -= has(direct_of(w, i), c.item);
    }
}

/* ---- who waits for whom ---- */

/* Of every lane: how many of its items are done when an item is. */
struct done { int n[LANES_MOST]; };

static void join(struct done *to, const struct done *more)
{
    for (int l = 0; l < LANES_MOST; l++)
        to->n[l] = more->n[l] > to->n[l] ? more->n[l] : to->n[l];
}

/* The last item of every other lane that item i comes after. */
static void find_last(const struct planner *w, struct lane_plan *plan, const struct done *done, int i)
{
    struct lane_place *it = &plan->places[i];
    EACH_OF(j, w, direct_of(w, i)) {
        const int l = plan->places[j].lane;
        if (l != it->lane && (it->after[l] < 0 || done[j].n[l] > done[it->after[l]].n[l]))
            it->after[l] = j;
    }
}

static void leave_out_implied(struct lane_plan *plan, const struct done *done, const struct done *own, int i)
{
    struct lane_place *it = &plan->places[i];
    for (int l = 0; l < LANES_MOST; l++) {
        const int j = it->after[l];
        bool implied = j >= 0 && own->n[l] >= done[j].n[l];
        for (int m = 0; m < LANES_MOST && j >= 0; m++)
            implied |= m != l && it->after[m] >= 0 && done[it->after[m]].n[l] >= done[j].n[l];
        if (implied)
            it->after[l] = -1;
    }
}

static void find_waits(const struct planner *w, struct lane_plan *plan, struct done *done)
{
    struct done last[LANES_MOST] = {0};         /* of the last item of each lane so far */
    for (int k = 0; k < w->n; k++) {
        const int i = plan->order[k];
        struct lane_place *it = &plan->places[i];
        for (int l = 0; l < LANES_MOST; l++)
            it->after[l] = -1;
        find_last(w, plan, done, i);
        leave_out_implied(plan, done, &last[it->lane], i);
        done[i] = last[it->lane];
        for (int l = 0; l < LANES_MOST; l++)
            if (it->after[l] >= 0) {
                plan->places[it->after[l]].awaited = true;
                join(&done[i], &done[it->after[l]]);
            }
        done[i].n[it->lane]++;
        last[it->lane] = done[i];
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

static bool planner_init(struct planner *w, const struct lane_item *items, int n, int lanes)
{
    const size_t count = (size_t)n;
    *w = (struct planner){.items = items, .n = n, .lanes = lanes < LANES_MOST ? lanes : LANES_MOST,
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

bool lanes_plan(struct lane_plan *out, const struct lane_item *items, int n, int lanes)
{
    struct planner w;
    struct done *done = calloc((size_t)n + 1, sizeof *done);
    *out = (struct lane_plan){.n = n, .places = calloc((size_t)n + 1, sizeof *out->places), .order = calloc((size_t)n + 1, sizeof *out->order)};
    if (!done || !out->places || !out->order || !planner_init(&w, items, n, lanes)) {
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
    free(plan->places);
    free(plan->order);
    *plan = (struct lane_plan){0};
}
