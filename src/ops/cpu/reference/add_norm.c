/* Reference: the sum of two values and a norm of it. The norm is the plain op's, over the sum as it is stored. */
#include <math.h>

#include "core/bf16.h"
#include "core/f16.h"
#include "ops/cpu/reference/reference.h"

static float as_stored(float x, enum dtype type) { return type == BF16 ? bf16_value(bf16_bits(x)) : type == F16 ? f16_value(f16_bits(x)) : x; }

/* sum = x + r, a row of n; y may be the memory of x or r, so the sum is whole before y is written. */
static const float *add_row(const struct kernel_call *c, int64_t row, int64_t n)
{
    const float *x = (const float *)c->in[0] + row * n, *r = (const float *)c->in[1] + row * n;
    float *sum = (float *)c->out[1] + row * n;
    for (int64_t i = 0; i < n; i++)
        sum[i] = as_stored(x[i] + r[i], call_out(c, 1)->dtype);
    return sum;
}

void ref_add_layernorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape shape = call_in(c, 0)->shape;
    const int64_t n = shape_last(shape);
    const float *gain = c->in[2], *shift = c->in[3];
    float *mean = c->out[2], *rstd = c->out[3];
    for (int64_t row = 0; row < shape_rows(shape); row++) {
        const float *s = add_row(c, row, n);
        float *y = (float *)c->out[0] + row * n;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += s[i];
        const double mu = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (s[i] - mu) * (s[i] - mu);
        const double scale = 1 / sqrt(squares / (double)n + c->op->attrs.eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((s[i] - mu) * scale * gain[i] + shift[i]);
        mean[row] = (float)mu;
        rstd[row] = (float)scale;
    }
}

void ref_add_rmsnorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape shape = call_in(c, 0)->shape;
    const int64_t n = shape_last(shape);
    const float *gain = c->in[2];
    float *rstd = c->out[2];
    for (int64_t row = 0; row < shape_rows(shape); row++) {
        const float *s = add_row(c, row, n);
        float *y = (float *)c->out[0] + row * n;
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += (double)s[i] * s[i];
        const double scale = 1 / sqrt(squares / (double)n + c->op->attrs.eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(s[i] * scale * gain[i]);
        rstd[row] = (float)scale;
    }
}
