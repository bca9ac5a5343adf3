/* How many of a core's places for instructions are ours: bench-slots [SECONDS [CPU]]. Pairs of multiply-adds in registers, with up to four empty
 * instructions behind each pair, in cycles of the core, which a chain of multiplications counts. A core with six places takes one cycle for any of
 * them while it is ours alone; with another thread beside ours, a hyperthread, it has three, and pairs with more than one empty instruction take longer. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/stats.h"

enum { RUNS = 600, PAIRS = 10, CHAIN = 10, MOST = 200000, EMPTY = 5 };

#if defined(__AVX512F__)
#define ADD(to) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #to "\n"
#define TOUCHED "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9"
#elif defined(__FMA__)
#define ADD(to) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #to "\n"
#define TOUCHED "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9"
#elif defined(__aarch64__)
#define ADD(to) "fmla v" #to ".4s, v30.4s, v31.4s\n"
#define TOUCHED "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"
#endif

#if defined(ADD)

/* LATENCY: cycles of a multiplication, on Intel's and AMD's cores, and on a Neoverse-V1. */
#if defined(__aarch64__)
enum { LATENCY = 2 };
static void multiply_once(uint64_t *x) { __asm__ volatile("mul %0, %0, %0" : "+r"(*x)); }
#else
enum { LATENCY = 3 };
static void multiply_once(uint64_t *x) { __asm__ volatile("imul %0, %0" : "+r"(*x)); }
#endif

#define FIVE(e) ADD(0) ADD(1) e ADD(2) ADD(3) e ADD(4) ADD(5) e ADD(6) ADD(7) e ADD(8) ADD(9) e
#define PAIRS_WITH(name, e)                                               \
    static void name(void)                                               \
    {                                                                    \
        for (int i = 0; i < RUNS; i++)                                   \
            __asm__ volatile(FIVE(e) FIVE(e) : : : TOUCHED);             \
    }
PAIRS_WITH(none, "")
PAIRS_WITH(one, "nop\n")
PAIRS_WITH(two, "nop\nnop\n")
PAIRS_WITH(three, "nop\nnop\nnop\n")
PAIRS_WITH(four, "nop\nnop\nnop\nnop\n")

static void chain(void)
{
    uint64_t x = 1;
    for (int i = 0; i < RUNS; i++)
        for (int k = 0; k < CHAIN; k++)
            multiply_once(&x);
}

static double seconds_of(void (*fn)(void))
{
    const double start = clock_s();
    fn();
    return clock_s() - start;
}

int main(int argc, char **argv)
{
    static void (*const pairs[EMPTY])(void) = {none, one, two, three, four};
    const double end = clock_s() + (argc > 1 ? atof(argv[1]) : 2);
    double *cycles[EMPTY];
    int n = 0;
    for (int i = 0; i < EMPTY; i++)
        cycles[i] = xcalloc(MOST, sizeof *cycles[i]);
    if (argc > 2) {
        cpu_set_t cpu;
        CPU_ZERO(&cpu);
        CPU_SET(atoi(argv[2]), &cpu);
        sched_setaffinity(0, sizeof cpu, &cpu);
    }
    for (; n < MOST && clock_s() < end; n++) {
        const double cycle = seconds_of(chain) / (RUNS * CHAIN * LATENCY);
        for (int i = 0; i < EMPTY; i++)
            cycles[i][n] = seconds_of(pairs[i]) / (RUNS * PAIRS) / cycle;
    }
    printf("cycles for two multiply-adds in registers, 10th, 50th and 90th of 100 of %d readings\n", n);
    for (int i = 0; i < EMPTY; i++) {
        stats_sort(cycles[i], n);
        printf("and %d empty instructions  %5.2f %5.2f %5.2f\n", i, stats_percentile(cycles[i], n, 0.1), stats_percentile(cycles[i], n, 0.5),
               stats_percentile(cycles[i], n, 0.9));
        free(cycles[i]);
    }
    return 0;
}

#else

int main(void)
{
    puts("there are no multiply-adds of vectors here, or this was built without them");
    return 2;
}

#endif
