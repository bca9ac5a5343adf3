/* Reference: a matrix product with bias, and GELU of it. */
#include <math.h>

#include "ops/cpu/reference/reference.h"

static const double GELU_A = 0.7978845608028654, GELU_B = 0.044715;     /* sqrt(2 / pi), and the cubic term */

void ref_linear_gelu(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t rows = shape_rows(call_in(c, 0)->shape), depth = shape_last(call_in(c, 0)->shape);
    const int64_t n = shape_last(call_out(c, 0)->shape);
    const float *x = c->in[0], *w = c->in[1], *bias = c->in[2];    /* (rows, depth), (n, depth), (n) */
    float *y = c->out[0], *u = c->out[1];                           /* (rows, n) */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = bias[j];
            for (int64_t k = 0; k < depth; k++)
                sum += (double)x[i * depth + k] * w[j * depth + k];
            u[i * n + j] = (float)sum;
            const double v = u[i * n + j];
            y[i * n + j] = (float)(0.5 * v * (1 + tanh(GELU_A * (v + GELU_B * v * v * v))));
        }
}
