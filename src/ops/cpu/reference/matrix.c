/* Reference: matrix products, embeddings, rotary positions, attention. */
#include <math.h>
#include <string.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/reference/reference.h"
#include "program/rope.h"

void ref_matmul(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct matmul_dims d = matmul_dims(c->program, c->op);
    const bool ta = c->op->attrs.trans_a, tb = c->op->attrs.trans_b, bf16 = c->op->attrs.round == ROUND_BF16;
    const float *a = c->in[0], *b = c->in[1], *bias = c->op->n_in > 2 ? c->in[2] : NULL;
    float *y = c->out[0];           /* (m, n) */
    for (int64_t i = 0; i < d.m; i++)
        for (int64_t j = 0; j < d.n; j++) {
            double sum = bias ? bias[j] : 0;
            for (int64_t k = 0; k < d.k; k++)
                sum += (double)bf16_operand(a[ta ? k * d.m + i : i * d.k + k], bf16) *
                       bf16_operand(b[tb ? j * d.k + k : k * d.n + j], bf16);
            y[i * d.n + j] = (float)sum;
        }
}

void ref_embed(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *table = c->in[0];  /* (V, D) */
    const int32_t *ids = c->in[1];
    const int64_t width = shape_last(call_in(c, 0)->shape);
    for (int64_t i = 0; i < in_count(c, 1); i++)
        if (ids[i] >= 0)
            memcpy((float *)c->out[0] + i * width, table + ids[i] * width, (size_t)width * sizeof *table);
        else
            memset((float *)c->out[0] + i * width, 0, (size_t)width * sizeof *table);
}

void ref_embed_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int32_t *ids = c->in[1];
    const float *dy = c->in[2];
    float *d_table = c->out[0];
    const int64_t width = shape_last(call_in(c, 0)->shape);
    memset(d_table, 0, value_bytes(call_out(c, 0)));
    for (int64_t i = 0; i < in_count(c, 1); i++)
        for (int64_t j = 0; ids[i] >= 0 && j < width; j++)
            d_table[ids[i] * width + j] += dy[i * width + j];
}

void ref_rope_table(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct op_attrs *a = &c->op->attrs;
    float *cosine = c->out[0], *sine = c->out[1];   /* (T, D/2) */
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            const double angle = (double)i * rope_frequency(a->base, a->stretch, j, a->cols);
            cosine[i * a->cols + j] = (float)cos(angle);
            sine[i * a->cols + j] = (float)sin(angle);
        }
}

void ref_rope(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape s = call_in(c, 0)->shape;    /* (B, T, H * D) */
    const int64_t half = shape_last(call_in(c, 1)->shape), pairs = s.dim[2] / 2;
    const float *x = c->in[0], *cosine = c->in[1], *sine = c->in[2];
    const int32_t *places = c->op->n_in > 3 ? c->in[3] : NULL;
    float *y = c->out[0];
    for (int64_t row = 0; row < s.dim[0] * s.dim[1]; row++)
        for (int64_t j = 0; j < pairs; j++) {
            const int64_t place = places ? places[row] : row % s.dim[1], at = place * half + j % half, i = row * s.dim[2] + 2 * j;
            const float co = place < 0 ? 0 : cosine[at], si = place < 0 ? 0 : c->op->attrs.inverse ? -sine[at] : sine[at];
            const float u = place < 0 ? 0 : x[i], v = place < 0 ? 0 : x[i + 1];
            y[i] = u * co - v * si;
            y[i + 1] = u * si + v * co;
        }
}

void ref_causal_mask(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = c->op->attrs.rows;
    float *y = c->out[0];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] = j > i ? -INFINITY : 0;
}

void ref_attn_scores(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct attn_dims d = attn_dims(c);
    const float *q = c->in[0], *k = c->in[1];       /* (B, T, H * D), (B, T, K * D) */
    float *y = c->out[0];                           /* (B, H, T, T) */
    for (int64_t b = 0; b < d.batch; b++)
        for (int64_t h = 0; h < d.heads; h++)
            for (int64_t i = 0; i < d.seq; i++)
                for (int64_t j = 0; j < d.seq; j++) {
                    const int64_t kv = h / (d.heads / d.kv_heads);
                    const float *x = q + ((b * d.seq + i) * d.heads + h) * d.size;
                    const float *z = k + ((b * d.seq + j) * d.kv_heads + kv) * d.size;
                    double sum = 0;
                    for (int64_t e = 0; e < d.size; e++)
                        sum += (double)x[e] * z[e];
                    y[((b * d.heads + h) * d.seq + i) * d.seq + j] = (float)(sum * c->op->attrs.scale);
                }
}

void ref_attn_mix(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct attn_dims d = attn_dims(c);
    const float *w = c->in[0], *v = c->in[1];       /* (B, H, T, T), (B, T, K * D) */
    float *y = c->out[0];                           /* (B, T, H * D) */
    for (int64_t b = 0; b < d.batch; b++)
        for (int64_t h = 0; h < d.heads; h++)
            for (int64_t i = 0; i < d.seq; i++)
                for (int64_t e = 0; e < d.size; e++) {
                    const int64_t kv = h / (d.heads / d.kv_heads);
                    double sum = 0;
                    for (int64_t j = 0; j < d.seq; j++)
                        sum += (double)w[((b * d.heads + h) * d.seq + i) * d.seq + j] *
                               v[((b * d.seq + j) * d.kv_heads + kv) * d.size + e];
                    y[((b * d.seq + i) * d.heads + h) * d.size + e] = (float)(sum * c->op->attrs.scale);
                }
}

void ref_attn_mix_t(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct attn_dims d = attn_dims(c);
    const int64_t group = d.heads / d.kv_heads;
    const float *w = c->in[0], *x = c->in[1];       /* (B, H, T, T), (B, T, H * D) */
    float *y = c->out[0];                           /* (B, T, K * D) */
    for (int64_t b = 0; b < d.batch; b++)
        for (int64_t kv = 0; kv < d.kv_heads; kv++)
            for (int64_t j = 0; j < d.seq; j++)
                for (int64_t e = 0; e < d.size; e++) {
                    double sum = 0;
                    for (int64_t h = kv * group; h < (kv + 1) * group; h++)
                        for (int64_t i = 0; i < d.seq; i++)
                            sum += (double)w[((b * d.heads + h) * d.seq + i) * d.seq + j] *
                                   x[((b * d.seq + i) * d.heads + h) * d.size + e];
                    y[((b * d.seq + j) * d.kv_heads + kv) * d.size + e] = (float)(sum * c->op->attrs.scale);
                }
}
