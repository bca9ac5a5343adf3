/* Attention by AMX tiles, forward. All scores of a block of queries are there at once, (keys, 32) in f32 in the second-level cache, so that the
 * softmax is a plain one, and what goes to the queries is one product over all keys, whose sums stay in the tiles. */
#include "ops/cpu/pairs/attention_block.h"

#if defined(HONE_AMX)

/* A thread's own memory. */
struct forward {
    uint16_t *k;                /* left (keys, size) */
    uint16_t *v;                /* left (size, keys) */
    uint16_t *q;                /* right (size, queries) */
    uint16_t *weights;          /* right (keys, queries) */
    float *scores;              /* (keys, queries) */
    float *y, *keep;            /* (BLOCK, BLOCK) */
    int64_t loaded;             /* whose k and v: b * kv_heads + kv */
};

static size_t forward_of(const struct flash *f, struct forward *w, void *memory)
{
    struct carving m = {memory, 0};
    const int64_t keys = up_to(f->seq, BLOCK);
    w->k = carve(&m, 2 * strip_numbers(f->seq, f->size));
    w->v = carve(&m, 2 * strip_numbers(f->size, f->seq));
    w->q = carve(&m, 2 * strip_numbers(BLOCK, f->size));
    w->weights = carve(&m, 2 * BLOCK * keys);
    w->scores = carve(&m, 4 * BLOCK * keys);
    w->y = carve(&m, 4 * BLOCK * BLOCK);
    w->keep = carve(&m, 4 * BLOCK * BLOCK);
    w->loaded = -1;
    return m.used;
}

size_t pairs_attention_bytes(const struct flash *f)
{
    struct forward w;
    return forward_of(f, &w, NULL);
}

static void load_keys(const struct flash *f, struct forward *w, int64_t b, int64_t kv)
{
    const int64_t row = f->kv_heads * f->size, at = b * f->seq * row + kv * f->size;
    if (w->loaded == b * f->kv_heads + kv)
        return;
    w->loaded = b * f->kv_heads + kv;
    expect_rows(f->k + at, row, f->seq, f->size);
    expect_rows(f->v + at, row, f->seq, f->size);
    take_rows_of(w->k, (struct pairs_side){f->k + at, row, 1}, f->seq, f->size);
    take_rows_of(w->v, (struct pairs_side){f->v + at, 1, row}, f->size, f->seq);
}

static const float UNSEEN = -1e30f;     /* a score; far below all others, and finite: less another one it stays a number */

/* Scores of a block of keys are scaled, those that are not seen become UNSEEN, and `most` is brought up to date. `whole`: all are seen. */
PAIRS_INLINE void mask_block(float *s, const struct seen *seen, int64_t key, float scale, __m512 most[2], const bool whole)
{
    const __m512 none = _mm512_set1_ps(UNSEEN), factor = _mm512_set1_ps(scale);
    for (int64_t j = 0; j < BLOCK; j++)
        UNROLL(2)
        for (int h = 0; h < 2; h++) {
            float *at = s + j * BLOCK + h * TILE;
            const __m512 x = _mm512_mul_ps(_mm512_load_ps(at), factor);
            const __m512 y = whole ? x : _mm512_mask_mov_ps(none, lanes_that_see(seen, h, key + j), x);
            most[h] = _mm512_max_ps(y, most[h]);
            _mm512_store_ps(at, y);
        }
}

static void find_scores(const struct flash *f, const struct forward *w, const struct seen *seen, __m512 most[2])
{
    const int64_t deep = tiles_of(f->size);
    most[0] = most[1] = _mm512_set1_ps(UNSEEN);
    for (int64_t key = seen->keys.lo; key < seen->keys.hi; key += BLOCK) {
        float *s = w->scores + key * BLOCK;
        block_product(s, w->k + key * deep * TILE_DEPTH, w->q, deep, deep);
        if (all_see(seen, key))
            mask_block(s, seen, key, f->scale, most, true);
        else
            mask_block(s, seen, key, f->scale, most, false);
    }
}

/* Weights of a block of keys over the largest score, packed, and added to the sums. keep is NULL without dropout. */
PAIRS_INLINE void soften_block(const float *s, uint16_t *to, int64_t next, const __m512 shift[2], const float *keep, __m512 sum[4])
{
    const __m512 bits = _mm512_set1_ps(BITS);
    for (int64_t j = 0; j < BLOCK; j += 2) {
        __m512 e[4];
        UNROLL(4)
        for (int i = 0; i < 4; i++) {
            e[i] = power(_mm512_mul_ps(_mm512_sub_ps(_mm512_load_ps(s + j * BLOCK + i * TILE), shift[i % 2]), bits));
            sum[i] = _mm512_add_ps(sum[i], e[i]);
            if (keep)
                e[i] = _mm512_mul_ps(e[i], _mm512_load_ps(keep + j * BLOCK + i * TILE));
        }
        _mm512_store_si512(to + j * TILE, pairs_zip(e[0], e[2]));
        _mm512_store_si512(to + next * TILE_NUMBERS + j * TILE, pairs_zip(e[1], e[3]));
    }
}

static void find_weights(const struct flash *f, const struct forward *w, const struct seen *seen, int64_t head, int64_t query,
                         const __m512 shift[2], flash_keep_fn *keep, __m512 sum[2])
{
    const int64_t tiles = tiles_of(f->seq);
    __m512 sums[4] = {0};
    for (int64_t key = seen->keys.lo; key < seen->keys.hi; key += BLOCK) {
        const float *s = w->scores + key * BLOCK;
        uint16_t *to = w->weights + key * TILE;
        if (f->prob > 0) {
            keep_block(w->keep, f, head, query, key, keep);
            soften_block(s, to, tiles, shift, w->keep, sums);
        } else {
            soften_block(s, to, tiles, shift, NULL, sums);
        }
    }
    sum[0] = _mm512_add_ps(sums[0], sums[2]);
    sum[1] = _mm512_add_ps(sums[1], sums[3]);
}

/* What the weights make of the values. */
static void mix_values(const struct flash *f, const struct forward *w, const struct seen *seen, int64_t rows, const __m512 sum[2], float *y)
{
    const int64_t tiles = tiles_of(f->seq), first = seen->keys.lo / BLOCK, n = seen->keys.hi / BLOCK - first;
    const __m512 one = _mm512_set1_ps(1), share[2] = {_mm512_div_ps(one, sum[0]), _mm512_div_ps(one, sum[1])};
    for (int64_t e = 0; e < f->size; e += BLOCK) {
        block_product(w->y, w->v + (e * tiles + first * TILE) * TILE_DEPTH, w->weights + first * TILE_NUMBERS, n, tiles);
        write_transposed(y + e, f->heads * f->size, rows, least(BLOCK, f->size - e), w->y, share);
    }
}

static void write_lanes(float *to, int64_t rows, const __m512 x[2])
{
    for (int h = 0; h < 2; h++)
        _mm512_mask_storeu_ps(to + h * TILE, lanes_mask(rows - h * TILE), x[h]);
}

static void attend_block(const struct flash *f, struct forward *w, int64_t head, int64_t query, void *const *out, flash_keep_fn *keep)
{
    const int64_t rows = least(BLOCK, f->seq - query), row = f->heads * f->size;
    const int64_t at = (head / f->heads * f->seq + query) * row + head % f->heads * f->size;
    const struct seen seen = seen_by(f, head, query);
    __m512 most[2], sum[2];
    expect_rows(f->q + at, row, rows, f->size);
    load_keys(f, w, head / f->heads, head % f->heads / f->group);
    take_columns_of(w->q, (struct pairs_side){f->q + at, row, 1}, rows, f->size);
    expect_rows((const float *)out[0] + at, row, rows, f->size);
    find_scores(f, w, &seen, most);
    for (int h = 0; h < 2; h++)                 /* who sees nothing has no weights */
        most[h] = _mm512_mask_mov_ps(most[h], _mm512_cmp_ps_mask(most[h], _mm512_set1_ps(UNSEEN), _CMP_EQ_OQ), _mm512_setzero_ps());
    find_weights(f, w, &seen, head, query, most, keep, sum);
    mix_values(f, w, &seen, rows, sum, (float *)out[0] + at);
    write_lanes((float *)out[1] + head * f->seq + query, rows, most);
    write_lanes((float *)out[2] + head * f->seq + query, rows, sum);
}

void pairs_attention(const struct flash *f, struct span blocks, void *const *out, flash_keep_fn *keep, void *memory)
{
    const int64_t each = up_to(f->seq, BLOCK) / BLOCK;
    struct forward w;
    forward_of(f, &w, memory);
    amx_begin();
    for (int64_t n = blocks.lo; n < blocks.hi; n++)
        attend_block(f, &w, n / each, n % each * BLOCK, out, keep);
    amx_end();
}

#endif
