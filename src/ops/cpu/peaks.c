/* What this CPU reaches on the two things that bound every op: multiply-add and memory traffic. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"

struct work {
    struct team *team;
    int n;                      /* matrix size */
    size_t bytes;
    float *a, *b, *c;
};

static void multiply(void *argument, int member)
{
    const struct work *w = argument;
    const struct span s = team_span(w->n, 8, member, team_size(w->team));
    if (s.hi > s.lo)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(s.hi - s.lo), w->n, w->n, 1, w->a + s.lo * w->n,
                    w->n, w->b, w->n, 0, w->c + s.lo * w->n, w->n);
}

static void copy(void *argument, int member)
{
    const struct work *w = argument;
    const struct span s = team_span((int64_t)w->bytes, 4096, member, team_size(w->team));
    memcpy((char *)w->c + s.lo, (char *)w->a + s.lo, (size_t)(s.hi - s.lo));
}

/* Seconds of the fastest of several runs: a peak is what the machine can do, not what it does on average. */
static double fastest(struct work *w, team_fn *fn, double seconds)
{
    double best = 1e30;
    const double end = clock_s() + seconds;
    team_run(w->team, fn, w);
    for (int i = 0; i < 3 || clock_s() < end; i++) {
        const double start = clock_s();
        team_run(w->team, fn, w);
        const double t = clock_s() - start;
        best = t < best ? t : best;
    }
    return best;
}

static bool work_alloc(struct work *w, size_t bytes)
{
    w->a = aligned_alloc(64, bytes);
    w->b = aligned_alloc(64, bytes);
    w->c = aligned_alloc(64, bytes);
    if (!w->a || !w->b || !w->c)
        return false;
    memset(w->a, 0, bytes);
    memset(w->b, 0, bytes);
    memset(w->c, 0, bytes);
    return true;
}

static void work_release(struct work *w)
{
    free(w->a);
    free(w->b);
    free(w->c);
}

double cpu_peak_gflops(struct backend *b, int n, double seconds)
{
    struct work w = {.team = cpu_team(b), .n = n};
    double result = 0;
    if (work_alloc(&w, (size_t)n * (size_t)n * sizeof(float) / 64 * 64))
        result = 2.0 * n * n * n / fastest(&w, multiply, seconds) / 1e9;
    work_release(&w);
    return result;
}

double cpu_copy_gb_per_s(struct backend *b, size_t bytes, double seconds)
{
    struct work w = {.team = cpu_team(b), .bytes = bytes / 4096 * 4096};
    double result = 0;
    if (work_alloc(&w, w.bytes))
        result = 2.0 * (double)w.bytes / fastest(&w, copy, seconds) / 1e9;
    work_release(&w);
    return result;
}
