/* Sums over the rows of matrices, column by column, in an order that depends on their shape alone. Rows are divided into chunks; a block sums
 * a few columns of a chunk, and the block of these columns that comes last sums what the chunks gave. Where rows come from is for a struct
 * to say: they are read, or made on the way to memory. */
#ifndef HONE_OPS_CUDA_COLUMNS_CUH
#define HONE_OPS_CUDA_COLUMNS_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/row_parts.cuh"

enum {
    COLUMN_MATRICES = 1 + SUMS_MOST,            /* of one shape, in one launch */
    /* Many rows: 256 bytes of a row beside each other, so that what the chunks gave for these is little, and chunks enough to fill a GPU. */
    COLUMN_THREADS = 256, COLUMN_LANES = 16, COLUMN_CHUNKS = 128, COLUMN_ROWS = 8, COLUMN_COUNTERS = 256,
    FEW_ROWS = 2048, FEW_THREADS = 512, FEW_LANES = 4, FEW_BLOCKS = 512,        /* few rows: no chunks */
};

struct columns {
    float *to[COLUMN_MATRICES];     /* column c of matrix m goes to number c % split of to[m + c / split] */
    int64_t split;
    int64_t rows, cols, chunk;      /* rows of a chunk */
    int lanes;                      /* threads beside each other, one pack of columns each: a power of two, at most a warp */
    float *parts;                   /* (matrices, tiles, chunks, lanes * P), where there are several chunks */
    unsigned *counters;             /* (matrices, tiles) */
    const float *leave;             /* where it is 0 nothing is summed; NULL: in any case */
};

/* Rows as they are in memory. WHOLE: of whole packs, several of which are read ahead. */
template <typename T, bool WHOLE> struct plain_rows {
    static constexpr int P = packed<T>, AHEAD = WHOLE ? COLUMN_ROWS : 1, BLOCKS = 3;
    struct words { uint4 x; };
    const T *x[COLUMN_MATRICES];
    __device__ inline words load(int64_t at, int some) const { return {load_some(x[blockIdx.z] + at, some, WHOLE)}; }
    __device__ inline void add(float (&sum)[P], const words &w, int64_t) const
    {
#pragma unroll
        for (int i = 0; i < P; i++)
            sum[i] += number_at<T>(w.x, i);
    }
};

/* What the warps have in shared memory, (warps, tile), summed: one column for each of the first threads. */
template <int WARPS, int TILE> static __device__ inline float sum_warps(const float (&parts)[WARPS][TILE])
{
    float all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        all += parts[w][threadIdx.x];
    return all;
}

/* Partial sums x (rows, width) in f32, width being whole fours of at most as many as there are threads: one column for each of the first
 * threads. A thread has four columns of every so many-th row; shared: four numbers for each thread. */
static __device__ inline float sum_chunks(const float *x, int rows, int width, float *shared)
{
    const int fours = width / 4, step = blockDim.x / fours, group = threadIdx.x / fours, at = threadIdx.x % fours;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int row = group; row < rows; row += step) {
        const float4 v = __ldcg((const float4 *)(x + (int64_t)row * width) + at);
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    ((float4 *)shared)[threadIdx.x] = sum;
    __syncthreads();
    float all = 0;
    for (int g = 0; g < step && threadIdx.x < width; g++)
        all += shared[g * width + threadIdx.x];
    return all;
}

/* Block (x, y, z) sums columns of tile x over chunk y of matrix z; a thread has every (THREADS / lanes)th row of it. Chunks are counted from the
 * last one: what was written last is in the cache yet, and what is written here last is what the next kernel reads first. */
template <int THREADS, class Rows>
static __global__ void __launch_bounds__(THREADS, THREADS == COLUMN_THREADS ? Rows::BLOCKS : 1)
column_sums(const __grid_constant__ struct columns s, const __grid_constant__ Rows rows)
{
    constexpr int P = Rows::P, AHEAD = Rows::AHEAD;
    __shared__ __align__(16) float parts[THREADS / WARP][WARP * P];
    if (s.leave && *s.leave == 0)
        return;
    const int lane = threadIdx.x % s.lanes, warp = threadIdx.x / WARP, step = THREADS / s.lanes, width = s.lanes * P;
    const int64_t tile = (int64_t)blockIdx.x * width, col = tile + lane * P, chunk = gridDim.y - 1 - blockIdx.y;
    const int64_t first = chunk * s.chunk + threadIdx.x / s.lanes, end = min((long long)((chunk + 1) * s.chunk), (long long)s.rows);
    const int64_t stride = step * s.cols;
    const int some = (int)min((long long)(s.cols - col), (long long)P);
    int left = some > 0 && first < end ? (int)((end - first + step - 1) / step) : 0;       /* rows that this thread has */
    float sum[P] = {0};
    int64_t at = first * s.cols + col;
    for (; left >= AHEAD; left -= AHEAD, at += AHEAD * stride) {
        typename Rows::words ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            ahead[k] = rows.load(at + k * stride, some);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            rows.add(sum, ahead[k], at + k * stride);
    }
    if (left > 0) {
        typename Rows::words ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (k < left)
                ahead[k] = rows.load(at + k * stride, some);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (k < left)
                rows.add(sum, ahead[k], at + k * stride);
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
    float all = threadIdx.x < width ? sum_warps(parts) : 0;
    if (gridDim.y > 1) {
        const int64_t place = (int64_t)blockIdx.z * gridDim.x + blockIdx.x;
        float *const chunks = s.parts + place * gridDim.y * width;
        if (threadIdx.x < width)
            chunks[chunk * width + threadIdx.x] = all;
        if (!comes_last(s.counters + place, gridDim.y))
            return;
        all = sum_chunks(chunks, gridDim.y, width, &parts[0][0]);
    }
    const int64_t mine = tile + threadIdx.x;
    if (threadIdx.x < width && mine < s.cols)
        s.to[blockIdx.z + quotient(mine, s.split)][modulo(mine, s.split)] = all;
}

/* How a matrix is divided. */
struct column_plan {
    int lanes;
    int64_t tiles, chunks;
};

static inline struct column_plan column_plan(int64_t rows, int64_t cols, int pack)
{
    const bool few = rows <= FEW_ROWS;
    const int64_t most = few ? FEW_BLOCKS : COLUMN_COUNTERS / COLUMN_MATRICES;
    int lanes = few ? FEW_LANES : COLUMN_LANES;
    while (lanes < WARP && divide_up(cols, (int64_t)lanes * pack) > most)
        lanes *= 2;
    const int64_t tiles = divide_up(cols, (int64_t)lanes * pack), full = COLUMN_THREADS / lanes * COLUMN_ROWS;
    const int64_t chunks = few || tiles > most ? 1 : at_least(1, at_most(rows / full, COLUMN_CHUNKS));
    return {lanes, tiles, divide_up(rows, divide_up(rows, chunks))};
}

/* For as many matrices as one launch takes. */
static inline size_t column_scratch(int64_t rows, int64_t cols, int pack)
{
    const struct column_plan plan = column_plan(rows, cols, pack);
    return plan.chunks > 1 ? (size_t)(COLUMN_MATRICES * plan.chunks * plan.tiles * plan.lanes * pack) * sizeof(float) : 0;
}

template <class Rows> static void launch_column_sums(const struct cuda_call *c, struct columns s, const Rows &rows, struct column_plan plan, int matrices)
{
    s.lanes = plan.lanes;
    s.chunk = divide_up(s.rows, plan.chunks);
    s.parts = (float *)c->scratch;
    s.counters = cuda_counter(c);
    const dim3 blocks((unsigned)plan.tiles, (unsigned)plan.chunks, (unsigned)matrices);
    if (s.rows <= FEW_ROWS)
        column_sums<FEW_THREADS><<<blocks, FEW_THREADS, 0, c->stream>>>(s, rows);
    else
        column_sums<COLUMN_THREADS><<<blocks, COLUMN_THREADS, 0, c->stream>>>(s, rows);
}

/* to[k] (split) = the sums over the rows of columns from k * split on, of partial sums x (rows, cols) in f32. */
static inline void sum_partial_columns(const struct cuda_call *c, float *const (&to)[COLUMN_MATRICES], int64_t split, const float *x, int64_t rows,
                                       int64_t cols)
{
    struct columns s = {};
    for (int k = 0; k < COLUMN_MATRICES; k++)
        s.to[k] = to[k];
    s.split = split, s.rows = rows, s.cols = cols;
    const struct column_plan plan = {FEW_LANES, divide_up(cols, FEW_LANES * packed<float>), 1};
    if (cols % packed<float> == 0)
        launch_column_sums(c, s, plain_rows<float, true>{{x}}, plan, 1);
    else
        launch_column_sums(c, s, plain_rows<float, false>{{x}}, plan, 1);
}

#endif
