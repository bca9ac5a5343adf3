/* The interval of a gain over openings.
 *
 * What a side's steps take differs from opening to opening by more than from turn to turn: memory lies elsewhere, threads run on other cores. So an opening
 * is one reading, the logarithm of the ratio of its medians, and its noise has both in it. The interval is Student's over these readings: it is true for a
 * few of them, where resampling is not. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/stats.h"
#include "prove/prove_int.h"

static const double CONFIDENCE = 0.92;       /* for 90 %: of a measurement that went on while the interval was wide two or three of 100 more do not hold the gain */
static const double SURE = 0.98;

static double log_median(const double *values, int n, double *room)
{
    for (int i = 0; i < n; i++)
        room[i] = values[i];
    stats_sort(room, n);
    return log(stats_percentile(room, n, 0.5));
}

int pairs_in_opening(const struct pairs *p, int from)
{
    int to = from;
    while (to < p->n && p->opening[to] == p->opening[from])
        to++;
    return to - from;
}

/* Of readings (n) around their mean: half of the interval that holds `confidence`. */
static double half_width(const double *readings, int n, double mean, double confidence)
{
    double squares = 0;
    for (int i = 0; i < n; i++)
        squares += (readings[i] - mean) * (readings[i] - mean);
    return n > 1 ? stats_student(n - 1, (1 + confidence) / 2) * sqrt(squares / (n - 1) / n) : INFINITY;
}

struct ratio ratio_of_pairs(const struct pairs *p)
{
    double *readings = xcalloc((size_t)p->n, sizeof *readings), *room = xcalloc((size_t)p->n, sizeof *room), a = 0, b = 0;
    int n = 0;
    for (int from = 0, turns; from < p->n; from += turns) {
        turns = pairs_in_opening(p, from);
        const double of_a = log_median(p->a + from, turns, room), of_b = log_median(p->b + from, turns, room);
        readings[n++] = of_a - of_b;
        a += of_a;
        b += of_b;
    }
    const double mean = (a - b) / n, half = half_width(readings, n, mean, CONFIDENCE), sure = half_width(readings, n, mean, SURE);
    free(readings);
    free(room);
    return (struct ratio){.a = exp(a / n), .b = exp(b / n), .value = exp(a / n) / exp(b / n), .low = exp(mean - half), .high = exp(mean + half),
                          .sure_low = exp(mean - sure), .sure_high = exp(mean + sure), .openings = n};
}
