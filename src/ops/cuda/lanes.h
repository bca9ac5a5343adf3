/* Which items of a list, ops or pieces of ops, may run beside each other, and in which lane each goes: a lane is a row of items that run
 * one after the other, and a few of them go on at the same time. Small kernels leave most of a GPU empty, and in a step many of them wait for nothing but their
 * turn: gradients of weights beside the gradient that goes on to the layer before. Knows nothing of CUDA. */
#ifndef HONE_OPS_CUDA_LANES_H
#define HONE_OPS_CUDA_LANES_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/backend.h"

enum { LANES_MOST = 8 };
/* An item that needs more scratch than this stays in lane 0: every other lane has scratch of its own, and not more than this. */
#define LANE_SCRATCH ((size_t)64 << 20)

struct lane_touch {                 /* memory that an item reads or writes */
    const void *at;
    size_t bytes;
    bool written;
};

struct lane_item {
    const struct lane_touch *touches;
    int n;
    size_t scratch;                 /* bytes; items of one lane share them */
    double us;                      /* a guess, as lanes_guess_us makes it */
};

struct lane_place {
    int lane;
    int after[LANES_MOST];          /* per lane: the item of it that must be done before, -1: none. Nothing that follows from the others,
                                       or from the order of the item's own lane */
    bool awaited;                   /* an item of another lane comes after it */
};

struct lane_plan {
    struct lane_place *places;      /* (n) */
    int *order;                     /* (n): each behind all that it comes after */
    int n;
    size_t scratch[LANES_MOST];     /* the most that an item of the lane needs */
    bool used[LANES_MOST];
    double us;                      /* what the whole may take, by the guesses that the lanes were chosen by */
};

/* Two items keep their order where one writes memory that the other touches: memory and not values, since values that do not live at the
 * same time share it. False: there is no memory for the plan. */
bool lanes_plan(struct lane_plan *out, const struct lane_item *items, int n, int lanes);
void lanes_release(struct lane_plan *plan);
double lanes_guess_us(const struct program *p, const struct op *op);
/* The most that lanes beside the main one need: for each `fixed` bytes and the largest scratch that may leave lane 0. */
size_t lanes_most_bytes(const size_t *scratch, int n, int lanes, size_t fixed);

#endif
