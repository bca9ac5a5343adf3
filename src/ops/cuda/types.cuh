/* The types that numbers have in memory: float, __nv_bfloat16 and __half. Kernels compute in f32 whatever they read and write, and move 16
 * bytes at a time where memory is aligned for it. */
#ifndef HONE_OPS_CUDA_TYPES_CUH
#define HONE_OPS_CUDA_TYPES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "ops/cuda/kernel.h"

static __device__ inline float to_float(float x) { return x; }
static __device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ inline float to_float(__half x) { return __half2float(x); }

template <typename T> static __device__ inline T from_float(float x);
template <> __device__ inline float from_float<float>(float x) { return x; }
template <> __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }
template <> __device__ inline __half from_float<__half>(float x) { return __float2half_rn(x); }

/* N numbers in a row, moved by one instruction where they are 16 bytes: N is 8 for narrow types and 4 for float, or less. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack { T at[N]; };
template <typename T> __host__ __device__ constexpr int pack_size() { return 16 / (int)sizeof(T); }

template <int N, typename T> static __device__ inline void load_pack(float (&to)[N], const T *from)
{
    const pack<T, N> p = *(const pack<T, N> *)from;
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = to_float(p.at[i]);
}

template <int N, typename T> static __device__ inline void store_pack(T *to, const float (&from)[N])
{
    pack<T, N> p;
#pragma unroll
    for (int i = 0; i < N; i++)
        p.at[i] = from_float<T>(from[i]);
    *(pack<T, N> *)to = p;
}

/* Calls f with a value of the type that numbers of `t` have in memory: with_type(v->dtype, [&](auto zero) { using T = decltype(zero); ... }). */
template <class F> static void with_type(enum dtype t, const F &f)
{
    if (t == BF16)
        f(__nv_bfloat16());
    else if (t == F16)
        f(__half());
    else
        f(float());
}

static inline cudaDataType_t cuda_type(enum dtype t) { return t == BF16 ? CUDA_R_16BF : t == F16 ? CUDA_R_16F : CUDA_R_32F; }

#endif
