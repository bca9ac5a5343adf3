/* Tuned: the products of a linear head's loss where vectors have 8 or 16 lanes (loss_panels.c has the others). Rows pass by blocks of words in
 * strips of a tile's height: logits of a strip and a block, their powers of two, which go to z as well, and what they add to dx, while they
 * are in the first-level cache. Powers are relative to the logit of the row's target, which is known beforehand, so that no maximum
 * is needed: their sum is at least about 1, and it overflows only where the loss is absurd. */
#include "ops/cpu/tuned/loss_panels.h"

#if defined(HONE_WIDE_TILE)

#include <assert.h>
#include <string.h>

#include "ops/cpu/room.h"
#include "ops/cpu/tuned/wide_pack.h"

enum { WORDS = PANEL_WORDS, WORDS_WIDE = WORDS / 2, WIDE = PANELS_WIDTH / 2 };     /* of a block; where rows are wider than this */
enum { STRIP = WORDS + WIDE_LINE };                     /* from one row of a strip to the next */
enum { DEPTH = 128 };                                   /* rows that dw takes at once: panels of z and of x are in the first-level cache */
enum { ROOM = (int)(sizeof((struct gemm_room *)0)->f32 / sizeof(float)) };      /* floats: of packed words */
static_assert(2 * WORDS * WIDE <= ROOM && WIDE_ROWS * STRIP * sizeof(float) <= sizeof((struct gemm_room *)0)->aside, "blocks and a strip of powers have room");

/* A block of words, packed for both products. */
struct words_block {
    struct span words;
    float *there;               /* (words / WIDE_COLUMNS, width, WIDE_COLUMNS) */
    float *back;                /* (width / WIDE_COLUMNS, words, WIDE_COLUMNS) */
};

/* Floats that some words take, packed for one of the products. */
static int64_t packed(int64_t words, int64_t width) { return up_to(words, WIDE_COLUMNS) * up_to(width, WIDE_COLUMNS); }

bool TUNED(panels_stay)(int64_t words, int64_t width) { return 2 * packed(words, width) <= ROOM; }

static void take_words(const struct panels *p, const float *w, struct words_block *b, bool both)
{
    const int64_t n = b->words.hi - b->words.lo, width = p->width;
    const float *from = w + b->words.lo * width;
    for (int64_t j = 0; j < n; j += WIDE_COLUMNS)
        wide_pack_panel(b->there + j * width, from + j * width, width, true, n - j, width);
    for (int64_t f = 0; both && f < width; f += WIDE_COLUMNS)
        wide_pack_panel(b->back + f * n, from + f, width, false, width - f, n);
}

static void strip_logits(const struct panels *p, const struct words_block *b, const float *x, int64_t rows, float *strip)
{
    const int64_t n = b->words.hi - b->words.lo;
    struct wide_product g = {.a = x, .a_row = p->width, .a_step = 1, .depth = p->width, .ldc = STRIP, .scale = 1};
    for (int64_t j = 0; j < n; j += WIDE_COLUMNS) {
        g.columns = least(WIDE_COLUMNS, n - j);
        g.b = b->there + j * p->width;
        g.b_step = wide_panel(g.columns);
        g.c = strip + j;
        TUNED(wide_tile)(rows, &g);
    }
}

INLINE vec panels_power(vec x) { return exp2_near(smaller(larger(x, all(-126)), all(127))); }

/* One row's powers, in place and in z. Words that do not exist have none, in z. */
static void row_powers(const struct panels *p, const struct panels_part *m, struct span words, int64_t row, float *strip, float scale)
{
    const vec base = all(m->base[row]);
    const int64_t n = words.hi - words.lo;
    float *z = panels_z(p, words.lo, row);
    vec sum = load(m->sums + row * LANES);
    int64_t j = 0;
    for (; j + PANEL <= n; j += PANEL, z += panels_jump(p)) {
        const vec u = panels_power(load(strip + j) * scale - base), v = panels_power(load(strip + j + LANES) * scale - base);
        store(strip + j, u);
        store(strip + j + LANES, v);
        store(z, u);
        store(z + LANES, v);
        sum += u + v;
    }
    if (j < n) {
        float last[PANEL] = {0};
        memcpy(last, strip + j, (size_t)(n - j) * sizeof *last);
        store(last, panels_power(load(last) * scale - base));
        store(last + LANES, panels_power(load(last + LANES) * scale - base));
        memset(last + n - j, 0, (size_t)(PANEL - (n - j)) * sizeof *last);
        memcpy(strip + j, last, (size_t)(n - j) * sizeof *last);
        memcpy(z, last, sizeof last);
        sum += load(last) + load(last + LANES);
    }
    store(m->sums + row * LANES, sum);
}

/* dx (rows, width) = powers of a block's words times w, or is added to. */
static void strip_gradient(const struct panels *p, const struct words_block *b, int64_t rows, const float *strip, float *dx, bool accumulate)
{
    const int64_t n = b->words.hi - b->words.lo;
    struct wide_product g = {.a = strip, .a_row = STRIP, .a_step = 1, .depth = n, .ldc = p->width, .scale = 1, .accumulate = accumulate};
    for (int64_t f = 0; f < p->width; f += WIDE_COLUMNS) {
        g.columns = least(WIDE_COLUMNS, p->width - f);
        g.b = b->back + f * n;
        g.b_step = wide_panel(g.columns);
        g.c = dx + f;
        TUNED(wide_tile)(rows, &g);
    }
}

/* A thread's rows past one block of words. */
struct pass {
    const struct panels *p;
    const struct panels_part *m;
    const struct words_block *b;
    struct span rows;
    const float *x;
    float scale;
    int64_t strips, each;       /* each: of a piece */
};

static void pass_strip(const struct pass *a, struct span now)
{
    const int64_t width = a->p->width;
    float *strip = (float *)gemm_room()->aside;          /* (WIDE_ROWS, STRIP) */
    strip_logits(a->p, a->b, a->x + now.lo * width, now.hi - now.lo, strip);
    for (int64_t i = now.lo; i < now.hi; i++)
        row_powers(a->p, a->m, a->b->words, i, strip + (i - now.lo) * STRIP, a->scale);
    if (a->m->dx)
        strip_gradient(a->p, a->b, now.hi - now.lo, strip, a->m->dx + now.lo * width, a->b->words.lo > a->m->words.lo);
}

static void pass_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct pass *a = argument;
    const int64_t n = a->rows.hi - a->rows.lo;
    for (int64_t s = piece * a->each; s < least((piece + 1) * a->each, a->strips); s++)
        pass_strip(a, (struct span){a->rows.lo + n * s / a->strips, a->rows.lo + n * (s + 1) / a->strips});
}

static void pass_block(struct pass *a)
{
    a->strips = (a->rows.hi - a->rows.lo + WIDE_ROWS - 1) / WIDE_ROWS;
    a->each = piece_units(a->strips, 2 * WIDE_ROWS * (a->b->words.hi - a->b->words.lo) * a->p->width);
    team_pieces(pass_piece, a, piece_count(a->strips, a->each));
}

/* Words that fit in the room stay there for the chunks that come; else each block has all of it in turn. */
void TUNED(panels_rows)(const struct panels *p, const struct panels_part *mine, const float *x, const float *w, int64_t n, float scale)
{
    const struct span rows = {mine->rows.lo, least(mine->rows.hi, n)}, words = {mine->words.lo, least(mine->words.hi, p->vocab)};
    const int64_t most = p->width > WIDE ? WORDS_WIDE : WORDS;
    const bool stay = TUNED(panels_stay)(words.hi - words.lo, p->width);
    float *room = (float *)gemm_room()->f32;
    memset(mine->sums + rows.lo * LANES, 0, (size_t)((rows.hi - rows.lo) * LANES) * sizeof *mine->sums);
    for (int64_t j = words.lo; j < words.hi; j += most) {
        const struct span now = {j, least(j + most, words.hi)};
        float *there = room + (stay ? 2 * packed(j - words.lo, p->width) : 0);
        struct words_block b = {now, there, there + packed(now.hi - now.lo, p->width)};
        if (!stay || mine->first)
            take_words(p, w, &b, mine->dx);
        pass_block(&(struct pass){.p = p, .m = mine, .b = &b, .rows = rows, .x = x, .scale = scale});
    }
}

/* A panel of words of dw (vocab, width) over rows [first, first + depth); as many numbers of z from `next` on are asked for meanwhile. */
static void panel_gradient(const struct panels *p, int64_t word, int64_t first, int64_t depth, const float *next, struct wide_product *g)
{
    const int64_t words = least(PANEL, p->vocab - word), tiles = (words + WIDE_ROWS - 1) / WIDE_ROWS;
    const int64_t products = tiles * (up_to(p->width, X_PANEL) / X_PANEL), lines = (depth * PANEL + WIDE_LINE - 1) / WIDE_LINE;
    struct wide_lines ahead[WIDE_LISTS] = {{.at = (const char *)next, .n = lines, .share = (lines + products - 1) / products, .gap = 4 * WIDE_LINE, .left = lines + 1}};
    float *c = g->c;
    g->ahead = ahead;
    for (int64_t f = 0; f < p->width; f += X_PANEL)
        for (int64_t t = 0; t < tiles; t++) {
            const struct span now = {words * t / tiles, words * (t + 1) / tiles};
            g->a = panels_z(p, word, first) + now.lo;
            g->b = p->x_dw + f * p->rows + first * X_PANEL;
            g->depth = depth;
            g->columns = least(X_PANEL, p->width - f);
            g->c = c + now.lo * p->width + f;
            TUNED(wide_tile)(now.hi - now.lo, g);
        }
    g->c = c;
}

void TUNED(panels_words_gradient)(const struct panels *p, struct span words, int64_t n, float *dw, bool accumulate)
{
    for (int64_t j = words.lo; j < least(words.hi, p->vocab); j += PANEL)
        for (int64_t i = 0; i < n; i += DEPTH) {
            struct wide_product g = {.a_row = 1, .a_step = PANEL, .b_step = X_PANEL, .c = dw + j * p->width, .ldc = p->width, .scale = 1,
                                     .accumulate = accumulate || i > 0};
            panel_gradient(p, j, i, least(DEPTH, n - i), i + DEPTH < n ? panels_z(p, j, i + DEPTH) : panels_z(p, j + PANEL, 0), &g);
        }
}

#else
typedef int no_loss_wide;
#endif
