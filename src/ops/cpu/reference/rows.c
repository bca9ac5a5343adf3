/* Reference: ops that work row by row over the last dimension: norms, softmax, loss. */
#include <math.h>

#include "ops/cpu/reference/reference.h"

void ref_layernorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape s = call_in(c, 0)->shape;
    const int64_t n = shape_last(s);
    const float *gain = c->in[1], *shift = c->in[2];
    float *mean = c->out[1], *rstd = c->out[2];
    for (int64_t r = 0; r < shape_rows(s); r++) {
        const float *x = (const float *)c->in[0] + r * n;
        float *y = (float *)c->out[0] + r * n;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        const double mu = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - mu) * (x[i] - mu);
        const double scale = 1 / sqrt(squares / (double)n + c->op->attrs.eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((x[i] - mu) * scale * gain[i] + shift[i]);
        mean[r] = (float)mu;
        rstd[r] = (float)scale;
    }
}

/* With z = (x - mean) rstd and g = dy gain: dx = rstd (g - mean(g) - z mean(g z)), plus `more` where it is given. */
void ref_layernorm_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape s = call_in(c, 1)->shape;
    const int64_t n = shape_last(s);
    const float *gain = c->in[2], *mean = c->in[3], *rstd = c->in[4], *more = c->op->n_in > 5 ? c->in[5] : NULL;
    float *d_gain = c->out[1], *d_shift = c->out[2];
    for (int64_t i = 0; i < n; i++)
        d_gain[i] = d_shift[i] = 0;
    for (int64_t r = 0; r < shape_rows(s); r++) {
        const float *dy = (const float *)c->in[0] + r * n, *x = (const float *)c->in[1] + r * n;
        float *dx = (float *)c->out[0] + r * n;
        double sum_g = 0, sum_gz = 0;
        for (int64_t i = 0; i < n; i++) {
            const double z = (x[i] - mean[r]) * rstd[r], g = (double)dy[i] * gain[i];
            sum_g += g;
            sum_gz += g * z;
        }
        for (int64_t i = 0; i < n; i++) {
            const float z = (x[i] - mean[r]) * rstd[r], g = dy[i];
            d_gain[i] += g * z;
            d_shift[i] += g;
            const double d = rstd[r] * (g * gain[i] - sum_g / (double)n - z * sum_gz / (double)n);
            dx[i] = (float)(more ? d + more[r * n + i] : d);
        }
    }
}

void ref_rmsnorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape s = call_in(c, 0)->shape;
    const int64_t n = shape_last(s);
    const float *gain = c->in[1];
    float *rstd = c->out[1];
    for (int64_t r = 0; r < shape_rows(s); r++) {
        const float *x = (const float *)c->in[0] + r * n;
        float *y = (float *)c->out[0] + r * n;
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += (double)x[i] * x[i];
        const double scale = 1 / sqrt(squares / (double)n + c->op->attrs.eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(x[i] * scale * gain[i]);
        rstd[r] = (float)scale;
    }
}

/* With z = x rstd and g = dy gain: dx = rstd (g - z mean(g z)), plus `more` where it is given. */
void ref_rmsnorm_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct shape s = call_in(c, 1)->shape;
    const int64_t n = shape_last(s);
    const float *gain = c->in[2], *rstd = c->in[3], *more = c->op->n_in > 4 ? c->in[4] : NULL;
    float *d_gain = c->out[1];
    for (int64_t i = 0; i < n; i++)
        d_gain[i] = 0;
    for (int64_t r = 0; r < shape_rows(s); r++) {
        const float *dy = (const float *)c->in[0] + r * n, *x = (const float *)c->in[1] + r * n;
        float *dx = (float *)c->out[0] + r * n;
        double sum_gz = 0;
        for (int64_t i = 0; i < n; i++)
            sum_gz += (double)dy[i] * gain[i] * x[i] * rstd[r];
        for (int64_t i = 0; i < n; i++) {
            const float z = x[i] * rstd[r], g = dy[i];
            d_gain[i] += g * z;
            const double d = rstd[r] * (g * gain[i] - z * sum_gz / (double)n);
            dx[i] = (float)(more ? d + more[r * n + i] : d);
        }
    }
}

static float row_max(const float *x, int64_t n)
{
    float m = x[0];
    for (int64_t i = 1; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

void ref_softmax(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = shape_last(call_in(c, 0)->shape);
    for (int64_t r = 0; r < in_count(c, 0) / n; r++) {
        const float *x = (const float *)c->in[0] + r * n, m = row_max(x, n);
        float *y = (float *)c->out[0] + r * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += y[i] = expf(x[i] - m);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(y[i] / sum);
    }
}

void ref_softmax_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = shape_last(call_in(c, 0)->shape);
    for (int64_t r = 0; r < in_count(c, 0) / n; r++) {
        const float *y = (const float *)c->in[0] + r * n, *dy = (const float *)c->in[1] + r * n;
        float *dx = (float *)c->out[0] + r * n;
        double dot = 0;
        for (int64_t i = 0; i < n; i++)
            dot += (double)y[i] * dy[i];
        for (int64_t i = 0; i < n; i++)
            dx[i] = (float)(y[i] * (dy[i] - dot));
    }
}

void ref_log_softmax(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = shape_last(call_in(c, 0)->shape);
    for (int64_t r = 0; r < in_count(c, 0) / n; r++) {
        const float *x = (const float *)c->in[0] + r * n, m = row_max(x, n);
        float *y = (float *)c->out[0] + r * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += exp((double)x[i] - m);
        const double log_sum = log(sum);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(x[i] - m - log_sum);
    }
}

void ref_log_softmax_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = shape_last(call_in(c, 0)->shape);
    for (int64_t r = 0; r < in_count(c, 0) / n; r++) {
        const float *y = (const float *)c->in[0] + r * n, *dy = (const float *)c->in[1] + r * n;
        float *dx = (float *)c->out[0] + r * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += dy[i];
        for (int64_t i = 0; i < n; i++)
            dx[i] = (float)(dy[i] - exp(y[i]) * sum);
    }
}

void ref_nll(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = shape_last(call_in(c, 0)->shape);
    const float *logp = c->in[0];
    const int32_t *targets = c->in[1];
    double sum = 0;
    int64_t count = 0;
    for (int64_t r = 0; r < in_count(c, 1); r++)
        if (targets[r] >= 0) {
            sum -= logp[r * n + targets[r]];
            count++;
        }
    *(float *)c->out[0] = (float)(sum / (double)(count ? count : 1));
    *(float *)c->out[1] = (float)count;
}

void ref_nll_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t n = shape_last(call_in(c, 0)->shape);
    const int32_t *targets = c->in[1];
    const float count = *(const float *)c->in[2], d_loss = *(const float *)c->in[3];
    float *dx = c->out[0];
    for (int64_t i = 0; i < out_count(c, 0); i++)
        dx[i] = 0;
    for (int64_t r = 0; r < in_count(c, 1); r++)
        if (targets[r] >= 0)
            dx[r * n + targets[r]] = -d_loss / count;
}
