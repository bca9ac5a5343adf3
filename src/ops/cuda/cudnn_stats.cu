/* The statistics of attention in cuDNN's form: one number for each row, log(sum of e^score), instead of two. */
#include "ops/cuda/cudnn.h"
#include "ops/cuda/device.cuh"

static __global__ void ones_kernel(float *to, int64_t n)
{
    EACH(i, n)
        to[i] = 1;
}

static __global__ void log_sums_kernel(float *to, const float *largest, const float *sums, int64_t n)
{
    EACH(i, n)
        to[i] = largest[i] + logf(sums[i]);         /* to the bit what cuDNN wrote, where sums are 1 */
}

void cudnn_fill_ones(float *to, int64_t n, cudaStream_t stream) { ones_kernel<<<blocks_for(n), THREADS, 0, stream>>>(to, n); }

void cudnn_log_sums(float *to, const float *largest, const float *sums, int64_t n, cudaStream_t stream)
{
    log_sums_kernel<<<blocks_for(n), THREADS, 0, stream>>>(to, largest, sums, n);
}
