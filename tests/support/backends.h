/* The two backends that most tests compare: plain kernels on one thread, tuned ones on two. Group set-up and tear-down. */
#ifndef HONE_TESTS_BACKENDS_H
#define HONE_TESTS_BACKENDS_H

#include "support/models.h"

static struct backend *reference, *tuned;

static inline int make_backends(void **state)
{
    (void)state;
    reference = new_backend(1, true);
    tuned = new_backend(2, false);
    return 0;
}

static inline int free_backends(void **state)
{
    (void)state;
    reference->free(reference);
    tuned->free(tuned);
    return 0;
}

#endif
