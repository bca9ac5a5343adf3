/* Sums over the rows that a block has, for the gradients of norms. */
#ifndef HONE_OPS_CUDA_NORM_SUMS_CUH
#define HONE_OPS_CUDA_NORM_SUMS_CUH

#include "ops/cuda/row_parts.cuh"

/* What a thread has summed for its columns of the row; `to` gets the sums of all of the block. Groups of a warp are summed in registers,
 * warps through `shared` (warps, width). Where a block has one row at a time, a thread's sums are the block's. */
template <typename T, bool WHOLE, int LANES, int E>
static __device__ inline void store_sums(float *to, float (&sums)[E], float *shared, const struct row_place<LANES> &at, int width)
{
    constexpr int P = packed<T>;
    if constexpr (LANES == 0) {
        store_part<P>(to, sums, at.lane, at.lanes, width, WHOLE);
    } else {
        const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
        for (int e = 0; e < E; e++)
            for (int d = LANES; d < WARP; d *= 2)
                sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], d);
        if (LANES == WARP || threadIdx.x % WARP < LANES)
            store_part<P>(shared + warp * width, sums, at.lane, at.lanes, width, WHOLE);
        __syncthreads();
        for (int col = threadIdx.x; col < width; col += blockDim.x) {
            float all = 0;
#pragma unroll 8
            for (int w = 0; w < warps; w++)
                all += shared[w * width + col];
            to[col] = all;
        }
        __syncthreads();            /* before `shared` is used again */
    }
}

/* The sums of dx lie in shared memory, in registers there is no room left: (groups, E * lanes), of which each thread has places of its own,
 * four numbers beside those of the next lane. */
template <int LANES> static __device__ inline float4 *dx_sums(float *shared, const struct row_place<LANES> &at, int numbers, int four)
{
    return (float4 *)(shared + at.group * numbers * at.lanes) + four * at.lanes + at.lane;
}

template <int E, int LANES> static __device__ inline void clear_dx_sums(float *shared, const struct row_place<LANES> &at)
{
#pragma unroll
    for (int q = 0; q < E / 4; q++)
        *dx_sums(shared, at, E, q) = make_float4(0, 0, 0, 0);
}

/* Adds what is stored of dx. */
template <typename T, int LANES, int E> static __device__ inline void add_dx(float *shared, const struct row_place<LANES> &at, const float (&dx)[E])
{
#pragma unroll
    for (int q = 0; q < E / 4; q++) {
        float4 *sum = dx_sums(shared, at, E, q), s = *sum;
        s.x += to_float(from_float<T>(dx[4 * q])), s.y += to_float(from_float<T>(dx[4 * q + 1]));
        s.z += to_float(from_float<T>(dx[4 * q + 2])), s.w += to_float(from_float<T>(dx[4 * q + 3]));
        *sum = s;
    }
}

/* `to` gets the sums of all groups. */
template <typename T, int LANES, int E> static __device__ inline void store_dx_sums(float *to, float *shared, const struct row_place<LANES> &at, int width)
{
    constexpr int P = packed<T>;
    __syncthreads();
    for (int col = threadIdx.x; col < width; col += blockDim.x) {
        const int pack = col / P, four = pack / at.lanes * (P / 4) + col % P / 4, place = (four * at.lanes + pack % at.lanes) * 4 + col % 4;
        float all = 0;
        for (int g = 0; g < at.groups; g++)
            all += shared[g * E * at.lanes + place];
        to[col] = all;
    }
    __syncthreads();                /* before `shared` is used again */
}

#endif
