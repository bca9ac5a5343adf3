/* Tuned: LayerNorm and RMSNorm, of a value or of a sum of two, split over the threads by row. The gradients of gain and
 * shift are summed per thread in scratch and then over the threads, in their order.
 *
 * Sums over a row are taken in two strands of vectors: in one, every addition would wait for the one before it. */
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/lanes.h"
#include "ops/cpu/tuned/narrow.h"

INLINE float row_sum(const float *x, int64_t n)
{
    vec a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a += load(x + i);
        b += load(x + i + LANES);
    }
    float sum = lanes_total(a + b);
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* What vectors leave of a row. No part of its callers, in each of which compilers would choose anew what becomes a multiply-add. */
static __attribute__((noinline)) float add_squares(float squares, const float *x, float mean, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return squares;
}

/* The sum of (x - mean)^2. */
INLINE float row_squares(const float *x, float mean, int64_t n)
{
    vec a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vec u = load(x + i) - mean, v = load(x + i + LANES) - mean;
        a += u * u;
        b += v * v;
    }
    const float squares = lanes_total(a + b);
    return i < n ? add_squares(squares, x + i, mean, n - i) : squares;
}

/* sum = x + r, and once more in `near`; returns the row's sum, or its sum of squares, which has the bits of row_squares. */
INLINE float add_row(float *restrict sum, float *restrict near, const float *x, const float *r, int64_t n, const bool squares)
{
    vec a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vec u = load(x + i) + load(r + i), v = load(x + i + LANES) + load(r + i + LANES);
        store(sum + i, u);
        store(sum + i + LANES, v);
        store(near + i, u);
        store(near + i + LANES, v);
        if (squares) {
            a += u * u;
            b += v * v;
        } else {
            a += u;
            b += v;
        }
    }
    const int64_t whole = i;
    float total = lanes_total(a + b);
    for (; i < n; i++) {
        near[i] = sum[i] = x[i] + r[i];
        total += squares ? 0 : near[i];
    }
    return squares && whole < n ? add_squares(total, near + whole, 0, n - whole) : total;
}

enum { TOGETHER = 8 };              /* rows of a block: their divisions and roots need not wait for each other's sums */

struct norm {
    const float *gain, *shift;      /* (n); no shift: an RMSNorm, which takes no mean off */
    float *mean, *rstd;             /* per row */
    const float *x, *r;             /* (rows, n); r NULL: the norm of x alone */
    float *y, *sum;                 /* (rows, n); y may be the memory of x or r where both are given */
    uint16_t *y_bf16;               /* not NULL: y goes there, in bf16 */
    float *near;                    /* (TOGETHER, n), for a sum: stays in the first-level cache, where the lines of `sum`,
                                       written whole, need not */
    int64_t n;
    float eps;
};

/* Mean and reciprocal deviation of a block; returns what was measured. */
INLINE const float *find_statistics(const struct norm *w, int64_t first, int64_t rows)
{
    const float *x = w->r ? w->near : w->x + first * w->n, share = 1 / (float)w->n;
    float *restrict mean = w->shift ? w->mean + first : NULL, *restrict rstd = w->rstd + first;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = (first + i) * w->n;
        const float total = w->r ? add_row(w->sum + at, w->near + i * w->n, w->x + at, w->r + at, w->n, !w->shift)
                          : w->shift ? row_sum(w->x + at, w->n) : row_squares(w->x + at, 0, w->n);
        *(w->shift ? &mean[i] : &rstd[i]) = total * share;
    }
    for (int64_t i = 0; w->shift && i < rows; i++)
        rstd[i] = row_squares(x + i * w->n, mean[i], w->n) * share;
    for (int64_t i = 0; i < rows; i++)
        rstd[i] = 1 / sqrtf(rstd[i] + w->eps);
    return x;
}

/* Some numbers of a row, from `first` on. */
INLINE void write_part(const struct norm *w, int64_t row, float *restrict y, const float *restrict x, int64_t first, int64_t n)
{
    const float *restrict gain = w->gain + first, *restrict shift = w->shift ? w->shift + first : NULL;
    const float mean = shift ? w->mean[row] : 0, rstd = w->rstd[row];
    for (int64_t i = 0; i < n; i++)
        y[i] = shift ? (x[i] - mean) * rstd * gain[i] + shift[i] : x[i] * rstd * gain[i];
}

INLINE void write_row(const struct norm *w, int64_t row, const float *x)
{
    float piece[PIECE];
    if (!w->y_bf16)
        write_part(w, row, w->y + row * w->n, x, 0, w->n);
    for (int64_t i = 0; w->y_bf16 && i < w->n; i += PIECE) {
        const int64_t n = least(PIECE, w->n - i);
        write_part(w, row, piece, x + i, i, n);
        narrow_piece(w->y_bf16 + row * w->n + i, piece, n);
    }
}

static int64_t near_stride(int64_t n) { return (TOGETHER * n + 31) / 32 * 32; }        /* floats per thread */

static size_t near_scratch(const struct program *p, const struct op *op, int threads)
{
    return (size_t)near_stride(shape_last(p->values[op->in[0]].shape)) * sizeof(float) * (size_t)threads;
}

/* The rows of a thread. Inline, because r and shift are constants NULL or not in every caller. */
static inline __attribute__((always_inline)) void norm_rows(const struct kernel_call *c, const struct kernel_thread *t,
                                                            struct norm w)
{
    const struct span rows = my_rows(t, shape_rows(call_in(c, 0)->shape));
    w.x = c->in[0];
    w.y = c->out[0];
    w.y_bf16 = gives_bf16(c, 0) ? c->out[0] : NULL;
    w.n = shape_last(call_in(c, 0)->shape);
    w.eps = c->op->attrs.eps;
    w.near = w.r ? call_scratch(c, t) : NULL;
    for (int64_t first = rows.lo; first < rows.hi; first += TOGETHER) {
        const int64_t count = rows.hi - first < TOGETHER ? rows.hi - first : TOGETHER;
        const float *x = find_statistics(&w, first, count);
        for (int64_t i = 0; i < count; i++)
            write_row(&w, first + i, x + i * w.n);
    }
}

static void layernorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    norm_rows(c, t, (struct norm){.gain = c->in[1], .shift = c->in[2], .mean = c->out[1], .rstd = c->out[2]});
}

static void rmsnorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    norm_rows(c, t, (struct norm){.gain = c->in[1], .rstd = c->out[1]});
}

static void add_layernorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    norm_rows(c, t, (struct norm){.gain = c->in[2], .shift = c->in[3], .mean = c->out[2], .rstd = c->out[3], .r = c->in[1],
                                  .sum = c->out[1]});
}

static void add_rmsnorm(const struct kernel_call *c, const struct kernel_thread *t)
{
    norm_rows(c, t, (struct norm){.gain = c->in[2], .rstd = c->out[2], .r = c->in[1], .sum = c->out[1]});
}

static struct share norm_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t rows = shape_rows(call_in(c, 0)->shape);
    const bool sum = c->op->kind == OP_ADD_LAYERNORM || c->op->kind == OP_ADD_RMSNORM;
    return share_rows(my_rows(t, rows), rows, sum ? FIRST_TWO_IN : FIRST_IN);
}

/* A row of a norm's gradient. */
struct grad_row {
    float *dx;                      /* may be the memory of dy */
    const float *dy, *x, *gain;
    float mean, rstd;               /* mean 0 for an RMSNorm */
    int64_t n;
};

/* The sums of g and g z, with g = dy gain and z the normalised x. */
static inline void grad_sums(const struct grad_row *w, float *sum_g, float *sum_gz)
{
    vec g0 = {0}, g1 = {0}, z0 = {0}, z1 = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= w->n; i += 2 * LANES) {
        const vec a = load(w->dy + i) * load(w->gain + i), b = load(w->dy + i + LANES) * load(w->gain + i + LANES);
        g0 += a;
        g1 += b;
        z0 += a * ((load(w->x + i) - w->mean) * w->rstd);
        z1 += b * ((load(w->x + i + LANES) - w->mean) * w->rstd);
    }
    *sum_g = lanes_total(g0 + g1);
    *sum_gz = lanes_total(z0 + z1);
    for (; i < w->n; i++) {
        const float g = w->dy[i] * w->gain[i];
        *sum_g += g;
        *sum_gz += g * ((w->x[i] - w->mean) * w->rstd);
    }
}

/* dx = rstd (g - mean(g) - z mean(g z)); an RMSNorm has no mean(g). Adds to the sums of gain and shift. Inline, because `centred` and
 * whether there is `more` are constants in every caller: else compilers load all lanes of a NULL under an empty mask. */
static inline __attribute__((always_inline)) void row_grad(const struct grad_row *w, bool centred, const float *more,
                                                           float *restrict d_gain, float *restrict d_shift)
{
    float *dx = w->dx, sum_g, sum_gz;
    const float *dy = w->dy, *restrict x = w->x, *restrict gain = w->gain;
    const float mean = w->mean, rstd = w->rstd;
    grad_sums(w, &sum_g, &sum_gz);
    const float share = 1 / (float)w->n, mean_g = centred ? sum_g * share : 0, mean_gz = sum_gz * share;
    INDEPENDENT
    for (int64_t i = 0; i < w->n; i++) {
        const float z = (x[i] - mean) * rstd, d = dy[i];
        d_gain[i] += d * z;
        if (centred)
            d_shift[i] += d;
        const float own = rstd * (d * gain[i] - mean_g - z * mean_gz);
        dx[i] = more ? own + more[i] : own;
    }
}

/* Adds up the threads' sums, a span of columns each. */
static void combine(float *out, const float *parts, int64_t stride, int64_t n, const struct kernel_thread *t)
{
    const struct span s = my_columns(t, n);
    for (int64_t i = s.lo; i < s.hi; i++) {
        float sum = 0;
        for (int k = 0; k < t->count; k++)
            sum += parts[k * stride + i];
        out[i] = sum;
    }
}

/* Floats per thread. The gap: a thread goes over its own again and again, and what its core fetches ahead would be the next thread's (two
 * threads took 316 ns for a row of 128 instead of 154). */
enum { GRAD_GAP = 1024 };
static size_t grad_stride(int64_t n) { return ((size_t)(2 * n) + 31) / 32 * 32 + GRAD_GAP; }

static size_t grad_scratch(const struct program *p, const struct op *op, int threads)
{
    return grad_stride(shape_last(p->values[op->in[1]].shape)) * sizeof(float) * (size_t)threads;
}

/* `more` is added to dx. */
static void norm_grad(const struct kernel_call *c, const struct kernel_thread *t, bool centred)
{
    const struct shape shape = call_in(c, 1)->shape;
    const int64_t n = shape_last(shape), stride = (int64_t)grad_stride(n);
    const float *mean = centred ? c->in[3] : NULL, *rstd = c->in[centred ? 4 : 3];
    const float *more = c->op->n_in > (centred ? 5 : 4) ? c->in[centred ? 5 : 4] : NULL;
    float *parts = c->scratch, *d_gain = parts + t->index * stride, *d_shift = d_gain + n;
    memset(d_gain, 0, (size_t)(2 * n) * sizeof *d_gain);
    const struct span rows = my_rows(t, shape_rows(shape));
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const struct grad_row w = {
            .dx = (float *)c->out[0] + r * n, .dy = (const float *)c->in[0] + r * n, .x = (const float *)c->in[1] + r * n,
            .gain = c->in[2], .mean = centred ? mean[r] : 0, .rstd = rstd[r], .n = n};
        if (more)
            row_grad(&w, centred, more + r * n, d_gain, d_shift);
        else
            row_grad(&w, centred, NULL, d_gain, d_shift);
    }
}

/* Gain and shift. */
static void finish_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = shape_last(call_in(c, 1)->shape), stride = (int64_t)grad_stride(n);
    const float *parts = c->scratch;
    combine(c->out[1], parts, stride, n, t);
    if (c->op->kind == OP_LAYERNORM_GRAD)
        combine(c->out[2], parts + n, stride, n, t);
}

/* All but the gain. */
static struct share grad_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t rows = shape_rows(call_in(c, 1)->shape);
    return (struct share){my_rows(t, rows), rows, ~4u, 1};
}

static void layernorm_grad(const struct kernel_call *c, const struct kernel_thread *t) { norm_grad(c, t, true); }
static void rmsnorm_grad(const struct kernel_call *c, const struct kernel_thread *t) { norm_grad(c, t, false); }

const struct kernel TUNED(norm)[] = {
    {.op = OP_LAYERNORM, .name = "simd", .run = layernorm, .stores = true, .share = norm_share},
    {.op = OP_LAYERNORM_GRAD, .name = "simd", .run = layernorm_grad, .finish = finish_grad, .summed = 6, .scratch = grad_scratch, .share = grad_share},
    {.op = OP_RMSNORM, .name = "simd", .run = rmsnorm, .stores = true, .share = norm_share},
    {.op = OP_ADD_LAYERNORM, .name = "simd", .run = add_layernorm, .stores = true, .scratch = near_scratch, .share = norm_share},
    {.op = OP_ADD_RMSNORM, .name = "simd", .run = add_rmsnorm, .stores = true, .scratch = near_scratch, .share = norm_share},
    {.op = OP_RMSNORM_GRAD, .name = "simd", .run = rmsnorm_grad, .finish = finish_grad, .summed = 2, .scratch = grad_scratch, .share = grad_share},
    {.run = NULL},
};
