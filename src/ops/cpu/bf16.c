/* Whether the CPU multiplies bf16; see bf16.h. */
#include "ops/cpu/bf16.h"

#if defined(__aarch64__) && !defined(__clang__)                 /* see bf16_tile.h */
#include <sys/auxv.h>
static const unsigned long BF16_CAPABILITY = 1ul << 14;         /* HWCAP2_BF16 of Linux */
#endif

bool cpu_has_bf16(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();                       /* what the kernels for AVX-512 need, and bf16; see best_variant in cpu.c */
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#elif defined(__aarch64__) && !defined(__clang__)
    return getauxval(AT_HWCAP2) & BF16_CAPABILITY;
#else
    return false;
#endif
}
