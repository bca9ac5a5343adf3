/* Tuned: attention as one op, in blocks with a running softmax; flash.h says how blocks lie. Work is split over the threads
 * by head and block of queries, in shares of equal cost; a block of queries is the same whoever computes it. */
#include "ops/cpu/tuned/flash.h"

/* A thread's own memory. */
struct forward {
    float *k, *v;               /* (rows, width): one batch and kv head */
    float *q;                   /* (size, QUERIES): a block of queries, times scale and log2(e) */
    float *y;                   /* (width, QUERIES): its result, not yet divided by the sums */
    float *s, *keep;            /* (KEYS, PANEL): scores, then weights */
    float *largest, *sum;       /* (QUERIES) */
    int64_t loaded;             /* whose k and v: b * kv_heads + kv */
};

static int64_t forward_floats(const struct flash *f)
{
    return 2 * f->rows * f->width + 2 * f->width * QUERIES + 2 * KEYS * PANEL + 2 * QUERIES;
}

static struct forward forward_of(const struct flash *f, float *m)
{
    struct forward w = {.loaded = -1};
    w.k = m;
    w.v = w.k + f->rows * f->width;
    w.q = w.v + f->rows * f->width;
    w.y = w.q + f->width * QUERIES;
    w.s = w.y + f->width * QUERIES;
    w.keep = w.s + KEYS * PANEL;
    w.largest = w.keep + KEYS * PANEL;
    w.sum = w.largest + QUERIES;
    return w;
}

static void load_keys(const struct flash *f, struct forward *w, int64_t b, int64_t kv)
{
    const int64_t stride = f->kv_heads * f->size, at = b * f->seq * stride + kv * f->size;
    if (w->loaded == b * f->kv_heads + kv)
        return;
    w->loaded = b * f->kv_heads + kv;
    TUNED(flash_copy)(w->k, f->width, f->rows, f->k + at, stride, f->seq, f->size);
    TUNED(flash_copy)(w->v, f->width, f->rows, f->v + at, stride, f->seq, f->size);
}

/* Turns scores (keys, PANEL) into weights over the largest score so far, brings largest and sum of the panel up to date, and
 * gives the factor by which what was summed before must shrink. A score that is not a number reaches the sum in any case. */
KERNEL void soften(float *s, int64_t keys, float *largest, float *sum, vec factor[2])
{
    const vec before0 = load(largest), before1 = load(largest + LANES), none = all(-INFINITY);
    vec now0 = before0, now1 = before1, added[4] = {0};
    for (int64_t j = 0; j < keys; j++) {
        now0 = larger(now0, load(s + j * PANEL));
        now1 = larger(now1, load(s + j * PANEL + LANES));
    }
    const vec shift[2] = {choose(now0 == none, all(0), now0), choose(now1 == none, all(0), now1)};  /* -inf less -inf is NaN */
    for (int64_t j = 0; j < keys; j += 2) {             /* TILE is even, and rows are whole tiles; see mask_scores */
        vec e[4];
        UNROLL(4)
        for (int i = 0; i < 4; i++)
            e[i] = exp2_low(load(s + j * PANEL + i * LANES) - shift[i % 2]);
        UNROLL(4)
        for (int i = 0; i < 4; i++) {
            store(s + j * PANEL + i * LANES, e[i]);
            added[i] += e[i];
        }
    }
    factor[0] = exp2_low(before0 - shift[0]);
    factor[1] = exp2_low(before1 - shift[1]);
    store(sum, load(sum) * factor[0] + (added[0] + added[2]));
    store(sum + LANES, load(sum + LANES) * factor[1] + (added[1] + added[3]));
    store(largest, now0);
    store(largest + LANES, now1);
}

static void attend(const struct flash *f, struct forward *w, const struct sight *g, int64_t at)
{
    vec factor[2];
    rows_times_panel(w->s, PANEL, g->keys, f->size, w->k + g->key * f->width, f->width, w->q + at, QUERIES);
    mask_scores(w->s, PANEL, f, g);
    soften(w->s, g->keys, w->largest + at, w->sum + at, factor);
    if (f->prob > 0) {
        TUNED(flash_keep)(w->keep, f, g);
        for (int64_t i = 0; i < g->keys * PANEL; i++)
            w->s[i] *= w->keep[i];
    }
    columns_times_panel(w->y + at, QUERIES, factor[0], factor[1], f->size, g->keys, w->v + g->key * f->width, f->width, w->s,
                        PANEL);
}

/* Divides by the sums and writes y and the logs of the sums. */
static void finish(const struct flash *f, struct forward *w, int64_t rows, float *y, float *log_sums)
{
    for (int64_t i = 0; i < rows; i += LANES) {
        const vec share = 1 / load(w->sum + i);
        for (int64_t e = 0; e < f->size; e++)
            store(w->y + e * QUERIES + i, load(w->y + e * QUERIES + i) * share);
    }
    TUNED(flash_transpose)(y, f->heads * f->size, w->y, QUERIES, f->size, rows, 1);
    for (int64_t i = 0; i < rows; i++)
        log_sums[i] = (w->largest[i] == -INFINITY ? 0 : w->largest[i] * LN_2) + logf(w->sum[i]);
}

static void attend_block(const struct flash *f, struct forward *w, int64_t head, int64_t first, float *y, float *log_sums)
{
    const int64_t rows = least(QUERIES, f->seq - first), lanes = up_to(rows, PANEL), stride = f->heads * f->size;
    const int64_t at = (head / f->heads * f->seq + first) * stride + head % f->heads * f->size;
    load_keys(f, w, head / f->heads, head % f->heads / f->group);
    expect_rows(y + at, stride, rows, f->size);
    if (rows < lanes)
        memset(w->q, 0, (size_t)(f->size * QUERIES) * sizeof *w->q);
    TUNED(flash_transpose)(w->q, QUERIES, f->q + at, stride, rows, f->size, f->scale * LOG2_E);
    memset(w->y, 0, (size_t)(f->width * QUERIES) * sizeof *w->y);
    for (int64_t i = 0; i < lanes; i++) {
        w->largest[i] = -INFINITY;
        w->sum[i] = 0;
    }
    for (int64_t key = 0; key < (f->causal ? first + rows : f->seq); key += KEYS)
        for (int64_t i = 0; i < lanes; i += PANEL) {
            const struct sight g = sight_of(f, head, first + i, key);
            if (g.keys > 0)
                attend(f, w, &g, i);
        }
    finish(f, w, rows, y + at, log_sums + head * f->seq + first);
}

/* Where a share of the blocks (head by head) begins: under a causal mask block n of a head costs n + 1. */
static int64_t share_start(const struct flash *f, int part, int parts)
{
    const int64_t blocks = blocks_of(f), heads = f->batch * f->heads;
    const int64_t per_head = f->causal ? blocks * (blocks + 1) / 2 : blocks;
    int64_t n = 0;
    for (int64_t cost = 0; n < heads * blocks && cost * parts < heads * per_head * part; n++)
        cost += f->causal ? n % blocks + 1 : 1;
    return n;
}

static void attention(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct flash f = TUNED(flash_of)(c->program, c->op, c->in);
    struct forward w = forward_of(&f, (float *)c->scratch + t->index * up_to(forward_floats(&f), 16));
    const int64_t blocks = blocks_of(&f), end = share_start(&f, t->index + 1, t->count);
    for (int64_t n = share_start(&f, t->index, t->count); n < end; n++)
        attend_block(&f, &w, n / blocks, n % blocks * QUERIES, c->out[0], c->out[1]);
}

static size_t attention_scratch(const struct program *p, const struct op *op, int threads)
{
    const struct flash f = TUNED(flash_of)(p, op, NULL);
    return (size_t)(threads * up_to(forward_floats(&f), 16)) * sizeof(float);
}

const struct kernel TUNED(flash)[] = {
    {.op = OP_ATTENTION, .name = "flash", .run = attention, .scratch = attention_scratch},
    {.op = OP_ATTENTION_GRAD, .name = "flash", .run = TUNED(flash_grad), .scratch = TUNED(flash_grad_scratch)},
    {.run = NULL},
};
