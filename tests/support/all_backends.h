/* The backends that a kernel must agree on: plain, and tuned on one, two and three threads. Group set-up and tear-down. */
#ifndef HONE_TESTS_ALL_BACKENDS_H
#define HONE_TESTS_ALL_BACKENDS_H

#include "support/models.h"

enum { BACKENDS = 4 };
static struct backend *backends[BACKENDS];      /* reference, tuned on 1, 2 and 3 threads */

static inline int make_backends(void **state)
{
    (void)state;
    for (int i = 0; i < BACKENDS; i++)
        backends[i] = new_backend(i ? i : 1, i == 0);
    return 0;
}

static inline int free_backends(void **state)
{
    (void)state;
    for (int i = 0; i < BACKENDS; i++)
        backends[i]->free(backends[i]);
    return 0;
}

#endif
