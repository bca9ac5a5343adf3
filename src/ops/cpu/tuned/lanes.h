/* The sum of a vector's lanes by halves: a few operations, where adding one lane after the other would take as many as there are lanes. */
#ifndef HONE_OPS_CPU_TUNED_LANES_H
#define HONE_OPS_CPU_TUNED_LANES_H

#include "ops/cpu/tuned/vec.h"

INLINE float quad_total(quad x) { return (x[0] + x[2]) + (x[1] + x[3]); }

#if defined(__AVX512F__) || defined(__AVX2__)
typedef float octet __attribute__((vector_size(32), aligned(4), may_alias));
INLINE float octet_total(octet x) { return quad_total(((const quad *)&x)[0] + ((const quad *)&x)[1]); }
#endif

INLINE float lanes_total(vec x)
{
#if defined(__AVX512F__)
    return octet_total(((const octet *)&x)[0] + ((const octet *)&x)[1]);
#elif defined(__AVX2__)
    return octet_total((octet)x);
#else
    return quad_total((quad)x);
#endif
}

/* Four lanes that sum up to the same. */
INLINE quad lanes_quad(vec x)
{
#if defined(__AVX512F__)
    const octet half = ((const octet *)&x)[0] + ((const octet *)&x)[1];
    return ((const quad *)&half)[0] + ((const quad *)&half)[1];
#elif defined(__AVX2__)
    return ((const quad *)&x)[0] + ((const quad *)&x)[1];
#else
    return (quad)x;
#endif
}

/* The totals of four. */
INLINE quad lanes_totals(const vec x[4])
{
#if defined(__aarch64__)
    return (quad)vpaddq_f32(vpaddq_f32((float32x4_t)x[0], (float32x4_t)x[1]), vpaddq_f32((float32x4_t)x[2], (float32x4_t)x[3]));
#else
    const quad a = lanes_quad(x[0]), b = lanes_quad(x[1]), c = lanes_quad(x[2]), d = lanes_quad(x[3]);
    const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
#endif
}

#endif
