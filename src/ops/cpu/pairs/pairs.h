/* Products of bf16 on x86-64, where instructions take pairs of numbers along k: compiled once, for AVX512-BF16 and, where the compiler knows
 * it, AMX. They are called where cpu_bf16_way says that the CPU has one of them. */
#ifndef HONE_OPS_CPU_PAIRS_H
#define HONE_OPS_CPU_PAIRS_H

#include "ops/cpu/gemm.h"

gemm_fn cpu_gemm_pairs;                 /* k > 0 */
void pairs_narrow(uint16_t *to, const float *from, int64_t n);          /* rounds as packing does */

#endif
