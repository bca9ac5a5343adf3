/* f16: 5 bits of exponent, 10 of fraction. Rounding to it, to the nearest and ties to even, and back. */
#ifndef HONE_CORE_F16_H
#define HONE_CORE_F16_H

#include <stdint.h>
#include <string.h>

/* The bits of x in f16. NaN stays NaN; numbers that round beyond 65504 become infinite, tiny ones subnormal or zero. */
static inline uint16_t f16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000)                     /* 65520: half way to the next power of two */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x33000000)                      /* below half of the least subnormal */
        return (uint16_t)sign;
    const uint32_t exponent = size >> 23, fraction = (size & 0x7fffff) | 0x800000;
    const uint32_t shift = exponent >= 113 ? 13 : 126 - exponent;       /* 113: 2^-14, the least normal number */
    const uint32_t half = fraction >> shift, rest = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
    const uint32_t rounded = half + (rest > middle || (rest == middle && (half & 1)));
    return (uint16_t)(sign | (exponent >= 113 ? ((exponent - 113) << 10) + rounded : rounded));
}

static inline float f16_value(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    uint32_t bits = exponent == 31 ? sign | 0x7f800000 | fraction << 13 : sign | (exponent + 112) << 23 | fraction << 13;
    float x;
    if (exponent == 0) {                        /* zero, or subnormal: fraction times 2^-24 */
        x = (float)fraction * 0x1p-24f;
        return half & 0x8000 ? -x : x;
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
