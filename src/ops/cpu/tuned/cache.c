/* Tuned: keys and values that are kept while text is generated, and attention of a query over them. A thread has some of the heads of some
 * queries; what it reads of a block of keys, and then of values, lies side by side. A head is the same whoever computes it. */
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/lanes.h"

static void store_kv(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct shape kept = call_in(c, 0)->shape, s = call_in(c, 2)->shape;       /* (S, C, W), (B, T, W) */
    const int32_t *places = c->in[4];
    const struct span mine = my_rows(t, kept.dim[0] * s.dim[1]);
    for (int64_t i = mine.lo; i < mine.hi; i++) {
        const int64_t row = s.dim[0] == 1 ? i % s.dim[1] : i, place = places[row];
        const int64_t to = (i / s.dim[1] * kept.dim[1] + place) * s.dim[2], from = row * s.dim[2];
        if (place < 0 || place >= kept.dim[1])
            continue;
        memcpy((float *)c->out[0] + to, (const float *)c->in[2] + from, (size_t)s.dim[2] * sizeof(float));
        memcpy((float *)c->out[1] + to, (const float *)c->in[3] + from, (size_t)s.dim[2] * sizeof(float));
    }
}

enum { KEYS = 64 };             /* of a block: what all heads of a thread read before the next */

/* Heads [lo, hi) of one query. */
struct attended {
    const float *q, *k, *v;     /* (H, D) of the query; (n, K * D) of its sample, with row stride `row` */
    float *y;                   /* (H, D) */
    float *s;                   /* (hi - lo, room): scores, then weights */
    int64_t lo, hi, group, size, row, n, room;
    float scale;
};

INLINE float dot(const float *a, const float *b, int64_t n)
{
    vec sum = {0};
    float rest = 0;
    int64_t e = 0;
    for (; e + LANES <= n; e += LANES)
        sum += load(a + e) * load(b + e);
    for (; e < n; e++)
        rest += a[e] * b[e];
    return lanes_total(sum) + rest;
}

static void score_block(const struct attended *x, int64_t first, int64_t end)
{
    for (int64_t h = x->lo; h < x->hi; h++) {
        const float *q = x->q + h * x->size, *k = x->k + h / x->group * x->size;
        for (int64_t j = first; j < end; j++)
            x->s[(h - x->lo) * x->room + j] = x->scale * dot(q, k + j * x->row, x->size);
    }
}

/* Scores of a head, of which there is room for whole vectors, become weights; returns what they sum to. A score that is not a number reaches
 * the sum in any case. */
static float soften(float *s, int64_t n)
{
    vec most = all(-INFINITY), sum = {0};
    for (int64_t j = n; j < up_to(n, LANES); j++)
        s[j] = -INFINITY;
    for (int64_t j = 0; j < n; j += LANES)
        most = larger(most, load(s + j));
    float largest = -INFINITY;
    for (int i = 0; i < LANES; i++)
        largest = most[i] > largest ? most[i] : largest;
    largest = largest == -INFINITY ? 0 : largest;           /* -inf less -inf is NaN */
    for (int64_t j = 0; j < n; j += LANES) {
        const vec e = exp_low(load(s + j) - largest);
        store(s + j, e);
        sum += e;
    }
    return lanes_total(sum);
}

/* y of a head += the values of a block, times their weights. */
INLINE void mix_lanes(float *y, const float *w, const float *v, int64_t row, int64_t keys, const int vectors)
{
    vec sum[4] = {{0}};
    UNROLL(4)
    for (int i = 0; i < vectors; i++)
        sum[i] = load(y + i * LANES);
    for (int64_t j = 0; j < keys; j++)
        UNROLL(4)
        for (int i = 0; i < vectors; i++)
            sum[i] += w[j] * load(v + j * row + i * LANES);
    UNROLL(4)
    for (int i = 0; i < vectors; i++)
        store(y + i * LANES, sum[i]);
}

static void mix_head(float *y, const float *w, const float *v, int64_t row, int64_t keys, int64_t size)
{
    int64_t e = 0;
    for (; e + 4 * LANES <= size; e += 4 * LANES)
        mix_lanes(y + e, w, v + e, row, keys, 4);
    for (; e + LANES <= size; e += LANES)
        mix_lanes(y + e, w, v + e, row, keys, 1);
    for (; e < size; e++)
        for (int64_t j = 0; j < keys; j++)
            y[e] += w[j] * v[j * row + e];
}

static void mix_block(const struct attended *x, int64_t first, int64_t end)
{
    for (int64_t h = x->lo; h < x->hi; h++)
        mix_head(x->y + h * x->size, x->s + (h - x->lo) * x->room + first, x->v + first * x->row + h / x->group * x->size, x->row, end - first,
                 x->size);
}

static void attend(const struct attended *x)
{
    for (int64_t j = 0; j < x->n; j += KEYS)
        score_block(x, j, least(j + KEYS, x->n));
    memset(x->y + x->lo * x->size, 0, (size_t)((x->hi - x->lo) * x->size) * sizeof *x->y);
    for (int64_t h = 0; h < x->hi - x->lo && x->n > 0; h++) {
        float *w = x->s + h * x->room;
        const float share = 1 / soften(w, x->n);
        for (int64_t j = 0; j < x->n; j++)
            w[j] *= share;
    }
    for (int64_t j = 0; j < x->n; j += KEYS)
        mix_block(x, j, least(j + KEYS, x->n));
}

static int64_t room_for(int64_t keys) { return up_to(keys, 64); }

static size_t attend_scratch(const struct program *p, const struct op *op, int threads)
{
    return (size_t)(threads * op->attrs.heads * room_for(p->values[op->in[1]].shape.dim[1])) * sizeof(float);
}

static void attend_kv(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    const struct shape q = call_in(c, 0)->shape, kept = call_in(c, 1)->shape;       /* (B, T, H * D), (B, C, K * D) */
    const int32_t *places = c->in[3];
    const struct span mine = my_rows(t, q.dim[0] * q.dim[1] * a->heads);
    struct attended x = {.group = a->heads / a->kv_heads, .size = q.dim[2] / a->heads, .row = kept.dim[2], .room = room_for(kept.dim[1]),
                         .scale = a->scale};
    x.s = (float *)c->scratch + t->index * a->heads * x.room;
    for (int64_t at = mine.lo; at < mine.hi; at += x.hi - x.lo) {
        const int64_t row = at / a->heads, sample = row / q.dim[1] * kept.dim[1] * kept.dim[2];
        x.lo = at % a->heads;
        x.hi = least(a->heads, x.lo + mine.hi - at);
        x.q = (const float *)c->in[0] + row * q.dim[2];
        x.y = (float *)c->out[0] + row * q.dim[2];
        x.k = (const float *)c->in[1] + sample;
        x.v = (const float *)c->in[2] + sample;
        x.n = places[row] + 1;
        attend(&x);
    }
}

const struct kernel TUNED(cache)[] = {
    {.op = OP_STORE_KV, .name = "rows", .run = store_kv},
    {.op = OP_ATTEND_KV, .name = "heads", .run = attend_kv, .scratch = attend_scratch},
    {.run = NULL},
};
