/* Tuned: multiply-adds of numbers that stay in registers: no product can be faster. */
#include "ops/cpu/tuned/vec.h"

enum { CHAINS = 12 };           /* each waits for itself: more than a CPU has under way, and fewer than it has registers */

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
    vec x[CHAINS], by = all(0.5f), plus = all(1);
    UNROLL(12)
    for (int i = 0; i < CHAINS; i++)
        x[i] = all((float)i);
    __asm__ volatile("" : REGISTER(by), REGISTER(plus));
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL(12)
        for (int i = 0; i < CHAINS; i++) {
            x[i] = x[i] * by + plus;
            __asm__ volatile("" : REGISTER(x[i]));
        }
    }
    return 2.0 * CHAINS * LANES * (double)rounds;
}
