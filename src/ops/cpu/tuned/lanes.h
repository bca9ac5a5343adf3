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

#endif
