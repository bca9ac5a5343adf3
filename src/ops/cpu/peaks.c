/* What this CPU reaches on the two things that bound every op: multiply-add and memory traffic. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"

enum { GEMM_SIZE = 1024 };
static const double SECONDS = 0.4;          /* per measurement */

struct work {
    struct team *team;
    float *a, *b, *c;           /* (GEMM_SIZE, GEMM_SIZE), or memory to copy */
    size_t bytes;               /* per thread and copy */
    int repeats;                /* copies per run */
};

static void multiply(void *argument, int member)
{
    const struct work *w = argument;
    const struct span s = team_span(GEMM_SIZE, 8, member, team_size(w->team));
    if (s.hi > s.lo)
        cpu_gemm()(&(struct gemm){.m = s.hi - s.lo, .n = GEMM_SIZE, .k = GEMM_SIZE, .a = w->a + s.lo * GEMM_SIZE,
                                  .a_row = GEMM_SIZE, .a_col = 1, .b = w->b, .ldb = GEMM_SIZE,
                                  .c = w->c + s.lo * GEMM_SIZE, .ldc = GEMM_SIZE, .scale = 1});
}

/* Every thread copies within a part of its own; a barrier keeps the compiler from seeing that repeats change nothing. */
static void copy(void *argument, int member)
{
    const struct work *w = argument;
    char *to = (char *)w->c + w->bytes * (size_t)member, *from = (char *)w->a + w->bytes * (size_t)member;
    for (int i = 0; i < w->repeats; i++) {
        memcpy(to, from, w->bytes);
        __asm__ volatile("" ::: "memory");
    }
}

/* Seconds of the fastest of several runs: a peak is what the machine can do, not what it does on average. */
static double fastest(struct work *w, team_fn *fn)
{
    double best = 1e30;
    const double end = clock_s() + SECONDS;
    team_run(w->team, fn, w);
    for (int i = 0; i < 3 || clock_s() < end; i++) {
        const double start = clock_s();
        team_run(w->team, fn, w);
        const double t = clock_s() - start;
        best = t < best ? t : best;
    }
    return best;
}

static double measure_gemm(struct work *w)
{
    return 2.0 * GEMM_SIZE * GEMM_SIZE * GEMM_SIZE / fastest(w, multiply) / 1e9;
}

static double measure_copy(struct work *w, double bytes_per_thread)
{
    w->bytes = (size_t)bytes_per_thread / 64 * 64;
    w->repeats = (int)(4e6 / (double)w->bytes) + 1;
    if (!w->bytes)
        return 0;
    return 2.0 * (double)w->bytes * team_size(w->team) * w->repeats / fastest(w, copy) / 1e9;
}

void cpu_measure_peaks(struct backend *b, const struct cpu_machine *m, struct peaks *out)
{
    struct work w = {.team = cpu_team(b)};
    const double threads = b->threads, memory = 128e6;
    const size_t bytes = (size_t)memory / 64 * 64;          /* also holds the matrices */
    *out = (struct peaks){.threads = b->threads};
    memcpy(out->machine, m->fingerprint, sizeof out->machine);
    memcpy(out->cache_bytes, m->cache_bytes, sizeof m->cache_bytes);
    out->cache_bytes[CACHE_LEVELS - 1] = m->memory_bytes;
    w.a = aligned_alloc(64, bytes);
    w.b = aligned_alloc(64, bytes);
    w.c = aligned_alloc(64, bytes);
    if (w.a && w.b && w.c) {
        memset(w.a, 0, bytes);
        memset(w.b, 0, bytes);
        memset(w.c, 0, bytes);
        out->gemm_gflops = measure_gemm(&w);
        /* source and target together fill half of a level: of a core's own, or its share of the common one */
        out->copy_gb_per_s[0] = measure_copy(&w, m->cache_bytes[0] / 4);
        out->copy_gb_per_s[1] = measure_copy(&w, m->cache_bytes[1] / 4);
        out->copy_gb_per_s[2] = measure_copy(&w, m->cache_bytes[2] / 4 / threads < memory / threads
                                                     ? m->cache_bytes[2] / 4 / threads : memory / threads);
        out->copy_gb_per_s[3] = measure_copy(&w, memory / threads);
    }
    free(w.a);
    free(w.b);
    free(w.c);
}
