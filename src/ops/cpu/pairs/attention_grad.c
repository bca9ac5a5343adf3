/* Attention by AMX tiles, backward. Weights are made again, block by block of keys; what a block gives to its keys is added to where they are
 * summed, and the gradients of its scores are kept, packed, until all keys are done: what goes to the queries is one product over them. */
#include "ops/cpu/pairs/attention_block.h"

#if defined(HONE_AMX)

/* A thread's own memory. */
struct backward {
    uint16_t *k, *v;            /* left (keys, size) */
    uint16_t *k_t;              /* left (size, keys) */
    uint16_t *q, *dy;           /* right (size, queries) */
    uint16_t *q_t, *dy_t;       /* right (queries, size) */
    uint16_t *ds;               /* right (keys, queries): gradients of scores */
    uint16_t *w_keys, *ds_keys; /* left (keys, queries) of a block: weights, gradients of scores */
    float *s, *dw, *keep;       /* (BLOCK, BLOCK): scores, gradients of weights */
};

static size_t backward_of(const struct flash *f, struct backward *w, void *memory)
{
    struct carving m = {memory, 0};
    w->k = carve(&m, 2 * strip_numbers(f->seq, f->size));
    w->v = carve(&m, 2 * strip_numbers(f->seq, f->size));
    w->k_t = carve(&m, 2 * strip_numbers(f->size, f->seq));
    w->q = carve(&m, 2 * strip_numbers(BLOCK, f->size));
    w->dy = carve(&m, 2 * strip_numbers(BLOCK, f->size));
    w->q_t = carve(&m, 2 * strip_numbers(f->size, BLOCK));
    w->dy_t = carve(&m, 2 * strip_numbers(f->size, BLOCK));
    w->ds = carve(&m, 2 * BLOCK * up_to(f->seq, BLOCK));
    w->w_keys = carve(&m, 2 * BLOCK * BLOCK);
    w->ds_keys = carve(&m, 2 * BLOCK * BLOCK);
    w->s = carve(&m, 4 * BLOCK * BLOCK);
    w->dw = carve(&m, 4 * BLOCK * BLOCK);
    w->keep = carve(&m, 4 * BLOCK * BLOCK);
    return m.used;
}

size_t pairs_attention_grad_bytes(const struct flash *f)
{
    struct backward w;
    return backward_of(f, &w, NULL);
}

void pairs_attention_begin(void) { amx_begin(); }
void pairs_attention_end(void) { amx_end(); }

void pairs_attention_take(const struct flash *f, int64_t at, void *memory)
{
    const int64_t row = f->kv_heads * f->size;
    struct backward w;
    backward_of(f, &w, memory);
    expect_rows(f->k + at, row, f->seq, f->size);
    expect_rows(f->v + at, row, f->seq, f->size);
    take_rows_of(w.k, (struct pairs_side){f->k + at, row, 1}, f->seq, f->size);
    take_rows_of(w.v, (struct pairs_side){f->v + at, row, 1}, f->seq, f->size);
    take_rows_of(w.k_t, (struct pairs_side){f->k + at, 1, row}, f->size, f->seq);
}

static void take_queries(const struct flash *f, const struct backward *w, const struct pairs_queries *b)
{
    const int64_t row = f->heads * f->size;
    take_columns_of(w->q, (struct pairs_side){b->q, row, 1}, b->rows, f->size);
    take_columns_of(w->dy, (struct pairs_side){b->dy, row, 1}, b->rows, f->size);
    take_columns_of(w->q_t, (struct pairs_side){b->q, 1, row}, f->size, b->rows);
    take_columns_of(w->dy_t, (struct pairs_side){b->dy, 1, row}, f->size, b->rows);
}

/* What is known of the queries, a lane each. */
struct facts { __m512 largest[2], share[2], all[2]; };

/* Two rows of a block, four vectors of them: weights as they were given, and gradients of scores. */
PAIRS_INLINE void two_rows_grad(const struct backward *w, const struct facts *q, const struct seen *seen, int64_t key, int64_t j, float scale,
                                __m512 given[4], __m512 ds[4], const bool whole, const bool dropout)
{
    const __m512 factor = _mm512_set1_ps(scale), bits = _mm512_set1_ps(BITS);
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const int64_t at = j * BLOCK + i * TILE, h = i % 2;
        const __m512 x = _mm512_fmsub_ps(_mm512_load_ps(w->s + at), factor, q->largest[h]);
        const __m512 e = _mm512_mul_ps(power(_mm512_mul_ps(x, bits)), q->share[h]);
        const __m512 p = whole ? e : _mm512_maskz_mov_ps(lanes_that_see(seen, (int)h, key + j + i / 2), e);
        const __m512 m = dropout ? _mm512_load_ps(w->keep + at) : _mm512_set1_ps(1);
        const __m512 dw = dropout ? _mm512_mul_ps(_mm512_load_ps(w->dw + at), m) : _mm512_load_ps(w->dw + at);
        given[i] = dropout ? _mm512_mul_ps(p, m) : p;
        ds[i] = _mm512_mul_ps(p, _mm512_fmsub_ps(dw, factor, q->all[h]));
    }
}

/* A block of scores and of gradients of weights become operands. */
PAIRS_INLINE void block_grad(const struct flash *f, const struct backward *w, const struct facts *q, const struct seen *seen, int64_t key,
                             const bool whole, const bool dropout)
{
    const int64_t next = tiles_of(f->seq) * TILE_NUMBERS;
    uint16_t *to = w->ds + key * TILE;
    for (int64_t j = 0; j < BLOCK; j += 2) {
        __m512 given[4], ds[4];
        two_rows_grad(w, q, seen, key, j, f->scale, given, ds, whole, dropout);
        UNROLL(2)
        for (int i = 0; i < 2; i++) {
            _mm512_store_si512(w->w_keys + (j + i) * TILE_DEPTH, pairs_round(given[2 * i], given[2 * i + 1]));
            _mm512_store_si512(w->ds_keys + (j + i) * TILE_DEPTH, pairs_round(ds[2 * i], ds[2 * i + 1]));
            _mm512_store_si512(to + i * next + j * TILE, pairs_zip(ds[i], ds[2 + i]));
        }
    }
}

static void any_block_grad(const struct flash *f, const struct backward *w, const struct facts *q, const struct seen *seen, int64_t key)
{
    if (f->prob > 0)
        block_grad(f, w, q, seen, key, false, true);
    else if (all_see(seen, key))
        block_grad(f, w, q, seen, key, true, false);
    else
        block_grad(f, w, q, seen, key, false, false);
}

/* c (keys, size) += a (keys, queries) b (queries, size). */
static void add_to_keys(const struct flash *f, float *c, const struct pairs_sums *s, int64_t key, const uint16_t *a, const uint16_t *b)
{
    for (int64_t e = 0; e < f->size; e += BLOCK)
        amx_block(&(struct pairs_block){.a = a, .b = b + e * TILE_DEPTH, .tiles = 1, .rows = least(BLOCK, f->seq - key), .columns = least(BLOCK, f->size - e)},
                  &(struct pairs_target){.c = c + key * s->row + e, .ldc = s->row, .scale = 1, .accumulate = !s->empty});
}

/* Keys that none of the queries sees have no gradient, which must be written where nothing is there yet. */
static void clear_keys(const struct flash *f, const struct pairs_sums *s, int64_t end)
{
    for (int64_t j = 0; s->empty && j < end; j++) {
        memset(s->dk + j * s->row, 0, (size_t)f->size * sizeof *s->dk);
        memset(s->dv + j * s->row, 0, (size_t)f->size * sizeof *s->dv);
    }
}

/* What the gradients of scores make of the keys. */
static void write_queries(const struct flash *f, const struct backward *w, const struct pairs_queries *b, const struct seen *seen)
{
    const int64_t tiles = tiles_of(f->seq), first = seen->keys.lo / BLOCK, n = seen->keys.hi / BLOCK - first;
    const __m512 one[2] = {_mm512_set1_ps(1), _mm512_set1_ps(1)};
    for (int64_t e = 0; e < f->size; e += BLOCK) {
        block_product(w->s, w->k_t + (e * tiles + first * TILE) * TILE_DEPTH, w->ds + first * TILE_NUMBERS, n, tiles);
        write_transposed(b->dq + e, f->heads * f->size, b->rows, least(BLOCK, f->size - e), w->s, one);
    }
}

void pairs_attention_grad(const struct flash *f, const struct pairs_queries *b, const struct pairs_sums *s, flash_keep_fn *keep, void *memory)
{
    const int64_t deep = tiles_of(f->size);
    const struct seen seen = seen_by(f, b->head, b->first);
    const struct facts q = {{_mm512_loadu_ps(b->largest), _mm512_loadu_ps(b->largest + TILE)},
                            {_mm512_loadu_ps(b->share), _mm512_loadu_ps(b->share + TILE)}, {_mm512_loadu_ps(b->all), _mm512_loadu_ps(b->all + TILE)}};
    struct backward w;
    backward_of(f, &w, memory);
    expect_rows(b->q, f->heads * f->size, b->rows, f->size);
    take_queries(f, &w, b);
    expect_rows(b->dq, f->heads * f->size, b->rows, f->size);
    clear_keys(f, s, seen.keys.lo);
    for (int64_t key = seen.keys.lo; key < seen.keys.hi; key += BLOCK) {
        block_product(w.s, w.k + key * deep * TILE_DEPTH, w.q, deep, deep);
        block_product(w.dw, w.v + key * deep * TILE_DEPTH, w.dy, deep, deep);
        if (f->prob > 0)
            keep_block(w.keep, f, b->head, b->first, key, keep);
        any_block_grad(f, &w, &q, &seen, key);
        add_to_keys(f, s->dv, s, key, w.w_keys, w.dy_t);
        add_to_keys(f, s->dk, s, key, w.ds_keys, w.q_t);
    }
    write_queries(f, &w, b, &seen);
}

#endif
