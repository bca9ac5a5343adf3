/* The kernels that a model must agree on: plain, and tuned on one thread and on two. Group set-up and tear-down. */
#ifndef HONE_TESTS_KERNELS_H
#define HONE_TESTS_KERNELS_H

#include "support/models.h"

enum { KERNELS = 3 };
static struct backend *kernels[KERNELS];        /* reference, tuned on one thread, tuned on two */

static inline int make_backends(void **state)
{
    (void)state;
    kernels[0] = new_backend(1, true);
    kernels[1] = new_backend(1, false);
    kernels[2] = new_backend(2, false);
    return 0;
}

static inline int free_backends(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        kernels[i]->free(kernels[i]);
    return 0;
}

#endif
