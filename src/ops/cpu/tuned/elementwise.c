/* Tuned: element-wise ops, split over the threads by element. An output may be the same memory as an input: every
 * element is read before it is written, which INDEPENDENT tells the compiler. */
#include <string.h>

#include "core/rng.h"
#include "ops/cpu/tuned/narrow.h"
#include "ops/cpu/tuned/tuned.h"

static void add(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *a = c->in[0], *b = c->in[1];
    float *y = c->out[0];
    const int64_t period = in_count(c, 1);
    const struct span s = my_elements(t, in_count(c, 0));
    for (int64_t i = s.lo; i < s.hi;) {             /* run by run of the repeated operand */
        const int64_t at = i % period, run = period - at < s.hi - i ? period - at : s.hi - i;
        INDEPENDENT
        for (int64_t j = 0; j < run; j++)
            y[i + j] = a[i + j] + b[at + j];
        i += run;
    }
}

/* Number by number in the order of the inputs, so that the sum has the bits of the reference. */
static void mean(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct span s = my_elements(t, in_count(c, 0));
    const float *a = c->in[0], *b = c->in[1];
    float *y = c->out[0];
    const int n = c->op->n_in;
    if (n == 2 || n == 3) {
        const float *d = c->in[n - 1];
        INDEPENDENT
        for (int64_t i = s.lo; i < s.hi; i++)
            y[i] = n == 2 ? (a[i] + b[i]) / 2 : (a[i] + b[i] + d[i]) / 3;
        return;
    }
    for (int64_t i = s.lo; i < s.hi; i++) {
        float sum = a[i];
        for (int k = 1; k < n; k++)
            sum += ((const float *)c->in[k])[i];
        y[i] = sum / (float)n;
    }
}

static void scale(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0], by = c->op->attrs.scale;
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++)
        y[i] = by * x[i];
}

static void mul(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *a = c->in[0], *b = c->in[1];
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++)
        y[i] = a[i] * b[i];
}

/* 0.5 (1 + tanh(u)) is sigmoid(2u), with u the argument of the tanh form of GELU. */
static const float GELU_2A = 1.5957691216057308f, GELU_B = 0.044715f;

static void gelu(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float v = x[i];
        y[i] = v * fast_sigmoid(GELU_2A * (v + GELU_B * v * v * v));
    }
}

static void gelu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0], *dy = c->in[1];
    float *dx = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float v = x[i], g = fast_sigmoid(GELU_2A * (v + GELU_B * v * v * v));
        dx[i] = dy[i] * (g + v * g * (1 - g) * GELU_2A * (1 + 3 * GELU_B * v * v));
    }
}

static void silu(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++)
        y[i] = x[i] * fast_sigmoid(x[i]);
}

static void silu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0], *dy = c->in[1];
    float *dx = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float g = fast_sigmoid(x[i]);
        dx[i] = dy[i] * g * (1 + x[i] * (1 - g));
    }
}

/* Spans start at multiples of 64: where `first` is a multiple of 4, a thread owns whole blocks of 4 random numbers. */
static void dropout(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    const float *x = c->in[0], prob = a->prob, scale = 1 / (1 - prob);
    const uint64_t stream = a->stream << 32 | (uint32_t)*(const int32_t *)c->in[1];
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    for (int64_t i = s.lo; i < s.hi;) {
        const uint64_t at = (uint64_t)(a->first + i);
        const struct rng_block b = rng_block(a->seed, stream, at / 4);
        for (uint64_t j = at % 4; j < 4 && i < s.hi; j++, i++)
            y[i] = rng_unit(b.x[j]) < prob ? 0 : x[i] * scale;
    }
}

static void fill(const struct kernel_call *c, const struct kernel_thread *t)
{
    float *y = c->out[0];
    const struct span s = my_elements(t, out_count(c, 0));
    for (int64_t i = s.lo; i < s.hi; i++)
        y[i] = c->op->attrs.value;
}

static void accumulate(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[1], weight = c->op->n_in > 2 ? *(const float *)c->in[2] : 1;
    const bool first = c->op->n_in > 3 && *(const int32_t *)c->in[3] == 1;
    float *acc = c->out[0];
    const struct span s = my_elements(t, in_count(c, 1));
    if (first) {
        INDEPENDENT
        for (int64_t i = s.lo; i < s.hi; i++)
            acc[i] = 0 + x[i] * weight;         /* as if acc had been zero: -0 becomes 0 */
    } else {
        INDEPENDENT
        for (int64_t i = s.lo; i < s.hi; i++)
            acc[i] += x[i] * weight;
    }
}

static void divide(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *x = c->in[0], by = *(const float *)c->in[1];
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++)
        y[i] = x[i] / by;
}

static void zero(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct span s = my_elements(t, out_count(c, 0));
    memset((float *)c->out[0] + s.lo, 0, (size_t)(s.hi - s.lo) * sizeof(float));
}

/* To bf16. The reference widens and narrows whole values, in scratch of their size. */
static bool narrows(const struct program *p, const struct op *op) { return p->values[op->in[0]].dtype == F32 && p->values[op->out[0]].dtype == BF16; }

static void cast(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct span s = my_elements(t, in_count(c, 0));
    narrow_piece((uint16_t *)c->out[0] + s.lo, (const float *)c->in[0] + s.lo, s.hi - s.lo);
}

/* Of two values of the same size. */
static struct share elements(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = in_count(c, 0);
    return share_rows(my_elements(t, n), n, in_count(c, 1) == n ? FIRST_TWO_IN : FIRST_IN);
}

const struct kernel TUNED(elementwise)[] = {
    {.op = OP_ADD, .name = "simd", .run = add, .share = elements},
    {.op = OP_MEAN, .name = "simd", .run = mean},
    {.op = OP_SCALE, .name = "simd", .run = scale},
    {.op = OP_MUL, .name = "simd", .run = mul, .share = elements},
    {.op = OP_GELU, .name = "simd", .run = gelu},
    {.op = OP_GELU_GRAD, .name = "simd", .run = gelu_grad},
    {.op = OP_SILU, .name = "simd", .run = silu},
    {.op = OP_SILU_GRAD, .name = "simd", .run = silu_grad},
    {.op = OP_DROPOUT, .name = "simd", .run = dropout},
    {.op = OP_FILL, .name = "simd", .run = fill},
    {.op = OP_ACCUMULATE, .name = "simd", .run = accumulate},
    {.op = OP_DIVIDE, .name = "simd", .run = divide},
    {.op = OP_ZERO, .name = "simd", .run = zero},
    {.op = OP_CAST, .name = "simd", .run = cast, .stores = true, .supports = narrows},
    {.run = NULL},
};
