/* How a matrix is cut into one block per thread: results depend on the number of threads and nothing else. */
#ifndef HONE_OPS_CPU_TUNED_GRID_H
#define HONE_OPS_CPU_TUNED_GRID_H

#include "ops/cpu/tuned/tuned.h"

/* A grid of rows * columns = threads blocks whose perimeter, and with it the memory traffic, is smallest. */
struct grid { int rows, columns; };

static inline struct grid grid_choose(int64_t m, int64_t n, int threads)
{
    struct grid best = {threads, 1};
    double shortest = 1e300;
    for (int r = 1; r <= threads; r++) {
        if (threads % r)
            continue;
        const double border = (double)m / r + (double)n / (threads / r);
        if (border < shortest) {
            shortest = border;
            best = (struct grid){r, threads / r};
        }
    }
    return best;
}

/* The rows and columns of an (m, n) matrix that belong to this thread. */
struct block { struct span rows, cols; };

static inline struct block my_block(const struct kernel_thread *t, int64_t m, int64_t n)
{
    const struct grid g = grid_choose(m, n, t->count);
    return (struct block){team_span(m, 8, t->index % g.rows, g.rows), team_span(n, 16, t->index / g.rows, g.columns)};
}

#endif
