/* bf16: the upper half of an f32. Rounding to it, to the nearest and ties to even, and whether the CPU multiplies it. */
#ifndef HONE_OPS_CPU_BF16_H
#define HONE_OPS_CPU_BF16_H

#include <stdbool.h>
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

static inline float bf16_round(float x)
{
    const uint32_t bits = (uint32_t)bf16_bits(x) << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* An operand of a product as an op's attribute bf16 asks for it. */
static inline float bf16_operand(float x, bool bf16) { return bf16 ? bf16_round(x) : x; }

/* The CPU has products of bf16 with f32 sums, and this build uses them: AVX512-BF16, or BFMMLA on ARM. */
bool cpu_has_bf16(void);

#endif
