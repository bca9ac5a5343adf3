/* Tuned: LayerNorm and RMSNorm, split over the threads by row. The gradients of gain and shift are summed per thread in
 * scratch and then over the threads, in their order. */
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/tuned.h"

static void layernorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct shape shape = call_in(c, 0)->shape;
    const int64_t n = shape_last(shape);
    const float *restrict gain = c->in[1], *restrict shift = c->in[2];
    const struct span rows = my_rows(t, shape_rows(shape));
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const float *restrict x = (const float *)c->in[0] + r * n;
        float *restrict y = (float *)c->out[0] + r * n;
        float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        const float mean = sum / (float)n;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        const float rstd = 1 / sqrtf(squares / (float)n + c->op->attrs.eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd * gain[i] + shift[i];
        ((float *)c->out[1])[r] = mean;
        ((float *)c->out[2])[r] = rstd;
    }
}

static void rmsnorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct shape shape = call_in(c, 0)->shape;
    const int64_t n = shape_last(shape);
    const float *restrict gain = c->in[1];
    const struct span rows = my_rows(t, shape_rows(shape));
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const float *restrict x = (const float *)c->in[0] + r * n;
        float *restrict y = (float *)c->out[0] + r * n;
        float squares = 0;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < n; i++)
            squares += x[i] * x[i];
        const float rstd = 1 / sqrtf(squares / (float)n + c->op->attrs.eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * rstd * gain[i];
        ((float *)c->out[1])[r] = rstd;
    }
}

/* One row of either norm: dx = rstd (g - mean(g) - z mean(g z)) with z the normalised x and g = dy gain; an RMSNorm has
 * no mean(g). dx may be the memory of dy. Adds to the sums of gain and shift. */
static inline void row_grad(float *dx, const float *dy, const float *restrict x, const float *restrict gain, float mean,
                            float rstd, bool centred, float *restrict d_gain, float *restrict d_shift, int64_t n)
{
    float sum_g = 0, sum_gz = 0;
#pragma omp simd reduction(+ : sum_g, sum_gz)
    for (int64_t i = 0; i < n; i++) {
        const float g = dy[i] * gain[i];
        sum_g += g;
        sum_gz += g * ((x[i] - mean) * rstd);
    }
    const float mean_g = centred ? sum_g / (float)n : 0, mean_gz = sum_gz / (float)n;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float z = (x[i] - mean) * rstd, d = dy[i];
        d_gain[i] += d * z;
        if (centred)
            d_shift[i] += d;
        dx[i] = rstd * (d * gain[i] - mean_g - z * mean_gz);
    }
}

/* Adds up the threads' sums, a span of columns each. */
static void combine(float *out, const float *parts, int64_t stride, int64_t n, const struct kernel_thread *t)
{
    const struct span s = my_columns(t, n);
    for (int64_t i = s.lo; i < s.hi; i++) {
        float sum = 0;
        for (int k = 0; k < t->count; k++)
            sum += parts[k * stride + i];
        out[i] = sum;
    }
}

static size_t grad_stride(int64_t n) { return ((size_t)(2 * n) + 31) / 32 * 32; }      /* floats per thread */

static size_t grad_scratch(const struct program *p, const struct op *op, int threads)
{
    return grad_stride(shape_last(p->values[op->in[1]].shape)) * sizeof(float) * (size_t)threads;
}

static void norm_grad(const struct kernel_call *c, const struct kernel_thread *t, bool centred)
{
    const struct shape shape = call_in(c, 1)->shape;
    const int64_t n = shape_last(shape), stride = (int64_t)grad_stride(n);
    const float *mean = centred ? c->in[3] : NULL, *rstd = c->in[centred ? 4 : 3];
    float *parts = c->scratch, *d_gain = parts + t->index * stride, *d_shift = d_gain + n;
    memset(d_gain, 0, (size_t)stride * sizeof *d_gain);
    const struct span rows = my_rows(t, shape_rows(shape));
    for (int64_t r = rows.lo; r < rows.hi; r++)
        row_grad((float *)c->out[0] + r * n, (const float *)c->in[0] + r * n, (const float *)c->in[1] + r * n, c->in[2],
                 centred ? mean[r] : 0, rstd[r], centred, d_gain, d_shift, n);
    team_barrier(t->team);
    combine(c->out[1], parts, stride, n, t);
    if (centred)
        combine(c->out[2], parts + n, stride, n, t);
}

static void layernorm_grad(const struct kernel_call *c, const struct kernel_thread *t) { norm_grad(c, t, true); }
static void rmsnorm_grad(const struct kernel_call *c, const struct kernel_thread *t) { norm_grad(c, t, false); }

const struct kernel TUNED(norm)[] = {
    {.op = OP_LAYERNORM, .name = "simd", .run = layernorm},
    {.op = OP_LAYERNORM_GRAD, .name = "simd", .run = layernorm_grad, .scratch = grad_scratch},
    {.op = OP_RMSNORM, .name = "simd", .run = rmsnorm},
    {.op = OP_RMSNORM_GRAD, .name = "simd", .run = rmsnorm_grad, .scratch = grad_scratch},
    {.run = NULL},
};
