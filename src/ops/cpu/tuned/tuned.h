/* Shared by the tuned kernels. They are plain C over restrict pointers that the compiler vectorises; every file is
 * compiled once per instruction set (HONE_ISA), so all names go through TUNED(). */
#ifndef HONE_OPS_CPU_TUNED_H
#define HONE_OPS_CPU_TUNED_H

#include "ops/cpu/cpu_int.h"

#define TUNED_NAME(name, isa) cpu_##name##_##isa
#define TUNED_PASTE(name, isa) TUNED_NAME(name, isa)
#define TUNED(name) TUNED_PASTE(name, HONE_ISA)

extern const struct kernel TUNED(elementwise)[], TUNED(optimizer)[], TUNED(norm)[], TUNED(softmax)[], TUNED(loss)[],
    TUNED(embed)[], TUNED(rope)[], TUNED(matmul)[], TUNED(attention)[];
extern const struct kernel *const TUNED(kernels)[];

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

/* e^x in single precision, within 2 ulp where the result is a normal number; 0 below, inf above, NaN for NaN.
 * Written so that a loop over it vectorises: x = n ln2 + r, a polynomial for e^r, n added to its exponent bits (which
 * reaches the largest results, where 2^n alone would be infinite). */
static inline float fast_exp(float x)
{
    const float low = -87.33654f, high = 88.72283f;      /* logarithms of the smallest normal and the largest number */
    const float y = x > low ? x < high ? x : high : low;        /* NaN becomes low, and is put back at the end */
    const int32_t n = (int32_t)(y * 1.44269504f + (y < 0 ? -0.5f : 0.5f));
    const float r = (y - (float)n * 0.693359375f) - (float)n * -2.12194440e-4f;
    float e = 1.9875691500e-4f;
    e = e * r + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * r * r + r + 1.0f;
    union { float f; uint32_t bits; } scaled = {.f = e};
    scaled.bits += (uint32_t)n << 23;
    e = x < low ? 0.0f : scaled.f;
    e = x > high ? __builtin_inff() : e;
    return x != x ? x : e;
}

static inline float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

#endif
