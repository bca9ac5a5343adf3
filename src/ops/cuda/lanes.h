/* Which ops of a list may run beside each other, and in which lane each goes: a lane is a row of ops that run one after the other, and a
 * few of them go on at the same time. Small kernels leave most of a GPU empty, and in a step many of them wait for nothing but their
 * turn: gradients of weights beside the gradient that goes on to the layer before. Knows nothing of CUDA. */
#ifndef HONE_OPS_CUDA_LANES_H
#define HONE_OPS_CUDA_LANES_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/backend.h"

enum { LANES_MOST = 4 };
/* An op that needs more scratch than this stays in lane 0: every other lane has scratch of its own, and not more than this. */
#define LANE_SCRATCH ((size_t)64 << 20)

struct lane_op {
    int lane;
    int after[LANES_MOST];          /* per lane: the op of it that must be done before, -1: none. Nothing that follows from the others,
                                       or from the order of the op's own lane */
    bool awaited;                   /* an op of another lane comes after it */
};

struct lane_plan {
    struct lane_op *ops;            /* (n) */
    int *order;                     /* (n): each behind all that it comes after */
    int n;
    size_t scratch[LANES_MOST];     /* the most that an op of the lane needs; a lane without ops needs none */
    bool used[LANES_MOST];
    double us;                      /* what the whole may take, by the same rough guess that the lanes were chosen by */
};

/* Two ops keep their order where one writes memory that the other touches: of the list, never of the program, since values that do not
 * live at the same time share memory. `scratch` (n) is in bytes; ops of one lane share it. False: there is no memory for the plan. */
bool lanes_plan(struct lane_plan *out, const struct bound_op *ops, const size_t *scratch, int n, int lanes);
void lanes_release(struct lane_plan *plan);

#endif
