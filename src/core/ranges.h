/* A set of numbers as ranges [lo, hi) that neither overlap nor touch: what is added is joined with its neighbours, so a set that
 * is dense stays short however much went into it. */
#ifndef HONE_CORE_RANGES_H
#define HONE_CORE_RANGES_H

#include <stdbool.h>
#include <stddef.h>

struct range { size_t lo, hi; };

/* A list in order with a gap in it, where the last range was added: the next one is mostly near, and little has to move for it. */
struct ranges {                     /* all zero: empty */
    struct range *list;             /* (cap): [0, gap) and [gap + cap - n, cap) */
    int n, cap, gap;
    bool lent;                      /* the list is somebody else's */
};

static inline struct range *ranges_at(const struct ranges *s, int i) { return &s->list[i < s->gap ? i : i + s->cap - s->n]; }

/* An empty set that begins in memory of the caller's, which must stay; it takes its own when that is full. */
struct ranges ranges_in(struct range *list, int cap);
void ranges_add(struct ranges *s, struct range r);             /* an empty one adds nothing */
/* The first range of the set that has a number of r; NULL: none. */
const struct range *ranges_hit(const struct ranges *s, struct range r);
size_t ranges_sum(const struct ranges *s);                      /* how many numbers it has */
void ranges_clear(struct ranges *s);                            /* empty, the memory is kept */
void ranges_release(struct ranges *s);

#endif
