/* Sums over the rows of a matrix, column by column, in an order that depends on its shape alone. Rows are divided into chunks; a block sums
 * a few columns of a chunk, and the block of these columns that comes last sums what the chunks gave. */
#ifndef HONE_OPS_CUDA_COLUMNS_CUH
#define HONE_OPS_CUDA_COLUMNS_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/row_parts.cuh"

enum { COLUMN_THREADS = 512, COLUMN_AHEAD = 8, COLUMN_CHUNKS = 128, COLUMN_BLOCKS = 512, COLUMN_FEW = 2048, COLUMN_COUNTERS = 64 };

/* True in the block that comes here last of `blocks`, when all have written what they have; the counter is 0 again then. */
static __device__ inline bool comes_last(unsigned *counter, unsigned blocks)
{
    __shared__ bool last;
    __syncthreads();                /* all threads have written */
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last)
            *counter = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* Partial sums x (rows, cols) in f32, of whole fours of columns, added up by one block; column `split` and those after it go to `rest`.
 * A thread has four columns of every step-th row; shared: four numbers for each thread. */
static __device__ inline void sum_parts_in_block(float *to, float *rest, int split, const float *x, int rows, int cols, float *shared)
{
    const int fours = cols / 4, step = max(1, (int)blockDim.x / fours), group = threadIdx.x / fours;
    for (int at = step > 1 ? threadIdx.x % fours : threadIdx.x; at < fours; at += step > 1 ? fours : blockDim.x) {
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
        for (int row = step > 1 ? group : 0; row < rows && (step == 1 || group < step); row += step) {
            const float4 v = __ldcg((const float4 *)(x + (int64_t)row * cols) + at);
            sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        }
        if (step > 1) {
            if (group < step)
                ((float4 *)shared)[group * fours + at] = sum;
        } else {
            *(float4 *)(4 * at < split ? to + 4 * at : rest + 4 * at - split) = sum;
        }
    }
    if (step == 1)
        return;
    __syncthreads();
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        float all = 0;
#pragma unroll 8
        for (int g = 0; g < step; g++)
            all += shared[g * cols + col];
        *(col < split ? to + col : rest + col - split) = all;
    }
}

struct columns {
    float *to, *rest;               /* columns [0, split) of the sums, and those after them */
    int64_t split;
    int64_t rows, cols, chunk;      /* rows of a chunk */
    int lanes;                      /* threads beside each other, one pack of columns each: a power of two, at most a warp */
    float *parts;                   /* (tiles, chunks, lanes * P), where there are several chunks */
    unsigned *counters;             /* (tiles) */
};

/* What the warps have in shared memory, (warps, tile), summed: one column for each of the first threads. */
template <int TILE> static __device__ inline float sum_warps(const float (*parts)[TILE])
{
    float all = 0;
#pragma unroll
    for (int w = 0; w < COLUMN_THREADS / WARP; w++)
        all += parts[w][threadIdx.x];
    return all;
}

/* Block (x, y) sums columns of tile x over chunk y; a thread has every (COLUMN_THREADS / lanes)th row of it. WHOLE: rows are of whole packs;
 * several are read ahead. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(COLUMN_THREADS) column_sums(const struct columns s, const T *x)
{
    constexpr int P = packed<T>, AHEAD = WHOLE ? COLUMN_AHEAD : 1;
    __shared__ __align__(16) float parts[COLUMN_THREADS / WARP][WARP * P];
    const int lane = threadIdx.x % s.lanes, warp = threadIdx.x / WARP, step = COLUMN_THREADS / s.lanes, width = s.lanes * P;
    const int64_t tile = (int64_t)blockIdx.x * width, col = tile + lane * P;
    const int64_t first = blockIdx.y * s.chunk, end = first + s.chunk < s.rows ? first + s.chunk : s.rows;
    const int some = (int)min((long long)(s.cols - col), (long long)P);
    float sum[P] = {0};
    for (int64_t row = first + threadIdx.x / s.lanes; row < end && some > 0; row += (int64_t)AHEAD * step) {
        uint4 ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            ahead[k] = row + k * step < end ? load_some(x + (row + k * step) * s.cols + col, some, WHOLE) : no_words();
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
#pragma unroll
            for (int i = 0; i < P; i++)
                sum[i] += number_at<T>(ahead[k], i);
    }
    for (int d = s.lanes; d < WARP; d *= 2)
#pragma unroll
        for (int i = 0; i < P; i++)
            sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], d);
    if (threadIdx.x % WARP < s.lanes)
#pragma unroll
        for (int i = 0; i < P; i++)
            parts[warp][lane * P + i] = sum[i];
    __syncthreads();
    const int64_t mine = tile + threadIdx.x;
    if (gridDim.y == 1) {
        if (threadIdx.x < width && mine < s.cols)
            *(mine < s.split ? s.to + mine : s.rest + mine - s.split) = sum_warps(parts);
        return;
    }
    float *const chunks = s.parts + (int64_t)blockIdx.x * gridDim.y * width;
    if (threadIdx.x < width)
        chunks[blockIdx.y * width + threadIdx.x] = sum_warps(parts);
    if (!comes_last(s.counters + blockIdx.x, gridDim.y))
        return;
    __shared__ __align__(16) float all[WARP * P];
    sum_parts_in_block(all, NULL, width, chunks, gridDim.y, width, &parts[0][0]);
    __syncthreads();
    if (threadIdx.x < width && mine < s.cols)
        s.to[mine] = all[threadIdx.x];
}

/* How a matrix is divided: tiles of all rows where these are few, narrow ones unless that makes too many; else as wide as loads are best
 * without many columns that are not there, in chunks. */
struct column_plan {
    int lanes;
    int64_t tiles, chunks;
};

static inline struct column_plan column_plan(int64_t rows, int64_t cols, int pack)
{
    int lanes = 4;
    if (rows <= COLUMN_FEW) {
        while (lanes < WARP && divide_up(cols, (int64_t)lanes * pack) > COLUMN_BLOCKS)
            lanes *= 2;
        return {lanes, divide_up(cols, (int64_t)lanes * pack), 1};
    }
    lanes = WARP;
    while (lanes > 8 && divide_up(cols, (int64_t)lanes * pack) * lanes * pack * 7 > cols * 8)
        lanes /= 2;
    const int64_t tiles = divide_up(cols, (int64_t)lanes * pack), most = at_least(1, at_most(COLUMN_CHUNKS, COLUMN_BLOCKS / tiles));
    const int64_t chunks = tiles > COLUMN_COUNTERS ? 1 : at_least(1, at_most(rows * lanes / (4 * COLUMN_THREADS), most));
    return {lanes, tiles, divide_up(rows, divide_up(rows, chunks))};
}

static inline size_t column_scratch(int64_t rows, int64_t cols, int pack)
{
    const struct column_plan plan = column_plan(rows, cols, pack);
    return plan.chunks > 1 ? (size_t)(plan.chunks * plan.tiles * plan.lanes * pack) * sizeof(float) : 0;
}

template <typename T> static void launch_column_sums(const struct cuda_call *c, struct columns s, const T *x, struct column_plan plan)
{
    s.lanes = plan.lanes;
    s.chunk = divide_up(s.rows, plan.chunks);
    s.parts = (float *)c->scratch;
    s.counters = cuda_counter(c);
    const dim3 blocks((unsigned)plan.tiles, (unsigned)plan.chunks);
    if (s.cols % packed<T> == 0)
        column_sums<T, true><<<blocks, COLUMN_THREADS, 0, c->stream>>>(s, x);
    else
        column_sums<T, false><<<blocks, COLUMN_THREADS, 0, c->stream>>>(s, x);
}

/* What partial sums (rows, cols) in f32 come to; columns from `split` on go to `rest`. */
static inline void sum_partial_columns(const struct cuda_call *c, float *to, float *rest, int64_t split, const float *x, int64_t rows, int64_t cols)
{
    launch_column_sums(c, {to, rest, split, rows, cols, 0, 0, NULL, NULL}, x, {4, divide_up(cols, 4 * packed<float>), 1});
}

/* to (cols) = the sums over the rows of x (rows, cols); the call's scratch has column_scratch bytes. */
template <typename T> static void sum_columns(const struct cuda_call *c, float *to, const T *x, int64_t rows, int64_t cols)
{
    launch_column_sums(c, {to, NULL, cols, rows, cols, 0, 0, NULL, NULL}, x, column_plan(rows, cols, packed<T>));
}

#endif
