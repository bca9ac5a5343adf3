/* How kernels of communication reach the other ranks: one sum after the other is started, in the same order on every rank, and waited
 * for where its result is needed. Who does it is not a backend's affair (src/dist); a backend without it has one rank. */
#ifndef HONE_BACKEND_COMM_H
#define HONE_BACKEND_COMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "program/program.h"

struct comm {
    int rank, size;
    _Atomic(const struct op *) at;          /* what runs now, for those who ask where a rank is; NULL: nothing */
    _Atomic(const struct program *) of;
    /* The sum of `data` (n) over all ranks takes its place; nobody touches it until it was waited for. */
    void (*start)(struct comm *c, float *data, int64_t n);
    /* False: the group has failed, and `data` is no sum. */
    bool (*wait)(struct comm *c, const float *data);
    enum status (*status)(struct comm *c, struct error *err);       /* of the group */
};

#endif
