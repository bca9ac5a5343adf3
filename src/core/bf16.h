/* bf16: the upper half of an f32. Rounding to it, to the nearest and ties to even. */
#ifndef HONE_CORE_BF16_H
#define HONE_CORE_BF16_H

#include <stdint.h>
#include <string.h>

/* The bits of x in bf16. NaN stays NaN; numbers beyond the largest become infinite. */
static inline uint16_t bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

static inline float bf16_value(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float bf16_round(float x) { return bf16_value(bf16_bits(x)); }

#endif
