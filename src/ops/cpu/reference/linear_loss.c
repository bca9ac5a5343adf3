/* Reference: the loss of a linear head without its logits: row by row, with the gradients of the mean loss where the op
 * asks for them. */
#include <math.h>
#include <string.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/reference/reference.h"

static double dot(const float *a, const float *b, int64_t n, bool bf16)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)bf16_operand(a[i], bf16) * bf16_operand(b[i], bf16);
    return sum;
}

/* dz = (softmax(z) - onehot) / count, times the loss scale; dx = dz w, dw += dz^T x. */
static void row_gradients(const struct kernel_call *c, int64_t r, double log_sum, double count, double scale)
{
    const int64_t vocab = call_in(c, 1)->shape.dim[0], n = shape_last(call_in(c, 1)->shape);
    const float *x = (const float *)c->in[0] + r * n, *w = c->in[1];        /* (D), (V, D) */
    const int32_t *targets = c->in[2];
    const bool bf16 = c->op->attrs.round == ROUND_BF16;
    float *dx = (float *)c->out[2] + r * n, *dw = c->out[3];                /* (D), (V, D) */
    for (int64_t v = 0; v < vocab; v++) {
        double dz = (exp(dot(x, w + v * n, n, bf16) - log_sum) - (v == targets[r])) / count * scale;
        dz = bf16 ? bf16_round((float)dz) : dz;
        for (int64_t i = 0; i < n; i++) {
            dx[i] += (float)(dz * bf16_operand(w[v * n + i], bf16));
            dw[v * n + i] += (float)(dz * bf16_operand(x[i], bf16));
        }
    }
}

/* The logarithm of the sum of all exponentials. */
static double row_log_sum(const float *x, const float *w, int64_t vocab, int64_t n, bool bf16)
{
    double most = dot(x, w, n, bf16), sum = 0;
    for (int64_t v = 1; v < vocab; v++) {
        const double z = dot(x, w + v * n, n, bf16);
        most = z > most ? z : most;
    }
    for (int64_t v = 0; v < vocab; v++)
        sum += exp(dot(x, w + v * n, n, bf16) - most);
    return most + log(sum);
}

void ref_linear_loss(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t vocab = call_in(c, 1)->shape.dim[0], n = shape_last(call_in(c, 1)->shape), rows = in_count(c, 2);
    const float *w = c->in[1];
    const int32_t *targets = c->in[2];
    const bool gradients = c->op->attrs.parts == 4, bf16 = c->op->attrs.round == ROUND_BF16;
    const double scale = c->op->n_in > 3 ? *(const float *)c->in[3] : 1;
    double sum = 0, count = 0;
    for (int64_t r = 0; r < rows; r++)
        count += targets[r] >= 0;
    for (int i = 2; gradients && i < 4; i++)
        memset(c->out[i], 0, (size_t)out_count(c, i) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        if (targets[r] < 0)
            continue;
        const float *x = (const float *)c->in[0] + r * n;
        const double log_sum = row_log_sum(x, w, vocab, n, bf16);
        sum += log_sum - dot(x, w + targets[r] * n, n, bf16);
        if (gradients)
            row_gradients(c, r, log_sum, count, scale);
    }
    *(float *)c->out[0] = (float)(sum / (count > 0 ? count : 1));
    *(float *)c->out[1] = (float)count;
}
