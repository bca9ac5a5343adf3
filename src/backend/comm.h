/* How kernels of communication reach the other ranks: one sum after the other is started, in the same order on every rank, and waited
 * for where its result is needed. Who does it is not a backend's affair (src/dist); a backend without it has one rank. */
#ifndef HONE_BACKEND_COMM_H
#define HONE_BACKEND_COMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/program.h"

struct comm {
    int rank, size;
    int gpu;                                /* where the device is a GPU: the place of this rank's among those of its machine */
    bool nccl;                              /* and NCCL sums, not the group; both are set by who opens backends */
    _Atomic(const struct op *) at;          /* what runs now, for those who ask where a rank is; NULL: nothing */
    _Atomic(const struct program *) of;
    /* The sum of `data` (n) over all ranks takes its place; nobody touches it until it was waited for. */
    void (*start)(struct comm *c, float *data, int64_t n);
    /* The same, but this rank gets the sum of its slice alone: [cuts[k], cuts[k + 1]), k by slice_place; the rest is no number that counts. */
    void (*scatter)(struct comm *c, float *data, const int64_t *cuts);
    /* False: the group has failed, and `data` is no sum. */
    bool (*wait)(struct comm *c, const float *data);
    /* Everybody's slice of the op's values, which lie at `memory`, comes to all; waited for by the address of the first. */
    void (*gather)(struct comm *c, const struct program *p, const struct op *op, void *const *memory);
    bool (*gathered)(struct comm *c, const float *first);      /* waits for that, if it was started; false: the group has failed */
    enum status (*status)(struct comm *c, struct error *err);       /* of the group */
    /* All ranks get what rank 0 has; for a backend whose ranks meet by themselves. */
    enum status (*share)(struct comm *c, void *data, size_t bytes, struct error *err);
};

#endif
