/* Results in bf16, for products that would round them: kernels make a piece in f32, which is still near when it is rounded. */
#ifndef HONE_OPS_CPU_TUNED_NARROW_H
#define HONE_OPS_CPU_TUNED_NARROW_H

#include "ops/cpu/bf16.h"
#include "ops/cpu/pairs/pairs.h"
#include "ops/cpu/tuned/tuned.h"

enum { PIECE = 512 };           /* numbers */

static inline bool gives_bf16(const struct kernel_call *c, int i) { return call_out(c, i)->dtype == BF16; }

static inline void narrow_piece(uint16_t *restrict to, const float *restrict from, int64_t n)
{
#if defined(__AVX512F__)
    if (cpu_has_bf16()) {
        pairs_narrow(to, from, n);
        return;
    }
#endif
    for (int64_t i = 0; i < n; i++)
        to[i] = bf16_bits(from[i]);
}

#endif
