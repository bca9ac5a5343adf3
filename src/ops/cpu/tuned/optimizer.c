/* Tuned: gradient norm and AdamW, over one tensor or over many in one sweep. Threads divide the tensors as if they stood one
 * after the other, in units of whole cache lines, so that small tensors cost no more than their bytes. */
#include <math.h>

#include "ops/cpu/tuned/tuned.h"

enum { SMALL = 8192 };              /* below this one thread is faster than two and a barrier */
enum { UNIT = 64 };                 /* floats: as my_elements */

static int64_t units_of(int64_t n) { return (n + UNIT - 1) / UNIT; }

/* The thread's share of the first n inputs, in units of their concatenation. */
static struct span my_units(const struct kernel_call *c, const struct kernel_thread *t, int n)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++)
        total += units_of(in_count(c, i));
    return my_rows(t, total);
}

/* What the share holds of a tensor of `count` numbers that begins at unit `first`: [lo, hi) within the tensor. */
static struct span share_of(struct span mine, int64_t first, int64_t count)
{
    const int64_t lo = mine.lo > first ? (mine.lo - first) * UNIT : 0, hi = (mine.hi - first) * UNIT;
    return (struct span){lo < count ? lo : count, hi < count ? hi : count};
}

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

static double squares_of_share(const struct kernel_call *c, struct span mine)
{
    double total = 0;
    int64_t first = 0;
    for (int i = 0; i < c->op->n_in && first < mine.hi; i++) {
        const int64_t count = in_count(c, i);
        const struct span s = share_of(mine, first, count);
        total += squares(c->in[i], s.lo, s.hi);
        first += units_of(count);
    }
    return total;
}

static void sum_squares(const struct kernel_call *c, const struct kernel_thread *t)
{
    if (c->op->n_in == 1 && in_count(c, 0) < SMALL) {
        if (t->index == 0)
            *(float *)c->out[0] = (float)squares(c->in[0], 0, in_count(c, 0));
        return;
    }
    double *parts = c->scratch;                     /* one per thread, two cache lines apart */
    parts[t->index * 16] = squares_of_share(c, my_units(c, t, c->op->n_in));
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

/* What all elements of a step share. */
struct adamw_step {
    float b1, b2, eps, keep, rate, root, factor;
};

static struct adamw_step step_of(const struct op_attrs *a, float lr, int32_t step, float factor)
{
    return (struct adamw_step){.b1 = a->beta1, .b2 = a->beta2, .eps = a->eps, .keep = 1 - lr * a->weight_decay,
                               .rate = (float)(lr / (1 - pow(a->beta1, step))),
                               .root = (float)(1 / sqrt(1 - pow(a->beta2, step))), .factor = factor};
}

/* Every element the same way, wherever it stands: one function, so that one op and many give equal bits. */
__attribute__((noinline)) static void update(struct adamw_step a, float *restrict p, float *restrict m, float *restrict v,
                                             const float *restrict grad, struct span s)
{
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float g = grad[i] * a.factor;
        m[i] = a.b1 * m[i] + (1 - a.b1) * g;
        v[i] = a.b2 * v[i] + (1 - a.b2) * g * g;
        p[i] = p[i] * a.keep - a.rate * m[i] / (sqrtf(v[i]) * a.root + a.eps);
    }
}

static void sweep(const struct kernel_call *c, const struct kernel_thread *t, int n)
{
    const float lr = *(const float *)c->in[4 * n], factor = *(const float *)c->in[4 * n + 2];
    if (isnan(factor))
        return;                     /* this step's gradient is not finite: change nothing */
    const struct adamw_step a = step_of(&c->op->attrs, lr, *(const int32_t *)c->in[4 * n + 1], factor);
    const struct span mine = my_units(c, t, n);
    int64_t first = 0;
    for (int i = 0; i < n && first < mine.hi; i++) {
        const int64_t count = in_count(c, i);
        update(a, c->out[i], c->out[n + i], c->out[2 * n + i], c->in[3 * n + i], share_of(mine, first, count));
        first += units_of(count);
    }
}

static void adamw(const struct kernel_call *c, const struct kernel_thread *t) { sweep(c, t, 1); }
static void adamw_all(const struct kernel_call *c, const struct kernel_thread *t) { sweep(c, t, c->op->attrs.parts); }

const struct kernel TUNED(optimizer)[] = {
    {.op = OP_SUM_SQUARES, .name = "simd", .run = sum_squares, .scratch = sum_scratch},
    {.op = OP_ADAMW, .name = "simd", .run = adamw},
    {.op = OP_ADAMW_ALL, .name = "sweep", .run = adamw_all},
    {.run = NULL},
};
