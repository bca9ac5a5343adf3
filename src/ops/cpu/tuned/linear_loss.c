/* Tuned: the loss of a linear head, and the gradients of its mean, in chunks of rows: the logits of a chunk become
 * probabilities and then gradients in place, so that memory and cache hold one chunk and never all logits. Padding is left
 * out: only rows that have a target are computed, wherever they lie.
 *
 * A chunk goes over panels (loss_panels.c); or through products (loss_products.c), where w is large, the
 * products shall be BLAS or bf16, or logits are such that powers relative to the target's would overflow or are NaN. Where AMX multiplies
 * bf16, all rows go through its tiles at once (pairs/loss.c), and chunks are for such logits alone; in f32, too, in thirds
 * (pairs/thirds.h), where the head is large.
 *
 * Every thread has its block of the logits, its rows of dx and its words of dw. Every number is summed in the order of the words or rows, by one thread or in
 * parts that depend on the number of threads, and the loss by the first thread, so results depend on the number of threads and
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

/* Numbers of f32 go by tiles from so many multiply-adds, words and such a width on: below, more is spent on cutting them in thirds and on powers than tiles
 * win (65 words of width 64: 4096 rows take 1.1 ms, 0.8 by panels). */
enum { THIRDS_SIZE = 1 << 22, THIRDS_WORDS = 256, THIRDS_WIDTH = 64 };

/* HONE_AMX: this is the variant for CPUs that may have it. */
#if defined(HONE_AMX)
static bool by_tiles(const struct op *op, enum dtype w, struct sizes s)
{
    const bool thirds = op->attrs.round == ROUND_NO && w == F32 && s.width >= THIRDS_WIDTH && s.vocab >= THIRDS_WORDS && s.rows * s.vocab >= THIRDS_SIZE / s.width;
    return cpu_bf16_way() == BF16_AMX && (thirds || op->attrs.round == ROUND_BF16);
}
static size_t tile_bytes(struct sizes s, int64_t share) { return pairs_loss_bytes(s.width, share, s.rows > s.vocab ? s.rows : s.vocab, s.thirds); }
#else
static bool by_tiles(const struct op *op, enum dtype w, struct sizes s) { return (void)op, (void)w, (void)s, false; }
static size_t tile_bytes(struct sizes s, int64_t share) { return (void)s, (void)share, 0; }
#endif

static struct sizes sizes_of(const struct program *p, const struct op *op, int threads, int variant)
{
    const struct shape x = p->values[op->in[0]].shape, w = p->values[op->in[1]].shape;
    struct sizes s = {.rows = shape_rows(x), .vocab = w.dim[0], .width = w.dim[1]};
    s.tiles = by_tiles(op, p->values[op->in[1]].dtype, s) && (variant == GEMM_THIRDS || op->attrs.round != ROUND_NO);
    s.thirds = s.tiles && op->attrs.round == ROUND_NO;
    s.panels = !s.tiles && s.rows >= PANELS_ROWS && s.width <= PANELS_WIDTH && s.vocab * s.width <= PANELS_BYTES / (int64_t)sizeof(float) &&
               op->attrs.round == ROUND_NO;
    s.chunk = s.tiles ? least(FEWEST_ROWS, up_to(s.rows, ROW_UNIT)) : chunk_rows(s.rows, s.vocab);
    s.grid = s.panels ? TUNED(loss_grid)(&s, threads) : (struct blocks){threads, 1, 1};
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
    struct panels p = {.vocab = s.vocab, .width = s.width, .words = up_to(s.vocab, PANEL), .rows = s.chunk, .grid = s.grid};
    const int64_t columns = s.grid.columns;
    if (!s.panels)
        return p;
    p.w_z = part(at, panels_w_size(&p));
    p.w_dx = part(at, panels_w_size(&p));
    p.x = part(at, PANELS_KEEP * columns * panels_x_size(&p));
    p.x_dw = part(at, panels_x_size(&p));
    p.block = part(at, PANELS_KEEP * columns * s.chunk * PANEL_WORDS);
    p.base = part(at, up_to(s.rows, ROW_UNIT));
    p.sums = part(at, columns * s.chunk * LANES);
    p.dx = part(at, columns * s.chunk * s.width);
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

/* Enough for each way: which it will be is chosen later. */
static size_t scratch_bytes(const struct program *p, const struct op *op, int threads)
{
    struct memory m;
    const size_t own = memory_of(sizes_of(p, op, threads, GEMM_OWN), threads, NULL, &m), thirds = memory_of(sizes_of(p, op, threads, GEMM_THIRDS), threads, NULL, &m);
    return own > thirds ? own : thirds;
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
        .w_bf16 = bf16 ? w->c->in[1] : NULL, .thirds = w->s.thirds, .list = w->dense ? NULL : w->m.list,
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

static void linear_loss(const struct kernel_call *c, const struct kernel_thread *t)
{
    struct work w = {.c = c, .t = t, .s = sizes_of(c->program, c->op, t->count, c->variant), .gradients = c->op->attrs.parts == 4};
    memory_of(w.s, t->count, c->scratch, &w.m);
    w.panels = w.s.panels && c->variant != GEMM_BLAS;
    find_rows(&w);
    double sum = 0;
    const bool tiles = w.s.tiles && w.count > 0 && run_tiles(&w);
    for (; w.first < w.count; w.first += w.n) {
        if (w.first > 0 && !(w.panels && w.s.grid.rows == 1))
            team_barrier(t->team);              /* the others have done with the chunk before */
        if (!tiles)
            gather(&w);
        if (!tiles && (!w.panels || !TUNED(loss_by_panels)(&w)))
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
     .variants = gemm_variants, .below = gemm_below},
    {.run = NULL},
};
