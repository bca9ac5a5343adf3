/* Tuned: the loss of a linear head, and the gradients of its mean, in chunks of rows: the logits of a chunk become
 * probabilities and then gradients in place, so that memory and cache hold one chunk and never all logits. Padding is left
 * out: only rows that have a target are computed, wherever they lie.
 *
 * A chunk goes over panels (loss_panels.h); or through three products and the maximum of its rows, where w is large, the
 * products shall be BLAS or bf16, or logits are such that powers relative to the target's would overflow or are NaN.
 *
 * Every thread has its rows of the logits and of dx, or a block of them, and its block of dw. Every number is summed by one
 * thread in the order of the words or rows, and the loss by the first thread, so results depend on the number of threads and
 * nothing else. */
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/grid.h"
#include "ops/cpu/tuned/loss_panels.h"

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;
enum { ROW_UNIT = 8 };
/* Rows of a chunk. The products pack w, or go over dw, once per chunk: on Neoverse-N1, 2048 rows, 10000 words and width 128
 * took 574 ms of one core with BLIS in chunks of 128 rows, 551 of 256, 533 of 512 and 530 of 1024; by panels 256 and 512
 * were alike. */
enum { MOST_ROWS = 512, FEWEST_ROWS = 64, MOST_BYTES = 32 << 20 };

/* By panels where w is small enough to be held twice more and rows are enough to make up for packing it. */
enum { PANELS_WIDTH = 512, PANELS_BYTES = 32 << 20, PANELS_ROWS = 16 };

struct sizes {
    int64_t rows, vocab, width;
    int64_t chunk;              /* rows of a chunk at most */
    bool panels;                /* may be taken by panels */
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
    s.panels = s.rows >= PANELS_ROWS && s.width <= PANELS_WIDTH && s.vocab * s.width <= PANELS_BYTES / (int64_t)sizeof(float) &&
               !op->attrs.bf16;
    return s;
}

/* What the threads share. */
struct memory {
    float *logits;              /* (chunk, vocab) */
    float *losses, *factors;    /* (chunk) */
    float *x, *dx;              /* (chunk, width): rows with a target, gathered; x is scaled by `factors` later */
    int32_t *list;              /* (rows): which rows those are */
    struct panels panels;
};

/* Takes n floats of the scratch memory, whole cache lines. */
static void *part(char **at, int64_t n)
{
    void *is = *at;
    *at += ((size_t)n * 4 + 63) / 64 * 64;
    return is;
}

static struct panels panels_of(struct sizes s, char **at)
{
    struct panels p = {.vocab = s.vocab, .width = s.width, .words = up_to(s.vocab, PANEL), .rows = s.chunk};
    if (!s.panels)
        return p;
    p.w_z = part(at, panels_w_size(&p));
    p.w_dx = part(at, panels_w_size(&p));
    p.x = part(at, panels_x_size(&p));
    p.x_dw = part(at, panels_x_size(&p));
    p.block = part(at, s.chunk * PANEL_WORDS);
    p.base = part(at, s.chunk);
    p.sums = part(at, s.chunk * LANES);
    return p;
}

/* Carves it; returns its end. Panels lie where logits do: only one of them is in use. */
static char *memory_of(struct sizes s, void *scratch, struct memory *m)
{
    char *at = scratch;
    m->panels = panels_of(s, &at);
    const int64_t logits = s.chunk * s.vocab, z = s.panels ? panels_z_size(&m->panels) : 0;
    m->logits = m->panels.z = part(&at, z > logits ? z : logits);
    m->losses = part(&at, s.chunk);
    m->factors = part(&at, s.chunk);
    m->x = part(&at, s.chunk * s.width);
    m->dx = part(&at, s.chunk * s.width);
    m->list = part(&at, s.rows);
    return at;
}

static size_t scratch_bytes(const struct program *p, const struct op *op, int threads)
{
    (void)threads;
    struct memory m;
    return (size_t)((uintptr_t)memory_of(sizes_of(p, op), NULL, &m));
}

/* The work of one thread on one call. */
struct work {
    const struct kernel_call *c;
    const struct kernel_thread *t;
    struct sizes s;
    struct memory m;
    int64_t count;              /* rows that have a target */
    bool dense, gradients;      /* dense: all of them */
    bool panels;                /* the way that is taken */
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
    const struct block b = my_block(w->t, w->n, w->s.vocab, w->s.width);
    const int64_t k = w->s.width;
    if (b.rows.lo < b.rows.hi && b.cols.lo < b.cols.hi)
        TUNED(gemm)(&(struct gemm){
            .m = b.rows.hi - b.rows.lo, .n = b.cols.hi - b.cols.lo, .k = k, .a = w->x + b.rows.lo * k, .a_row = k, .a_col = 1,
            .b = (const float *)w->c->in[1] + b.cols.lo * k, .ldb = k, .b_transposed = true,
            .c = w->m.logits + b.rows.lo * w->s.vocab + b.cols.lo, .ldc = w->s.vocab, .scale = LOG2_E,
            .kernel = (enum gemm_kernel)w->c->variant, .bf16 = w->c->op->attrs.bf16});
    if (grid_choose(w->n, w->s.vocab, w->s.width, w->t->count).columns > 1)
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
    const struct block b = my_block(w->t, w->n, width, vocab);
    const int64_t m = b.rows.hi - b.rows.lo, n = b.cols.hi - b.cols.lo;
    if (m == 0 || n == 0)
        return;
    float *whole = w->c->out[2], *dx = w->dense ? whole + w->first * width : w->m.dx;
    TUNED(gemm)(&(struct gemm){
        .m = m, .n = n, .k = vocab, .a = w->m.logits + b.rows.lo * vocab, .a_row = vocab, .a_col = 1,
        .b = (const float *)w->c->in[1] + b.cols.lo, .ldb = width, .c = dx + b.rows.lo * width + b.cols.lo, .ldc = width,
        .scale = 1, .kernel = (enum gemm_kernel)w->c->variant, .bf16 = w->c->op->attrs.bf16});
    for (int64_t i = b.rows.lo; i < b.rows.hi; i++) {
        const float *from = dx + i * width, factor = w->m.factors[i];
        float *to = whole + row_of(w, i) * width;
        INDEPENDENT
        for (int64_t j = b.cols.lo; j < b.cols.hi; j++)
            to[j] = from[j] * factor;
    }
}

/* My rows of dw += dz^T x. */
static void weight_gradient(const struct work *w)
{
    const int64_t width = w->s.width, vocab = w->s.vocab;
    const struct block b = my_block(w->t, vocab, width, w->n);
    if (b.rows.lo < b.rows.hi && b.cols.lo < b.cols.hi)
        TUNED(gemm)(&(struct gemm){
            .m = b.rows.hi - b.rows.lo, .n = b.cols.hi - b.cols.lo, .k = w->n, .a = w->m.logits + b.rows.lo, .a_row = 1,
            .a_col = vocab, .b = w->m.x + b.cols.lo, .ldb = width,
            .c = (float *)w->c->out[3] + b.rows.lo * width + b.cols.lo, .ldc = width, .scale = 1,
            .accumulate = w->first > 0, .kernel = (enum gemm_kernel)w->c->variant, .bf16 = w->c->op->attrs.bf16});
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

/* ---- by panels ---- */

static const float MOST_LOSS = 40;      /* up to here all sums are far from overflow */

static float dot(const float *x, const float *y, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* What a row's powers and their sum give: its loss, its gradients but dw. */
static void finish_row(const struct work *w, int64_t i, float *dx)
{
    const struct panels *p = &w->m.panels;
    const int64_t target = target_of(w, i), width = w->s.width;
    const float sum = lanes_sum(load(p->sums + i * LANES)), factor = 1 / (sum * (float)w->count);
    const float *word = (const float *)w->c->in[1] + target * width;
    float *z = panels_z(p, target, i) + target % PANEL, *to = (float *)w->c->out[2] + row_of(w, i) * width;
    w->m.losses[i] = log2f(sum / *z) * LN_2;
    if (!w->gradients)
        return;
    *z -= sum;
    panels_scale_row(p, i, w->x + i * width, factor);
    INDEPENDENT
    for (int64_t j = 0; j < width; j++)
        to[j] = (dx[j] - sum * word[j]) * factor;
}

/* My rows of the chunk: all but dw. */
static void panels_chunk(const struct work *w)
{
    const struct panels *p = &w->m.panels;
    const struct span mine = team_span(w->n, ROW_UNIT, w->t->index, w->t->count);
    const struct span tiles = {mine.lo, up_to(mine.hi, TILE_ROWS)};
    const int64_t width = w->s.width;
    if (mine.lo == mine.hi)
        return;
    for (int64_t i = tiles.lo; i < tiles.hi; i++)
        p->base[i] = i >= w->n ? 0 :
            LOG2_E * dot(w->x + i * width, (const float *)w->c->in[1] + target_of(w, i) * width, width);
    panels_rows(p, tiles, w->x, w->n, LOG2_E, w->gradients ? w->m.dx : NULL);
    for (int64_t i = tiles.lo; i < tiles.hi; i++)
        if (i < w->n)
            finish_row(w, i, w->m.dx + i * width);
        else
            panels_scale_row(p, i, NULL, 0);
}

/* Is no loss of the chunk NaN or so large that sums may have overflown? */
static bool in_range(const struct work *w)
{
    bool is = true;
    for (int64_t i = 0; i < w->n; i++)
        is = is && w->m.losses[i] < MOST_LOSS;
    return is;
}

/* ---- both ---- */

/* The chunk by panels, or if they cannot hold it as well as all that come: returns false. */
static bool run_panels(struct work *w)
{
    const struct span words = team_span(w->m.panels.words, PANEL, w->t->index, w->t->count);
    if (w->first == 0) {
        panels_take_words(&w->m.panels, w->c->in[1], words);
        team_barrier(w->t->team);
    }
    panels_chunk(w);
    team_barrier(w->t->team);
    w->panels = in_range(w);
    if (!w->panels)
        team_barrier(w->t->team);               /* the others have seen the losses, too */
    else if (w->gradients)
        panels_words_gradient(&w->m.panels, words, w->n, w->c->out[3], w->first > 0);
    return w->panels;
}

static void run_products(const struct work *w)
{
    find_logits(w);
    rows_loss(w);
    team_barrier(w->t->team);
    if (w->gradients) {
        rows_gradient(w);
        weight_gradient(w);
    }
}

static void linear_loss(const struct kernel_call *c, const struct kernel_thread *t)
{
    struct work w = {.c = c, .t = t, .s = sizes_of(c->program, c->op), .gradients = c->op->attrs.parts == 4};
    memory_of(w.s, c->scratch, &w.m);
    w.panels = w.s.panels && c->variant != GEMM_BLAS;
    find_rows(&w);
    double sum = 0;
    for (; w.first < w.count; w.first += w.n) {
        if (w.first > 0)
            team_barrier(t->team);              /* the others have done with the chunk before */
        gather(&w);
        if (!w.panels || !run_panels(&w))
            run_products(&w);
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

const struct kernel TUNED(linear_loss)[] = {
    {.op = OP_LINEAR_LOSS, .name = "chunks", .run = linear_loss, .supports = gemm_fits, .scratch = scratch_bytes,
     .variants = gemm_variants},
    {.run = NULL},
};
