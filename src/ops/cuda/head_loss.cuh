/* Kernels of the loss of a linear head: what happens to a chunk of logits, and the sums over all rows. */
#ifndef HONE_OPS_CUDA_HEAD_LOSS_CUH
#define HONE_OPS_CUDA_HEAD_LOSS_CUH

#include <cuda_pipeline.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/tensor.cuh"

enum { SUM_THREADS = 1024 };        /* of the one block that sums over all rows */
enum { COUNTED_ROWS = 2048 };       /* up to so many targets every block counts by itself */

static __device__ inline float known_targets(const int32_t *targets, int64_t rows)
{
    int known = 0;
#pragma unroll 8
    EACH_OF_BLOCK(row, rows)
        known += targets[row] >= 0;
    return (float)block_sum(known);
}

/* The first block counts targets, where somebody asks; the others copy w, n numbers of it, and zeros behind them. */
template <typename T>
static __global__ void prepare_head(float *count, const int32_t *targets, int64_t rows, T *to, const T *w, int64_t n, int64_t padded)
{
    if (blockIdx.x > 0) {
        const int64_t step = (int64_t)(gridDim.x - 1) * blockDim.x;
        for (int64_t i = (int64_t)(blockIdx.x - 1) * blockDim.x + threadIdx.x; i < padded; i += step)
            to[i] = i < n ? w[i] : from_float<T>(0);
        return;
    }
    if (!count)
        return;
    const float known = known_targets(targets, rows);
    if (threadIdx.x == 0)
        *count = known;
}

/* By one block; what others have written may not be in its L1 cache. */
static __device__ inline void mean_of_rows(float *loss, float *count, const float *losses, const int32_t *targets, int64_t rows)
{
    double sum = 0;
#pragma unroll 8
    EACH_OF_BLOCK(row, rows)
        sum += __ldcg(&losses[row]);
    sum = block_sum(sum);
    const float known = known_targets(targets, rows);
    if (threadIdx.x == 0) {
        *loss = (float)(sum / (known > 0 ? known : 1));
        *count = known;
    }
}

static __global__ void mean_loss(float *loss, float *count, const float *losses, const int32_t *targets, int64_t rows)
{
    mean_of_rows(loss, count, losses, targets, rows);
}

template <typename T> static __global__ void narrow(T *to, const float *from, int64_t n)
{
    EACH(i, n)
        to[i] = from_float<T>(from[i]);
}

/* e^(x - a - b); where numbers are narrow the last bits do not count. */
template <typename T> struct exponential {
    float a, b;
    __device__ exponential(float first, float second)
    {
        a = sizeof(T) == sizeof(float) ? first : (first + second) * 1.4426950408889634f;
        b = second;
    }
    __device__ float operator()(float x) const
    {
        return sizeof(T) == sizeof(float) ? expf(x - a - b) : power_of_two(fmaf(x, 1.4426950408889634f, -a));
    }
};

/* N numbers of a row, of which so many are there; the others count for nothing. */
template <int N, typename T> static __device__ inline void load_some(float (&v)[N], const T *from, int there)
{
    load_pack<N>(v, from);
    if (there < N)
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = i < there ? v[i] : -INFINITY;
}

static __device__ inline float larger(float2 x) { return fmaxf(x.x, x.y); }
static __device__ inline float larger(__nv_bfloat162 x) { return larger(__bfloat1622float2(x)); }
static __device__ inline float larger(__half2 x) { return larger(__half22float2(x)); }

/* The largest of a whole pack: two at a time. */
template <typename PAIR> static __device__ inline float pairs_max(uint4 p)
{
    const PAIR a = *(const PAIR *)&p.x, b = *(const PAIR *)&p.y, c = *(const PAIR *)&p.z, d = *(const PAIR *)&p.w;
    return larger(__hmax2(__hmax2(a, b), __hmax2(c, d)));
}

static __device__ inline float pack_max(const __nv_bfloat16 *x) { return pairs_max<__nv_bfloat162>(*(const uint4 *)x); }
static __device__ inline float pack_max(const __half *x) { return pairs_max<__half2>(*(const uint4 *)x); }
static __device__ inline float pack_max(const float *x)
{
    const float4 p = *(const float4 *)x;
    return fmaxf(fmaxf(p.x, p.y), fmaxf(p.z, p.w));
}

template <typename T> struct chunk {
    T *z;                           /* (rows, stride): logits, then their gradient */
    T *kept;                        /* (rows, depth): x for its product with that, padding as zeros. NULL: no gradients */
    const T *x;
    float *losses;
    const int32_t *targets, *all_targets;
    const float *count, *scale;     /* of known targets in all rows, NULL: they are counted here; NULL: 1 */
    int64_t rows, vocab, stride, depth, all_rows;
    bool held;                      /* a row fits into shared memory */
    unsigned *counter;              /* 0, of the blocks that are done: the last one makes the mean. NULL: another kernel does */
    float *mean, *known;
    const float *all_losses;
};

/* N numbers of x at a time, or one where rows are not aligned for it; by so many threads. */
template <int N, typename T> static __device__ inline void keep_row(T *to, const T *x, int64_t depth, bool padding, int thread, int threads)
{
    for (int64_t i = thread; i < depth / N; i += threads) {
        pack<T, N> p = {};
        if (!padding)
            p = ((const pack<T, N> *)x)[i];
        ((pack<T, N> *)to)[i] = p;
    }
}

template <typename T> static __device__ inline void keep(const chunk<T> &c, int64_t row, bool padding, int thread, int threads)
{
    constexpr int N = pack_size<T>();
    if (c.kept && c.depth % N == 0)
        keep_row<N>(c.kept + row * c.depth, c.x + row * c.depth, c.depth, padding, thread, threads);
    else if (c.kept)
        keep_row<1>(c.kept + row * c.depth, c.x + row * c.depth, c.depth, padding, thread, threads);
}

/* By one instruction, which the compiler might divide: all that is slow about a row is that it is read and written. */
template <typename T> static __device__ inline void store_whole(T *to, const float (&v)[8])
{
    __stwb((uint4 *)to, make_uint4(pair_of<T>(v[0], v[1]), pair_of<T>(v[2], v[3]), pair_of<T>(v[4], v[5]), pair_of<T>(v[6], v[7])));
}
static __device__ inline void store_whole(float *to, const float (&v)[4]) { __stwb((float4 *)to, make_float4(v[0], v[1], v[2], v[3])); }

/* Every pack of a row that this thread has. */
#define EACH_PACK(p, packs) for (int p = threadIdx.x; p < (packs); p += blockDim.x)

template <typename T> static __device__ inline float row_max(const T *from, int packs, int vocab)
{
    constexpr int N = pack_size<T>();
    float most = -INFINITY;
    EACH_PACK(p, packs) {
        if ((p + 1) * N <= vocab) {
            most = fmaxf(most, pack_max(from + p * N));
            continue;
        }
        float v[N];
        load_some(v, from + p * N, vocab - p * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            most = fmaxf(most, v[i]);
    }
    return block_max(most);
}

template <typename T> static __device__ inline float row_sum(const T *from, int packs, int vocab, float most)
{
    constexpr int N = pack_size<T>();
    const exponential<T> e(most, 0);
    float sum = 0;
    EACH_PACK(p, packs) {
        float v[N];
        load_some(v, from + p * N, vocab - p * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += e(v[i]);
    }
    return block_sum(sum);
}

/* Of a row of which this thread has every blockDim.x-th pack: from is z or a copy of it, of which a thread reads only what it wrote. What
 * the target takes away is put right at the end, by the thread that has its pack. */
template <typename T> static __device__ void row_loss(const chunk<T> &c, T *z, const T *from, float *loss, int32_t target, float factor)
{
    constexpr int N = pack_size<T>();
    const int packs = (int)(c.stride / N), vocab = (int)c.vocab;
    const float at_target = to_float(z[target]);        /* before it is overwritten: everybody waits for the largest */
    const float most = row_max(from, packs, vocab), log_sum = logf(row_sum(from, packs, vocab, most));
    if (threadIdx.x == 0)
        *loss = log_sum + (most - at_target);
    if (!c.kept)
        return;
    const exponential<T> e(most, log_sum);
    EACH_PACK(p, packs) {
        float v[N];
        load_some(v, from + p * N, vocab - p * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = e(v[i]) * factor;
        store_whole(z + p * N, v);
    }
    if (target / N % blockDim.x == threadIdx.x)
        z[target] = from_float<T>((e(at_target) - 1) * factor);
}

template <typename T> static __device__ void zero_row(T *z, int64_t packs)
{
    const float zeros[pack_size<T>()] = {};
    EACH_OF_BLOCK(p, packs)
        store_pack<pack_size<T>()>(z + p * pack_size<T>(), zeros);
}

/* Every thread copies the packs that it reads. */
template <typename T> static __device__ void copy_row(T *to, const T *z, int64_t packs)
{
    constexpr int N = pack_size<T>();
    EACH_OF_BLOCK(p, packs)
        __pipeline_memcpy_async(to + p * N, z + p * N, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

/* Each row's loss, and dz = (softmax(z) - onehot) * scale / count over z. */
template <typename T> static __global__ void __launch_bounds__(1024, 2) loss_kernel(const __grid_constant__ chunk<T> c)
{
    extern __shared__ uint4 room[];
    constexpr int N = pack_size<T>();
    const float count = c.count ? *c.count : known_targets(c.all_targets, c.all_rows), factor = (c.scale ? *c.scale : 1) / count;
    for (int64_t row = blockIdx.x; row < c.rows; row += gridDim.x) {
        T *z = c.z + row * c.stride;
        const int32_t target = c.targets[row];
        keep(c, row, target < 0, threadIdx.x, blockDim.x);
        if (target < 0) {
            if (c.kept)
                zero_row(z, c.stride / N);
            if (threadIdx.x == 0)
                c.losses[row] = 0;
            continue;
        }
        if (c.held)
            copy_row((T *)room, z, c.stride / N);
        row_loss(c, z, c.held ? (const T *)room : z, &c.losses[row], target, factor);
    }
    if (c.counter && comes_last(c.counter, gridDim.x))
        mean_of_rows(c.mean, c.known, c.all_losses, c.all_targets, c.all_rows);
}

#endif
