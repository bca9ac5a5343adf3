/* Tuned: the loss of a linear head, and the gradients of its mean, in chunks of rows: the logits of a chunk become
 * probabilities and then gradients in place, so that memory and cache hold one chunk and never all logits. Padding is left
 * out: only rows that have a target are computed, wherever they lie.
 *
 * A chunk goes over panels (loss_panels.c); or through products (loss_products.c), where w is large, the
 * products shall be BLAS or bf16, or logits are such that powers relative to the target's would overflow or are NaN. Where AMX multiplies
 * bf16, all rows go through its tiles at once (pairs/loss.c), and chunks are for such logits alone.
 *
 * Every thread has its rows of the logits and of dx, or a block of them, and its block of dw. Every number is summed by one
 * thread in the order of the words or rows, and the loss by the first thread, so results depend on the number of threads and
 * nothing else. */
#include <math.h>
#include <string.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/pairs/loss.h"
#include "ops/cpu/tuned/linear_loss.h"

/* Rows of a chunk. The products pack w, or go over dw, once per chunk: on Neoverse-N1, 2048 rows, 10000 words and width 128
 * took 574 ms of one core with BLIS in chunks of 128 rows, 551 of 256, 533 of 512 and 530 of 1024; by panels 256 and 512
 * were alike. */
enum { WORD_UNIT = 16 };        /* threads divide words in units of these */
enum { MOST_ROWS = 512, FEWEST_ROWS = 64, MOST_BYTES = 32 << 20 };

/* By panels where w is small enough to be held twice more and rows are enough to make up for packing it. */
enum { PANELS_BYTES = 32 << 20, PANELS_ROWS = 16 };

/* Chunks of about the same size: the fewest that stay within the limits. */
static int64_t chunk_rows(int64_t rows, int64_t vocab)
{
    int64_t most = MOST_BYTES / (vocab * (int64_t)sizeof(float));
    most = most < FEWEST_ROWS ? FEWEST_ROWS : most > MOST_ROWS ? MOST_ROWS : most;
    const int64_t chunks = (rows + most - 1) / most, each = (rows + chunks - 1) / chunks;
    return (each + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
}

/* HONE_AMX: this is the variant for CPUs that may have it. */
#if defined(HONE_AMX)
static bool by_tiles(const struct op *op) { return op->attrs.round == ROUND_BF16 && cpu_bf16_way() == BF16_AMX; }
static size_t tile_bytes(struct sizes s, int64_t share) { return pairs_loss_bytes(s.width, share, s.rows > s.vocab ? s.rows : s.vocab); }
#else
static bool by_tiles(const struct op *op) { return (void)op, false; }
static size_t tile_bytes(struct sizes s, int64_t share) { return (void)s, (void)share, 0; }
#endif

static struct sizes sizes_of(const struct program *p, const struct op *op)
{
    const struct shape x = p->values[op->in[0]].shape, w = p->values[op->in[1]].shape;
    struct sizes s = {.rows = shape_rows(x), .vocab = w.dim[0], .width = w.dim[1]};
    s.tiles = by_tiles(op);
    s.chunk = s.tiles ? least(FEWEST_ROWS, up_to(s.rows, ROW_UNIT)) : chunk_rows(s.rows, s.vocab);
    s.panels = s.rows >= PANELS_ROWS && s.width <= PANELS_WIDTH && s.vocab * s.width <= PANELS_BYTES / (int64_t)sizeof(float) &&
               op->attrs.round == ROUND_NO;
    return s;
}

/* Scratch memory as it is carved; without a base it is only counted. */
struct carving {
    char *base;
    size_t used;
};

/* Takes n floats of it, whole cache lines. */
static void *part(struct carving *from, int64_t n)
{
    void *is = from->base ? from->base + from->used : NULL;
    from->used += ((size_t)n * 4 + 63) / 64 * 64;
    return is;
}

static struct panels panels_of(struct sizes s, struct carving *at)
{
    struct panels p = {.vocab = s.vocab, .width = s.width, .words = up_to(s.vocab, PANEL), .rows = s.chunk};
    if (!s.panels)
        return p;
    p.w_z = part(at, panels_w_size(&p));
    p.w_dx = part(at, panels_w_size(&p));
    p.x = part(at, PANELS_KEEP * panels_x_size(&p));
    p.x_dw = part(at, panels_x_size(&p));
    p.block = part(at, PANELS_KEEP * s.chunk * PANEL_WORDS);
    p.base = part(at, s.chunk);
    p.sums = part(at, s.chunk * LANES);
    return p;
}

/* The most rows or words that one of the threads has. */
static int64_t tile_share(struct sizes s, int threads)
{
    const int64_t rows = up_to(s.rows, ROW_UNIT * (int64_t)threads), words = up_to(s.vocab, WORD_UNIT * (int64_t)threads);
    return (rows > words ? rows : words) / threads;
}

/* Carves it; returns how much it takes. Panels lie where logits do: only one of them is in use. */
static size_t memory_of(struct sizes s, int threads, void *scratch, struct memory *m)
{
    struct carving at = {scratch, 0};
    const int64_t rows = s.tiles && s.rows > s.chunk ? s.rows : s.chunk;
    m->panels = panels_of(s, &at);
    const int64_t logits = s.chunk * s.vocab, z = s.panels ? panels_z_size(&m->panels) : 0;
    m->logits = m->panels.z = part(&at, z > logits ? z : logits);
    m->losses = part(&at, rows);
    m->factors = part(&at, rows);
    m->x = part(&at, s.chunk * s.width);
    m->dx = part(&at, s.chunk * s.width);
    m->list = part(&at, s.rows);
    m->base = part(&at, s.tiles ? s.rows : 0);
    m->targets = part(&at, s.tiles ? s.rows : 0);
    m->tile_bytes = s.tiles ? tile_bytes(s, tile_share(s, threads)) : 0;
    m->tiles = part(&at, threads * (int64_t)(m->tile_bytes / sizeof(float)));
    return at.used;
}

static size_t scratch_bytes(const struct program *p, const struct op *op, int threads)
{
    struct memory m;
    return memory_of(sizes_of(p, op), threads, NULL, &m);
}

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

/* A row of x times a factor, as dw's product wants it; x is NULL for a row that does not exist. */
static void scale_row(const struct panels *p, int64_t row, const float *x, float factor)
{
    for (int64_t f = 0; f < p->width; f += PANEL) {
        float *to = p->x_dw + f * p->rows + row * PANEL;
        const int64_t n = x ? least(PANEL, p->width - f) : 0;
        for (int64_t j = 0; j < PANEL; j++)
            to[j] = j < n ? x[f + j] * factor : 0;
    }
}

/* What a row's powers and their sum give: its loss, its gradients but dw. */
static void finish_row(const struct work *w, int64_t i, float *dx)
{
    const struct panels *p = &w->m.panels;
    const int64_t target = target_of(w, i), width = w->s.width;
    const float sum = lanes_sum(load(p->sums + i * LANES)), factor = 1 / (sum * (float)w->count);
    const float *word = (const float *)w->c->in[1] + target * width;
    float *z = panels_z(p, target, i) + target % PANEL;
    w->m.losses[i] = log2f(sum / *z) * LN_2;
    if (!w->gradients)
        return;
    float *to = (float *)w->c->out[2] + row_of(w, i) * width;       /* an output that is there for gradients alone */
    *z -= sum;
    scale_row(p, i, w->x + i * width, factor);
    INDEPENDENT
    for (int64_t j = 0; j < width; j++)
        to[j] = (dx[j] - sum * word[j]) * factor;
}

/* My rows of the chunk: all but dw. */
static void panels_chunk(const struct work *w)
{
    const struct panels *p = &w->m.panels;
    const struct span mine = team_span(w->n, ROW_UNIT, w->t->index, w->t->count);
    const struct span tiles = {mine.lo, up_to(mine.hi, ROW_UNIT)};
    const int64_t width = w->s.width;
    if (mine.lo == mine.hi)
        return;
    for (int64_t i = tiles.lo; i < tiles.hi; i++)
        p->base[i] = i >= w->n ? 0 :
            LOG2_E * dot(w->x + i * width, (const float *)w->c->in[1] + target_of(w, i) * width, width);
    TUNED(panels_rows)(p, tiles, w->x, w->c->in[1], w->n, LOG2_E, w->gradients ? w->m.dx : NULL);
    for (int64_t i = tiles.lo; i < tiles.hi; i++)
        if (i < w->n)
            finish_row(w, i, w->m.dx + i * width);
        else
            scale_row(p, i, NULL, 0);
}

/* Is no loss of the chunk NaN or so large that sums may have overflown? */
static bool in_range(const struct work *w)
{
    bool is = true;
    for (int64_t i = 0; i < w->n; i++)
        is = is && w->m.losses[i] < MOST_LOSS;
    return is;
}

/* ---- by tiles ---- */

#if defined(HONE_AMX)
/* All rows at once; false: their losses are such that it must be products. */
static bool run_tiles(struct work *w)
{
    void *const *out = w->c->out;
    const bool bf16 = call_in(w->c, 1)->dtype == BF16;
    const struct pairs_loss l = {
        .rows = w->count, .vocab = w->s.vocab, .width = w->s.width, .share = tile_share(w->s, w->t->count),
        .most = w->s.rows > w->s.vocab ? w->s.rows : w->s.vocab, .x = w->c->in[0], .w = bf16 ? NULL : w->c->in[1],
        .w_bf16 = bf16 ? w->c->in[1] : NULL, .list = w->dense ? NULL : w->m.list,
        .all_targets = w->c->in[2], .targets = w->m.targets, .base = w->m.base, .losses = w->m.losses, .factors = w->m.factors,
        .dx = w->gradients ? out[2] : NULL, .dw = w->gradients ? out[3] : NULL};
    void *mine = w->m.tiles + (size_t)w->t->index * w->m.tile_bytes;
    pairs_loss_rows(&l, team_span(w->count, ROW_UNIT, w->t->index, w->t->count), mine);
    team_barrier(w->t->team);
    w->n = w->count;
    const bool good = in_range(w);
    if (!good)
        team_barrier(w->t->team);               /* the others have seen the losses, too */
    else if (w->gradients)
        pairs_loss_words(&l, team_span(w->s.vocab, WORD_UNIT, w->t->index, w->t->count), mine);
    return good;
}
#else
static bool run_tiles(struct work *w) { return (void)w, false; }
#endif

/* ---- all of them ---- */

/* The chunk by panels, or if they cannot hold it as well as all that come: returns false. */
static bool run_panels(struct work *w)
{
    const struct span words = team_span(w->m.panels.words, PANEL, w->t->index, w->t->count);
    if (PANELS_KEEP && w->first == 0) {
        TUNED(panels_take_words)(&w->m.panels, w->c->in[1], words);
        team_barrier(w->t->team);
    }
    panels_chunk(w);
    team_barrier(w->t->team);
    w->panels = in_range(w);
    if (!w->panels)
        team_barrier(w->t->team);               /* the others have seen the losses, too */
    else if (w->gradients)
        TUNED(panels_words_gradient)(&w->m.panels, words, w->n, w->c->out[3], w->first > 0);
    return w->panels;
}

static void linear_loss(const struct kernel_call *c, const struct kernel_thread *t)
{
    struct work w = {.c = c, .t = t, .s = sizes_of(c->program, c->op), .gradients = c->op->attrs.parts == 4};
    memory_of(w.s, t->count, c->scratch, &w.m);
    w.panels = w.s.panels && c->variant != GEMM_BLAS;
    find_rows(&w);
    double sum = 0;
    const bool tiles = w.s.tiles && w.count > 0 && run_tiles(&w);
    for (; w.first < w.count; w.first += w.n) {
        if (w.first > 0)
            team_barrier(t->team);              /* the others have done with the chunk before */
        if (!tiles)
            gather(&w);
        if (!tiles && (!w.panels || !run_panels(&w)))
            TUNED(loss_products)(&w);
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

/* A loss scale is a matter of f16, which no tuned kernel has. x may be scaled before it is rounded, and is f32. */
static bool loss_fits(const struct program *p, const struct op *op)
{
    return op->n_in == 3 && p->values[op->in[0]].dtype == F32 && gemm_fits(p, op);
}

const struct kernel TUNED(linear_loss)[] = {
    {.op = OP_LINEAR_LOSS, .name = "chunks", .run = linear_loss, .stores = true, .supports = loss_fits, .scratch = scratch_bytes,
     .variants = gemm_variants},
    {.run = NULL},
};
