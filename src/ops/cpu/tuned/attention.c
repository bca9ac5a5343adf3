/* Tuned: the three products of attention, one small matrix product per batch and head, split over the threads by head.
 * Heads are strided views of (B, T, H * D), so nothing is copied. */
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
        TUNED(gemm)(&(struct gemm){.m = d.seq, .n = d.seq, .k = d.size, .a = q, .a_row = q_width, .a_col = 1, .b = k,
                                   .ldb = k_width, .b_transposed = true, .c = (float *)c->out[0] + i * d.seq * d.seq,
                                   .ldc = d.seq, .scale = c->op->attrs.scale});
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
        TUNED(gemm)(&(struct gemm){.m = d.seq, .n = d.size, .k = d.seq, .a = (const float *)c->in[0] + i * d.seq * d.seq,
                                   .a_row = d.seq, .a_col = 1, .b = v, .ldb = v_width, .c = y, .ldc = y_width,
                                   .scale = c->op->attrs.scale});
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
            TUNED(gemm)(&(struct gemm){.m = d.seq, .n = d.size, .k = d.seq, .a = w, .a_row = 1, .a_col = d.seq, .b = x,
                                       .ldb = x_width, .c = y, .ldc = y_width, .scale = c->op->attrs.scale,
                                       .accumulate = h > kv * group});
        }
    }
}

const struct kernel TUNED(attention)[] = {
    {.op = OP_ATTN_SCORES, .name = "heads", .run = scores},
    {.op = OP_ATTN_MIX, .name = "heads", .run = mix},
    {.op = OP_ATTN_MIX_T, .name = "heads", .run = mix_t},
    {.run = NULL},
};
