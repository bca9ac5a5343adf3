/* How the CPU multiplies bf16; see bf16.h. */
#include "ops/cpu/bf16.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu/gemm.h"

#if defined(__x86_64__)

#include "ops/cpu/pairs/pairs.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernels for AVX-512 need, and bf16; see best_variant in cpu.c. */
static bool has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

/* Tiles are 8 KB of state per thread, which a process must ask Linux for, once for all of its threads. */
static bool has_amx(void)
{
#if defined(HONE_AMX)
    enum { LEAF = 7, TILES_BF16 = 1 << 22, TILES = 1 << 24, ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };     /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    unsigned a, b, c, d;
    if (!__get_cpuid_count(LEAF, 0, &a, &b, &c, &d) || (d & (TILES_BF16 | TILES)) != (TILES_BF16 | TILES))
        return false;
    return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
#else
    return false;                               /* the compiler does not know them */
#endif
}

/* Intel's AVX512-BF16 multiplies half as many numbers as its f32 does (109 and 220 GFLOP/s of a core of Granite Rapids, in registers): rounded
 * operands are faster in the f32 product. Other makers' is meant to do twice as many. */
static bool pays_without_amx(void) { return !__builtin_cpu_is("intel"); }

static enum bf16_way best_way(void)
{
    if (!has_avx512())
        return BF16_ROUNDED;
    return has_amx() ? BF16_AMX : pays_without_amx() ? BF16_AVX512 : BF16_ROUNDED;
}

registers_fn *cpu_registers_bf16(void)
{
#if defined(HONE_AMX)
    return cpu_bf16_way() == BF16_AMX ? cpu_registers_tiles : NULL;
#else
    return NULL;
#endif
}

#elif defined(__aarch64__) && !defined(__clang__)                /* see bf16_tile.h */

#include <sys/auxv.h>

static enum bf16_way best_way(void)
{
    const unsigned long capability = 1ul << 14;                 /* HWCAP2_BF16 of Linux */
    return getauxval(AT_HWCAP2) & capability ? BF16_BFMMLA : BF16_ROUNDED;
}

registers_fn cpu_registers_bf16_baseline;
registers_fn *cpu_registers_bf16(void) { return cpu_bf16_way() == BF16_BFMMLA ? cpu_registers_bf16_baseline : NULL; }

#else

static enum bf16_way best_way(void) { return BF16_ROUNDED; }
registers_fn *cpu_registers_bf16(void) { return NULL; }

#endif

static enum bf16_way asked_for(void)
{
    const char *word = getenv("HONE_BF16");
    return word && !strcmp(word, "none") ? BF16_ROUNDED : word && !strcmp(word, "avx512") ? BF16_AVX512 : BF16_AMX;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum bf16_way best;
static _Atomic int most;

static void find_best(void)
{
    best = best_way();
    atomic_store_explicit(&most, asked_for(), memory_order_relaxed);
}

void cpu_bf16_limit(enum bf16_way limit)
{
    pthread_once(&once, find_best);
    atomic_store_explicit(&most, limit, memory_order_relaxed);
}

enum bf16_way cpu_bf16_way(void)
{
    pthread_once(&once, find_best);
    const enum bf16_way limit = (enum bf16_way)atomic_load_explicit(&most, memory_order_relaxed);
    return best <= limit ? best : best == BF16_AMX && limit == BF16_AVX512 ? BF16_AVX512 : BF16_ROUNDED;
}

const char *cpu_bf16_name(void)
{
    return (const char *const[]){"none", "BFMMLA", "AVX512-BF16", "AMX"}[cpu_bf16_way()];
}
