/* Sets of ranges: a sorted list with a gap, searched by halves; see ranges.h. */
#include "core/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

/* The first range that ends at `at` or later. */
static int first_to(const struct ranges *s, size_t at)
{
    int low = 0, high = s->n;
    if (s->n && ranges_at(s, s->n - 1)->hi < at)        /* behind them all, as most are that come in order */
        return s->n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (ranges_at(s, middle)->hi < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct ranges ranges_in(struct range *list, int cap) { return (struct ranges){.list = list, .cap = cap, .lent = true}; }

static void grow(struct ranges *s)
{
    const int cap = s->cap ? 2 * s->cap : 4, behind = s->n - s->gap;
    struct range *list = xrealloc(s->lent ? NULL : s->list, (size_t)cap * sizeof *list);
    if (s->lent)
        memcpy(list, s->list, (size_t)s->cap * sizeof *list);
    s->list = list;
    s->lent = false;
    memmove(s->list + cap - behind, s->list + s->cap - behind, (size_t)behind * sizeof *s->list);
    s->cap = cap;
}

/* The gap begins behind range `at` - 1. */
static void move_gap(struct ranges *s, int at)
{
    struct range *behind = s->list + s->cap - s->n;     /* range i behind the gap is behind[i] */
    if (at < s->gap)
        memmove(behind + at, s->list + at, (size_t)(s->gap - at) * sizeof *s->list);
    else
        memmove(s->list + s->gap, behind + s->gap, (size_t)(at - s->gap) * sizeof *s->list);
    s->gap = at;
}

void ranges_add(struct ranges *s, struct range r)
{
    if (r.lo >= r.hi)
        return;
    const int at = first_to(s, r.lo);
    int end = at;                                       /* [at, end) touch r and become one with it */
    for (; end < s->n && ranges_at(s, end)->lo <= r.hi; end++) {
        const struct range *other = ranges_at(s, end);
        r.lo = other->lo < r.lo ? other->lo : r.lo;
        r.hi = other->hi > r.hi ? other->hi : r.hi;
    }
    if (end == at + 1) {
        *ranges_at(s, at) = r;
        return;
    }
    if (end == at && s->n == s->cap)
        grow(s);
    move_gap(s, end);
    s->gap = at;
    s->n -= end - at;
    s->list[s->gap++] = r;
    s->n++;
}

const struct range *ranges_hit(const struct ranges *s, struct range r)
{
    const int at = first_to(s, r.lo + 1);               /* one that ends at r.lo has nothing of it */
    return r.lo < r.hi && at < s->n && ranges_at(s, at)->lo < r.hi ? ranges_at(s, at) : NULL;
}

void ranges_clear(struct ranges *s) { s->n = s->gap = 0; }

void ranges_release(struct ranges *s)
{
    if (!s->lent)
        free(s->list);
    *s = (struct ranges){0};
}

size_t ranges_sum(const struct ranges *s)
{
    size_t sum = 0;
    for (int i = 0; i < s->n; i++)
        sum += ranges_at(s, i)->hi - ranges_at(s, i)->lo;
    return sum;
}
