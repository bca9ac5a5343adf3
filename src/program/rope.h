/* How fast a pair of numbers turns from one place to the next. Kernels of CPUs and GPUs make their tables (OP_ROPE_TABLE) with this. */
#ifndef HONE_PROGRAM_ROPE_H
#define HONE_PROGRAM_ROPE_H

#include <math.h>
#include <stdint.h>

#include "program/ops.h"

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* How much of its own speed a pair keeps, 0 to 1: all where it turns `high` times or more within the context that the model was first trained
 * on, nothing below `low` times; without such a context, nothing. */
ON_BOTH static inline double rope_kept(struct rope_stretch s, double frequency)
{
    const double turns = s.context * frequency / (2 * 3.14159265358979323846), share = (turns - s.low) / (s.high - s.low);
    return s.context == 0 || !(share > 0) ? 0 : share < 1 ? share : 1;
}

/* Radians per place of pair `pair` of `pairs`. */
ON_BOTH static inline double rope_frequency(double base, struct rope_stretch s, int64_t pair, int64_t pairs)
{
    const double plain = pow(base, -(double)pair / (double)pairs);
    if (s.factor == 0)
        return plain;
    const double kept = rope_kept(s, plain);
    return plain * kept + plain / s.factor * (1 - kept);
}

#endif
