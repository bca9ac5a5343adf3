/* Tuned: softmax and log-softmax over the last dimension, split over the threads by row. Outputs may be the memory of an
 * input. */
#include <math.h>

#include "ops/cpu/tuned/tuned.h"

static inline float row_max(const float *x, int64_t n)
{
    float m = x[0];
#pragma omp simd reduction(max : m)
    for (int64_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static void softmax(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = shape_last(call_in(c, 0)->shape);
    const struct span rows = my_rows(t, in_count(c, 0) / n);
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const float *x = (const float *)c->in[0] + r * n, m = row_max(x, n);
        float *y = (float *)c->out[0] + r * n, sum = 0;
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            y[i] = fast_exp(x[i] - m);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++)
            sum += y[i];
        const float scale = 1 / sum;
        for (int64_t i = 0; i < n; i++)
            y[i] *= scale;
    }
}

static void softmax_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = shape_last(call_in(c, 0)->shape);
    const struct span rows = my_rows(t, in_count(c, 0) / n);
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const float *y = (const float *)c->in[0] + r * n, *dy = (const float *)c->in[1] + r * n;
        float *dx = (float *)c->out[0] + r * n, dot = 0;
#pragma omp simd reduction(+ : dot)
        for (int64_t i = 0; i < n; i++)
            dot += y[i] * dy[i];
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] * (dy[i] - dot);
    }
}

static void log_softmax(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = shape_last(call_in(c, 0)->shape);
    const struct span rows = my_rows(t, in_count(c, 0) / n);
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const float *x = (const float *)c->in[0] + r * n, m = row_max(x, n);
        float *y = (float *)c->out[0] + r * n, sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++)
            sum += fast_exp(x[i] - m);
        const float shift = m + logf(sum);
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - shift;
    }
}

static void log_softmax_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = shape_last(call_in(c, 0)->shape);
    const struct span rows = my_rows(t, in_count(c, 0) / n);
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const float *y = (const float *)c->in[0] + r * n, *dy = (const float *)c->in[1] + r * n;
        float *dx = (float *)c->out[0] + r * n, sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++)
            sum += dy[i];
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] - fast_exp(y[i]) * sum;
    }
}

const struct kernel TUNED(softmax)[] = {
    {.op = OP_SOFTMAX, .name = "simd", .run = softmax},
    {.op = OP_SOFTMAX_GRAD, .name = "simd", .run = softmax_grad},
    {.op = OP_LOG_SOFTMAX, .name = "simd", .run = log_softmax},
    {.op = OP_LOG_SOFTMAX_GRAD, .name = "simd", .run = log_softmax_grad},
    {.run = NULL},
};
