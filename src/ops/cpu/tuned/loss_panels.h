/* The panels of a linear head's loss: how they lie, and what loss_panels.c does with them, or loss_wide.c where tiles are wide. */
#ifndef HONE_OPS_CPU_TUNED_LOSS_PANELS_H
#define HONE_OPS_CPU_TUNED_LOSS_PANELS_H

#include "ops/cpu/tuned/vec.h"
#include "ops/cpu/tuned/wide_tile.h"

enum { PANEL = 2 * LANES, PANEL_GAP = 8 };           /* the gap: panels as far apart as a cache is wide compete for lines */
enum { PANEL_WORDS = 256, PANELS_WIDTH = 512 };          /* words of a block; the widest rows that go over panels */
enum { ROW_UNIT = 8 };                                  /* threads divide the rows of a chunk in units of these */

/* Whether all of w is packed once for all threads; else each packs a block at a time. Columns of x that lie side by side. */
#if defined(HONE_WIDE_TILE)
enum { PANELS_KEEP = 0, X_PANEL = WIDE_COLUMNS };
#else
enum { PANELS_KEEP = 1, X_PANEL = PANEL };
#endif
/* Words of dw that a piece of work has at least: x passes by for each where its tile is small. */
enum { WORDS_EACH = PANELS_KEEP ? 256 : PANEL };

struct panels {
    int64_t vocab, width;
    int64_t words;              /* vocab in whole panels; words that do not exist are 0 */
    int64_t rows;               /* of a chunk: that there is place for */
    struct blocks grid;         /* how rows and words of a chunk are divided among threads */
    float *z;                   /* (words / PANEL, rows + PANEL_GAP, PANEL): powers, then gradients */
    float *x_dw;                /* (width / X_PANEL, rows, X_PANEL) */
    float *base;                /* (all rows that have a target): what logits are relative to */
    float *sums;                /* (grid.columns, rows, LANES): of powers */
    float *dx;                  /* (grid.columns, rows, width): what the words of a column add to it */
    /* if PANELS_KEEP: */
    float *block;               /* (grid.columns, rows / ROW_UNIT, PANEL_WORDS, ROW_UNIT): powers of a block of words; (rows, PANEL_WORDS) where
                                 * a number is spread over a vector when it is loaded, wherever it lies (x86) */
    float *w_z;                 /* (words / PANEL, width, PANEL) */
    float *w_dx;                /* (width / PANEL, words, PANEL) */
    float *x;                   /* (grid.columns, rows / ROW_UNIT, width, ROW_UNIT) */
};

/* What one thread has of a chunk, and where it writes: the parts of its column. */
struct panels_part {
    struct span rows, words;    /* whole units of rows, of which the last may lie beyond the chunk; whole panels */
    const float *base;          /* (rows) */
    float *sums, *dx;           /* dx: NULL where no gradient is wanted */
    float *block, *x;
    bool first;                 /* of the chunks of a call */
};

/* From one panel of z to the next; where the panel of a word and a row is. */
static inline int64_t panels_jump(const struct panels *p) { return (p->rows + PANEL_GAP) * PANEL; }
static inline float *panels_z(const struct panels *p, int64_t word, int64_t row)
{
    return p->z + word / PANEL * panels_jump(p) + row * PANEL;
}

/* Floats of each part. */
static inline int64_t panels_z_size(const struct panels *p) { return p->words / PANEL * panels_jump(p); }
static inline int64_t panels_w_size(const struct panels *p) { return PANELS_KEEP * up_to(p->width, PANEL) * p->words; }
static inline int64_t panels_x_size(const struct panels *p) { return up_to(p->width, X_PANEL) * p->rows; }

/* Packs a thread's words of w (vocab, width) for both products; a block is read from the cache the second time. Only if PANELS_KEEP. */
void TUNED(panels_take_words)(const struct panels *p, const float *w, struct span words);
/* A thread's part: of x (n, width) finds powers, their sums and what they add to dx. */
void TUNED(panels_rows)(const struct panels *p, const struct panels_part *mine, const float *x, const float *w, int64_t n, float scale);
/* Whether a thread's words stay packed from chunk to chunk, near it. */
bool TUNED(panels_stay)(int64_t words, int64_t width);
/* Some words of dw, whole panels, from all rows, of which there are n. */
void TUNED(panels_words_gradient)(const struct panels *p, struct span words, int64_t n, float *dw, bool accumulate);

#endif
