/* Reference: counters, learning rate, clipping, AdamW, metrics. */
#include <math.h>

#include "ops/cpu/reference/reference.h"

void ref_advance(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    uint32_t *counter = c->out[0];      /* unsigned: it may wrap */
    ++*counter;
}

float lr_at(const struct op_attrs *a, int64_t step)
{
    if (step <= a->warmup)
        return (float)(a->lr * (double)step / (double)a->warmup);
    if (a->schedule == 2 || a->total <= a->warmup)
        return a->lr;
    double x = (double)(step - a->warmup) / (double)(a->total - a->warmup);
    x = x > 1 ? 1 : x;
    const double part = a->schedule == 0 ? 0.5 * (1 + cos(3.141592653589793 * x)) : 1 - x;
    return (float)(a->min_lr + (a->lr - a->min_lr) * part);
}

void ref_lr(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    *(float *)c->out[0] = lr_at(&c->op->attrs, *(const int32_t *)c->in[0]);
}

bool squares_left_out(const struct kernel_call *c, int k)
{
    const struct op *op = c->op;
    const int group = op->attrs.masked ? op->attrs.members[k].group : -1;
    return group >= 0 && ((const float *)c->in[op->n_in - 1])[group] == 0;
}

/* Of the block that begins at i: a float, as ranks tell each other. */
static float block_squares(const float *x, int64_t i, int64_t n)
{
    double sum = 0;
    for (const int64_t end = i + SLICE_BLOCK < n ? i + SLICE_BLOCK : n; i < end; i++)
        sum += (double)x[i] * x[i];
    return (float)sum;
}

void ref_sum_squares(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    for (int k = 0; k < c->op->n_in - c->op->attrs.masked; k++) {
        const float *x = c->in[k];
        double sum = 0;
        for (int64_t i = 0; i < in_count(c, k) && !squares_left_out(c, k); i += SLICE_BLOCK)
            sum += block_squares(x, i, in_count(c, k));
        ((float *)c->out[0])[k] = (float)sum;
    }
}

void ref_square_blocks(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    float *sums = c->out[0];
    (void)t;
    for (int64_t i = 0; i < a->rows; i++)
        sums[i] = 0;
    for (int k = 0; k < c->op->n_in - a->masked; k++)
        for (int64_t i = 0; i < in_count(c, k) && !squares_left_out(c, k); i += SLICE_BLOCK)
            sums[a->members[k].unit + i / SLICE_BLOCK] = block_squares(c->in[k], i, in_count(c, k));
}

void ref_clip(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const float max_norm = c->op->attrs.max_norm, scale = c->op->attrs.scaled ? *(const float *)c->in[1] : 1;
    double sum = 0;
    for (int i = 1 + c->op->attrs.scaled; i < c->op->n_in; i++)
        for (int64_t k = 0; k < in_count(c, i); k++)
            sum += ((const float *)c->in[i])[k];
    const float norm = (float)(sqrt(sum) / scale), loss = *(const float *)c->in[0];
    float factor = max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6f) : 1;
    if (!isfinite(norm) || !isfinite(loss))
        factor = NAN;
    *(float *)c->out[0] = norm;
    *(float *)c->out[1] = factor / scale;
}

void ref_rescale(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    float *scale = c->out[0];
    int32_t *good = c->out[1];
    const bool broken = isnan(*(const float *)c->in[2]);
    *good = broken ? 0 : *good + 1;
    if (broken && *scale > LEAST_LOSS_SCALE)
        *scale /= 2;
    if (*good >= c->op->attrs.total) {
        *good = 0;
        *scale = *scale < MOST_LOSS_SCALE ? *scale * 2 : *scale;
    }
}

struct update update_of(const struct kernel_call *c, int i)
{
    const int at = op_update_scalars(c->op), group = c->op->attrs.masked ? call_in(c, i)->group : -1;
    const float lr = *(const float *)c->in[at], factor = *(const float *)c->in[at + 2];
    if (group < 0)
        return (struct update){lr, factor, *(const int32_t *)c->in[at + 1], !isnan(factor)};
    const float mask = ((const float *)c->in[at + 3])[group];
    return (struct update){lr * mask, factor, ((const int32_t *)c->in[at + 4])[group], !isnan(factor) && mask != 0};
}

int64_t update_first(const struct kernel_call *c, int i, int n)
{
    const struct value_slice *s = call_in(c, n + i)->slice;
    return s ? s->first : 0;
}

/* Decoupled weight decay, as in PyTorch: p -= lr wd p; p -= lr m^ / (sqrt(v^) + eps). Tensor `at` of n; the scalars follow the
 * gradients. */
static void adamw_tensor(const struct kernel_call *c, int at, int n)
{
    const struct op_attrs *a = &c->op->attrs;
    const int grads = 3 * n + a->copies;
    const struct update u = update_of(c, at);
    const float *grad = c->in[grads + at];
    float *p = (float *)c->out[at] + update_first(c, at, n), *m = c->out[n + at], *v = c->out[2 * n + at], *copy = at < a->copies ? c->out[3 * n + at] : NULL;
    if (!u.made)
        return;                     /* not selected, or this step's gradient is not finite: change nothing */
    const double correct1 = 1 - pow(a->beta1, u.step), correct2 = 1 - pow(a->beta2, u.step);
    for (int64_t i = 0; i < in_count(c, n + at); i++) {
        const double g = (double)grad[i] * u.factor;
        m[i] = (float)(a->beta1 * m[i] + (1 - (double)a->beta1) * g);
        v[i] = (float)(a->beta2 * v[i] + (1 - (double)a->beta2) * g * g);
        const double update = m[i] / correct1 / (sqrt(v[i] / correct2) + a->eps);
        p[i] = (float)(p[i] - u.lr * a->weight_decay * (double)p[i] - u.lr * update);
        if (copy)
            copy[i] = p[i];
    }
}

void ref_adamw(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    adamw_tensor(c, 0, 1);
}

void ref_adamw_all(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    for (int i = 0; i < c->op->attrs.parts; i++)
        adamw_tensor(c, i, c->op->attrs.parts);
}

void ref_keep(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int64_t rows = call_in(c, 0)->shape.dim[0], n = call_in(c, 0)->shape.dim[1];
    const uint32_t step = *(const uint32_t *)c->in[1];      /* unsigned: it may have wrapped */
    float *row = (float *)c->out[0] + step % rows * n;      /* (n) */
    for (int i = 2; i < c->op->n_in; i++)
        for (int64_t k = 0; k < in_count(c, i); k++)
            *row++ = ((const float *)c->in[i])[k];
}
