/* The loss of a linear head by AMX tiles. No logit is ever in memory: both sweeps are two products with a function between them,
 *     out (r, :) += f(rows (r, :) columns (:, c)) columns (c, :)
 * of which the first has sums of width numbers and the second of a block of columns, so that only a strip of what is between them exists,
 * in the first-level cache.
 *
 * First rows are those of x and columns are words: f is 2^(logit - base), with the logit of the row's target as base, so that no maximum
 * is needed; powers are summed, and out, divided by the sum, is dx but for the target's word. Then rows are words and columns are rows of
 * x: f is the gradient of the logit, and out is dw. So logits are made twice, which takes less time than to write and to read them: at
 * width 128 a logit takes a core 110 ps and its power 140; the six bytes that one in bf16 would travel take 460 at 13 GB/s.
 *
 * Operands are rounded to bf16, or are f32 in thirds (thirds.h). */
#include "ops/cpu/pairs/loss.h"

#include <math.h>
#include <string.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/pairs/power.h"
#include "ops/cpu/pairs/thirds.h"

#if defined(HONE_AMX)

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* Rows that stay in the second-level cache, packed and with their out; columns of a block, fewer where a thread has few rows: many threads
 * shall not need much more memory. */
enum { NEAR_BYTES = 1200 << 10, NEAR_THIRDS = 1280 << 10, ROWS_MOST = 1024, ROWS_LEAST = 64, COLUMNS_MOST = 256, COLUMNS_WIDE = 128, COLUMNS_THIRDS = 128, WIDE = 512 };

struct sizes { int64_t width, deep, rows, columns, each; };     /* deep: width in whole tiles; each: numbers that are packed for one */

static struct sizes sizes_of(int64_t width, int64_t share, int64_t most, bool thirds)
{
    const int64_t columns = thirds ? COLUMNS_THIRDS : width > WIDE ? COLUMNS_WIDE : COLUMNS_MOST;
    struct sizes s = {.width = width, .deep = up_to(width, TILE_DEPTH), .columns = least(columns, up_to(least(most, 2 * share), BLOCK)),
                      .each = thirds ? THIRDS : 1};
    const int64_t rows = (thirds ? NEAR_THIRDS : NEAR_BYTES) / ((2 * s.each + 4) * s.deep) / BLOCK * BLOCK;
    s.rows = least(rows > ROWS_MOST ? ROWS_MOST : rows < ROWS_LEAST ? ROWS_LEAST : rows, up_to(share, BLOCK));
    return s;
}

/* A thread's own memory. */
struct chain {
    struct sizes s;
    uint16_t *rows;             /* packed rows (s.rows, deep, each) */
    uint16_t *there, *back;     /* packed columns, for the first product (columns, deep, each) and the second (deep, columns, each) */
    uint16_t *between;          /* packed rows (BLOCK, columns, each): f of what the first product gave */
    float *product[2];          /* (BLOCK, BLOCK): of the last two blocks of the first one */
    float *out;                 /* (s.rows, deep) */
    float *sums;                /* (s.rows, TILE): of powers, lane by lane */
    float *gathered;            /* (columns, width) */
};

static size_t carve(struct chain *c, struct sizes s, char *memory)
{
    size_t at = 0;
    const size_t number = (size_t)s.each * sizeof(uint16_t);
    const size_t bytes[] = {(size_t)(s.rows * s.deep) * number, (size_t)(s.columns * s.deep) * number, (size_t)(s.columns * s.deep) * number,
                            (size_t)(BLOCK * s.columns) * number, BLOCK * BLOCK * 4, BLOCK * BLOCK * 4, (size_t)(s.rows * s.deep) * 4,
                            (size_t)(s.rows * TILE) * 4, (size_t)(s.columns * s.width) * 4};
    void **const places[] = {(void **)&c->rows, (void **)&c->there, (void **)&c->back, (void **)&c->between, (void **)&c->product[0],
                             (void **)&c->product[1], (void **)&c->out, (void **)&c->sums, (void **)&c->gathered};
    c->s = s;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        *places[i] = memory ? memory + at : NULL;
        at += (bytes[i] + 63) / 64 * 64;
    }
    return at;
}

size_t pairs_loss_bytes(int64_t width, int64_t share, int64_t most, bool thirds)
{
    struct chain c;
    return carve(&c, sizes_of(width, share, most, thirds), NULL);
}

/* ---- what is between the products ---- */

/* A block of products (BLOCK, BLOCK), of which so many columns are there, and where its two tiles go. */
struct made {
    const float *product;
    int64_t columns;
    uint16_t *tile[2];
    bool thirds;
};

/* Row i of it. */
PAIRS_INLINE void made_store(const struct made *m, int64_t i, __m512 x, __m512 y)
{
    uint16_t *to = m->tile[i / TILE] + i % TILE * TILE_DEPTH;
    if (m->thirds)
        thirds_put(to, x, y);
    else
        _mm512_store_si512(to, pairs_round(x, y));
}

/* Of rows so many are there; those behind them are another thread's, and what is made of them is not looked at. */
PAIRS_INLINE void make_powers(const struct made *m, struct span rows, const float *base, int64_t there, float *sums)
{
    const __mmask16 u = lanes_mask(m->columns), v = lanes_mask(m->columns - TILE);
    const __m512 bits = _mm512_set1_ps(LOG2_E);
    for (int64_t i = rows.lo; i < rows.hi; i++) {
        const float *p = m->product + i * BLOCK;
        const __m512 from = _mm512_set1_ps(base[i < there ? i : 0]);
        const __m512 x = _mm512_maskz_mov_ps(u, power(_mm512_fmsub_ps(_mm512_load_ps(p), bits, from)));
        const __m512 y = _mm512_maskz_mov_ps(v, power(_mm512_fmsub_ps(_mm512_load_ps(p + TILE), bits, from)));
        made_store(m, i, x, y);
        _mm512_store_ps(sums + i * TILE, _mm512_add_ps(_mm512_load_ps(sums + i * TILE), _mm512_add_ps(x, y)));
    }
}

/* What the columns, rows of x, bring: their base, factor and target. */
struct column_facts {
    __mmask16 there;
    __m512 base, factor;
    __m512i target;
};

PAIRS_INLINE struct column_facts facts_of(const struct pairs_loss *l, int64_t row, int64_t n)
{
    const __mmask16 there = lanes_mask(n);
    return (struct column_facts){there, _mm512_maskz_loadu_ps(there, l->base + row), _mm512_maskz_loadu_ps(there, l->factors + row),
                                 _mm512_maskz_loadu_epi32(there, l->targets + row)};
}

/* (softmax - onehot) / rows. */
PAIRS_INLINE __m512 slope(const struct column_facts *f, const float *product, int64_t word, __m512 share)
{
    const __m512 p = _mm512_mul_ps(power(_mm512_fmsub_ps(_mm512_load_ps(product), _mm512_set1_ps(LOG2_E), f->base)), f->factor);
    const __mmask16 is = _mm512_cmpeq_epi32_mask(f->target, _mm512_set1_epi32((int32_t)word));
    return _mm512_maskz_mov_ps(f->there, _mm512_mask_sub_ps(p, is, p, share));
}

PAIRS_INLINE void make_slopes(const struct made *m, struct span rows, const struct pairs_loss *l, int64_t word, int64_t row)
{
    const struct column_facts u = facts_of(l, row, m->columns), v = facts_of(l, row + TILE, m->columns - TILE);
    const __m512 share = _mm512_set1_ps(1 / (float)l->rows);
    for (int64_t i = rows.lo; i < rows.hi; i++) {
        const float *p = m->product + i * BLOCK;
        made_store(m, i, slope(&u, p, word + i, share), slope(&v, p + TILE, word + i, share));
    }
}

/* ---- both products ---- */

/* Which sweep, and where it is: rows from `row` on and columns from `column` on, of x and of w or the other way round. */
struct sweep {
    const struct pairs_loss *l;
    bool words;                         /* rows are words */
    int64_t row, rows, column, columns;
};

PAIRS_INLINE bool in_thirds(const struct chain *c) { return c->s.each == THIRDS; }

/* Some rows of block n of what is between, from the product that it had. */
PAIRS_INLINE void make(const struct chain *c, const struct sweep *w, int64_t i, int64_t n, struct span rows)
{
    const int64_t blocks = up_to(w->columns, BLOCK) / BLOCK, numbers = c->s.each * TILE_NUMBERS;
    const struct made m = {.product = c->product[n % 2], .columns = w->columns - n * BLOCK,
                           .tile = {c->between + n * numbers, c->between + (blocks + n) * numbers}, .thirds = in_thirds(c)};
    if (w->words)
        make_slopes(&m, rows, w->l, w->row + i, w->column + n * BLOCK);
    else
        make_powers(&m, rows, w->l->base + w->row + i, w->rows - i, c->sums + i * TILE);
}

/* In thirds a step of the tiles along k is six products, and behind each come some rows, so many in all; a function of its own, as it stands in six places. */
enum { TOGETHER = 2 };
struct due { int64_t rows, steps, made, sum; };

static __attribute__((noinline)) void make_together(const struct chain *c, const struct sweep *w, int64_t i, int64_t n, int64_t row)
{
    make(c, w, i, n, (struct span){row, row + TOGETHER});
}

PAIRS_INLINE void make_due(const struct chain *c, const struct sweep *w, int64_t i, int64_t n, struct due *d)
{
    for (d->sum += d->rows; d->sum >= TOGETHER * d->steps; d->sum -= TOGETHER * d->steps, d->made += TOGETHER)
        make_together(c, w, i, n, d->made);
}

/* Block n of the first product, while vectors make what the last block but one gave: between two steps of the tiles some of its rows. (What
 * tiles have just stored cannot be read for a while.) Its product is read before the new one takes its place. */
PAIRS_INLINE void chain_block(const bool two_rows, const bool two_columns, const struct chain *c, const struct sweep *w, int64_t i, int64_t n)
{
    const int64_t tiles = c->s.deep / TILE_DEPTH, rows = two_rows ? BLOCK : TILE;
    const int64_t strip = c->s.deep * c->s.each;
    const uint16_t *a = c->rows + i * strip, *b = c->there + n * BLOCK * strip;
    struct due due = {.rows = n > 1 ? rows : 0, .steps = tiles * THIRDS_STEPS};
    amx_start(two_rows, two_columns, NULL, 0);
    for (int64_t p = 0; p < tiles && in_thirds(c); p++)
        UNROLL(6)
        for (int s = 0; s < THIRDS_STEPS; s++) {
            thirds_step(s, two_rows, two_columns, a + p * THIRDS_NUMBERS, b + p * THIRDS_NUMBERS, tiles * THIRDS_NUMBERS);
            make_due(c, w, i, n - 2, &due);
        }
    for (int64_t p = 0; p < tiles && !in_thirds(c); p++) {
        amx_step(two_rows, two_columns, a + p * TILE_NUMBERS, b + p * TILE_NUMBERS, tiles * TILE_NUMBERS, NULL);
        if (n > 1)
            make(c, w, i, n - 2, (struct span){rows * p / tiles, rows * (p + 1) / tiles});
    }
    amx_store(two_rows, two_columns, c->product[n % 2], BLOCK);
}

/* Rows i.. of the sweep: all that is between the products. */
static void chain_there(const struct chain *c, const struct sweep *w, int64_t i, int64_t rows)
{
    const int64_t blocks = up_to(w->columns, BLOCK) / BLOCK;
    for (int64_t n = 0; n < blocks; n++) {
        const bool two_columns = w->columns - n * BLOCK > TILE;
        if (rows > TILE && two_columns)
            chain_block(true, true, c, w, i, n);
        else if (rows > TILE)
            chain_block(true, false, c, w, i, n);
        else if (two_columns)
            chain_block(false, true, c, w, i, n);
        else
            chain_block(false, false, c, w, i, n);
    }
    for (int64_t n = blocks > 1 ? blocks - 2 : 0; n < blocks; n++)
        make(c, w, i, n, (struct span){0, rows});
}

/* Sums of thirds begin with zero: those that begin with what is there have six times as much to lose. */
static void add_block(float *to, int64_t to_row, const struct pairs_block *k)
{
    _Alignas(64) float sums[BLOCK * BLOCK];
    thirds_any(k, sums, BLOCK);
    for (int64_t i = 0; i < k->rows; i++)
        for (int64_t j = 0; j < k->columns; j += TILE)
            _mm512_store_ps(to + i * to_row + j, _mm512_add_ps(_mm512_load_ps(to + i * to_row + j), _mm512_load_ps(sums + i * BLOCK + j)));
}

static void chain_back(const struct chain *c, const struct sweep *w, int64_t i, int64_t rows)
{
    const int64_t tiles = up_to(w->columns, TILE_DEPTH) / TILE_DEPTH;
    float *out = c->out + i * c->s.deep;
    for (int64_t f = 0; f < c->s.width; f += BLOCK) {
        const struct pairs_block k = {c->between, c->back + f * tiles * TILE_DEPTH * c->s.each, tiles, rows, least(BLOCK, up_to(c->s.width, TILE) - f), NULL};
        if (in_thirds(c))
            add_block(out + f, c->s.deep, &k);
        else
            amx_any(&k, out + f, c->s.deep, out + f, c->s.deep);
    }
}

static void take_columns(const struct chain *c, uint16_t *to, struct pairs_either from, int64_t columns, int64_t depth)
{
    if (in_thirds(c))
        thirds_pack_columns(to, (struct pairs_side){from.from, from.row, from.step}, columns, depth);
    else
        pack_either_columns(to, from, columns, depth);
}

static void take_rows_from(const struct chain *c, int64_t first, struct pairs_either from, int64_t rows)
{
    uint16_t *to = c->rows + first * c->s.deep * c->s.each;
    if (in_thirds(c))
        thirds_pack_rows(to, (struct pairs_side){from.from, from.row, from.step}, rows, c->s.width);
    else
        pack_either_rows(to, from, rows, c->s.width);
}

/* One block of columns, (columns, width), past n rows. */
static void chain_columns(const struct chain *c, const struct sweep *w, struct pairs_either from, int64_t n)
{
    const int64_t width = c->s.width;
    take_columns(c, c->there, from, w->columns, width);
    if (w->l->dx)
        take_columns(c, c->back, (struct pairs_either){from.from, from.step, from.row, from.bf16}, width, w->columns);
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t rows = least(BLOCK, up_to(n, TILE) - i);
        chain_there(c, w, i, rows);
        if (w->l->dx)
            chain_back(c, w, i, rows);
    }
}

/* ---- the sweeps ---- */

static struct pairs_either words_from(const struct pairs_loss *l, int64_t word) { return either_at(either_of(l->w, l->w_bf16, l->width, 1), word, 0); }

/* Rows [first, first + n) of x that have a target, n at most a block of columns. */
static struct pairs_either take_x(const struct chain *c, const struct pairs_loss *l, int64_t first, int64_t n)
{
    const size_t bytes = (size_t)l->width * sizeof(float);
    if (!l->list)
        return either_of(l->x + first * l->width, NULL, l->width, 1);
    for (int64_t i = 0; i < n; i++)
        memcpy(c->gathered + i * l->width, l->x + l->list[first + i] * l->width, bytes);
    return either_of(c->gathered, NULL, l->width, 1);
}

/* Some numbers of a row, as the products take them. */
enum { PIECE = 256 };
static void take_piece(float to[PIECE], struct pairs_either row, int64_t first, int64_t n, bool thirds)
{
    const struct pairs_either at = either_at(row, 0, first);
    const uint16_t *bf16 = at.from;
    const float *f32 = at.from;
    if (row.bf16)
        for (int64_t i = 0; i < n; i++)
            to[i] = bf16_value(bf16[i]);
    else if (thirds)
        memcpy(to, f32, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = bf16_round(f32[i]);
}

/* The target's logit in bits. */
static float target_logit(struct pairs_either x, struct pairs_either word, int64_t width, bool thirds)
{
    float sum = 0, u[PIECE], v[PIECE];
    for (int64_t first = 0; first < width; first += PIECE) {
        const int64_t n = least(PIECE, width - first);
        take_piece(u, x, first, n, thirds);
        take_piece(v, word, first, n, thirds);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++)
            sum += u[i] * v[i];
    }
    return sum * LOG2_E;
}

static void begin_rows(const struct chain *c, const struct pairs_loss *l, int64_t first, int64_t n)
{
    for (int64_t j = 0; j < n; j += c->s.columns) {
        const int64_t rows = least(c->s.columns, n - j);
        const struct pairs_either x = take_x(c, l, first + j, rows);
        take_rows_from(c, j, x, rows);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = first + j + i;
            l->targets[at] = l->all_targets[l->list ? l->list[at] : at];
            l->base[at] = target_logit(either_at(x, i, 0), words_from(l, l->targets[at]), l->width, l->thirds);
        }
    }
}

static void finish_row(const struct chain *c, const struct pairs_loss *l, int64_t first, int64_t i)
{
    const int64_t at = first + i, width = l->width;
    const float sum = _mm512_reduce_add_ps(_mm512_load_ps(c->sums + i * TILE)), factor = 1 / (sum * (float)l->rows);
    l->losses[at] = log2f(sum) * LN_2;
    l->factors[at] = factor;
    if (!l->dx)
        return;
    const struct pairs_either word = words_from(l, l->targets[at]);
    const float *from = c->out + i * c->s.deep, share = 1 / (float)l->rows;
    float *to = l->dx + (l->list ? l->list[at] : at) * width, v[PIECE];
    for (int64_t j = 0; j < width; j += PIECE, from += PIECE, to += PIECE) {
        const int64_t n = least(PIECE, width - j);
        take_piece(v, word, j, n, l->thirds);
        for (int64_t k = 0; k < n; k++)
            to[k] = from[k] * factor - v[k] * share;
    }
}

void pairs_loss_rows(const struct pairs_loss *l, struct span rows, void *memory)
{
    struct chain c;
    carve(&c, sizes_of(l->width, l->share, l->most, l->thirds), memory);
    amx_begin();
    for (int64_t first = rows.lo; first < rows.hi; first += c.s.rows) {
        const int64_t n = least(c.s.rows, rows.hi - first);
        begin_rows(&c, l, first, n);
        memset(c.out, 0, (size_t)(up_to(n, TILE) * c.s.deep) * sizeof *c.out);
        memset(c.sums, 0, (size_t)(up_to(n, TILE) * TILE) * sizeof *c.sums);
        for (int64_t j = 0; j < l->vocab; j += c.s.columns)
            chain_columns(&c, &(struct sweep){l, false, first, n, j, least(c.s.columns, l->vocab - j)}, words_from(l, j), n);
        for (int64_t i = 0; i < n; i++)
            finish_row(&c, l, first, i);
    }
    amx_end();
}

void pairs_loss_words(const struct pairs_loss *l, struct span words, void *memory)
{
    struct chain c;
    carve(&c, sizes_of(l->width, l->share, l->most, l->thirds), memory);
    amx_begin();
    for (int64_t first = words.lo; first < words.hi; first += c.s.rows) {
        const int64_t n = least(c.s.rows, words.hi - first);
        take_rows_from(&c, 0, words_from(l, first), n);
        memset(c.out, 0, (size_t)(up_to(n, TILE) * c.s.deep) * sizeof *c.out);
        for (int64_t j = 0; j < l->rows; j += c.s.columns) {
            const int64_t columns = least(c.s.columns, l->rows - j);
            chain_columns(&c, &(struct sweep){l, true, first, n, j, columns}, take_x(&c, l, j, columns), n);
        }
        for (int64_t i = 0; i < n; i++)
            memcpy(l->dw + (first + i) * l->width, c.out + i * c.s.deep, (size_t)l->width * sizeof *l->dw);
    }
    amx_end();
}

#endif
