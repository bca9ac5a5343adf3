/* Turns in two groups: the split of sorted values that leaves least variance within the two parts, and a look at whether there is a
 * gap between them. Ends of parts are percentiles, so that a few turns in the gap or far out do not decide. Ratios of pairs are looked
 * at, and, as two sides that change on their own make three groups of ratios or more, the times of each side.
 *
 * By simulation, pairs of one mode (normal, lognormal, uniform, exponential, with a twentieth of the turns twice as long) are taken
 * for two in about one case of a hundred with 10 to 20 pairs and in next to none with more. With 40 pairs, modes of like size that are
 * six times their spread apart are found in nine of ten. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/stats.h"
#include "prove/prove_int.h"

static const double LEAST_SHARE = 0.2;      /* of the pairs, and one more, in each mode: fewer are outliers, which move no median */
static const double LEAST_APART = 1.05;     /* what is less is noise like any other */
static const double MOST_APART = 0.1;       /* of the pairs, in different groups, where both sides change together */
enum { LEAST_PAIRS = 4, FEW = 20 };         /* in each mode; where gaps come about by chance */

/* The number of values in the lower part. */
static int split(const double *sorted, int n, int least)
{
    double sum = 0, below = 0, best = -1;
    int at = least;
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    for (int k = 1; k <= n - least; k++) {
        below += sorted[k - 1];
        const double apart = below / k - (sum - below) / (n - k), between = (double)k * (n - k) * apart * apart;
        if (k >= least && between > best) {
            best = between;
            at = k;
        }
    }
    return at;
}

/* Is the gap wider than either part, and the more so, the fewer there are? */
static bool are_apart(const double *sorted, int n, int k)
{
    const double *low = sorted, *high = sorted + k;
    const double low_end = stats_percentile(low, k, 0.9), high_start = stats_percentile(high, n - k, 0.1);
    const double wide = fmax(low_end - stats_percentile(low, k, 0.1), stats_percentile(high, n - k, 0.9) - high_start);
    return high_start - low_end > (1 + (double)FEW / n) * wide;
}

/* Sorted values in two groups: the number of values in the lower one; 0: they are one. */
static int group(const double *sorted, int n)
{
    const int least = (int)fmax(LEAST_PAIRS, 1 + ceil(LEAST_SHARE * n));
    if (n < 2 * least)
        return 0;
    const int k = split(sorted, n, least);
    const double apart = stats_percentile(sorted + k, n - k, 0.5) - stats_percentile(sorted, k, 0.5);
    return apart >= log(LEAST_APART) && are_apart(sorted, n, k) ? k : 0;
}

/* Does a value keep to one side of the border while it is open? Then it is no group that comes and goes. */
static bool is_steady(const double *values, const struct pairs *p, double border)
{
    int strays = 0;
    for (int from = 0, n; from < p->n; from += n) {
        int above = 0;
        n = pairs_in_opening(p, from);
        for (int i = from; i < from + n; i++)
            above += values[i] >= border;
        strays += above < n - above ? above : n - above;
    }
    return strays <= MOST_APART * p->n;
}

/* Where the upper group of one side begins; INFINITY: it has no groups, or stays in one of them while it is open. */
static double border(const double *us, const struct pairs *p, double *room)
{
    for (int i = 0; i < p->n; i++)
        room[i] = log(us[i]);
    stats_sort(room, p->n);
    const int k = group(room, p->n);
    const double at = k ? exp(room[k]) : INFINITY;
    return is_steady(us, p, at) ? INFINITY : at;
}

/* Both sides keep to one group each, or change between two together. */
static bool go_together(const struct pairs *p, double *room)
{
    const double in_a = border(p->a, p, room), in_b = border(p->b, p, room);
    int apart = 0;
    for (int i = 0; i < p->n; i++)
        apart += (p->a[i] >= in_a) != (p->b[i] >= in_b);
    return apart <= MOST_APART * p->n;
}

struct modes modes_find(const struct pairs *p)
{
    const int n = p->n;
    double *room = xcalloc((size_t)n, sizeof *room), *ratios = xcalloc((size_t)n, sizeof *ratios);
    const bool together = go_together(p, room);
    for (int i = 0; i < n; i++)
        room[i] = ratios[i] = log(p->a[i] / p->b[i]);
    stats_sort(room, n);
    int k = group(room, n);
    if (k && is_steady(ratios, p, room[k]))
        k = 0;
    const struct modes m = {.two = k || !together, .share = (double)k / n,
                            .low = exp(k ? stats_percentile(room, k, 0.5) : stats_percentile(room, n, 0.1)),
                            .high = exp(k ? stats_percentile(room + k, n - k, 0.5) : stats_percentile(room, n, 0.9)),
                            .below = exp(stats_percentile(room, k ? k : n, 0.05)),
                            .above = exp(stats_percentile(room + k, n - k, 0.95))};
    free(room);
    free(ratios);
    return m;
}
