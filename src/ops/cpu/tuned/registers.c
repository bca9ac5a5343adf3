/* Tuned: multiply-adds of numbers that stay in registers: no product can be faster. */
#include "ops/cpu/tuned/vec.h"

/* Each waits for itself: more than a CPU has under way (four in each of four cycles, Neoverse-V1), and fewer than it has registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { CHAINS = 24 };
#else
enum { CHAINS = 12 };
#endif

#if defined(__AVX512F__)
#define REGISTER "+v"
#elif defined(__x86_64__)
#define REGISTER "+x"
#elif defined(__aarch64__)
#define REGISTER "+w"
#else
#define REGISTER "+m"
#endif

double TUNED(registers)(int64_t rounds)
{
    float half[LANES], *from = half;                            /* loaded, as in a product: of numbers that a vector unit made a Neoverse-V1 multiplies half as many */
    for (int i = 0; i < LANES; i++)
        half[i] = 0.5f;
    __asm__ volatile("" : "+r"(from) : : "memory");
    vec x[CHAINS], by = load(from), times = load(from);
    UNROLL(24)
    for (int i = 0; i < CHAINS; i++)
        x[i] = (vec){0};
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL(24)
        for (int i = 0; i < CHAINS; i++) {
            x[i] += by * times;                                     /* as in a product: ARM has no other */
            __asm__ volatile("" : REGISTER(x[i]), REGISTER(by), REGISTER(times));   /* they may be others now: the product is not made once for all */
        }
    }
    return 2.0 * CHAINS * LANES * (double)rounds;
}
