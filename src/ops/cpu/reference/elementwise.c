/* Reference: ops that treat every element alike. */
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "ops/cpu/reference/reference.h"

void ref_add(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *a = c->in[0], *b = c->in[1];
    float *y = c->out[0];
    const int64_t period = in_count(c, 1);
    for (int64_t i = 0; i < in_count(c, 0); i++)
        y[i] = a[i] + b[i % period];
}

void ref_sum_leading(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0];
    float *y = c->out[0];
    const int64_t period = out_count(c, 0), rows = in_count(c, 0) / period;
    for (int64_t j = 0; j < period; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += x[i * period + j];
        y[j] = (float)sum;
    }
}

void ref_mean(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++) {
        float sum = ((const float *)c->in[0])[i];
        for (int k = 1; k < c->op->n_in; k++)
            sum += ((const float *)c->in[k])[i];
        y[i] = sum / (float)c->op->n_in;
    }
}

void ref_scale(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++)
        y[i] = c->op->attrs.scale * x[i];
}

void ref_mul(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *a = c->in[0], *b = c->in[1];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++)
        y[i] = a[i] * b[i];
}

static const double GELU_A = 0.7978845608028654, GELU_B = 0.044715;     /* sqrt(2 / pi), and the cubic term */

void ref_gelu(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++) {
        const double v = x[i];
        y[i] = (float)(0.5 * v * (1 + tanh(GELU_A * (v + GELU_B * v * v * v))));
    }
}

void ref_gelu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0], *dy = c->in[1];
    float *dx = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++) {
        const double v = x[i], th = tanh(GELU_A * (v + GELU_B * v * v * v));
        const double slope = 0.5 * (1 + th) + 0.5 * v * (1 - th * th) * GELU_A * (1 + 3 * GELU_B * v * v);
        dx[i] = (float)(dy[i] * slope);
    }
}

void ref_silu(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++)
        y[i] = (float)(x[i] / (1 + exp(-(double)x[i])));
}

void ref_silu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0], *dy = c->in[1];
    float *dx = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++) {
        const double s = 1 / (1 + exp(-(double)x[i]));
        dx[i] = (float)(dy[i] * s * (1 + x[i] * (1 - s)));
    }
}

/* Element i is kept by word i % 4 of block i / 4 of the stream: the same in every kernel on every device. attrs.first is the number of the first
 * one: a rank has a part of a batch. */
void ref_dropout(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct op_attrs *a = &c->op->attrs;
    const float *x = c->in[0], scale = 1 / (1 - a->prob);
    const uint64_t stream = a->stream << 32 | (uint32_t)*(const int32_t *)c->in[1];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++) {
        const uint64_t at = (uint64_t)(a->first + i);
        const struct rng_block b = rng_block(a->seed, stream, at / 4);
        y[i] = rng_unit(b.x[at % 4]) < a->prob ? 0 : x[i] * scale;
    }
}

void ref_fill(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    float *y = c->out[0];
    for (int64_t i = 0; i < out_count(c, 0); i++)
        y[i] = c->op->attrs.value;
}

/* As f32 to f32: narrow.c does the rest. */
void ref_cast(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    memcpy(c->out[0], c->in[0], (size_t)out_count(c, 0) * sizeof(float));
}

void ref_accumulate(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[1], weight = c->op->n_in > 2 ? *(const float *)c->in[2] : 1;
    const bool first = c->op->n_in > 3 && *(const int32_t *)c->in[3] == 1;
    float *acc = c->out[0];
    for (int64_t i = 0; i < in_count(c, 1); i++)
        acc[i] = (first ? 0 : acc[i]) + x[i] * weight;
}

void ref_divide(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *x = c->in[0], by = *(const float *)c->in[1];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++)
        y[i] = x[i] / by;
}

void ref_zero(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    memset(c->out[0], 0, value_bytes(call_out(c, 0)));
}

void ref_host_read(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    memcpy(c->out[0], c->in[0], value_bytes(call_out(c, 0)));
}
