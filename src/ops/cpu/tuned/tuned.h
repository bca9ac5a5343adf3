/* Shared by the tuned kernels. They are plain C over restrict pointers that the compiler vectorises; every file is
 * compiled once per instruction set (HONE_ISA), so all names go through TUNED(). */
#ifndef HONE_OPS_CPU_TUNED_H
#define HONE_OPS_CPU_TUNED_H

#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"

#define TUNED_NAME(name, isa) cpu_##name##_##isa
#define TUNED_PASTE(name, isa) TUNED_NAME(name, isa)
#define TUNED(name) TUNED_PASTE(name, HONE_ISA)

extern const struct kernel TUNED(elementwise)[], TUNED(optimizer)[], TUNED(norm)[], TUNED(softmax)[], TUNED(loss)[],
    TUNED(embed)[], TUNED(rope)[], TUNED(matmul)[], TUNED(attention)[];
extern const struct kernel *const TUNED(kernels)[];
gemm_fn TUNED(gemm);

/* Before a loop: its iterations do not depend on each other, though pointers may be equal; and: unroll it. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL(n) _Pragma("unroll")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#define UNROLL_TEXT(x) _Pragma(#x)
#define UNROLL(n) UNROLL_TEXT(GCC unroll n)
#endif

/* Elements in units of 64 floats, so that threads share no cache line. */
static inline struct span my_elements(const struct kernel_thread *t, int64_t n)
{
    return team_span(n, 64, t->index, t->count);
}
static inline struct span my_rows(const struct kernel_thread *t, int64_t n)
{
    return team_span(n, 1, t->index, t->count);
}
static inline struct span my_columns(const struct kernel_thread *t, int64_t n)
{
    return team_span(n, 16, t->index, t->count);
}

/* e^x in single precision, within 2 ulp; exactly 0 below -87.3 and e^88.37 above 88.37, where the result or 2^n would
 * leave the range of normal numbers; NaN for NaN. Free of branches, so that a loop over it vectorises: x = n ln2 + r, a polynomial
 * for e^r, the exponent bits for 2^n. Adding 1.5 * 2^23 rounds to a whole number that stands in the low bits. */
static inline float fast_exp(float x)
{
    const float low = -87.3f, high = 88.37f, round = 12582912.0f;
    float y = x < low ? low : x;
    y = y > high ? high : y;
    const float shifted = y * 1.44269504f + round, n = shifted - round;
    const float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
    float e = 1.9875691500e-4f, power;
    e = e * r + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * r * r + r + 1.0f;
    uint32_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    __builtin_memcpy(&power, &bits, sizeof power);
    e *= power;
    __builtin_memcpy(&bits, &e, sizeof bits);
    bits &= -(uint32_t)!(x < low);
    __builtin_memcpy(&e, &bits, sizeof e);
    return e;
}

static inline float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

#endif
