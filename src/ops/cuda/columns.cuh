/* Sums over the rows of a matrix, column by column, in an order that depends on its shape alone. Rows are divided into chunks; a block sums
 * a few columns of a chunk, and the same kernel then sums what the chunks gave. Where rows are few, one chunk has them all. */
#ifndef HONE_OPS_CUDA_COLUMNS_CUH
#define HONE_OPS_CUDA_COLUMNS_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/row_parts.cuh"

enum { COLUMN_THREADS = 512, COLUMN_AHEAD = 8, COLUMN_CHUNKS = 256, COLUMN_FEW = 2048 };

struct columns {
    float *to, *rest;               /* columns [0, split) of the sums, and those after them */
    int64_t split;
    int64_t rows, cols, chunk;      /* rows of a chunk */
    int lanes;                      /* threads beside each other, one pack of columns each: a power of two, at most a warp */
};

/* Block (x, y) sums columns of tile x over chunk y; a thread has every (COLUMN_THREADS / lanes)th row of it. WHOLE: rows are of whole packs;
 * several are read ahead. */
template <typename T, bool WHOLE> static __global__ void __launch_bounds__(COLUMN_THREADS) column_sums(const struct columns s, const T *x)
{
    constexpr int P = packed<T>, AHEAD = WHOLE ? COLUMN_AHEAD : 1;
    __shared__ float parts[COLUMN_THREADS / WARP][WARP * P];
    const int lane = threadIdx.x % s.lanes, warp = threadIdx.x / WARP, step = COLUMN_THREADS / s.lanes;
    const int64_t tile = (int64_t)blockIdx.x * s.lanes * P, col = tile + lane * P;
    const int64_t first = blockIdx.y * s.chunk, end = first + s.chunk < s.rows ? first + s.chunk : s.rows;
    float sum[P] = {0};
    for (int64_t row = first + threadIdx.x / s.lanes; row < end && col < s.cols; row += (int64_t)AHEAD * step) {
        uint4 ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            ahead[k] = row + k * step < end ? load_some(x + (row + k * step) * s.cols + col, (int)min((long long)(s.cols - col), (long long)P), WHOLE) : no_words();
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
    if (threadIdx.x >= s.lanes * P || mine >= s.cols)
        return;
    float all = 0;
#pragma unroll
    for (int w = 0; w < COLUMN_THREADS / WARP; w++)
        all += parts[w][threadIdx.x];
    if (mine < s.split)
        s.to[blockIdx.y * s.split + mine] = all;
    else
        s.rest[mine - s.split] = all;
}

/* How a matrix is divided: narrow tiles of all rows where these are few, else as wide as loads are best, in many chunks. */
struct column_plan {
    int lanes;
    int64_t chunks;
};

static inline struct column_plan column_plan(int64_t rows, int64_t cols, int pack)
{
    if (rows <= COLUMN_FEW)
        return {4, 1};
    int lanes = 4;
    while (lanes < WARP && (int64_t)lanes * pack < cols)
        lanes *= 2;
    return {lanes, at_most(divide_up(rows, (int64_t)COLUMN_AHEAD * COLUMN_THREADS / lanes), COLUMN_CHUNKS)};
}

static inline size_t column_scratch(int64_t rows, int64_t cols, int pack)
{
    const int64_t chunks = column_plan(rows, cols, pack).chunks;
    return chunks > 1 ? (size_t)(chunks * cols) * sizeof(float) : 0;
}

template <typename T> static void launch_column_sums(cudaStream_t stream, struct columns s, const T *x, struct column_plan plan)
{
    s.lanes = plan.lanes;
    s.chunk = divide_up(s.rows, plan.chunks);
    const dim3 blocks((unsigned)divide_up(s.cols, (int64_t)plan.lanes * packed<T>), (unsigned)plan.chunks);
    if (s.cols % packed<T> == 0)
        column_sums<T, true><<<blocks, COLUMN_THREADS, 0, stream>>>(s, x);
    else
        column_sums<T, false><<<blocks, COLUMN_THREADS, 0, stream>>>(s, x);
}

/* What partial sums (rows, cols) in f32 come to, in one launch; columns from `split` on go to `rest`. */
static inline void sum_partial_columns(cudaStream_t stream, float *to, float *rest, int64_t split, const float *x, int64_t rows, int64_t cols)
{
    launch_column_sums(stream, {to, rest, split, rows, cols, 0, 0}, x, {4, 1});
}

/* to (cols) = the sums over the rows of x (rows, cols); scratch has column_scratch bytes. */
template <typename T> static void sum_columns(cudaStream_t stream, float *to, const T *x, int64_t rows, int64_t cols, float *scratch)
{
    const struct column_plan plan = column_plan(rows, cols, packed<T>);
    launch_column_sums(stream, {plan.chunks > 1 ? scratch : to, NULL, cols, rows, cols, 0, 0}, x, plan);
    if (plan.chunks > 1)
        sum_partial_columns(stream, to, NULL, cols, scratch, plan.chunks, cols);
}

#endif
