/* From when kernels ran to when ops did; knows nothing of CUDA. */
#include "ops/cuda/spans.h"

/* A moment in which several kernels run is divided among them, so that the times of ops add up to the time in which any ran. Spans are
 * sorted by their start; `part` gets what each has. */
static void divide(const struct kernel_span *s, int n, double *part)
{
    for (int first = 0, next; first < n; first = next) {
        int64_t end = s[first].end_ns;
        for (next = first + 1; next < n && s[next].start_ns < end; next++)      /* that lie over each other, or over one between */
            end = s[next].end_ns > end ? s[next].end_ns : end;
        for (int64_t at = s[first].start_ns; at < end;) {
            int64_t until = end;
            int running = 0;
            for (int i = first; i < next; i++) {
                const bool runs = s[i].start_ns <= at && s[i].end_ns > at;
                running += runs;
                if (runs && s[i].end_ns < until)
                    until = s[i].end_ns;
                if (s[i].start_ns > at && s[i].start_ns < until)
                    until = s[i].start_ns;
            }
            for (int i = first; i < next; i++)
                if (s[i].start_ns <= at && s[i].end_ns > at)
                    part[i] += (double)(until - at) / running;
            at = until;
        }
    }
}

void spans_lay_out(const struct kernel_span *s, int n, int first, int end, struct lane_time *times, int64_t start, double *part)
{
    divide(s, n, part);
    for (int i = first; i < end; i++)
        times[i - first] = (struct lane_time){0};
    for (int k = 0; k < n; k++) {
        const int i = s[k].op - first;
        if (s[k].op < first || s[k].op >= end)
            continue;
        if (!times[i].start_ns)
            times[i] = (struct lane_time){.start_ns = s[k].start_ns, .end_ns = s[k].start_ns};
        times[i].end_ns += (int64_t)(part[k] + 0.5);
    }
    int64_t before = start;
    for (int i = 0; i < end - first; i++) {
        if (!times[i].start_ns)
            times[i] = (struct lane_time){.start_ns = before, .end_ns = before};
        before = times[i].end_ns;
    }
}

void spans_spread(struct lane_time *times, int n, int64_t start, int64_t stop)
{
    for (int i = 0; i < n; i++)
        times[i] = (struct lane_time){.start_ns = start + (stop - start) * i / n, .end_ns = start + (stop - start) * (i + 1) / n};
}
