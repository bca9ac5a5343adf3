/* Products of a few rows: few.cu. */
#ifndef HONE_OPS_CUDA_FEW_CUH
#define HONE_OPS_CUDA_FEW_CUH

#include "ops/cuda/kernel.h"

bool cuda_few_does(const struct cuda_call *c);          /* is the call such a one? f32, and nobody else's work with it */
void cuda_few_launch(const struct cuda_call *c);

#endif
