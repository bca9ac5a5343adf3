/* Which steps are listed. A report of a short trace has them all; one of a trace with very many would grow without end, and nobody
 * reads it: it has some, and says so. Sums, means and medians are of all steps either way. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers_int.h"
#include "core/stats.h"

/* The slowest and the fastest: those that are slower than the last of the slowest, and of those that are as slow the first. */
static void keep_ends(bool *keep, const struct trace_step *steps, int n)
{
    double *sorted = xcalloc((size_t)n, sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = steps[i].total_us;
    stats_sort(sorted, n);
    const double least = sorted[n - SHOWN_SLOWEST], fastest = sorted[0];
    free(sorted);
    int alike = SHOWN_SLOWEST, first = 0;
    for (int i = 0; i < n; i++)
        alike -= steps[i].total_us > least;
    for (int i = 0; i < n; i++)
        keep[i] = steps[i].total_us > least || (steps[i].total_us == least && alike-- > 0);
    while (steps[first].total_us != fastest)
        first++;
    keep[first] = true;
}

void numbers_show_steps(struct diagnosis *d, const struct trace_step *steps, int n, int median)
{
    bool *keep = xcalloc((size_t)n, sizeof *keep);
    const int64_t even = SHOWN_STEPS - SHOWN_SLOWEST - 3;       /* besides the fastest, the last and the median */
    if (n <= SHOWN_STEPS) {
        memset(keep, true, (size_t)n);
    } else {
        keep_ends(keep, steps, n);
        keep[n - 1] = keep[median] = true;
        for (int64_t i = 0; i < even; i++)
            keep[i * n / even] = true;                          /* the first is among them */
    }
    d->steps = arena_alloc(&d->arena, (size_t)(n < SHOWN_STEPS ? n : SHOWN_STEPS) * sizeof *d->steps);
    int shown = 0;
    for (int i = 0; i < n; i++) {
        if (i == median)
            d->timeline_shown = shown;
        if (keep[i])
            d->steps[shown++] = steps[i];
    }
    d->timeline_step = median;
    d->n_steps = n;
    d->steps_left_out = n - shown;
    free(keep);
}
