/* The loss of a linear head and its gradients by AMX tiles: what linear_loss.c of the tuned kernels hands over, and the two sweeps that
 * follow each other, with a meeting between them. Only where the compiler knows AMX: HONE_AMX. */
#ifndef HONE_OPS_CPU_PAIRS_LOSS_H
#define HONE_OPS_CPU_PAIRS_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "core/team.h"

struct pairs_loss {
    int64_t rows, vocab, width;         /* rows that have a target, and are counted here */
    int64_t share, most;                /* the most rows, or words, that one thread has; that there are */
    const float *x;                     /* (all rows, width) */
    const float *w;                     /* (vocab, width) */
    const uint16_t *w_bf16;             /* not NULL: w is there instead, in bf16 */
    bool thirds;                        /* operands are f32 in thirds (thirds.h), and not rounded */
    const int32_t *list;                /* (rows): which rows those are; NULL: all */
    const int32_t *all_targets;         /* of all rows */
    int32_t *targets;                   /* (rows): those of `list` */
    float *base, *losses, *factors;     /* (rows): the target's logit in bits; ln of the sum of powers relative to it; 1 / (sum * rows) */
    float *dx, *dw;                     /* (all rows, width), (vocab, width); NULL: no gradients are wanted */
};

size_t pairs_loss_bytes(int64_t width, int64_t share, int64_t most, bool thirds);       /* that a thread needs, a multiple of 64 */

/* A thread's rows: everything but dw. */
void pairs_loss_rows(const struct pairs_loss *l, struct span rows, void *memory);
/* A thread's words of dw, behind all rows. */
void pairs_loss_words(const struct pairs_loss *l, struct span words, void *memory);

#endif
