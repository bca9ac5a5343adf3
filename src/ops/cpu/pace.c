/* What the cores have now: every thread multiplies two small matrices that stay in its core's own cache, as the kernels of a step do, and takes a
 * chain of operations each of which waits for the one before. The chain goes as the clock does, whoever else is on the core. The product does not: a core that runs
 * another thread beside ours (a hyperthread, of this system or of another one) has half of its places for each, and loads, multiply-adds
 * and tiles of AMX suffer more from it than multiply-adds in registers do (docs/performance.md). */
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"

enum { ROWS = 48, COLUMNS = 64, DEPTH = 128, A = ROWS * DEPTH, B = DEPTH * COLUMNS, C = ROWS * COLUMNS, MATRICES = A + B + C };
enum { CHAIN = 1024, TRIES = 4 };               /* of a burst, of which the first one warms up */
enum { LINE = 16, PRODUCT = 0, WAITED = 1 };    /* doubles from one thread's times to the next, and what they are of */

struct work {
    float *matrices;            /* (threads, MATRICES) */
    bool bf16;
    double *best;               /* (threads, LINE): seconds */
};

float *cpu_pace_matrices(int threads)
{
    const size_t n = (size_t)threads * MATRICES;
    float *out = cpu_memory_take(n * sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        out[i] = cpu_number_at((int64_t)i);
    return out;
}

static void multiply(float *at, bool bf16)
{
    cpu_gemm()(&(struct gemm){.m = ROWS, .n = COLUMNS, .k = DEPTH, .a = at, .a_row = DEPTH, .a_col = 1, .b = at + A, .ldb = COLUMNS, .c = at + A + B,
                              .ldc = COLUMNS, .scale = 1, .bf16 = bf16, .kernel = GEMM_OWN});
}

static void wait_in_turn(void)
{
    uint64_t x = 1;
    for (int i = 0; i < CHAIN; i++) {
        x = x * 3 + 1;
        __asm__ volatile("" : "+r"(x));
    }
}

static void keep_best(double *best, double start)
{
    const double seconds = clock_s() - start;
    *best = seconds < *best ? seconds : *best;
}

static void burst(void *argument, int member)
{
    const struct work *w = argument;
    double *best = w->best + member * LINE;
    for (int i = 0; i < TRIES; i++) {
        double start = clock_s();
        multiply(w->matrices + (int64_t)member * MATRICES, w->bf16);
        keep_best(&best[PRODUCT], start);
        start = clock_s();
        wait_in_turn();
        keep_best(&best[WAITED], start);
    }
}

struct pace cpu_pace_for(struct backend *b, enum numbers numbers, double seconds)
{
    struct work w = {.matrices = cpu_pace_room(b), .bf16 = numbers == NUMBERS_BF16 && cpu_has_bf16()};
    struct pace out = {0};
    if (!w.matrices)
        return out;
    w.best = xcalloc((size_t)b->lanes * LINE, sizeof *w.best);
    for (int i = 0; i < b->lanes * LINE; i++)
        w.best[i] = 1e30;
    const double end = clock_s() + seconds;
    do
        team_run(cpu_team(b), burst, &w);
    while (clock_s() < end);
    for (int i = 0; i < b->lanes; i++) {
        out.gflops += 2.0 * ROWS * COLUMNS * DEPTH / 1e9 / w.best[i * LINE + PRODUCT];
        out.clock += CHAIN / 1e9 / w.best[i * LINE + WAITED] / b->lanes;
    }
    free(w.best);
    return out;
}

struct pace cpu_pace(struct backend *b, enum numbers numbers) { return cpu_pace_for(b, numbers, 0); }
