/* See stats.h. */
#include "core/stats.h"

#include <math.h>
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

/* How much of Student's t lies between -t and t: a sum of finitely many powers of a cosine, by the angle whose tangent is t over the root of the degrees of freedom. */
static double student_within(int freedom, double t)
{
    const double angle = atan(t / sqrt(freedom)), cosine = cos(angle);
    double term = freedom % 2 ? cosine : 1, sum = freedom > 1 ? term : 0;
    for (int k = freedom % 2 ? 3 : 2; k < freedom; k += 2) {
        term *= (k - 1.0) / k * cosine * cosine;
        sum += term;
    }
    return freedom % 2 ? 2 / M_PI * (angle + sin(angle) * sum) : sin(angle) * sum;
}

double stats_student(int freedom, double part)
{
    const double within = 2 * part - 1;
    double low = 0, high = 1;
    while (student_within(freedom, high) < within)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(student_within(freedom, middle) < within ? &low : &high) = middle;
    }
    return high;
}

double timed_scaled(struct timed t, double factor) { return fmax(t.us * factor, fmin(t.us, t.floor_us)); }

static double sum_scaled(const struct timed *list, int n, double other_us, double factor)
{
    double us = other_us * factor;
    for (int i = 0; i < n; i++)
        us += timed_scaled(list[i], factor);
    return us;
}

double timed_factor(const struct timed *list, int n, double other_us, double whole_us, bool *alike)
{
    double all_us = other_us, low = 0;
    for (int i = 0; i < n; i++)
        all_us += list[i].us;
    double high = all_us > 0 ? whole_us / all_us : 0;
    *alike = high > 1 || sum_scaled(list, n, other_us, 0) >= whole_us;
    for (int i = 0; i < 60 && !*alike; i++) {        /* it grows with the factor */
        const double middle = (low + high) / 2;
        *(sum_scaled(list, n, other_us, middle) < whole_us ? &low : &high) = middle;
    }
    return high;
}
