/* Reference: several products of one input, and the gated unit behind them. */
#include <math.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/reference/reference.h"

/* y (rows, n) = x (rows, k) w^T + bias; w (n, k), bias (n) or NULL. */
static void product(float *y, const float *x, const float *w, const float *bias, int64_t rows, int64_t n, int64_t k, bool bf16)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = bias ? bias[j] : 0;
            for (int64_t e = 0; e < k; e++)
                sum += (double)bf16_operand(x[i * k + e], bf16) * bf16_operand(w[j * k + e], bf16);
            y[i * n + j] = (float)sum;
        }
}

void ref_project(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int parts = c->op->attrs.parts;
    const struct shape x = call_in(c, 0)->shape;
    for (int i = 0; i < parts; i++)
        product(c->out[i], c->in[0], c->in[1 + i], c->op->n_in > 1 + parts ? c->in[1 + parts + i] : NULL, shape_rows(x),
                shape_last(call_out(c, i)->shape), shape_last(x), c->op->attrs.round == ROUND_BF16);
}

void ref_project_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int parts = c->op->attrs.parts;
    const bool bf16 = c->op->attrs.round == ROUND_BF16;
    const int64_t rows = shape_rows(call_out(c, 0)->shape), width = shape_last(call_out(c, 0)->shape);
    float *dx = c->out[0];          /* (rows, width) */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            double sum = 0;
            for (int p = 0; p < parts; p++) {
                const float *dy = c->in[p], *w = c->in[parts + p];      /* (rows, n), (n, width) */
                const int64_t n = shape_last(call_in(c, p)->shape);
                for (int64_t e = 0; e < n; e++)
                    sum += (double)bf16_operand(dy[i * n + e], bf16) * bf16_operand(w[e * width + j], bf16);
            }
            dx[i * width + j] = (float)sum;
        }
}

void ref_swiglu(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *gate = c->in[0], *up = c->in[1];
    float *y = c->out[0];
    for (int64_t i = 0; i < in_count(c, 0); i++)
        y[i] = (float)(gate[i] / (1 + exp(-(double)gate[i])) * up[i]);
}

/* d_gate may be the memory of gate: an element is read before it is written. */
void ref_swiglu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float *gate = c->in[0], *up = c->in[1], *dy = c->in[2];
    float *d_gate = c->out[0], *d_up = c->out[1];
    for (int64_t i = 0; i < in_count(c, 0); i++) {
        const double g = gate[i], s = 1 / (1 + exp(-g));
        d_gate[i] = (float)((double)dy[i] * up[i] * s * (1 + g * (1 - s)));
        d_up[i] = (float)(dy[i] * g * s);
    }
}
