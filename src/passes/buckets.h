/* Gradients that are made where their bucket is, so that nothing is copied into it or out of it. */
#ifndef HONE_PASSES_BUCKETS_H
#define HONE_PASSES_BUCKETS_H

#include "program/program.h"

struct bucket_place {
    value_id bucket;                /* NO_VALUE: it belongs into none */
    size_t behind;                  /* its first byte */
};

/* Per value, to be freed. first, last: the ops between which each value lives (memory_plan.c). */
struct bucket_place *buckets_find(const struct program *p, const int *first, const int *last);

#endif
