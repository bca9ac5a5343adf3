/* Attention by AMX tiles: what its forward (attention.c) and backward (attention_grad.c) share.
 *
 * Scores are transposed, (keys, queries), in blocks of 32 by 32, as in f32 (tuned/flash.h): queries are lanes, and no step needs a sum across
 * them. What is made of two rows of scores is an operand as it is: lanes of one row side by side are the left one (keys, queries) of what
 * goes to keys, lanes of two rows zipped are the right one (keys, queries) of what goes to queries; nothing between two products is ever
 * transposed. What goes to queries is, at the end, once per block of them. */
#ifndef HONE_OPS_CPU_PAIRS_ATTENTION_BLOCK_H
#define HONE_OPS_CPU_PAIRS_ATTENTION_BLOCK_H

#include <assert.h>
#include <string.h>

#include "ops/cpu/pairs/attention.h"
#include "ops/cpu/pairs/power.h"
#include "ops/cpu/pairs/tiles.h"

static_assert((int)BLOCK == (int)PAIRS_QUERIES && (int)BLOCK == (int)TILE_DEPTH, "a block of keys is as deep as a tile");

static const float BITS = 1.44269504f;          /* of e */

/* Tiles along the numbers of a head, and along all keys. */
static inline int64_t tiles_of(int64_t n) { return up_to(n, TILE_DEPTH) / TILE_DEPTH; }

/* Whole blocks of strips: one that is missing is zero. */
static inline int64_t strip_numbers(int64_t rows, int64_t depth) { return up_to(rows, BLOCK) * tiles_of(depth) * TILE_DEPTH; }
PAIRS_INLINE void fill_strips(uint16_t *to, int64_t rows, int64_t depth)
{
    const int64_t there = up_to(rows, TILE) * tiles_of(depth) * TILE_DEPTH;
    memset(to + there, 0, (size_t)(strip_numbers(rows, depth) - there) * sizeof *to);
}
static inline void take_rows_of(uint16_t *to, struct pairs_side s, int64_t rows, int64_t depth)
{
    pack_rows(to, &s, rows, depth);
    fill_strips(to, rows, depth);
}
static inline void take_columns_of(uint16_t *to, struct pairs_side s, int64_t columns, int64_t depth)
{
    pack_columns(to, &s, columns, depth);
    fill_strips(to, columns, depth);
}

/* to (BLOCK, BLOCK) = a b over so many tiles, with strips of both `next` tiles apart. */
PAIRS_INLINE void block_product(float *to, const uint16_t *a, const uint16_t *b, int64_t tiles, int64_t next)
{
    amx_start(true, true, NULL, 0);
    for (int64_t p = 0; p < tiles; p++)
        amx_step(true, true, a + p * TILE_NUMBERS, b + p * TILE_NUMBERS, next * TILE_NUMBERS, NULL);
    amx_store(true, true, to, BLOCK);
    __asm__ volatile("" ::: "memory");
}

/* Which keys the queries of a block see: [first, last] of each, a lane per query; those that any of them sees, in whole blocks. */
struct seen {
    __m512i first[2], last[2];
    int64_t all_first, all_last;        /* what all of them see */
    struct span keys;
};

static inline struct seen seen_by(const struct flash *f, int64_t head, int64_t query)
{
    _Alignas(64) int32_t first[BLOCK], last[BLOCK];
    for (int64_t i = 0; i < BLOCK; i++) {
        const int64_t q = least(query + i, f->seq - 1);
        first[i] = f->starts ? f->starts[head / f->heads * f->seq + q] : 0;
        last[i] = (int32_t)(f->causal ? q : f->seq - 1);
    }
    return (struct seen){.first = {_mm512_load_si512(first), _mm512_load_si512(first + TILE)},
                         .last = {_mm512_load_si512(last), _mm512_load_si512(last + TILE)},
                         .all_first = first[BLOCK - 1], .all_last = last[0],          /* both grow along a row */
                         .keys = {first[0] / BLOCK * BLOCK, up_to(last[BLOCK - 1] + 1, BLOCK)}};
}

static inline bool all_see(const struct seen *s, int64_t key) { return s->all_first <= key && key + BLOCK - 1 <= s->all_last; }

/* Lanes of a half of the block that see a key. */
PAIRS_INLINE __mmask16 lanes_that_see(const struct seen *s, int half, int64_t key)
{
    const __m512i k = _mm512_set1_epi32((int32_t)key);
    return _mm512_cmple_epi32_mask(s->first[half], k) & _mm512_cmple_epi32_mask(k, s->last[half]);
}

/* A block of keys under dropout, as it multiplies the weights; rows that no query sees are zero. */
static inline void keep_block(float *keep, const struct flash *f, int64_t head, int64_t query, int64_t key, flash_keep_fn *fill)
{
    const int64_t keys = least(BLOCK, f->seq - key);
    memset(keep, 0, BLOCK * BLOCK * sizeof *keep);
    fill(keep, f, &(struct sight){.head = head, .query = query, .key = key, .keys = f->causal ? least(keys, query + BLOCK - key) : keys});
}

/* Rows of a head lie apart by the width of all heads, too far for the CPU to foresee: they are asked for before they are read or written. */
PAIRS_INLINE void expect_rows(const float *from, int64_t row, int64_t rows, int64_t size)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < size; e += TILE)
            __builtin_prefetch(from + i * row + e);
}

/* to (rows, columns) = the transpose of from (BLOCK, BLOCK), times the factors of its lanes. */
static inline void write_transposed(float *to, int64_t to_row, int64_t rows, int64_t columns, const float *from, const __m512 factor[2])
{
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t e = 0; e < columns; e += TILE) {
            __m512i x[TILE];
            UNROLL(16)
            for (int k = 0; k < TILE; k++)
                x[k] = (__m512i)_mm512_mul_ps(_mm512_load_ps(from + (e + k) * BLOCK + i), factor[i / TILE]);
            transpose(x);
            UNROLL(16)
            for (int k = 0; k < TILE; k++)
                if (i + k < rows)
                    _mm512_mask_storeu_ps(to + (i + k) * to_row + e, lanes_mask(columns - e), (__m512)x[k]);
        }
}

/* Memory as it is carved; without a base it is only counted. */
struct carving {
    char *base;
    size_t used;
};

static inline void *carve(struct carving *from, int64_t bytes)
{
    void *is = from->base ? from->base + from->used : NULL;
    from->used += (size_t)up_to(bytes, 64);
    return is;
}

#endif
