/* Reference: a matrix product with bias, GELU of it, and the slope of GELU there. */
#include <math.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/reference/reference.h"

static const double GELU_A = 0.7978845608028654, GELU_B = 0.044715;     /* sqrt(2 / pi), and the cubic term */

void ref_linear_gelu(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t rows = shape_rows(call_in(c, 0)->shape), depth = shape_last(call_in(c, 0)->shape);
    const int64_t n = shape_last(call_out(c, 0)->shape);
    const bool bf16 = c->op->attrs.round == ROUND_BF16;
    const float *x = c->in[0], *w = c->in[1], *bias = c->in[2];    /* (rows, depth), (n, depth), (n) */
    float *y = c->out[0], *slope = c->op->n_out > 1 ? c->out[1] : NULL;     /* (rows, n) */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double u = bias[j];
            for (int64_t k = 0; k < depth; k++)
                u += (double)bf16_operand(x[i * depth + k], bf16) * bf16_operand(w[j * depth + k], bf16);
            const double th = tanh(GELU_A * (u + GELU_B * u * u * u));
            y[i * n + j] = (float)(0.5 * u * (1 + th));
            if (slope)
                slope[i * n + j] = (float)(0.5 * (1 + th) + 0.5 * u * (1 - th * th) * GELU_A * (1 + 3 * GELU_B * u * u));
        }
}
