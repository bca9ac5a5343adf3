/* Products of bf16 on CPUs. */
#ifndef HONE_OPS_CPU_BF16_H
#define HONE_OPS_CPU_BF16_H

#include <stdbool.h>

#include "core/bf16.h"

/* An operand of a product as an op's attribute bf16 asks for it. */
static inline float bf16_operand(float x, bool bf16) { return bf16 ? bf16_round(x) : x; }

/* The CPU has products of bf16 with f32 sums, and this build uses them: AVX512-BF16, or BFMMLA on ARM. */
bool cpu_has_bf16(void);

#endif
