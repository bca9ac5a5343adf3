/* What this CPU reaches on the two things that bound every op: multiply-add and memory traffic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"

enum { GEMM_ROWS = 384, GEMM_SIZE = 768, CACHE_LINE_DOUBLES = 16 };
static const double SECONDS = 0.06;         /* per measurement and round; peaks_settle says how many rounds there are */

struct work {
    struct team *team;
    float *a, *b, *c;           /* matrices of all threads, or memory to copy */
    size_t room;                /* bytes of each of a, b, c */
    size_t bytes;               /* per thread and copy */
    int repeats;                /* copies per run */
    bool bf16;                  /* products */
    enum gemm_kernel kernel;
    registers_fn *registers;
    double *best;               /* per thread, a cache line apart: seconds of its fastest run */
};

static void keep_best(const struct work *w, int member, double start)
{
    const double seconds = clock_s() - start;
    if (seconds < w->best[member * CACHE_LINE_DOUBLES])
        w->best[member * CACHE_LINE_DOUBLES] = seconds;
}

/* Every thread multiplies matrices of its own, all at the same time, for about ten milliseconds. */
static void multiply(void *argument, int member)
{
    const struct work *w = argument;
    const int64_t rows = (int64_t)member * GEMM_ROWS;
    const double start = clock_s();
    cpu_gemm()(&(struct gemm){.m = GEMM_ROWS, .n = GEMM_SIZE, .k = GEMM_SIZE, .a = w->a + rows * GEMM_SIZE,
                              .a_row = GEMM_SIZE, .a_col = 1, .b = w->b, .ldb = GEMM_SIZE, .c = w->c + rows * GEMM_SIZE,
                              .ldc = GEMM_SIZE, .scale = 1, .bf16 = w->bf16, .kernel = w->kernel});
    keep_best(w, member, start);
}

enum { REGISTER_ROUNDS = 20000 };          /* some tens of microseconds */

/* Every thread multiplies and adds in its registers. */
static void multiply_add(void *argument, int member)
{
    const struct work *w = argument;
    const double start = clock_s();
    w->registers(REGISTER_ROUNDS);
    keep_best(w, member, start);
}

/* Every thread copies within a part of its own; a barrier keeps the compiler from seeing that repeats change nothing. */
static void copy(void *argument, int member)
{
    const struct work *w = argument;
    char *to = (char *)w->c + w->bytes * (size_t)member, *from = (char *)w->a + w->bytes * (size_t)member;
    const double start = clock_s();
    for (int i = 0; i < w->repeats; i++) {
        memcpy(to, from, w->bytes);
        __asm__ volatile("" ::: "memory");
    }
    keep_best(w, member, start);
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

/* Work per second of all threads, each in its own fastest run: short enough that some runs are not interrupted, even while
 * other programs use the machine. Right for what threads do not share; of a core that several have, each has its part. */
static double rate_each(struct work *w, team_fn *fn, double work_per_thread)
{
    const int threads = team_size(w->team);
    const double cores = cpu_usable_cores();
    double sum = 0;
    for (int i = 0; i < threads; i++)
        w->best[i * CACHE_LINE_DOUBLES] = 1e30;
    fastest(w, fn);
    for (int i = 0; i < threads; i++)
        sum += work_per_thread / w->best[i * CACHE_LINE_DOUBLES];
    return threads > cores ? sum * cores / threads : sum;
}

/* 0: there is no such instruction. */
static double measure_registers(struct work *w, registers_fn *registers)
{
    w->registers = registers;
    return registers ? rate_each(w, multiply_add, registers(REGISTER_ROUNDS)) / 1e9 : 0;
}

/* The fastest of our own kernel, thirds and BLAS, where they are there. */
static double measure_gemm(struct work *w, bool bf16)
{
    double best = 0;
    w->bf16 = bf16;
    for (w->kernel = GEMM_OWN; w->kernel < (bf16 ? GEMM_THIRDS : GEMM_KERNELS); w->kernel++)
        if (w->kernel == GEMM_OWN || gemm_below((int)w->kernel) > 0)
            best = fmax(best, rate_each(w, multiply, 2.0 * GEMM_ROWS * GEMM_SIZE * GEMM_SIZE) / 1e9);
    return best;
}

/* A level that the threads share is measured by the time until all are done. */
static double measure_copy(struct work *w, double bytes_per_thread, bool shared)
{
    const size_t most = w->room / (size_t)team_size(w->team);       /* many threads with a large cache each */
    w->bytes = (size_t)bytes_per_thread < most ? (size_t)bytes_per_thread : most;
    w->bytes = w->bytes / 64 * 64;
    if (!w->bytes)
        return 0;
    w->repeats = (int)(4e6 / (double)w->bytes) + 1;
    const double moved = 2.0 * (double)w->bytes * w->repeats;
    return (shared ? moved * team_size(w->team) / fastest(w, copy) : rate_each(w, copy, moved)) / 1e9;
}

/* One round of all of them, one after the other, so that what disturbs the machine for a while disturbs no number in every round. */
struct rounds {
    struct backend *backend;
    struct work *work;
    const struct cpu_machine *machine;
    double memory_bytes;
};

static void measure_round(void *context, struct peaks *out)
{
    const struct rounds *r = context;
    const double *cache = r->machine->cache_bytes, threads = team_size(r->work->team), memory = r->memory_bytes;
    out->registers_gflops = measure_registers(r->work, cpu_registers());
    out->registers_bf16_gflops = measure_registers(r->work, cpu_registers_bf16());
    out->product_gflops = measure_gemm(r->work, false);
    out->gflops[NUMBERS_F32] = fmax(out->registers_gflops, out->product_gflops);
    out->gflops[NUMBERS_BF16] = cpu_has_bf16() ? measure_gemm(r->work, true) : 0;
    const struct pace now = cpu_pace_for(r->backend, NUMBERS_F32, SECONDS);
    out->near_gflops[NUMBERS_F32] = now.gflops;
    out->near_gflops[NUMBERS_BF16] = cpu_has_bf16() ? cpu_pace_for(r->backend, NUMBERS_BF16, SECONDS).gflops : 0;
    out->clock = now.clock;
    /* source and target together fill half of a level: of a core's own, or its share of the common one */
    out->copy_gb_per_s[0] = measure_copy(r->work, cache[0] / 4, false);
    out->copy_gb_per_s[1] = measure_copy(r->work, cache[1] / 4, false);
    out->copy_gb_per_s[2] = measure_copy(r->work, fmin(cache[2] / 4, memory) / threads, true);
    out->copy_gb_per_s[3] = measure_copy(r->work, memory / threads, true);
}

static void fill(float *to, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = cpu_number_at((int64_t)i);
}

void cpu_measure_peaks(struct backend *b, const struct cpu_machine *m, struct peaks *out)
{
    struct work w = {.team = cpu_team(b)};
    const double memory = 128e6;
    const size_t matrices = (size_t)b->lanes * GEMM_ROWS * GEMM_SIZE * sizeof(float);
    const size_t bytes = matrices > (size_t)memory ? matrices : (size_t)memory / 64 * 64;
    w.room = bytes;
    *out = (struct peaks){.threads = b->lanes};
    memcpy(out->machine, m->fingerprint, sizeof out->machine);
    memcpy(out->cache_bytes, m->cache_bytes, sizeof m->cache_bytes);
    out->cache_bytes[CACHE_LEVELS - 1] = m->memory_bytes;
    struct peaks known;                     /* a busy machine shows less than it can; and rounds that show no more are quiet from the first on */
    if (peaks_recall(&known, m->fingerprint, b->lanes))
        peaks_keep_best(out, &known);
    w.best = xcalloc((size_t)b->lanes * CACHE_LINE_DOUBLES, sizeof *w.best);
    w.a = aligned_alloc(64, bytes);
    w.b = aligned_alloc(64, bytes);
    w.c = aligned_alloc(64, bytes);
    if (w.a && w.b && w.c) {
        fill(w.a, bytes);
        fill(w.b, bytes);
        memset(w.c, 0, bytes);
        peaks_settle(out, measure_round, &(struct rounds){b, &w, m, memory});
    }
    free(w.best);
    free(w.a);
    free(w.b);
    free(w.c);
}
