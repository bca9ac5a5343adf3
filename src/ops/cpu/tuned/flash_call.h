/* A call of attention and what one block of it sees: shared by f32 (flash.h) and by tiles of bf16 (pairs/attention.h). */
#ifndef HONE_OPS_CPU_TUNED_FLASH_CALL_H
#define HONE_OPS_CPU_TUNED_FLASH_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* One call: sizes, operands, what dropout needs. */
struct flash {
    int64_t batch, heads, kv_heads, group, seq, size;
    int64_t width;              /* size up to whole vectors: row stride of copies */
    int64_t rows;               /* seq up to whole tiles: rows of copies */
    bool in_place;              /* all is whole panels or vectors, and rows so near to each other that copies gain nothing */
    bool direct;                /* and one block of keys is all: what a panel gives to its queries is written at once */
    bool causal;
    bool tiles;                 /* operands are rounded to bf16, and AMX multiplies them (pairs/attention.c) */
    float scale;
    const float *q, *k, *v;     /* (B, T, H * D), (B, T, K * D), (B, T, K * D) */
    const int32_t *starts;      /* (B, T): the first key that each query sees; NULL: all see the first one */
    float prob;                 /* 0: no dropout */
    int64_t first;              /* number of the first weight, for it */
    uint64_t seed, stream;
};

/* A key block as one panel of queries sees it: queries first_query.. and keys first_key.. of head (b, h). */
struct sight {
    int64_t head;               /* b * heads + h */
    int64_t query, key;         /* the first ones */
    int64_t keys;               /* how many are visible to any query of the panel; 0 or less: none */
    int64_t both;               /* how many, in whole tiles, to one of the panel's first vector of queries: the rest is for its second alone */
};

/* keep (keys, panel): 0, or 1 / (1 - prob), as OP_DROPOUT would multiply the weights (B, H, T, T); 0 where nothing is seen. */
typedef void flash_keep_fn(float *keep, const struct flash *f, const struct sight *g);

#endif
