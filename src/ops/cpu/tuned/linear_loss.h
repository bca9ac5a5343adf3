/* The loss of a linear head: what its chunks (linear_loss.c) and the way through products (loss_products.c) share. */
#ifndef HONE_OPS_CPU_TUNED_LINEAR_LOSS_H
#define HONE_OPS_CPU_TUNED_LINEAR_LOSS_H

#include "ops/cpu/tuned/loss_panels.h"

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

struct sizes {
    int64_t rows, vocab, width;
    int64_t chunk;              /* rows of a chunk at most */
    bool panels;                /* may be taken by panels */
    struct blocks grid;         /* by panels: of threads over rows and words of a chunk */
    bool tiles;                 /* is taken by tiles of bf16, all rows at once; a chunk is what is left to products then */
    bool thirds;                /* by tiles: f32 in thirds, see pairs/thirds.h */
};

/* What the threads share. */
struct memory {
    float *logits;              /* (chunk, vocab) */
    float *losses, *factors;    /* (chunk), or by tiles (rows) */
    float *x, *dx;              /* (chunk, width): rows with a target, gathered; x is scaled by `factors` later */
    int32_t *list;              /* (rows): which rows those are */
    struct panels panels;
    float *base;                /* (rows): see pairs/loss.h, as for these two */
    int32_t *targets;           /* (rows) */
    char *tiles;                /* (threads, tile_bytes) */
    size_t tile_bytes;
};

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

static inline int64_t row_of(const struct work *w, int64_t i) { return w->dense ? w->first + i : w->m.list[w->first + i]; }
static inline int32_t target_of(const struct work *w, int64_t i) { return ((const int32_t *)w->c->in[2])[row_of(w, i)]; }

/* Is no loss of the chunk NaN or so large that sums of powers may have overflown? */
static inline bool in_range(const struct work *w)
{
    enum { MOST_LOSS = 40 };                    /* up to here all sums are far from overflow */
    bool is = true;
    for (int64_t i = 0; i < w->n; i++)
        is = is && w->m.losses[i] < MOST_LOSS;
    return is;
}

/* How rows and words of a chunk are divided among threads, by panels. */
struct blocks TUNED(loss_grid)(const struct sizes *s, int threads);
/* The chunk by panels; false: they can hold neither it nor, as well, those that come. */
bool TUNED(loss_by_panels)(struct work *w);
/* The losses of the chunk and, if they are asked for, its gradients: three products, and the maximum of the rows between them. */
void TUNED(loss_products)(const struct work *w);

#endif
