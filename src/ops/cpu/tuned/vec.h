/* Vectors of the instruction set in use, for kernels where the compiler's own vectors are not good enough. An operation on
 * one takes several cycles and a CPU can begin two in each: where a chain of them is long, as in 2^x, kernels work on several
 * vectors side by side (STRANDS), so that few wait. */
#ifndef HONE_OPS_CPU_TUNED_VEC_H
#define HONE_OPS_CPU_TUNED_VEC_H

#include "ops/cpu/tuned/tuned.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { STRANDS = 4, STRIDE = STRANDS * LANES };

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define EACH_STRAND(k) UNROLL(4) for (int k = 0; k < STRANDS; k++)

INLINE vec load(const float *p) { return *(const vec *)p; }
INLINE void store(float *p, vec x) { *(vec *)p = x; }
INLINE vec choose(ivec mask, vec yes, vec no) { return (vec)((mask & (ivec)yes) | (~mask & (ivec)no)); }
INLINE vec all(float x) { return (vec){0} + x; }

INLINE float lanes_sum(vec x)
{
    float sum = 0;
    UNROLL(16)
    for (int i = 0; i < LANES; i++)
        sum += x[i];
    return sum;
}

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Where a is NaN they give NaN; where b is, NaN or a. Compilers do not see that a choice is one instruction: x86 has it with the operand that it
 * gives where one of them is NaN last. */
#if defined(__aarch64__)
INLINE vec larger(vec a, vec b) { return (vec)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
INLINE vec smaller(vec a, vec b) { return (vec)vminq_f32((float32x4_t)a, (float32x4_t)b); }
#elif defined(__AVX512F__)
INLINE vec larger(vec a, vec b) { return (vec)_mm512_max_ps((__m512)b, (__m512)a); }
INLINE vec smaller(vec a, vec b) { return (vec)_mm512_min_ps((__m512)b, (__m512)a); }
#elif defined(__AVX2__)
INLINE vec larger(vec a, vec b) { return (vec)_mm256_max_ps((__m256)b, (__m256)a); }
INLINE vec smaller(vec a, vec b) { return (vec)_mm256_min_ps((__m256)b, (__m256)a); }
#else
INLINE vec larger(vec a, vec b) { return choose(a < b, b, a); }
INLINE vec smaller(vec a, vec b) { return choose(a > b, b, a); }
#endif

/* c, to which a product with x will be added. Where an instruction adds to one of its operands, a copy of the constant takes a
 * place among the arithmetic, a load none; left alone, compilers copy. Named x, so that it is loaded anew for every x. */
#if defined(__aarch64__)
#define CONSTANT(c, x) (__extension__({                                                                               \
    static const float lanes[LANES] = {c, c, c, c};                                                                   \
    vec loaded;                                                                                                       \
    __asm__("ldr %q0, %1" : "=w"(loaded) : "m"(*(const vec *)lanes), "w"(x));                                         \
    loaded;                                                                                                           \
}))
#else
#define CONSTANT(c, x) all(c)
#endif

/* 2^x for x in [-126, 127], with an error of at most 4e-7 of it; 0 at -127, NaN for NaN: adding 1.5 * 2^23 rounds to a whole
 * number that stands in the low bits, here already with the bias of an exponent; the polynomial is the best of its degree on
 * [-1/2, 1/2] that gives 1 at 0. */
INLINE vec exp2_near(vec x)
{
    const vec round = all(12582912.0f + 127);
    const vec shifted = x + round, f = x - (shifted - round), f2 = f * f;
    const vec low = f * 6.9314697759e-1f + CONSTANT(1.0f, f), middle = f * 5.5507337507e-2f + CONSTANT(2.4022242065e-1f, f);
    const vec high = f * 1.3264729144e-3f + CONSTANT(9.6715139664e-3f, f);
    return ((high * f2 + middle) * f2 + low) * (vec)((ivec)shifted << 23);
}

/* e^x for x in [-87, 88], with an error of at most 4e-7 + 1e-7 |x| of it; 0 below -88.03, NaN for NaN. As above, with f of
 * the other sign, which saves an operation. */
INLINE vec exp_low(vec x)
{
    const vec round = all(12582912.0f + 127);
    x = larger(x, all(-88.03f));
    const vec shifted = x * 1.4426950409f + CONSTANT(12582912.0f + 127, x);
    const vec f = (shifted - round) - x * 1.4426950409f, f2 = f * f;
    const vec low = f * -6.9314697759e-1f + CONSTANT(1.0f, f), middle = f * -5.5507337507e-2f + CONSTANT(2.4022242065e-1f, f);
    const vec high = f * -1.3264729144e-3f + CONSTANT(9.6715139664e-3f, f);
    return ((high * f2 + middle) * f2 + low) * (vec)((ivec)shifted << 23);
}

#endif
