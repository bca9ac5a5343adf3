/* Powers of two, sixteen at a time. */
#ifndef HONE_OPS_CPU_PAIRS_POWER_H
#define HONE_OPS_CPU_PAIRS_POWER_H

#include "ops/cpu/pairs/pack.h"

/* 2^x, within 4e-7 of it; infinite above the largest, 0 below the smallest number. */
PAIRS_INLINE __m512 power(__m512 x)
{
    const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = _mm512_sub_ps(x, n), f2 = _mm512_mul_ps(f, f);
    const __m512 low = _mm512_fmadd_ps(f, _mm512_set1_ps(6.9314697759e-1f), _mm512_set1_ps(1));
    const __m512 middle = _mm512_fmadd_ps(f, _mm512_set1_ps(5.5507337507e-2f), _mm512_set1_ps(2.4022242065e-1f));
    const __m512 high = _mm512_fmadd_ps(f, _mm512_set1_ps(1.3264729144e-3f), _mm512_set1_ps(9.6715139664e-3f));
    return _mm512_scalef_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(high, f2, middle), f2, low), n);
}

#endif
