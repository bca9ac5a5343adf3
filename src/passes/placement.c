/* A tree over time. A node stands for a span; its halves are its children. A buffer's life is cut into the few nodes that make it
 * up, and each node knows which offsets are taken
 *   - through: by buffers that live in the whole span, and of which it is a piece;
 *   - within:  by any buffer that lives in some part of the span.
 * What is in the way of a life are then the `within` of its pieces and the `through` of the nodes above them. Offsets are kept as
 * joined ranges, which are few because buffers lie densely; so a buffer costs about the square of the logarithm of the times,
 * where looking at all other buffers would make the plan quadratic in the length of a program. */
#include "passes/placement.h"

#include <stdlib.h>

#include "core/arena.h"
#include "core/ranges.h"

struct node { struct ranges through, within; };

enum { FEW = 4 };           /* ranges of most sets */

struct placement {
    struct node *nodes;             /* children of i: 2 i + 1, 2 i + 2 */
    struct range *few;              /* (nodes, 2, FEW): where their sets begin, lest each allocates */
    int times;                      /* a power of two */
};

/* What a life [first, last] meets on the way down to its pieces: at most two nodes of every level, each with one set. */
enum { MEETS_MOST = 4 * 32 };
struct walk {
    struct placement *p;
    int first, last;
    struct ranges *in_the_way[MEETS_MOST];
    int n;
};

struct placement *placement_new(int times)
{
    struct placement *p = xcalloc(1, sizeof *p);
    p->times = 1;
    while (p->times < times)
        p->times *= 2;
    p->nodes = xcalloc((size_t)p->times * 2, sizeof *p->nodes);
    p->few = xcalloc((size_t)p->times * 2, 2 * FEW * sizeof *p->few);
    for (int i = 0; i < 2 * p->times; i++) {
        p->nodes[i].through = ranges_in(p->few + 2 * FEW * (size_t)i, FEW);
        p->nodes[i].within = ranges_in(p->few + 2 * FEW * (size_t)i + FEW, FEW);
    }
    return p;
}

void placement_free(struct placement *p)
{
    for (int i = 0; i < 2 * p->times; i++) {
        ranges_release(&p->nodes[i].through);
        ranges_release(&p->nodes[i].within);
    }
    free(p->nodes);
    free(p->few);
    free(p);
}

static void list_meets(struct walk *w, int node, int from, int span)
{
    const bool is_piece = w->first <= from && from + span - 1 <= w->last;
    if (w->last < from || w->first >= from + span)
        return;
    struct ranges *set = is_piece ? &w->p->nodes[node].within : &w->p->nodes[node].through;
    if (set->n)
        w->in_the_way[w->n++] = set;
    if (is_piece)
        return;
    list_meets(w, 2 * node + 1, from, span / 2);
    list_meets(w, 2 * node + 2, from + span / 2, span / 2);
}

/* Goes up past whatever is in the way; the sets are asked in turns until all have agreed to one place. */
static size_t lowest_gap(const struct walk *w, size_t bytes)
{
    const struct range *hit;
    size_t at = 0;
    for (int agreed = 0, i = 0; agreed < w->n; agreed++, i = (i + 1) % w->n)
        for (; (hit = ranges_hit(w->in_the_way[i], (struct range){at, at + bytes})); agreed = 0)
            at = hit->hi;
    return at;
}

static void take(const struct walk *w, int node, int from, int span, struct range r)
{
    if (w->last < from || w->first >= from + span)
        return;
    ranges_add(&w->p->nodes[node].within, r);
    if (w->first <= from && from + span - 1 <= w->last) {
        ranges_add(&w->p->nodes[node].through, r);
        return;
    }
    take(w, 2 * node + 1, from, span / 2, r);
    take(w, 2 * node + 2, from + span / 2, span / 2, r);
}

static bool is_free(const struct walk *w, struct range r)
{
    for (int i = 0; i < w->n; i++)
        if (ranges_hit(w->in_the_way[i], r))
            return false;
    return true;
}

size_t placement_add(struct placement *p, int first, int last, size_t bytes, const size_t *liked, int n)
{
    struct walk w = {.p = p, .first = first, .last = last};
    int i = 0;
    list_meets(&w, 0, 0, p->times);
    while (i < n && !is_free(&w, (struct range){liked[i], liked[i] + bytes}))
        i++;
    const size_t at = i < n ? liked[i] : lowest_gap(&w, bytes);
    take(&w, 0, 0, p->times, (struct range){at, at + bytes});
    return at;
}
