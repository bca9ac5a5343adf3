/* How a matrix is cut into one block per thread: results depend on the number of threads and nothing else. */
#ifndef HONE_OPS_CPU_TUNED_GRID_H
#define HONE_OPS_CPU_TUNED_GRID_H

#include "ops/cpu/tuned/tuned.h"

/* A grid of rows * columns = threads blocks whose perimeter, and with it the memory traffic, is smallest. But where the right operand
 * (k, n) is small and rows are enough to pay for packing it on every thread, rows alone are cut: most ops split their work so, and
 * what a thread has made is in its own cache. */
enum { GRID_SMALL = 1 << 16, GRID_ROWS = 64 };

static inline struct blocks grid_choose(int64_t m, int64_t n, int64_t k, int threads)
{
    struct blocks best = {threads, 1, 1};
    double shortest = n * k <= GRID_SMALL && m >= GRID_ROWS * threads ? 0 : 1e300;
    for (int r = 1; r <= threads; r++) {
        if (threads % r)
            continue;
        const double border = (double)m / r + (double)n / (threads / r);
        if (border < shortest) {
            shortest = border;
            best = (struct blocks){r, threads / r, 1};
        }
    }
    return best;
}

/* The rows and columns of an (m, n) product over k that belong to this thread. */
struct block { struct span rows, cols; };

static inline struct block block_of(struct blocks g, int thread, int64_t m, int64_t n)
{
    return (struct block){team_span(m, 8, thread % g.rows, g.rows), team_span(n, 16, thread / g.rows, g.columns)};
}

static inline struct block my_block(const struct kernel_thread *t, int64_t m, int64_t n, int64_t k)
{
    return block_of(grid_choose(m, n, k, t->count), t->index, m, n);
}

#endif
