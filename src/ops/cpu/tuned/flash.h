/* Attention in blocks: what its forward (flash.c) and backward (flash_grad.c) share.
 *
 * Blocks of scores are kept transposed, (keys, queries): queries lie along the lanes of vectors. The running maximum and sum
 * of a row are then lanes too, no step needs a sum across a vector, and all seven products take one operand as it lies in
 * memory, element by element, and one as rows of vectors. Only queries (and the gradient of the output) are transposed, once
 * per block of queries. A panel is two vectors of queries; under a causal mask it sees no key past its last query, its first vector none past
 * its own last one, and a tile of queries or keys multiplies no more than it sees: the work above the diagonal is a triangle of one vector.
 *
 * A weight is e^(score - largest) over the row's sum, from the same scores forward and backward: the log of the sum, which would
 * be one number instead of two, has too few digits where scores are large. */
#ifndef HONE_OPS_CPU_TUNED_FLASH_H
#define HONE_OPS_CPU_TUNED_FLASH_H

#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/flash_call.h"
#include "ops/cpu/tuned/vec.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE = 8 };
#else
enum { TILE = 4 };
#endif
enum { PANEL = 2 * LANES, QUERIES = 32, KEYS = 64 };    /* a block: QUERIES x KEYS; TILE divides PANEL, PANEL both */

#define KERNEL static __attribute__((noinline, unused))     /* not inlined: alone it gets all registers */

struct flash TUNED(flash_of)(const struct program *p, const struct op *op, void *const *in);

static inline int64_t blocks_of(const struct flash *f) { return up_to(f->seq, QUERIES) / QUERIES; }

static inline struct sight sight_of(const struct flash *f, int64_t head, int64_t query, int64_t key)
{
    const int64_t keys = least(KEYS, f->seq - key), seen = f->causal ? least(keys, query + PANEL - key) : keys;
    return (struct sight){head, query, key, seen, f->causal ? least(seen, up_to(query + LANES - key, TILE)) : seen};
}

/* Keys that are visible to one of the panel's first TILE queries; TILE more to one of the next, and so on, but no more than there are. */
static inline int64_t seen_first(const struct flash *f, const struct sight *g) { return f->causal ? g->query + TILE - g->key : g->keys; }

/* No query from `query` on sees one of the keys [0, end): their samples begin later. Starts grow along a row. */
static inline bool sees_nothing(const struct flash *f, int64_t head, int64_t query, int64_t end)
{
    return f->starts && query < f->seq && f->starts[head / f->heads * f->seq + query] >= end;
}

/* One step of a product: TILE elements of a, one row of a panel. */
#define STEP(element, row)                                                                                            \
    do {                                                                                                              \
        const vec u = load(row), v = two ? load((row) + LANES) : u;                                                   \
        UNROLL(8)                                                                                                     \
        for (int i = 0; i < TILE; i++) {                                                                              \
            x[i] += (element) * u;                                                                                    \
            if (two)                                                                                                  \
                y[i] += (element) * v;                                                                                \
        }                                                                                                             \
    } while (0)

/* x, y (TILE rows, two vectors) = sum over p < depth of a (TILE, depth) times b (depth, PANEL), or the first vector alone; one stride of a
 * is 1. Elements of a are loaded by fours where an instruction can multiply by one lane, else one by one. `two` is a constant in every call. */
INLINE void product(const bool two, vec x[TILE], vec y[TILE], int64_t depth, const float *a, int64_t a_row, int64_t a_col, const float *b,
                    int64_t b_row)
{
    int64_t p = 0;
    UNROLL(8)
    for (int i = 0; i < TILE; i++)
        x[i] = y[i] = (vec){0};
#if defined(__aarch64__)
    if (a_col == 1)
        for (; p + 4 <= depth; p += 4) {
            quad s[TILE];
            UNROLL(8)
            for (int i = 0; i < TILE; i++)
                s[i] = *(const quad *)(a + i * a_row + p);
            UNROLL(4)
            for (int e = 0; e < 4; e++)
                STEP(s[i][e], b + (p + e) * b_row);
        }
    else
        UNROLL(4)
        for (; p < depth; p++) {
            const quad s[TILE / 4] = {*(const quad *)(a + p * a_col), *(const quad *)(a + p * a_col + 4)};
            STEP(s[i / 4][i % 4], b + p * b_row);
        }
#endif
    UNROLL(4)
    for (; p < depth; p++)
        STEP(a[i * a_row + p * a_col], b + p * b_row);
}

/* c (keys, PANEL) = a (keys, depth) b (depth, PANEL), a by rows; of the keys that only the panel's second vector sees, that alone. */
KERNEL void rows_times_panel(float *c, int64_t c_row, const struct sight *g, int64_t depth, const float *a, int64_t a_row,
                             const float *b, int64_t b_row)
{
    vec x[TILE], y[TILE];
    int64_t j = 0;
    for (; j < g->both; j += TILE) {
        product(true, x, y, depth, a + j * a_row, a_row, 1, b, b_row);
        UNROLL(8)
        for (int i = 0; i < TILE; i++) {
            store(c + (j + i) * c_row, x[i]);
            store(c + (j + i) * c_row + LANES, y[i]);
        }
    }
    for (; j < g->keys; j += TILE) {
        product(false, x, y, depth, a + j * a_row, a_row, 1, b + LANES, b_row);
        UNROLL(8)
        for (int i = 0; i < TILE; i++)
            store(c + (j + i) * c_row + LANES, x[i]);
    }
}

/* c (TILE, one vector or two) = c * factor + a^T b, with a (depth, TILE), b (depth, as c) and a factor per row of c; or = a^T b * factor. */
INLINE void columns_times_rows(const bool two, const bool add, float *c, int64_t c_row, const float *factor, int64_t depth, const float *a,
                               int64_t a_row, const float *b, int64_t b_row)
{
    vec x[TILE], y[TILE];
    product(two, x, y, depth, a, 1, a_row, b, b_row);
    UNROLL(8)
    for (int i = 0; i < TILE; i++) {
        float *to = c + i * c_row;
        store(to, add ? (vec)(load(to) * factor[i] + x[i]) : (vec)(x[i] * factor[i]));
        if (two)
            store(to + LANES, add ? (vec)(load(to + LANES) * factor[i] + y[i]) : (vec)(y[i] * factor[i]));
    }
}

/* How deep the product of a panel is: so deep for its first TILE rows, TILE deeper for the next ones, at most `all`. */
struct depth { int64_t first, all; };

/* c (PANEL, width) the same way, with a (depth, PANEL), b (depth, width). */
INLINE void panel_product(const bool add, float *c, int64_t c_row, int64_t width, const float *factor, struct depth d, const float *a, int64_t a_row,
                          const float *b, int64_t b_row)
{
    for (int64_t j = 0; j < PANEL; j += TILE) {
        const int64_t depth = least(d.first + j, d.all);
        int64_t e = 0;
        for (; e + LANES < width; e += PANEL)
            columns_times_rows(true, add, c + j * c_row + e, c_row, factor + j, depth, a + j, a_row, b + e, b_row);
        if (e < width)
            columns_times_rows(false, add, c + j * c_row + e, c_row, factor + j, depth, a + j, a_row, b + e, b_row);
    }
}

KERNEL void add_panel_times_rows(float *c, int64_t width, const float *factor, struct depth d, const float *a, int64_t a_row,
                                 const float *b, int64_t b_row)
{
    panel_product(true, c, width, width, factor, d, a, a_row, b, b_row);
}

KERNEL void panel_times_rows(float *c, int64_t c_row, int64_t width, const float *factor, struct depth d, const float *a,
                             int64_t a_row, const float *b, int64_t b_row)
{
    panel_product(false, c, c_row, width, factor, d, a, a_row, b, b_row);
}

/* to (size) = from * factor. */
INLINE void scale_row(float *to, const float *from, int64_t size, float factor)
{
    int64_t e = 0;
    for (; e + LANES <= size; e += LANES)
        store(to + e, load(from + e) * factor);
    for (; e < size; e++)
        to[e] = from[e] * factor;
}

INLINE ivec lane_numbers(void)
{
    ivec n;
    for (int i = 0; i < LANES; i++)
        n[i] = i;
    return n;
}

/* Scores of keys before the sample of their query become -inf. */
static inline void mask_before(float *s, int64_t row, const struct flash *f, const struct sight *g)
{
    const int32_t *starts = f->starts + g->head / f->heads * f->seq;
    for (int64_t i = g->query; i < least(g->query + PANEL, f->seq); i++)
        for (int64_t j = 0; j < least(g->keys, starts[i] - g->key); j++)
            s[j * row + i - g->query] = -INFINITY;
}

/* Scores of keys past their query become -inf, and so do rows after the last key, to whole tiles. */
static inline void mask_scores(float *s, int64_t row, const struct flash *f, const struct sight *g)
{
    const ivec lane = lane_numbers();
    int64_t j = g->query + 1 > g->key ? g->query + 1 - g->key : 0;
    for (j = f->causal ? j : g->keys; j < g->keys; j++) {
        const int32_t ahead = (int32_t)(g->key + j - g->query);     /* lanes below it do not see the key */
        if (j < g->both)
            store(s + j * row, choose(lane < ahead, all(-INFINITY), load(s + j * row)));
        if (ahead > LANES)
            store(s + j * row + LANES, choose(lane + LANES < ahead, all(-INFINITY), load(s + j * row + LANES)));
    }
    if (f->starts)
        mask_before(s, row, f, g);
    for (j = g->keys; j % TILE; j++) {
        store(s + j * row, all(-INFINITY));
        store(s + j * row + LANES, all(-INFINITY));
    }
}

/* Rows of a head lie apart by the width of all heads, too far for the CPU to foresee: they are asked for before they are read
 * or written. */
enum { AHEAD = 12 };            /* so many rows, in loops over rows */
static inline void expect_rows(const float *from, int64_t from_row, int64_t rows, int64_t size)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < size; e += 16)
            __builtin_prefetch(from + i * from_row + e);
}

/* to (columns, rows) = the transpose of from (rows, columns), times scale. */
void TUNED(flash_transpose)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns,
                            float scale);
/* The same, and copy (rows, width) = from, zeros after its columns, in one sweep. */
void TUNED(flash_take)(float *to, int64_t to_row, float *copy, int64_t width, const float *from, int64_t from_row, int64_t rows,
                       int64_t columns, float scale);
/* to (padded, width) = from (rows, size), zeros around it. */
void TUNED(flash_copy)(float *to, int64_t width, int64_t padded, const float *from, int64_t from_row, int64_t rows,
                       int64_t size);
flash_keep_fn TUNED(flash_keep);

/* What belongs to heads [lo, hi) of batch * heads, as whole samples, of the inputs with a bit. */
static inline struct share share_samples(const struct flash *f, int64_t lo, int64_t hi, int64_t heads, uint32_t in)
{
    return (struct share){{lo / heads, up_to(hi, heads) / heads}, f->batch, in, ~0u};
}

kernel_fn TUNED(flash_grad);
struct share TUNED(flash_grad_share)(const struct kernel_call *c, const struct kernel_thread *t);
size_t TUNED(flash_grad_scratch)(const struct program *p, const struct op *op, int threads);

#endif
