/* Tuned: the products of a linear head's loss where vectors have four lanes, over panels (tile.h) that no product packs again: w is packed once for all rows, and
 * every logit becomes a power of two in the registers of its tile, which go to z, laid out as the gradient of w reads it, and
 * to a block of words that stays in the second-level cache and from which the gradient of x is added up. Powers are relative
 * to the logit of the row's target, which is known beforehand, so that no maximum is needed: their sum is at least about 1,
 * and it overflows only where the loss is absurd.
 *
 * On Neoverse-N1, 2048 rows, 10000 words and width 128 take 445 ms of one core, of which 393 are what its peak allows; 487
 * with three products of their own. */
#include "ops/cpu/tuned/loss_panels.h"

#if !defined(HONE_WIDE_TILE)

#include <assert.h>
#include <string.h>

#include "ops/cpu/tuned/pack.h"

enum { PANEL_STRIP = 32, PANEL_DEPTH = 512 };           /* words of a strip, rows that dw takes at once */
static_assert((int)ROW_UNIT == (int)TILE_ROWS && (int)PANEL == (int)TILE_COLUMNS, "panels are tiles");

/* Where the panel of a word and a row is in its block; from one row and one word of it to the next. */
#if defined(__x86_64__)
enum { BLOCK_ROW = PANEL_WORDS, BLOCK_WORD = 1 };
#else
enum { BLOCK_ROW = 1, BLOCK_WORD = TILE_ROWS };
#endif
static inline float *panels_block(const struct panels_part *m, int64_t word, int64_t row)
{
    return m->block + row * PANEL_WORDS + (word - m->words.lo) % PANEL_WORDS * BLOCK_WORD;
}

void TUNED(panels_take_words)(const struct panels *p, const float *w, struct span words)
{
    for (int64_t i = words.lo; i < words.hi; i += PANEL_WORDS) {
        const int64_t end = least(i + PANEL_WORDS, words.hi), n = least(end, p->vocab) - i;
        const float *from = w + i * p->width;
        pack(p->w_z + i * p->width, PANEL, &(struct packing){.from = from, .row = p->width, .step = 1, .rows = n,
                                                             .depth = p->width, .far = true});
        for (int64_t f = 0; f < p->width; f += PANEL) {
            float *to = p->w_dx + f * p->words + i * PANEL;
            pack(to, PANEL, &(struct packing){.from = from + f, .row = 1, .step = p->width,
                                              .rows = least(p->width - f, PANEL), .depth = n});
            memset(to + n * PANEL, 0, (size_t)((end - i - n) * PANEL) * sizeof *to);
        }
    }
}

INLINE vec panels_power(vec x) { return exp2_near(smaller(larger(x, all(-126)), all(127))); }

/* A tile of powers 2^(x w - base), TILE_ROWS x PANEL: to z, (TILE_ROWS, PANEL), to the block, (PANEL, TILE_ROWS), and added
 * to the sums, (TILE_ROWS, LANES). */
static __attribute__((noinline)) void panels_powers(int64_t depth, const float *x, const float *w, const float *base, float *z,
                                                    float *block, float *sums)
{
    struct tile s;
    UNROLL(8)
    for (int i = 0; i < TILE_ROWS; i++)
        s.x[i] = s.y[i] = (tile_vec){0} - base[i];
    UNROLL(4)
    for (int64_t k = 0; k < depth; k++)
        tile_step(&s, TILE_ROWS, x + k * TILE_ROWS, 1, w + k * PANEL);
    UNROLL(8)
    for (int i = 0; i < TILE_ROWS; i++) {
        const vec u = panels_power((vec)s.x[i]), v = panels_power((vec)s.y[i]);
        store(z + i * PANEL, u);
        store(z + i * PANEL + LANES, v);
        store(sums + i * LANES, load(sums + i * LANES) + (u + v));
        if (BLOCK_WORD == 1) {
            store(block + i * BLOCK_ROW, u);
            store(block + i * BLOCK_ROW + LANES, v);
        }
    }
    UNROLL(8)
    for (int j = 0; BLOCK_ROW == 1 && j < PANEL; j += 4)
        UNROLL(2)
        for (int i = 0; i < TILE_ROWS; i += 4)
            pack_quad(block + j * TILE_ROWS + i, TILE_ROWS, z + i * PANEL + j, PANEL);
}

/* The last panel, with fewer words than it has place for: the others are 0. */
static void panels_powers_part(int64_t words, int64_t depth, const float *x, const float *w, const float *base, float *z,
                               float *block, float *sums)
{
    float unused[TILE_ROWS * LANES] = {0};
    panels_powers(depth, x, w, base, z, block, unused);
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int64_t j = words; j < PANEL; j++)
            block[i * BLOCK_ROW + j * BLOCK_WORD] = 0;
        for (int64_t j = 0; j < words; j++)
            sums[i * LANES] += z[i * PANEL + j];
    }
}

/* A panel of z and its part of the block. */
static void panels_panel(const struct panels *p, const struct panels_part *m, int64_t row, int64_t word)
{
    const float *x = m->x + row * p->width, *w = p->w_z + word * p->width;
    float *z = panels_z(p, word, row), *sums = m->sums + row * LANES, *block = panels_block(m, word, row);
    for (int i = 0; i < TILE_ROWS * PANEL; i += PACK_LINE)
        __builtin_prefetch(z + i, 1);
    if (word + PANEL <= p->vocab)
        panels_powers(p->width, x, w, m->base + row, z, block, sums);
    else
        panels_powers_part(p->vocab - word, p->width, x, w, m->base + row, z, block, sums);
}

enum { ROWS_EACH = 64 };            /* of a piece that another thread may take, at least: words are fetched anew for each */
static int pieces_of(int64_t rows, int64_t adds_of_one)
{
    const int64_t each = piece_units(rows, adds_of_one);
    return piece_count(rows, each > ROWS_EACH ? each : ROWS_EACH);
}

/* My rows and some words of z. */
static void panels_logits(const struct panels *p, const struct panels_part *m, struct span words)
{
    for (int64_t j = words.lo; j < words.hi; j += PANEL_STRIP)
        for (int64_t i = m->rows.lo; i < m->rows.hi; i += TILE_ROWS)
            for (int64_t word = j; word < least(j + PANEL_STRIP, words.hi); word += PANEL)
                panels_panel(p, m, i, word);
}

/* A function of its own, as in tile.h. */
static __attribute__((noinline)) void panels_tile(int64_t depth, const float *block, const float *w, const struct tile_target *t)
{
    tile_run(TILE_ROWS, depth, (struct tile_side){block, BLOCK_ROW, BLOCK_WORD}, (struct tile_side){w, 1, PANEL}, t);
}

/* dx (rows, width) = powers of some words times w, or is added to. */
static void panels_rows_gradient(const struct panels *p, const struct panels_part *m, struct span words)
{
    for (int64_t f = 0; f < p->width; f += PANEL_STRIP)
        for (int64_t i = m->rows.lo; i < m->rows.hi; i += TILE_ROWS)
            for (int64_t g = f; g < least(f + PANEL_STRIP, p->width); g += PANEL) {
                float *c = m->dx + i * p->width + g;
                for (int64_t k = 0; g % PACK_LINE == 0 && k < TILE_ROWS; k++)
                    __builtin_prefetch(c + k * p->width, 1);
                panels_tile(words.hi - words.lo, panels_block(m, words.lo, i), p->w_dx + g * p->words + words.lo * PANEL,
                            &(struct tile_target){.c = c, .ldc = p->width, .columns = least(PANEL, p->width - g),
                                                  .scale = 1, .accumulate = words.lo > m->words.lo});
            }
}

/* A thread's rows past some words. */
struct pass {
    const struct panels *p;
    const struct panels_part *m;
    struct span words;
    int pieces;
};

static void pass_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct pass *a = argument;
    struct panels_part m = *a->m;
    const struct span rows = team_span(m.rows.hi - m.rows.lo, TILE_ROWS, piece, a->pieces);
    m.rows = (struct span){m.rows.lo + rows.lo, m.rows.lo + rows.hi};
    panels_logits(a->p, &m, a->words);
    if (m.dx)
        panels_rows_gradient(a->p, &m, a->words);
}

bool TUNED(panels_stay)(int64_t words, int64_t width) { return (void)words, (void)width, true; }

void TUNED(panels_rows)(const struct panels *p, const struct panels_part *mine, const float *x, const float *w, int64_t n, float scale)
{
    (void)w;                    /* was taken before */
    const struct span rows = mine->rows;
    pack(mine->x + rows.lo * p->width, TILE_ROWS, &(struct packing){.from = x + rows.lo * p->width, .row = p->width, .step = 1,
                                                                    .rows = least(n, rows.hi) - rows.lo, .depth = p->width});
    for (int64_t i = rows.lo * p->width; i < rows.hi * p->width; i++)
        mine->x[i] *= scale;
    memset(mine->sums + rows.lo * LANES, 0, (size_t)((rows.hi - rows.lo) * LANES) * sizeof *mine->sums);
    for (int64_t j = mine->words.lo; j < mine->words.hi; j += PANEL_WORDS) {
        const struct span words = {j, least(j + PANEL_WORDS, mine->words.hi)};
        struct pass a = {p, mine, words, pieces_of(rows.hi - rows.lo, 2 * (words.hi - words.lo) * p->width)};
        team_pieces(pass_piece, &a, a.pieces);
    }
}

/* TILE_ROWS words of dw (vocab, width) over rows [first, first + depth). Their numbers of z stay in the first-level cache; those
 * of the next words are fetched meanwhile. */
static void panels_words_tile(const struct panels *p, int64_t word, int64_t first, int64_t depth, float *dw, bool accumulate)
{
    const int64_t n = least(TILE_ROWS, p->vocab - word), share = depth * PANEL / up_to(p->width, PANEL) * TILE_ROWS;
    const struct tile_side a = {panels_z(p, word, first) + word % PANEL, 1, PANEL};
    const float *next = panels_z(p, word / PANEL * PANEL + PANEL, first) + word % PANEL / TILE_ROWS * depth * TILE_ROWS;
    for (int64_t f = 0; f < p->width; f += PANEL, next += share) {
        float *c = dw + word * p->width + f;
        for (int64_t i = 0; f % PACK_LINE == 0 && i < n; i++)
            __builtin_prefetch(c + i * p->width, 1);
        for (int64_t i = 0; i < share; i += PACK_LINE)
            __builtin_prefetch(next + i);
        tile_any(n, depth, &a, &(struct tile_side){p->x_dw + f * p->rows + first * PANEL, 1, PANEL},
                 &(struct tile_target){.c = c, .ldc = p->width, .columns = least(PANEL, p->width - f), .scale = 1,
                                       .accumulate = accumulate});
    }
}

void TUNED(panels_words_gradient)(const struct panels *p, struct span words, int64_t n, float *dw, bool accumulate)
{
    for (int64_t i = 0; i < n; i += PANEL_DEPTH)
        for (int64_t j = words.lo; j < least(words.hi, p->vocab); j += TILE_ROWS)
            panels_words_tile(p, j, i, least(PANEL_DEPTH, n - i), dw, accumulate || i > 0);
}

#else
typedef int loss_is_not_by_panels;
#endif
