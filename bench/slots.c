/* How many of a core's places for instructions are ours: bench-slots [SECONDS [CPU]]. Pairs of multiply-adds in registers, with up to four empty
 * instructions behind each pair, in cycles of the core, which a chain of multiplications counts. A core with six places takes one cycle for any of
 * them while it is ours alone; with another thread beside ours, a hyperthread, it has three, and pairs with more than one empty instruction take longer.
 *
 * Where there is AMX: two by two tiles of bf16, loads and products, with empty instructions behind each of the eight. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/stats.h"
#if defined(__AMX_BF16__)
#define HONE_AMX
#include "core/bf16.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/pairs/tiles.h"
#endif

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

#if defined(__AMX_BF16__)

enum { STEPS = 200, PRODUCTS = 4 };
static const int behind_tiles[EMPTY] = {0, 4, 8, 12, 16};
static _Alignas(64) uint16_t tiles[4 * TILE_NUMBERS];

#define BEHIND(count) ".rept " #count "\nnop\n.endr\n"
#define LOAD(n, at, e) "tileloadd " #at "(%0, %1), %%tmm" #n "\n" e
#define MULTIPLY(sums, rows, columns, e) "tdpbf16ps %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sums "\n" e
#define STEP_WITH(e)                                                                                                       \
    LOAD(6, 0, e) LOAD(4, 1024, e) MULTIPLY(0, 4, 6, e) LOAD(7, 2048, e) MULTIPLY(1, 4, 7, e) LOAD(5, 3072, e)            \
        MULTIPLY(2, 5, 6, e) MULTIPLY(3, 5, 7, e)
#define STEPS_WITH(count)                                                                             \
    static void steps_##count(void)                                                                   \
    {                                                                                                 \
        for (int i = 0; i < STEPS; i++)                                                               \
            __asm__ volatile(STEP_WITH(BEHIND(count)) : : "r"(tiles), "r"((int64_t)64) : "memory");   \
    }
STEPS_WITH(0) STEPS_WITH(4) STEPS_WITH(8) STEPS_WITH(12) STEPS_WITH(16)
static void (*const steps[EMPTY])(void) = {steps_0, steps_4, steps_8, steps_12, steps_16};

/* Zeros take less power. */
static void fill_tiles(void)
{
    for (int i = 0; i < 4 * TILE_NUMBERS; i++)
        tiles[i] = bf16_bits(cpu_number_at(i));
}

#endif

static double seconds_of(void (*fn)(void))
{
    const double start = clock_s();
    fn();
    return clock_s() - start;
}

/* Readings of each, in turns, until `end`. */
static int read_all(void (*const fns[EMPTY])(void), double *to[EMPTY], double each, bool in_cycles, double end)
{
    int n = 0;
    for (; n < MOST && clock_s() < end; n++) {
        const double unit = in_cycles ? seconds_of(chain) / (RUNS * CHAIN * LATENCY) : 1;
        for (int i = 0; i < EMPTY; i++)
            to[i][n] = seconds_of(fns[i]) / each / unit;
    }
    return n;
}

static void print(double *of[EMPTY], int n, const int empty[EMPTY], double rate)
{
    static const double at[] = {0.1, 0.5, 0.9};
    for (int i = 0; i < EMPTY; i++) {
        stats_sort(of[i], n);
        printf("and %2d empty instructions", empty[i]);
        for (size_t k = 0; k < sizeof at / sizeof *at; k++)
            printf(" %7.2f", rate > 0 ? rate / stats_percentile(of[i], n, 1 - at[k]) : stats_percentile(of[i], n, at[k]));
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static void (*const pairs[EMPTY])(void) = {none, one, two, three, four};
    static const int behind_pairs[EMPTY] = {0, 1, 2, 3, 4};
    const double seconds = argc > 1 && atof(argv[1]) > 0 ? atof(argv[1]) : 2;
    double *readings[EMPTY];
    for (int i = 0; i < EMPTY; i++)
        readings[i] = xcalloc(MOST, sizeof *readings[i]);
    if (argc > 2) {
        cpu_set_t cpu;
        CPU_ZERO(&cpu);
        CPU_SET(atoi(argv[2]), &cpu);
        if (sched_setaffinity(0, sizeof cpu, &cpu) != 0) {
            fprintf(stderr, "there is no CPU %s for us\n", argv[2]);
            return 2;
        }
    }
    int n = read_all(pairs, readings, RUNS * PAIRS, true, clock_s() + seconds);
    printf("cycles for two multiply-adds in registers, 10th, 50th and 90th of 100 of %d readings\n", n);
    print(readings, n, behind_pairs, 0);
#if defined(__AMX_BF16__)
    if (cpu_bf16_way() == BF16_AMX) {
        fill_tiles();
        amx_begin();
        n = read_all(steps, readings, STEPS, false, clock_s() + seconds);
        amx_end();
        printf("GFLOP/s of tiles of bf16, 10th, 50th and 90th of 100 of %d readings\n", n);
        print(readings, n, behind_tiles, PRODUCTS * 2e-9 * TILE * TILE * TILE_DEPTH);
    }
#endif
    for (int i = 0; i < EMPTY; i++)
        free(readings[i]);
    return 0;
}

#else

int main(void)
{
    puts("there are no multiply-adds of vectors here, or this was built without them");
    return 2;
}

#endif
