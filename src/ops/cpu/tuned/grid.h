/* How a matrix is cut into one block per thread, or a sum into parts of blocks: results depend on the number of threads and nothing else. */
#ifndef HONE_OPS_CPU_TUNED_GRID_H
#define HONE_OPS_CPU_TUNED_GRID_H

#include "ops/cpu/tuned/tuned.h"

enum { GRID_SMALL = 1 << 17, GRID_PER_ROW = 2048, GRID_MANY_ROWS = 64, GRID_ROW_UNIT = 8, GRID_COLUMN_UNIT = 16, GRID_DEPTH_UNIT = 64 };

static inline bool grid_fits(int64_t m, int64_t n, int rows, int columns)
{
    return (int64_t)(rows - 1) * GRID_ROW_UNIT < m && (int64_t)(columns - 1) * GRID_COLUMN_UNIT < n;
}

/* A grid of rows * columns = threads blocks whose perimeter, and with it the memory traffic, is smallest; columns count half, since rows are what threads
 * that are near have made, as most ops split their work by rows. No thread goes without a block while another grid has one for it. */
static inline struct blocks grid_shortest(int64_t m, int64_t n, int threads)
{
    struct blocks best = {threads, 1, 1};
    double shortest = 1e300;
    for (int r = 1; r <= threads; r++) {
        if (threads % r || !grid_fits(m, n, r, threads / r))
            continue;
        const double border = (double)m / r + (double)n / (threads / r) / 2;
        if (border < shortest) {
            shortest = border;
            best = (struct blocks){r, threads / r, 1};
        }
    }
    return best;
}

/* Where the right operand (k, n) is small and rows are enough to pay for fetching it on every thread, and for packing it where it is transposed, rows alone are cut: what a thread has made
 * is in its own cache, and it need not meet the others before it goes on. */
static inline struct blocks grid_choose(int64_t m, int64_t n, int64_t k, bool b_transposed, int threads)
{
    const int64_t rows = m / threads, least_rows = b_transposed ? 2 * GRID_ROW_UNIT : GRID_ROW_UNIT;
    const bool even = rows >= GRID_MANY_ROWS || m % (GRID_ROW_UNIT * threads) == 0;        /* a unit more or less is little, or nobody has one */
    if (even && rows >= least_rows && n * k <= GRID_SMALL && n * k <= GRID_PER_ROW * rows)
        return (struct blocks){threads, 1, 1};
    return grid_shortest(m, n, threads);
}

/* Floats of its own rows that a thread still has near, where that matters. */
enum { GRID_NEAR = FAR_IS_DEAR ? 1 << 17 : 0 };

/* Of a thread of a sum over k, in floats fetched: what it packs, from near or far, and where a block has several parts what it stores of its own and who sums up reads of it, and a meeting.
 * With its own rows alone it meets nobody before, and has its own part near, too. */
static inline double grid_sums_cost(int64_t m, int64_t n, int64_t k, struct blocks g, int threads)
{
    static const double NEAR = 0.5, FAR = 1.5, MEETING = 10000;
    const double rows = (double)m / g.rows, columns = (double)n / g.columns, operands = (double)k / g.depth * (rows + columns), part = rows * columns;
    if (g.depth == threads && operands <= GRID_NEAR)
        return operands * NEAR + part * (2 - 1.0 / g.depth);
    return operands * FAR + (g.depth > 1 ? 2 * part + MEETING : 0);
}

/* Of a product of a transposed (k, m) and (k, n), whose k are rows, as for gradients of weights: threads may have the same block, each a part of the depth. */
static inline struct blocks grid_sums(int64_t m, int64_t n, int64_t k, int threads)
{
    struct blocks best = grid_shortest(m, n, threads);
    double least_cost = grid_sums_cost(m, n, k, best, threads);
    for (int depth = 2; depth <= threads && (int64_t)depth * GRID_DEPTH_UNIT <= k; depth++) {
        if (threads % depth)
            continue;
        struct blocks g = grid_shortest(m, n, threads / depth);
        g.depth = depth;
        const double cost = grid_sums_cost(m, n, k, g, threads);
        if (cost < least_cost) {
            least_cost = cost;
            best = g;
        }
    }
    return best;
}

/* The part of k that a thread has of such a sum. */
static inline struct span grid_depth(struct blocks g, int thread, int64_t k)
{
    return team_span(k, g.rows * g.columns > 1 ? GRID_DEPTH_UNIT : GRID_ROW_UNIT, thread / (g.rows * g.columns), g.depth);
}

/* The rows and columns of an (m, n) product over k that belong to this thread. */
struct block { struct span rows, cols; };

/* Threads that follow each other have the same rows. */
static inline int block_row(struct blocks g, int thread) { return thread / g.columns; }
static inline int block_column(struct blocks g, int thread) { return thread % g.columns; }

static inline struct block block_of(struct blocks g, int thread, int64_t m, int64_t n)
{
    return (struct block){team_span(m, GRID_ROW_UNIT, block_row(g, thread), g.rows), team_span(n, GRID_COLUMN_UNIT, block_column(g, thread), g.columns)};
}

#endif
