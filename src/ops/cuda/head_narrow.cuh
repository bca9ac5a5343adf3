/* The loss of a linear head whose rows of logits are a pack for each lane of a warp, or less: a warp has a row in registers. */
#ifndef HONE_OPS_CUDA_HEAD_NARROW_CUH
#define HONE_OPS_CUDA_HEAD_NARROW_CUH

#include "ops/cuda/head_loss.cuh"

enum { NARROW_THREADS = 256, NARROW_ROWS = NARROW_THREADS / WARP };

template <typename T> static __device__ void narrow_row_loss(const chunk<T> &c, int64_t row, int lane, float factor)
{
    constexpr int N = pack_size<T>();
    const int32_t target = c.targets[row];
    const bool there = lane < (int)(c.stride / N);
    T *z = c.z + row * c.stride + lane * N;
    float v[N], most = -INFINITY, sum = 0, mine = 0;
    keep(c, row, target < 0, lane, WARP);
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = -INFINITY;
    if (there && target >= 0)
        load_some(v, z, (int)c.vocab - lane * N);
#pragma unroll
    for (int i = 0; i < N; i++) {
        most = fmaxf(most, v[i]);
        mine = i == target % N ? v[i] : mine;
    }
    most = warp_reduce(most, max_of());
    const exponential<T> rough(most, 0);
#pragma unroll
    for (int i = 0; i < N; i++)
        sum += rough(v[i]);
    const float log_sum = logf(warp_reduce(sum, add_of())), at_target = __shfl_sync(0xffffffffu, mine, target >= 0 ? target / N : 0);
    if (lane == 0)
        c.losses[row] = target >= 0 ? log_sum + (most - at_target) : 0;
    if (!c.kept || !there)
        return;
    const exponential<T> e(most, log_sum);
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = target < 0 ? 0 : (e(v[i]) - (lane == target / N && i == target % N ? 1 : 0)) * factor;
    store_whole(z, v);
}

/* As loss_kernel, a warp for each row. */
template <typename T> static __global__ void __launch_bounds__(NARROW_THREADS) narrow_loss_kernel(const __grid_constant__ chunk<T> c)
{
    const float count = c.count ? *c.count : known_targets(c.all_targets, c.all_rows), factor = (c.scale ? *c.scale : 1) / count;
    const int64_t row = (int64_t)blockIdx.x * NARROW_ROWS + threadIdx.x / WARP;
    if (row < c.rows)
        narrow_row_loss(c, row, threadIdx.x % WARP, factor);
    if (c.counter && comes_last(c.counter, gridDim.x))
        mean_of_rows(c.mean, c.known, c.all_losses, c.all_targets, c.all_rows);
}

#endif
