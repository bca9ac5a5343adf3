/* Tuned: the three products of attention, one small matrix product per batch and head, split over the threads by head.
 * Heads are strided views of (B, T, H * D), so nothing is copied. */
#include <cblas.h>

#include "ops/cpu/tuned/tuned.h"

static void scores(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct attn_dims d = attn_dims(c);
    const int64_t group = d.heads / d.kv_heads, q_width = d.heads * d.size, k_width = d.kv_heads * d.size;
    const struct span s = my_rows(t, d.batch * d.heads);
    for (int64_t i = s.lo; i < s.hi; i++) {
        const int64_t b = i / d.heads, h = i % d.heads;
        const float *q = (const float *)c->in[0] + b * d.seq * q_width + h * d.size;
        const float *k = (const float *)c->in[1] + b * d.seq * k_width + h / group * d.size;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)d.seq, (int)d.seq, (int)d.size, c->op->attrs.scale, q,
                    (int)q_width, k, (int)k_width, 0, (float *)c->out[0] + i * d.seq * d.seq, (int)d.seq);
    }
}

static void mix(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct attn_dims d = attn_dims(c);
    const int64_t group = d.heads / d.kv_heads, y_width = d.heads * d.size, v_width = d.kv_heads * d.size;
    const struct span s = my_rows(t, d.batch * d.heads);
    for (int64_t i = s.lo; i < s.hi; i++) {
        const int64_t b = i / d.heads, h = i % d.heads;
        const float *v = (const float *)c->in[1] + b * d.seq * v_width + h / group * d.size;
        float *y = (float *)c->out[0] + b * d.seq * y_width + h * d.size;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)d.seq, (int)d.size, (int)d.seq, c->op->attrs.scale,
                    (const float *)c->in[0] + i * d.seq * d.seq, (int)d.seq, v, (int)v_width, 0, y, (int)y_width);
    }
}

static void mix_t(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct attn_dims d = attn_dims(c);
    const int64_t group = d.heads / d.kv_heads, x_width = d.heads * d.size, y_width = d.kv_heads * d.size;
    const struct span s = my_rows(t, d.batch * d.kv_heads);
    for (int64_t i = s.lo; i < s.hi; i++) {
        const int64_t b = i / d.kv_heads, kv = i % d.kv_heads;
        float *y = (float *)c->out[0] + b * d.seq * y_width + kv * d.size;
        for (int64_t h = kv * group; h < (kv + 1) * group; h++) {
            const float *w = (const float *)c->in[0] + (b * d.heads + h) * d.seq * d.seq;
            const float *x = (const float *)c->in[1] + b * d.seq * x_width + h * d.size;
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)d.seq, (int)d.size, (int)d.seq,
                        c->op->attrs.scale, w, (int)d.seq, x, (int)x_width, h > kv * group, y, (int)y_width);
        }
    }
}

const struct kernel TUNED(attention)[] = {
    {.op = OP_ATTN_SCORES, .name = HONE_BLAS_NAME, .run = scores},
    {.op = OP_ATTN_MIX, .name = HONE_BLAS_NAME, .run = mix},
    {.op = OP_ATTN_MIX_T, .name = HONE_BLAS_NAME, .run = mix_t},
    {.run = NULL},
};
