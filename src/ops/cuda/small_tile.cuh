/* The sums of one block of the kernel for small products: tiles of operands in shared memory, and what four warps make of them. */
#ifndef HONE_OPS_CUDA_SMALL_TILE_CUH
#define HONE_OPS_CUDA_SMALL_TILE_CUH

#include <cuda_pipeline.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/small_results.cuh"
#include "ops/cuda/tensor.cuh"

enum { TILE = 64, STAGES_AHEAD = 4, TILE_THREADS = 128, ROW_CHUNKS = TILE / CHUNK };
enum { TILE_BYTES = TILE * TILE * 2, STAGE = 2 * TILE_BYTES, SUM_STRIDE = TILE + 8 };       /* sums: no two rows begin in one bank */
enum { ROOM = STAGES_AHEAD * STAGE };
static_assert(ROOM >= TILE * SUM_STRIDE * (int)sizeof(float), "sums take the place of operands");

/* ---- tiles of operands in shared memory: 64 rows of eight 16-byte chunks, which trade places so that eight rows lie in all banks ---- */

static __device__ inline uint32_t chunk_at(int row, int chunk) { return (uint32_t)(row * TILE * 2 + ((chunk ^ (row & 7)) << 4)); }

/* So many of 16 bytes, and zeros for the others; they arrive when the copies are waited for. (__pipeline_memcpy_async branches over all
 * numbers of zeros that there are.) */
static __device__ inline void fetch_bytes(char *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

/* Rows [row, row + 64) of a matrix, 64 columns from `column` on; what lies outside of (rows, columns) becomes zeros. A thread has the same
 * chunk of every sixteenth row. */
template <typename T>
static __device__ inline void fetch_tile(char *tile, const T *from, int stride, int row, int column, int rows, int columns)
{
    enum { APART = TILE_THREADS / ROW_CHUNKS };
    const int r = row + (int)threadIdx.x / ROW_CHUNKS, c = threadIdx.x % ROW_CHUNKS, left = columns - column - c * CHUNK;
    const int bytes = left <= 0 ? 0 : (left < CHUNK ? left : CHUNK) * (int)sizeof(T);
    const T *source = from + (int64_t)r * stride + column + c * CHUNK;
    char *to = tile + chunk_at((int)threadIdx.x / ROW_CHUNKS, c);
#pragma unroll
    for (int i = 0; i < TILE / APART; i++) {
        const int there = r + i * APART < rows ? bytes : 0;
        fetch_bytes(to + i * APART * TILE * 2, there ? source : from, there);
        source += (int64_t)APART * stride;
    }
}

/* 16 x 16 of a at (m, k): stored (m, k), or (k, m) where it is transposed. */
template <bool TRANS> static __device__ inline void load_a(uint32_t (&to)[4], const char *tile, int m, int k)
{
    const int lane = threadIdx.x % WARP, group = lane / 8;
    if (TRANS)
        load_matrices_transposed(to, tile + chunk_at(k + lane % 8 + group / 2 * 8, m / CHUNK + group % 2));
    else
        load_matrices(to, tile + chunk_at(m + lane % 16, k / CHUNK + lane / 16));
}

/* 16 x 16 of b at (k, n): stored (k, n), or (n, k) where it is transposed. The first two are those of the first 8 of n. */
template <bool TRANS> static __device__ inline void load_b(uint32_t (&to)[4], const char *tile, int k, int n)
{
    const int lane = threadIdx.x % WARP, group = lane / 8;
    if (TRANS)
        load_matrices(to, tile + chunk_at(n + lane % 8 + group / 2 * 8, k / CHUNK + group % 2));
    else
        load_matrices_transposed(to, tile + chunk_at(k + lane % 8 + group % 2 * 8, n / CHUNK + group / 2));
}

/* ---- the sums of a block: four warps, each 32 x 32 ---- */

struct sums { float at[2][4][4]; };

template <typename T, bool TA, bool TB> static __device__ inline void add_tile(sums &s, const char *a, const char *b)
{
    const int warp = threadIdx.x / WARP, m = warp / 2 * 32, n = warp % 2 * 32;
#pragma unroll
    for (int k = 0; k < TILE; k += 16) {
        uint32_t first[2][4], second[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            load_a<TA>(first[i], a, m + i * 16, k);
            load_b<TB>(second[i], b, k, n + i * 16);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                multiply_add<T>(s.at[i][j], first[i], second[j / 2][j % 2 * 2], second[j / 2][j % 2 * 2 + 1]);
    }
}

/* Where a block works: its rows, its columns, and its part of the steps in k. */
struct place { int m, n, part, first, end; };

template <typename T, bool TA, bool TB>
static __device__ inline void fetch_step(const small_products &p, const place &at, char *stage, int step)
{
    int part = at.part;
    while (p.summed && part + 1 < p.parts && step >= p.part[part + 1].before)
        part++;
    const small_part &s = p.part[part];
    const int k = (step - (p.summed ? s.before : 0)) * TILE;
    if (TA)
        fetch_tile(stage, (const T *)s.a, s.a_stride, k, at.m, s.k, p.m);
    else
        fetch_tile(stage, (const T *)s.a, s.a_stride, at.m, k, p.m, s.k);
    if (TB)
        fetch_tile(stage + TILE_BYTES, (const T *)s.b, s.b_stride, at.n, k, s.n, s.k);
    else
        fetch_tile(stage + TILE_BYTES, (const T *)s.b, s.b_stride, k, at.n, s.k, s.n);
}

template <typename T, bool TA, bool TB> static __device__ inline void sum_up(sums &s, const small_products &p, const place &at, char *room)
{
#pragma unroll 1                    /* code that is long comes late */
    for (int i = 0; i < STAGES_AHEAD - 1; i++) {
        if (at.first + i < at.end)
            fetch_step<T, TA, TB>(p, at, room + i * STAGE, at.first + i);
        __pipeline_commit();
    }
    for (int step = at.first; step < at.end; step++) {
        const int next = step + STAGES_AHEAD - 1;
        __pipeline_wait_prior(STAGES_AHEAD - 2);
        __syncthreads();            /* the step is there, and that before it is used up */
        if (next < at.end)
            fetch_step<T, TA, TB>(p, at, room + (next - at.first) % STAGES_AHEAD * STAGE, next);
        __pipeline_commit();
        const char *stage = room + (step - at.first) % STAGES_AHEAD * STAGE;
        add_tile<T, TA, TB>(s, stage, stage + TILE_BYTES);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
}

static __device__ inline void put_sums(float *to, const sums &s)
{
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, m = warp / 2 * 32 + lane / 4, n = warp % 2 * 32 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                *(float2 *)&to[(m + i * 16 + half * 8) * SUM_STRIDE + n + j * 8] = make_float2(s.at[i][j][half * 2], s.at[i][j][half * 2 + 1]);
}

#endif
