/* Reference: attention as one op, row by row; a row of weights exists only while it is used. Over keys and values that were kept it is the
 * same: a query then sees those up to its place. */
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "ops/cpu/reference/reference.h"

/* The sizes and operands of a call; query i of head h sees keys [first(b, i), visible(b, i)). */
struct attention {
    int64_t batch, heads, kv_heads, seq, size;
    const float *q, *k, *v;     /* (B, T, H * D), (B, T or C, K * D) twice */
    const int32_t *tick;        /* NULL: no dropout */
    const int32_t *starts;      /* (B, T); NULL: every row is one sample */
    const struct op_attrs *attrs;
    int64_t keys;               /* of a sample: T, or C */
    const int32_t *places;      /* (B, T) of the queries among kept keys; NULL: keys are those of the queries' own tokens */
};

static struct attention attention_of(const struct kernel_call *c)
{
    const int grad = c->op->kind == OP_ATTENTION_GRAD, tick = op_attention_tick(c->op), starts = op_attention_starts(c->op);
    const struct op_attrs *a = &c->op->attrs;
    const struct shape q = call_in(c, grad)->shape;
    return (struct attention){q.dim[0], a->heads, a->kv_heads, q.dim[1], q.dim[2] / a->heads, c->in[grad],
                              c->in[grad + 1], c->in[grad + 2], tick >= 0 ? c->in[tick] : NULL,
                              starts >= 0 ? c->in[starts] : NULL, a, call_in(c, grad + 1)->shape.dim[1],
                              c->op->kind == OP_ATTEND_KV ? c->in[3] : NULL};
}

static int64_t visible(const struct attention *x, int64_t b, int64_t i)
{
    return x->places ? x->places[b * x->seq + i] + 1 : x->attrs->causal ? i + 1 : x->seq;
}
static int64_t first(const struct attention *x, int64_t b, int64_t i) { return x->starts ? x->starts[b * x->seq + i] : 0; }
static int64_t group(const struct attention *x) { return x->heads / x->kv_heads; }

/* Where query (b, i, h) starts, and key or value (b, j) of the head's group. */
static int64_t query_at(const struct attention *x, int64_t b, int64_t i, int64_t h)
{
    return ((b * x->seq + i) * x->heads + h) * x->size;
}
static int64_t key_at(const struct attention *x, int64_t b, int64_t j, int64_t h)
{
    return ((b * x->keys + j) * x->kv_heads + h / group(x)) * x->size;
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t e = 0; e < n; e++)
        sum += (double)a[e] * b[e];
    return sum;
}

/* A float, as the largest of a row that is kept for the gradients: with more digits a score could then be above it, by as much as a
 * float's last digit, which is thousands where scores are billions. */
static float score(const struct attention *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return (float)(dot(x->q + query_at(x, b, i, h), x->k + key_at(x, b, j, h), x->size) * x->attrs->scale);
}

/* What dropout multiplies weight (b, h, i, j) by: 0 or 1 / (1 - prob), as ref_dropout on the weights (B, H, T, T). */
static double kept(const struct attention *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!x->tick)
        return 1;
    const struct op_attrs *a = x->attrs;
    const int64_t at = a->first + ((b * x->heads + h) * x->seq + i) * x->seq + j;
    const struct rng_block block = rng_block(a->seed, a->stream << 32 | (uint32_t)*x->tick, (uint64_t)at / 4);
    return rng_unit(block.x[at % 4]) < a->prob ? 0 : (double)(1 / (1 - a->prob));
}

/* w (seq) gets e^(score - largest), *sum what they sum to; returns the largest score. A row without a finite score has no
 * weights that sum to one: what is divided by *sum is then not a number. */
static double row_weights(const struct attention *x, int64_t b, int64_t h, int64_t i, double *w, double *sum)
{
    double largest = -INFINITY;
    for (int64_t j = first(x, b, i); j < visible(x, b, i); j++) {
        w[j] = score(x, b, h, i, j);
        largest = w[j] > largest ? w[j] : largest;
    }
    if (largest == -INFINITY)
        largest = 0;
    *sum = 0;
    for (int64_t j = first(x, b, i); j < visible(x, b, i); j++) {
        w[j] = exp(w[j] - largest);
        *sum += w[j];
    }
    return largest;
}

size_t ref_attention_scratch(const struct program *p, const struct op *op, int threads)
{
    (void)threads;
    const int64_t seq = p->values[op->in[1]].shape.dim[1], size = p->values[op->in[0]].shape.dim[2] / op->attrs.heads;
    return (size_t)(seq + 2 * seq * size) * sizeof(double);     /* one row; dk and dv of one head */
}

void ref_attention(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct attention x = attention_of(c);
    float *y = c->out[0];                                               /* (B, T, H * D) */
    double *w = c->scratch, total;
    for (int64_t b = 0; b < x.batch; b++)
        for (int64_t h = 0; h < x.heads; h++)
            for (int64_t i = 0; i < x.seq; i++) {
                const int64_t row = (b * x.heads + h) * x.seq + i;
                const double largest = row_weights(&x, b, h, i, w, &total);
                if (c->op->n_out > 1) {                                 /* (B, H, T) both */
                    ((float *)c->out[1])[row] = (float)largest;
                    ((float *)c->out[2])[row] = (float)total;
                }
                for (int64_t j = first(&x, b, i); j < visible(&x, b, i); j++)
                    w[j] *= kept(&x, b, h, i, j) / total;
                for (int64_t e = 0; e < x.size; e++) {
                    double sum = 0;
                    for (int64_t j = first(&x, b, i); j < visible(&x, b, i); j++)
                        sum += w[j] * x.v[key_at(&x, b, j, h) + e];
                    y[query_at(&x, b, i, h) + e] = (float)sum;
                }
            }
}

/* One query's part: with w the weight and m what dropout makes of it, y = sum of w m v, so
 * dv = w m dy, ds = w (m dy v - sum over all keys of the same), where that sum is dy y. */
static void row_grad(const struct attention *x, const struct kernel_call *c, int64_t b, int64_t h, int64_t i, double *dk,
                     double *dv)
{
    const int64_t at = query_at(x, b, i, h), row = (b * x->heads + h) * x->seq + i;
    const float *dy = (const float *)c->in[0] + at, *y = (const float *)c->in[4] + at;
    const double largest = ((const float *)c->in[5])[row], sum = ((const float *)c->in[6])[row], all = dot(dy, y, x->size);
    double *ds = c->scratch;
    for (int64_t j = first(x, b, i); j < visible(x, b, i); j++) {
        const double w = exp((double)score(x, b, h, i, j) - largest) / sum, m = kept(x, b, h, i, j);
        ds[j] = w * (m * dot(dy, x->v + key_at(x, b, j, h), x->size) - all) * x->attrs->scale;
        for (int64_t e = 0; e < x->size; e++) {
            dv[j * x->size + e] += w * m * dy[e];
            dk[j * x->size + e] += ds[j] * x->q[at + e];
        }
    }
    for (int64_t e = 0; e < x->size; e++) {
        double dq = 0;
        for (int64_t j = first(x, b, i); j < visible(x, b, i); j++)
            dq += ds[j] * x->k[key_at(x, b, j, h) + e];
        ((float *)c->out[0])[at + e] = (float)dq;
    }
}

void ref_attention_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct attention x = attention_of(c);
    double *dk = (double *)c->scratch + x.seq, *dv = dk + x.seq * x.size;       /* (T, D) of one batch and kv head */
    for (int64_t b = 0; b < x.batch; b++)
        for (int64_t kv = 0; kv < x.kv_heads; kv++) {
            memset(dk, 0, (size_t)(2 * x.seq * x.size) * sizeof *dk);
            for (int64_t h = kv * group(&x); h < (kv + 1) * group(&x); h++)
                for (int64_t i = 0; i < x.seq; i++)
                    row_grad(&x, c, b, h, i, dk, dv);
            for (int64_t j = 0; j < x.seq; j++)
                for (int64_t e = 0; e < x.size; e++) {
                    const int64_t to = ((b * x.seq + j) * x.kv_heads + kv) * x.size + e;
                    ((float *)c->out[1])[to] = (float)dk[j * x.size + e];
                    ((float *)c->out[2])[to] = (float)dv[j * x.size + e];
                }
        }
}

void ref_store_kv(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape kept = call_in(c, 0)->shape, s = call_in(c, 2)->shape;       /* (S, C, W), (B, T, W) */
    const int32_t *places = c->in[4];
    for (int64_t i = 0; i < kept.dim[0] * s.dim[1]; i++) {
        const int64_t sample = i / s.dim[1], row = s.dim[0] == 1 ? i % s.dim[1] : i;
        const int64_t to = (sample * kept.dim[1] + places[row]) * s.dim[2];
        for (int64_t j = 0; places[row] >= 0 && places[row] < kept.dim[1] && j < s.dim[2]; j++) {
            ((float *)c->out[0])[to + j] = ((const float *)c->in[2])[row * s.dim[2] + j];
            ((float *)c->out[1])[to + j] = ((const float *)c->in[3])[row * s.dim[2] + j];
        }
    }
}
