/* Attention by AMX tiles: what flash.c and flash_grad.c of the tuned kernels hand over. Operands of all seven products are rounded to bf16; scores,
 * softmax and sums are f32. Only where the compiler knows AMX: HONE_AMX. */
#ifndef HONE_OPS_CPU_PAIRS_ATTENTION_H
#define HONE_OPS_CPU_PAIRS_ATTENTION_H

#include <stddef.h>

#include "core/team.h"
#include "ops/cpu/tuned/flash_call.h"

enum { PAIRS_QUERIES = 32 };            /* of a block */

size_t pairs_attention_bytes(const struct flash *f);            /* that a thread needs, a multiple of 64 */
size_t pairs_attention_grad_bytes(const struct flash *f);

/* Blocks of queries, head by head; out: y (B, T, H * D), largest and sums (B, H, T). `keep` is asked where there is dropout. */
void pairs_attention(const struct flash *f, struct span blocks, void *const *out, flash_keep_fn *keep, void *memory);

/* A block of queries on the way back: rows of them, apart by the width of all heads, and what is known of each. */
struct pairs_queries {
    int64_t head, first, rows;
    const float *q, *dy;
    const float *largest, *share, *all;         /* (PAIRS_QUERIES): the largest score, 1 / sum, dy y times scale; 0 where no query is */
    float *dq;
};

/* Where gradients of keys are summed. */
struct pairs_sums {
    float *dk, *dv;
    int64_t row;
    bool empty;                                 /* nothing is there yet: write, do not add */
};

/* A thread takes the keys of one kv head, whose first number is at `at`, then blocks of queries that see them, between begin and end. */
void pairs_attention_begin(void);
void pairs_attention_take(const struct flash *f, int64_t at, void *memory);
void pairs_attention_grad(const struct flash *f, const struct pairs_queries *b, const struct pairs_sums *s, flash_keep_fn *keep, void *memory);
void pairs_attention_end(void);

#endif
