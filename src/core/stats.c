/* See stats.h. */
#include "core/stats.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void stats_sort(double *values, int n) { qsort(values, (size_t)n, sizeof *values, ascending); }

double stats_percentile(const double *sorted, int n, double part)
{
    const double at = part * (n - 1);
    const int low = (int)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}
