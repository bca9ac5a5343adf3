/* The interval of a ratio of medians by resampling.
 *
 * A resample is a count per pair. The median of a resample is found by walking the values in ascending order and adding counts
 * up to half, so that only the original values are sorted, once. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/rng.h"
#include "core/stats.h"
#include "prove/prove_int.h"

enum { RESAMPLES = 2000 };

struct ranked {
    double value;
    int pair;
};

static int ascending(const void *x, const void *y)
{
    const double a = ((const struct ranked *)x)->value, b = ((const struct ranked *)y)->value;
    return a < b ? -1 : a > b;
}

static struct ranked *rank(const double *values, int n)
{
    struct ranked *r = xcalloc((size_t)n, sizeof *r);
    for (int i = 0; i < n; i++)
        r[i] = (struct ranked){values[i], i};
    qsort(r, (size_t)n, sizeof *r, ascending);
    return r;
}

/* Of n values, counts[pair] times each: the value at half, or between two of them. */
static double median(const struct ranked *sorted, const int *counts, int n)
{
    int seen = 0;
    for (int i = 0; i < n; i++) {
        seen += counts[sorted[i].pair];
        if (2 * seen > n)
            return sorted[i].value;
        if (2 * seen == n) {
            int next = i + 1;
            while (!counts[sorted[next].pair])
                next++;
            return (sorted[i].value + sorted[next].value) / 2;
        }
    }
    return NAN;                             /* not reached: the counts add up to n */
}

/* Blocks from anywhere, around the end to the start, until there are n pairs. */
static void draw(int *counts, int n, int block, uint64_t seed, uint64_t resample)
{
    for (int i = 0; i < n; i++)
        counts[i] = 0;
    for (int drawn = 0; drawn < n;) {
        const int start = (int)rng_below(seed, resample, (uint64_t)drawn, (uint64_t)n);
        for (int i = 0; i < block && drawn < n; i++, drawn++)
            counts[(start + i) % n]++;
    }
}

struct ratio bootstrap_ratio(const double *a, const double *b, int n, double confidence, uint64_t seed)
{
    struct ranked *by_a = rank(a, n), *by_b = rank(b, n);
    int *counts = xcalloc((size_t)n, sizeof *counts);
    double *ratios = xcalloc(RESAMPLES, sizeof *ratios);
    const int block = (int)lround(cbrt(n));
    for (int i = 0; i < n; i++)
        counts[i] = 1;
    struct ratio r = {.a = median(by_a, counts, n), .b = median(by_b, counts, n)};
    r.value = r.a / r.b;
    for (int i = 0; i < RESAMPLES; i++) {
        draw(counts, n, block, seed, (uint64_t)i);
        ratios[i] = median(by_a, counts, n) / median(by_b, counts, n);
    }
    stats_sort(ratios, RESAMPLES);
    r.low = stats_percentile(ratios, RESAMPLES, (1 - confidence) / 2);
    r.high = stats_percentile(ratios, RESAMPLES, (1 + confidence) / 2);
    free(by_a);
    free(by_b);
    free(counts);
    free(ratios);
    return r;
}
