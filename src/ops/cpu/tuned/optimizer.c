/* Tuned: gradient norm and AdamW. */
#include <math.h>

#include "ops/cpu/tuned/tuned.h"

enum { SMALL = 8192 };              /* below this one thread is faster than two and a barrier */

static double squares(const float *x, int64_t lo, int64_t hi)
{
    double total = 0;
    for (int64_t i = lo; i < hi; i += 1024) {       /* short float sums, added up in double */
        const int64_t end = i + 1024 < hi ? i + 1024 : hi;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = i; j < end; j++)
            sum += x[j] * x[j];
        total += sum;
    }
    return total;
}

static void sum_squares(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0];
    const int64_t n = in_count(c, 0);
    if (n < SMALL) {
        if (t->index == 0)
            *(float *)c->out[0] = (float)squares(x, 0, n);
        return;
    }
    double *parts = c->scratch;                     /* one per thread, a cache line apart */
    const struct span s = my_elements(t, n);
    parts[t->index * 16] = squares(x, s.lo, s.hi);
    team_barrier(t->team);
    if (t->index == 0) {
        double total = 0;
        for (int i = 0; i < t->count; i++)
            total += parts[i * 16];
        *(float *)c->out[0] = (float)total;
    }
}

static size_t sum_scratch(const struct program *p, const struct op *op, int threads)
{
    (void)p, (void)op;
    return (size_t)threads * 16 * sizeof(double);
}

static void adamw(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    const float *restrict grad = c->in[3];
    const float lr = *(const float *)c->in[4], factor = *(const float *)c->in[6];
    const int32_t step = *(const int32_t *)c->in[5];
    float *restrict p = c->out[0], *restrict m = c->out[1], *restrict v = c->out[2];
    if (isnan(factor))
        return;                     /* this step's gradient is not finite: change nothing */
    const float b1 = a->beta1, b2 = a->beta2, eps = a->eps, keep = 1 - lr * a->weight_decay;
    const float rate = (float)(lr / (1 - pow(b1, step))), root = (float)(1 / sqrt(1 - pow(b2, step)));
    const struct span s = my_elements(t, in_count(c, 0));
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float g = grad[i] * factor;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        p[i] = p[i] * keep - rate * m[i] / (sqrtf(v[i]) * root + eps);
    }
}

const struct kernel TUNED(optimizer)[] = {
    {.op = OP_SUM_SQUARES, .name = "simd", .run = sum_squares, .scratch = sum_scratch},
    {.op = OP_ADAMW, .name = "simd", .run = adamw},
    {.run = NULL},
};
