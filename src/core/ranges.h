/* A set of numbers as ranges [lo, hi) that neither overlap nor touch: what is added is joined with its neighbours, so a set that
 * is dense stays short however much went into it. */
#ifndef HONE_CORE_RANGES_H
#define HONE_CORE_RANGES_H

#include <stdbool.h>
#include <stddef.h>

struct range { size_t lo, hi; };

struct ranges {                     /* all zero: empty */
    struct range *list;             /* in order */
    int n, cap;
};

void ranges_add(struct ranges *s, struct range r);             /* an empty one adds nothing */
/* The first range of the set that has a number of r; NULL: none. */
const struct range *ranges_hit(const struct ranges *s, struct range r);
void ranges_clear(struct ranges *s);                            /* empty, the memory is kept */
void ranges_release(struct ranges *s);

#endif
