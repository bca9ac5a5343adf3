/* Products of bf16, and of f32 in thirds, on x86-64, where instructions take pairs of numbers along k: compiled once, for AVX512-BF16 and, where the compiler knows
 * it, AMX. They are called where cpu_bf16_way says that the CPU has one of them. */
#ifndef HONE_OPS_CPU_PAIRS_H
#define HONE_OPS_CPU_PAIRS_H

#include "ops/cpu/gemm.h"

gemm_fn cpu_gemm_pairs, cpu_gemm_thirds;        /* k > 0; of f32 by thirds, with AMX */
registers_fn cpu_registers_tiles;               /* with AMX */
void pairs_narrow(uint16_t *to, const float *from, int64_t n);          /* rounds as packing does */

#endif
