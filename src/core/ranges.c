/* Sets of ranges: a sorted list, searched by halves; see ranges.h. */
#include "core/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

/* The first range that ends at `at` or later. */
static int first_to(const struct ranges *s, size_t at)
{
    int low = 0, high = s->n;
    if (s->n && s->list[s->n - 1].hi < at)      /* behind them all, as most are that come in order */
        return s->n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (s->list[middle].hi < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void make_room(struct ranges *s, int at)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 4;
        s->list = xrealloc(s->list, (size_t)s->cap * sizeof *s->list);
    }
    memmove(&s->list[at + 1], &s->list[at], (size_t)(s->n - at) * sizeof *s->list);
    s->n++;
}

void ranges_add(struct ranges *s, struct range r)
{
    if (r.lo >= r.hi)
        return;
    const int at = first_to(s, r.lo);
    int end = at;                               /* [at, end) touch r and become one with it */
    while (end < s->n && s->list[end].lo <= r.hi)
        end++;
    if (end == at) {
        make_room(s, at);
        s->list[at] = r;
        return;
    }
    struct range *joined = &s->list[at];
    joined->lo = joined->lo < r.lo ? joined->lo : r.lo;
    joined->hi = s->list[end - 1].hi > r.hi ? s->list[end - 1].hi : r.hi;
    memmove(joined + 1, &s->list[end], (size_t)(s->n - end) * sizeof *s->list);
    s->n -= end - at - 1;
}

const struct range *ranges_hit(const struct ranges *s, struct range r)
{
    const int at = first_to(s, r.lo + 1);       /* one that ends at r.lo has nothing of it */
    return r.lo < r.hi && at < s->n && s->list[at].lo < r.hi ? &s->list[at] : NULL;
}

void ranges_clear(struct ranges *s) { s->n = 0; }

void ranges_release(struct ranges *s)
{
    free(s->list);
    *s = (struct ranges){0};
}
