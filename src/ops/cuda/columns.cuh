/* Sums over the rows of a matrix, column by column, in an order that depends on its shape alone. Rows are divided into chunks; each block
 * sums 32 columns of a chunk, and a second kernel sums what the chunks gave. */
#ifndef HONE_OPS_CUDA_COLUMNS_CUH
#define HONE_OPS_CUDA_COLUMNS_CUH

#include "ops/cuda/device.cuh"

enum { COLUMN_LANES = 8, COLUMN_CHUNK = 64, COLUMN_CHUNKS = 128 };      /* threads beside a column; fewest rows of a chunk; most chunks */

template <int N> struct column_out { float *at[N]; };       /* N sums at once, each (cols) */

static inline int64_t column_chunks(int64_t rows) { return at_least(1, at_most(rows / COLUMN_CHUNK, COLUMN_CHUNKS)); }

static inline size_t column_scratch(int n, int64_t rows, int64_t cols)
{
    const int64_t chunks = column_chunks(rows);
    return chunks > 1 ? (size_t)(n * chunks * cols) * sizeof(float) : 0;
}

/* Chunk blockIdx.y of the rows; `to` is (chunks, cols) each. term(row, col, float[N]) gives what is summed. */
template <int N, class Term> static __global__ void column_parts(column_out<N> to, int64_t rows, int64_t cols, int64_t chunk, Term term)
{
    __shared__ float parts[N][COLUMN_LANES][WARP];
    const int64_t first = blockIdx.y * chunk, end = first + chunk < rows ? first + chunk : rows;
    for (int64_t start = (int64_t)blockIdx.x * WARP; start < cols; start += (int64_t)gridDim.x * WARP) {
        const int64_t col = start + threadIdx.x;
        float sum[N] = {0}, one[N];
        for (int64_t row = first + threadIdx.y; row < end && col < cols; row += COLUMN_LANES) {
            term(row, col, one);
            for (int k = 0; k < N; k++)
                sum[k] += one[k];
        }
        for (int k = 0; k < N; k++)
            parts[k][threadIdx.y][threadIdx.x] = sum[k];
        __syncthreads();
        for (int k = threadIdx.y; k < N && col < cols; k += COLUMN_LANES) {
            float all = 0;
            for (int lane = 0; lane < COLUMN_LANES; lane++)
                all += parts[k][lane][threadIdx.x];
            to.at[k][blockIdx.y * cols + col] = all;
        }
        __syncthreads();            /* before the parts of the next columns */
    }
}

template <int N> static __global__ void column_totals(column_out<N> to, column_out<N> parts, int64_t chunks, int64_t cols)
{
    EACH(i, N * cols) {
        const int64_t k = i / cols, col = i % cols;
        float sum = 0;
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            sum += parts.at[k][chunk * cols + col];
        to.at[k][col] = sum;
    }
}

template <int N, class Term>
static void column_sums(cudaStream_t stream, column_out<N> to, float *scratch, int64_t rows, int64_t cols, Term term)
{
    const int64_t chunks = column_chunks(rows);
    const dim3 blocks((unsigned)at_most(divide_up(cols, WARP), INT32_MAX), (unsigned)chunks), threads(WARP, COLUMN_LANES);
    column_out<N> parts = to;
    for (int k = 0; k < N && chunks > 1; k++)
        parts.at[k] = scratch + k * chunks * cols;
    column_parts<N><<<blocks, threads, 0, stream>>>(parts, rows, cols, divide_up(rows, chunks), term);
    if (chunks > 1)
        column_totals<N><<<blocks_for(N * cols), THREADS, 0, stream>>>(to, parts, chunks, cols);
}

#endif
