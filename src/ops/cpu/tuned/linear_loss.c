/* Tuned: the loss of a linear head, and the gradients of its mean, in chunks of rows: the logits of a chunk become
 * probabilities and then gradients in place, so that memory and cache hold one chunk and never all logits. Padding is left
 * out: only rows that have a target are computed, wherever they lie.
 *
 * The three products of a chunk are cut into one block per thread. Every number of the chunk's dx and of dw is summed by
 * one thread in the order of the rows, and the loss by the first thread, so results depend on the number of threads and
 * nothing else. */
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/tuned.h"

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;
enum { ROW_UNIT = 8 };
/* Rows of a chunk. The products pack w, or go over dw, once per chunk: on Neoverse-N1 with BLIS, 10000 words of width 128
 * took 640 ms of one core in chunks of 64 rows, 565 of 128, 536 of 256, 521 of 512 and of 1024. */
enum { MOST_ROWS = 1024, FEWEST_ROWS = 64, MOST_BYTES = 32 << 20 };

struct sizes {
    int64_t rows, vocab, width;
    int64_t chunk;              /* rows of a chunk at most */
};

/* Chunks of about the same size: the fewest that stay within the limits. */
static int64_t chunk_rows(int64_t rows, int64_t vocab)
{
    int64_t most = MOST_BYTES / (vocab * (int64_t)sizeof(float));
    most = most < FEWEST_ROWS ? FEWEST_ROWS : most > MOST_ROWS ? MOST_ROWS : most;
    const int64_t chunks = (rows + most - 1) / most, each = (rows + chunks - 1) / chunks;
    return (each + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
}

static struct sizes sizes_of(const struct program *p, const struct op *op)
{
    const struct shape x = p->values[op->in[0]].shape, w = p->values[op->in[1]].shape;
    struct sizes s = {.rows = shape_rows(x), .vocab = w.dim[0], .width = w.dim[1]};
    s.chunk = chunk_rows(s.rows, s.vocab);
    return s;
}

/* What the threads share. */
struct memory {
    float *logits;              /* (chunk, vocab) */
    float *losses, *factors;    /* (chunk) */
    float *x, *dx;              /* (chunk, width): rows with a target, gathered; x is scaled by `factors` later */
    int32_t *list;              /* (rows): which rows those are */
};

static size_t aligned(int64_t n) { return ((size_t)n * 4 + 63) / 64 * 64; }

static struct memory memory_of(struct sizes s, void *scratch)
{
    char *at = scratch;
    struct memory m = {.logits = (float *)at};
    m.losses = (float *)(at += aligned(s.chunk * s.vocab));
    m.factors = (float *)(at += aligned(s.chunk));
    m.x = (float *)(at += aligned(s.chunk));
    m.dx = (float *)(at += aligned(s.chunk * s.width));
    m.list = (int32_t *)(at += aligned(s.chunk * s.width));
    return m;
}

static size_t scratch_bytes(const struct program *p, const struct op *op, int threads)
{
    (void)threads;
    const struct sizes s = sizes_of(p, op);
    return aligned(s.chunk * s.vocab) + 2 * aligned(s.chunk) + 2 * aligned(s.chunk * s.width) + aligned(s.rows);
}

/* The work of one thread on one call. */
struct work {
    const struct kernel_call *c;
    const struct kernel_thread *t;
    struct sizes s;
    struct memory m;
    int64_t count;              /* rows that have a target */
    bool dense, gradients;      /* dense: all of them */
    /* the chunk */
    int64_t first, n;           /* of the rows that have a target */
    const float *x;             /* (n, width) */
};

static int64_t row_of(const struct work *w, int64_t i) { return w->dense ? w->first + i : w->m.list[w->first + i]; }
static int32_t target_of(const struct work *w, int64_t i) { return ((const int32_t *)w->c->in[2])[row_of(w, i)]; }

static void find_rows(struct work *w)
{
    const int32_t *targets = w->c->in[2];
    for (int64_t r = 0; r < w->s.rows; r++)
        w->count += targets[r] >= 0;
    w->dense = w->count == w->s.rows;
    if (w->dense)
        return;
    if (w->t->index == 0) {
        int64_t n = 0;
        for (int64_t r = 0; r < w->s.rows; r++)
            if (targets[r] >= 0)
                w->m.list[n++] = (int32_t)r;
    }
    team_barrier(w->t->team);
}

/* Takes the next rows. */
static void gather(struct work *w)
{
    const int64_t width = w->s.width;
    const float *x = w->c->in[0];
    w->n = w->count - w->first < w->s.chunk ? w->count - w->first : w->s.chunk;
    w->x = w->dense ? x + w->first * width : w->m.x;
    if (w->dense)
        return;
    const struct span mine = my_rows(w->t, w->n);
    for (int64_t i = mine.lo; i < mine.hi; i++)
        memcpy(w->m.x + i * width, x + row_of(w, i) * width, (size_t)width * sizeof *x);
    team_barrier(w->t->team);
}

/* My block of x w^T, in units of log2(e), so that softmax needs powers of two. Blocks of whole rows are the rows that this
 * thread takes next, and nobody needs to wait. */
static void find_logits(const struct work *w)
{
    const struct block b = my_block(w->t, w->n, w->s.vocab);
    const int64_t k = w->s.width;
    if (b.rows.lo < b.rows.hi && b.cols.lo < b.cols.hi)
        TUNED(gemm)(&(struct gemm){
            .m = b.rows.hi - b.rows.lo, .n = b.cols.hi - b.cols.lo, .k = k, .a = w->x + b.rows.lo * k, .a_row = k, .a_col = 1,
            .b = (const float *)w->c->in[1] + b.cols.lo * k, .ldb = k, .b_transposed = true,
            .c = w->m.logits + b.rows.lo * w->s.vocab + b.cols.lo, .ldc = w->s.vocab, .scale = LOG2_E});
    if (grid_choose(w->n, w->s.vocab, w->t->count).columns > 1)
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
    const float e = high * (s * s) + (mid * s + low);
    return bits_float((int32_t)((uint32_t)float_bits(e) + ((uint32_t)float_bits(shifted) << 23)));
}

enum { STRIDE = 16 };           /* partial sums, so that no addition waits for the one before */

/* Powers of two in place, relative to the largest; returns their sum. */
static float powers(float *x, int64_t n, float most)
{
    float sums[STRIDE] = {0}, sum = 0;
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
    const struct block b = my_block(w->t, w->n, width);
    const int64_t m = b.rows.hi - b.rows.lo, n = b.cols.hi - b.cols.lo;
    if (m == 0 || n == 0)
        return;
    float *all = w->c->out[2], *dx = w->dense ? all + w->first * width : w->m.dx;
    TUNED(gemm)(&(struct gemm){
        .m = m, .n = n, .k = vocab, .a = w->m.logits + b.rows.lo * vocab, .a_row = vocab, .a_col = 1,
        .b = (const float *)w->c->in[1] + b.cols.lo, .ldb = width, .c = dx + b.rows.lo * width + b.cols.lo, .ldc = width,
        .scale = 1});
    for (int64_t i = b.rows.lo; i < b.rows.hi; i++) {
        const float *from = dx + i * width, factor = w->m.factors[i];
        float *to = all + row_of(w, i) * width;
        INDEPENDENT
        for (int64_t j = b.cols.lo; j < b.cols.hi; j++)
            to[j] = from[j] * factor;
    }
}

/* My rows of dw += dz^T x. */
static void weight_gradient(const struct work *w)
{
    const int64_t width = w->s.width, vocab = w->s.vocab;
    const struct block b = my_block(w->t, vocab, width);
    if (b.rows.lo < b.rows.hi && b.cols.lo < b.cols.hi)
        TUNED(gemm)(&(struct gemm){
            .m = b.rows.hi - b.rows.lo, .n = b.cols.hi - b.cols.lo, .k = w->n, .a = w->m.logits + b.rows.lo, .a_row = 1,
            .a_col = vocab, .b = w->m.x + b.cols.lo, .ldb = width,
            .c = (float *)w->c->out[3] + b.rows.lo * width + b.cols.lo, .ldc = width, .scale = 1,
            .accumulate = w->first > 0});
}

/* Rows without a target have no gradient; without any target there is none at all. */
static void zero_padding(const struct work *w)
{
    const int32_t *targets = w->c->in[2];
    const struct span mine = my_rows(w->t, w->s.rows);
    for (int64_t r = mine.lo; r < mine.hi; r++)
        if (targets[r] < 0)
            memset((float *)w->c->out[2] + r * w->s.width, 0, (size_t)w->s.width * sizeof(float));
    const struct span words = my_rows(w->t, w->s.vocab);
    if (w->count == 0)
        memset((float *)w->c->out[3] + words.lo * w->s.width, 0,
               (size_t)((words.hi - words.lo) * w->s.width) * sizeof(float));
}

static void linear_loss(const struct kernel_call *c, const struct kernel_thread *t)
{
    struct work w = {.c = c, .t = t, .s = sizes_of(c->program, c->op), .gradients = c->op->attrs.parts == 4};
    w.m = memory_of(w.s, c->scratch);
    find_rows(&w);
    double sum = 0;
    for (; w.first < w.count; w.first += w.n) {
        if (w.first > 0)
            team_barrier(t->team);              /* the others have done with the chunk before */
        gather(&w);
        find_logits(&w);
        rows_loss(&w);
        team_barrier(t->team);
        if (w.gradients) {
            rows_gradient(&w);
            weight_gradient(&w);
        }
        for (int64_t i = 0; t->index == 0 && i < w.n; i++)
            sum += w.m.losses[i];
    }
    if (w.gradients && !w.dense)
        zero_padding(&w);
    if (t->index == 0) {
        *(float *)c->out[0] = (float)(sum / (double)(w.count ? w.count : 1));
        *(float *)c->out[1] = (float)w.count;
    }
}

/* CBLAS counts in int. */
static bool fits_int(const struct program *p, const struct op *op)
{
    const struct shape x = p->values[op->in[0]].shape, w = p->values[op->in[1]].shape;
    return shape_rows(x) < INT32_MAX && w.dim[0] < INT32_MAX && w.dim[1] < INT32_MAX;
}

const struct kernel TUNED(linear_loss)[] = {
    {.op = OP_LINEAR_LOSS, .name = "chunks", .run = linear_loss, .supports = fits_int, .scratch = scratch_bytes},
    {.run = NULL},
};
