/* The panels of a linear head's loss: how they lie, and what loss_panels.c does with them. */
#ifndef HONE_OPS_CPU_TUNED_LOSS_PANELS_H
#define HONE_OPS_CPU_TUNED_LOSS_PANELS_H

#include "ops/cpu/tuned/tile.h"
#include "ops/cpu/tuned/vec.h"

enum { PANEL = TILE_COLUMNS, PANEL_GAP = 8 };           /* the gap: panels as far apart as a cache is wide compete for lines */
enum { PANEL_WORDS = 256, PANEL_STRIP = 32, PANEL_DEPTH = 512 };        /* words of blocks and strips, rows that dw takes at once */

struct panels {
    int64_t vocab, width;
    int64_t words;              /* vocab in whole panels; words that do not exist are 0 */
    int64_t rows;               /* that there is place for */
    float *z;                   /* (words / PANEL, rows + PANEL_GAP, PANEL): powers, then gradients */
    float *block;               /* (rows / TILE_ROWS, PANEL_WORDS, TILE_ROWS): powers of a block of words; (rows, PANEL_WORDS) where
                                 * a number is spread over a vector when it is loaded, wherever it lies (x86) */
    float *w_z;                 /* (words / PANEL, width, PANEL) */
    float *w_dx;                /* (width / PANEL, words, PANEL) */
    float *x;                   /* (rows / TILE_ROWS, width, TILE_ROWS) */
    float *x_dw;                /* (width / PANEL, rows, PANEL) */
    float *base;                /* (rows): what logits are relative to */
    float *sums;                /* (rows, LANES): of powers */
};

/* From one panel of z to the next; where the panel of a word and a row is. */
static inline int64_t panels_jump(const struct panels *p) { return (p->rows + PANEL_GAP) * PANEL; }
static inline float *panels_z(const struct panels *p, int64_t word, int64_t row)
{
    return p->z + word / PANEL * panels_jump(p) + row * PANEL;
}

/* Floats of each part. */
static inline int64_t panels_z_size(const struct panels *p) { return p->words / PANEL * panels_jump(p); }
static inline int64_t panels_w_size(const struct panels *p) { return up_to(p->width, PANEL) * p->words; }
static inline int64_t panels_x_size(const struct panels *p) { return up_to(p->width, PANEL) * p->rows; }

/* Packs a thread's words of w (vocab, width) for both products; a block is read from the cache the second time. */
void TUNED(panels_take_words)(const struct panels *p, const float *w, struct span words);
/* A thread's rows, whole tiles of them: packs x (n, width), of which rows.hi may lie beyond n, and finds powers, their sums
 * and dx, which is NULL if not wanted. */
void TUNED(panels_rows)(const struct panels *p, struct span rows, const float *x, int64_t n, float scale, float *dx);
/* A row of x times a factor, as dw's product wants it; x is NULL for a row that does not exist. */
void TUNED(panels_scale_row)(const struct panels *p, int64_t row, const float *x, float factor);
/* A thread's words of dw from all rows, of which there are n. */
void TUNED(panels_words_gradient)(const struct panels *p, struct span words, int64_t n, float *dw, bool accumulate);

#endif
