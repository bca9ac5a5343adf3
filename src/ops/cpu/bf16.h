/* Products of bf16 on CPUs. */
#ifndef HONE_OPS_CPU_BF16_H
#define HONE_OPS_CPU_BF16_H

#include <stdbool.h>

#include "core/bf16.h"

/* An operand of a product as an op's attribute bf16 asks for it. */
static inline float bf16_operand(float x, bool bf16) { return bf16 ? bf16_round(x) : x; }

/* How this CPU and this build multiply bf16 with f32 sums, from the slowest to the fastest of an architecture. Rounded: not at all;
 * rounded operands go to the f32 product. */
enum bf16_way { BF16_ROUNDED, BF16_BFMMLA, BF16_AVX512, BF16_AMX };

enum bf16_way cpu_bf16_way(void);
const char *cpu_bf16_name(void);                /* of it, for people: "none", "BFMMLA", "AVX512-BF16", "AMX" */
static inline bool cpu_has_bf16(void) { return cpu_bf16_way() != BF16_ROUNDED; }

/* For tests, while no product runs: none better than this. The environment can say the same: HONE_BF16=none, avx512 or amx. */
void cpu_bf16_limit(enum bf16_way most);

#endif
