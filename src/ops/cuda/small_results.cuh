/* What is done to eight numbers of a row of a product before they are stored: bias, GELU, a factor, what is there already. */
#ifndef HONE_OPS_CUDA_SMALL_RESULTS_CUH
#define HONE_OPS_CUDA_SMALL_RESULTS_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/small.cuh"
#include "ops/cuda/types.cuh"

enum { CHUNK = 8 };

template <typename U> static __device__ inline void store_row(U *y, const float (&v)[CHUNK], int n, bool whole)
{
    if (whole)
        store_pack<CHUNK>(y, v);
    else
#pragma unroll
        for (int i = 0; i < CHUNK; i++)
            if (i < n)
                y[i] = from_float<U>(v[i]);
}

template <typename U> static __device__ inline void add_row(float (&v)[CHUNK], const U *y, int n)
{
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        v[i] += i < n ? to_float(y[i]) : 0;
}

template <typename T> static __device__ inline void multiply_row(float (&v)[CHUNK], const T *by, int n, bool whole)
{
    float x[CHUNK];
    if (whole)
        load_pack<CHUNK>(x, by);
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        v[i] *= whole ? x[i] : i < n ? to_float(by[i]) : 0;
}

/* Eight numbers of a row: n of them are in the matrix. */
template <typename T, bool GELU>
static __device__ inline void finish_row(const small_products &p, const small_part &s, float (&v)[CHUNK], const float (&bias)[CHUNK], int row,
                                         int column, int n)
{
    const int64_t at = (int64_t)row * s.y_stride + column;
    const bool whole = n >= CHUNK && s.y_stride % CHUNK == 0;
    float slope[CHUNK];
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
        v[i] += bias[i];
        if (GELU) {
            const float gate = __fdividef(1.0f, 1.0f + __expf(-1.5957691216057308f * v[i] * fmaf(0.044715f * v[i], v[i], 1.0f)));
            slope[i] = gelu_slope(v[i], gate);
            v[i] *= gate;
        }
    }
    if (p.times)
        multiply_row(v, (const T *)p.times + at, n, whole);
    if (p.add && p.wide)
        add_row(v, (const float *)s.y + at, n);
    else if (p.add)
        add_row(v, (const T *)s.y + at, n);
    if (p.wide)
        store_row((float *)s.y + at, v, n, whole);
    else
        store_row((T *)s.y + at, v, n, whole);
    if (GELU && s.slope && p.wide)
        store_row((float *)s.slope + at, slope, n, whole);
    else if (GELU && s.slope)
        store_row((T *)s.slope + at, slope, n, whole);
}

/* The biases of the columns that a thread finishes. */
static __device__ inline void load_bias(float (&bias)[CHUNK], const small_part &s, int column)
{
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        bias[i] = s.bias && column + i < s.n ? s.bias[column + i] : 0;
}

#endif
