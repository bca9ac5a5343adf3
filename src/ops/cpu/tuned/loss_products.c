/* Tuned: a chunk of the loss of a linear head through matrix products: logits, their softmax and gradient in place, dx and dw. */
#include <math.h>

#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/linear_loss.h"

/* My block of x w^T, in units of log2(e), so that softmax needs powers of two. Blocks of whole rows are the rows that this
 * thread takes next, and nobody needs to wait. */
static void find_logits(const struct work *w)
{
    const struct blocks grid = grid_choose(w->n, w->s.vocab, w->s.width, true, w->t->count);
    const struct block b = block_of(grid, w->t->index, w->n, w->s.vocab);
    const int64_t k = w->s.width;
    struct gemm g = {.m = b.rows.hi - b.rows.lo, .n = b.cols.hi - b.cols.lo, .k = k, .a = w->x + b.rows.lo * k, .a_row = k, .a_col = 1,
                     .ldb = k, .b_transposed = true, .c = w->m.logits + b.rows.lo * w->s.vocab + b.cols.lo, .ldc = w->s.vocab, .scale = LOG2_E,
                     .kernel = (enum gemm_kernel)w->c->variant, .bf16 = w->c->op->attrs.round == ROUND_BF16};
    gemm_take_b(&g, w->c, 1, b.cols.lo * k);
    if (g.m > 0 && g.n > 0)
        TUNED(gemm)(&g);
    if (grid.columns > 1)
        team_barrier(w->t->team);
}

/* Floats as integers of the same order, but for NaN: above all others or below. */
static inline int32_t ordered(int32_t bits) { return bits ^ (bits >> 31 & INT32_MAX); }

/* The largest of a row; NaN where there is any. Comparing integers is half the work of comparing floats. */
static float row_max(const float *x, int64_t n)
{
    int32_t most = INT32_MIN, size = 0;
#pragma omp simd reduction(max : most, size)
    for (int64_t i = 0; i < n; i++) {
        const int32_t bits = float_bits(x[i]), order = ordered(bits), absolute = bits & INT32_MAX;
        most = order > most ? order : most;
        size = absolute > size ? absolute : size;
    }
    return bits_float(size > 0x7f800000 ? size : ordered(most));
}

/* 2^x for x <= 0, within 3 ulp; 2^-126 below -126. x = n + r, a polynomial for 2^r, n added to the exponent. It must not
 * meet a NaN: its bits may be above or below those of the limit. */
static inline float power_of_two(float x)
{
    const uint32_t bits = (uint32_t)float_bits(x), limit = 0xc2fc0000;      /* of negative numbers larger bits are lower */
    const float round = 12582912.0f, d = bits_float((int32_t)(bits < limit ? bits : limit)), shifted = d + round;
    const float r = d - (shifted - round), s = r * r;
    const float low = 6.931472028550421e-1f * r + 1.0f, mid = 5.550332471162809e-2f * r + 2.402264791363012e-1f;
    const float high = 1.535336188319500e-4f * s + (1.339887440266574e-3f * r + 9.618437357674640e-3f);
    const float e = (high * s + mid) * s + low;
    return bits_float((int32_t)((uint32_t)float_bits(e) + ((uint32_t)float_bits(shifted) << 23)));
}

/* Powers of two in place, relative to the largest; returns their sum. */
static float powers(float *x, int64_t n, float most)
{
    float sums[STRIDE] = {0}, sum = 0;          /* partial sums, so that no addition waits for the one before */
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        for (int k = 0; k < STRIDE; k++) {
            x[i + k] = power_of_two(x[i + k] - most);
            sums[k] += x[i + k];
        }
    for (; i < n; i++) {
        x[i] = power_of_two(x[i] - most);
        sum += x[i];
    }
    for (int k = 0; k < STRIDE; k++)
        sum += sums[k];
    return sum;
}

/* dw takes a row's factor from x, dx at the end: both are narrower than the logits. */
static void scale_row(const struct work *w, int64_t i, float factor)
{
    const float *from = w->x + i * w->s.width;
    float *to = w->m.x + i * w->s.width;
    w->m.factors[i] = factor;
    INDEPENDENT
    for (int64_t j = 0; j < w->s.width; j++)
        to[j] = from[j] * factor;
}

/* The loss of my rows, and in place of their logits its gradient, (softmax - onehot) / count, but for a factor per row. */
static void rows_loss(const struct work *w)
{
    const int64_t n = w->s.vocab;
    const struct span mine = team_span(w->n, ROW_UNIT, w->t->index, w->t->count);
    for (int64_t i = mine.lo; i < mine.hi; i++) {
        float *z = w->m.logits + i * n;
        const float most = row_max(z, n), at_target = z[target_of(w, i)];
        const float sum = isfinite(most) ? powers(z, n, most) : NAN;
        w->m.losses[i] = (most - at_target + log2f(sum)) * LN_2;
        if (!w->gradients)
            continue;
        z[target_of(w, i)] -= sum;
        scale_row(w, i, 1 / (sum * (float)w->count));
    }
}

/* My block of dx = dz w, from where it goes to its rows. */
static void rows_gradient(const struct work *w)
{
    const int64_t width = w->s.width, vocab = w->s.vocab;
    const struct block b = block_of(grid_choose(w->n, width, vocab, false, w->t->count), w->t->index, w->n, width);
    const int64_t m = b.rows.hi - b.rows.lo, n = b.cols.hi - b.cols.lo;
    if (m == 0 || n == 0)
        return;
    float *whole = w->c->out[2], *dx = w->dense ? whole + w->first * width : w->m.dx;
    struct gemm g = {.m = m, .n = n, .k = vocab, .a = w->m.logits + b.rows.lo * vocab, .a_row = vocab, .a_col = 1, .ldb = width,
                     .c = dx + b.rows.lo * width + b.cols.lo, .ldc = width, .scale = 1, .kernel = (enum gemm_kernel)w->c->variant,
                     .bf16 = w->c->op->attrs.round == ROUND_BF16};
    gemm_take_b(&g, w->c, 1, b.cols.lo);
    TUNED(gemm)(&g);
    for (int64_t i = b.rows.lo; i < b.rows.hi; i++) {
        const float *from = dx + i * width, factor = w->m.factors[i];
        float *to = whole + row_of(w, i) * width;
        INDEPENDENT
        for (int64_t j = b.cols.lo; j < b.cols.hi; j++)
            to[j] = from[j] * factor;
    }
}

/* My block of dw += dz^T x. */
static void weight_gradient(const struct work *w)
{
    const int64_t width = w->s.width, vocab = w->s.vocab;
    const struct block b = block_of(grid_shortest(vocab, width, w->t->count), w->t->index, vocab, width);
    if (b.rows.lo < b.rows.hi && b.cols.lo < b.cols.hi)
        TUNED(gemm)(&(struct gemm){
            .m = b.rows.hi - b.rows.lo, .n = b.cols.hi - b.cols.lo, .k = w->n, .a = w->m.logits + b.rows.lo, .a_row = 1,
            .a_col = vocab, .b = w->m.x + b.cols.lo, .ldb = width,
            .c = (float *)w->c->out[3] + b.rows.lo * width + b.cols.lo, .ldc = width, .scale = 1,
            .accumulate = w->first > 0, .kernel = (enum gemm_kernel)w->c->variant, .bf16 = w->c->op->attrs.round == ROUND_BF16});
}

void TUNED(loss_products)(const struct work *w)
{
    find_logits(w);
    rows_loss(w);
    team_barrier(w->t->team);
    if (w->gradients) {
        rows_gradient(w);
        weight_gradient(w);
    }
}
