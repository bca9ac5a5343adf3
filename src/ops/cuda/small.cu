/* A block makes 64 x 64 numbers of a product with the tensor cores, 64 of k at a time, which come by asynchronous copies a few steps ahead.
 * Where a product has too few such tiles to fill the GPU, the blocks of a cluster divide k among them and add up their sums over distributed
 * shared memory, in the order of their ranks: the same bits every time. */
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/small.cuh"
#include "ops/cuda/types.cuh"

namespace cg = cooperative_groups;

enum { TILE = 64, STAGES_AHEAD = 4, TILE_THREADS = 128, CHUNK = 8, ROW_CHUNKS = TILE / CHUNK };
enum { TILE_BYTES = TILE * TILE * 2, STAGE = 2 * TILE_BYTES, SUM_STRIDE = TILE + 8 };       /* sums: no two rows begin in one bank */
enum { ROOM = STAGES_AHEAD * STAGE };
static_assert(ROOM >= TILE * SUM_STRIDE * (int)sizeof(float), "sums take the place of operands");

/* ---- tiles of operands in shared memory: 64 rows of eight 16-byte chunks, which trade places so that eight rows lie in all banks ---- */

static __device__ inline uint32_t chunk_at(int row, int chunk) { return (uint32_t)(row * TILE * 2 + ((chunk ^ (row & 7)) << 4)); }

/* Rows [row, row + 64) of a matrix, 64 columns from `column` on; what lies outside of (rows, columns) becomes zeros. */
template <typename T>
static __device__ inline void fetch_tile(char *tile, const T *from, int stride, int row, int column, int rows, int columns)
{
#pragma unroll
    for (int i = 0; i < TILE * ROW_CHUNKS / TILE_THREADS; i++) {
        const int at = i * TILE_THREADS + threadIdx.x, r = at / ROW_CHUNKS, c = at % ROW_CHUNKS, left = columns - column - c * CHUNK;
        const int there = row + r < rows && left > 0 ? (left < CHUNK ? left : CHUNK) : 0;
        const T *source = there ? from + (int64_t)(row + r) * stride + column + c * CHUNK : from;
        __pipeline_memcpy_async(tile + chunk_at(r, c), source, 16, 16 - there * sizeof(T));
    }
}

static __device__ inline void load_matrices(uint32_t (&to)[4], const char *at)
{
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

static __device__ inline void load_transposed(uint32_t (&to)[4], const char *at)
{
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

/* 16 x 16 of a at (m, k): stored (m, k), or (k, m) where it is transposed. */
template <bool TRANS> static __device__ inline void load_a(uint32_t (&to)[4], const char *tile, int m, int k)
{
    const int lane = threadIdx.x % WARP, group = lane / 8;
    if (TRANS)
        load_transposed(to, tile + chunk_at(k + lane % 8 + group / 2 * 8, m / CHUNK + group % 2));
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
        load_transposed(to, tile + chunk_at(k + lane % 8 + group % 2 * 8, n / CHUNK + group / 2));
}

static __device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __nv_bfloat16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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
                multiply_add(s.at[i][j], first[i], second[j / 2][j % 2 * 2], second[j / 2][j % 2 * 2 + 1], T());
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
#pragma unroll
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

/* ---- results ---- */

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

/* Eight numbers of a row: n of them are in the matrix. */
template <typename T, bool GELU>
static __device__ inline void finish_row(const small_products &p, const small_part &s, float (&v)[CHUNK], int row, int column, int n)
{
    const int64_t at = (int64_t)row * s.y_stride + column;
    const bool whole = n >= CHUNK && s.y_stride % CHUNK == 0;
    float slope[CHUNK];
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
        v[i] += s.bias && i < n ? s.bias[column + i] : 0;
        if (GELU) {
            const float gate = __fdividef(1.0f, 1.0f + __expf(-1.5957691216057308f * v[i] * fmaf(0.044715f * v[i], v[i], 1.0f)));
            slope[i] = gelu_slope(v[i], gate);
            v[i] *= gate;
        }
    }
    if (p.add && p.wide)
        add_row(v, (const float *)s.y + at, n);
    else if (p.add)
        add_row(v, (const T *)s.y + at, n);
    if (p.wide)
        store_row((float *)s.y + at, v, n, whole);
    else
        store_row((T *)s.y + at, v, n, whole);
    if (GELU && p.slope && p.wide)
        store_row((float *)p.slope + at, slope, n, whole);
    else if (GELU && p.slope)
        store_row((T *)p.slope + at, slope, n, whole);
}

/* Sums of `split` blocks at this place, from the first rank on. */
static __device__ inline void gather(float (&v)[CHUNK], float *sums, int at, int split)
{
    load_pack<4>(*(float (*)[4])&v[0], sums + at);
    load_pack<4>(*(float (*)[4])&v[4], sums + at + 4);
#if __CUDA_ARCH__ >= 900
    if (split == 1)
        return;
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        v[i] = 0;
    for (int rank = 0; rank < split; rank++) {
        const float *other = cg::this_cluster().map_shared_rank(sums, rank);
        float more[CHUNK];
        load_pack<4>(*(float (*)[4])&more[0], other + at);
        load_pack<4>(*(float (*)[4])&more[4], other + at + 4);
#pragma unroll
        for (int i = 0; i < CHUNK; i++)
            v[i] += more[i];
    }
#endif
}

/* Blocks of a cluster take turns with the rows. */
template <typename T, bool GELU>
static __device__ inline void finish_tile(const small_products &p, const place &at, float *sums, int rank)
{
    const small_part &s = p.part[at.part];
    for (int i = rank * TILE_THREADS + threadIdx.x; i < TILE * ROW_CHUNKS; i += p.split * TILE_THREADS) {
        const int row = i / ROW_CHUNKS, column = i % ROW_CHUNKS * CHUNK, n = s.n - at.n - column;
        float v[CHUNK];
        if (at.m + row >= p.m || n <= 0)
            continue;
        gather(v, sums, row * SUM_STRIDE + column, p.split);
        finish_row<T, GELU>(p, s, v, at.m + row, at.n + column, n);
    }
}

static __device__ inline int steps_of(const small_products &p, int part)
{
    return (p.summed ? p.part[p.parts - 1].before : 0) + (p.part[p.summed ? p.parts - 1 : part].k + TILE - 1) / TILE;
}

/* Blocks: (split, tiles in n of all parts, tiles in m). */
static __device__ inline place place_of(const small_products &p)
{
    place at = {};
    while (!p.summed && at.part + 1 < p.parts && (int)blockIdx.y >= p.part[at.part + 1].before)
        at.part++;
    const int steps = steps_of(p, at.part), rank = blockIdx.x;
    at.m = blockIdx.z * TILE;
    at.n = ((int)blockIdx.y - (p.summed ? 0 : p.part[at.part].before)) * TILE;
    at.first = steps * rank / p.split;
    at.end = steps * (rank + 1) / p.split;
    return at;
}

static __device__ inline void wait_for_cluster(int split)
{
#if __CUDA_ARCH__ >= 900
    if (split > 1) {
        cg::this_cluster().sync();
        return;
    }
#endif
    (void)split;
    __syncthreads();
}

template <typename T, bool TA, bool TB, bool GELU>
static __global__ void __launch_bounds__(TILE_THREADS) small_kernel(const __grid_constant__ small_products p)
{
    extern __shared__ __align__(128) char room[];
    const place at = place_of(p);
    sums s = {};
    sum_up<T, TA, TB>(s, p, at, room);
    put_sums((float *)room, s);
    wait_for_cluster(p.split);
    finish_tile<T, GELU>(p, at, (float *)room, blockIdx.x);
    if (p.split > 1)
        wait_for_cluster(p.split);      /* the others still read here */
}

/* ---- on the host ---- */

typedef void small_kernel_fn(const small_products p);

template <typename T> static small_kernel_fn *kernel_for(const struct small_products *p)
{
    if (p->gelu)
        return !p->trans_a && p->trans_b ? small_kernel<T, false, true, true> : NULL;
    if (p->trans_a)
        return p->trans_b ? NULL : small_kernel<T, true, false, false>;
    return p->trans_b ? small_kernel<T, false, true, false> : small_kernel<T, false, false, false>;
}

static bool aligned_for(const void *x, int stride) { return (uintptr_t)x % 16 == 0 && stride % CHUNK == 0; }

bool cuda_small_fits(const struct small_products *p)
{
    for (int i = 0; i < p->parts; i++)
        if (!aligned_for(p->part[i].a, p->part[i].a_stride) || !aligned_for(p->part[i].b, p->part[i].b_stride) ||
            (uintptr_t)p->part[i].y % 16 != 0)
            return false;
    return kernel_for<__nv_bfloat16>(p) != NULL && divide_up(p->m, TILE) <= 65535;
}

int64_t cuda_small_tiles(const struct small_products *p)
{
    int64_t columns = 0;
    for (int i = 0; i < (p->summed ? 1 : p->parts); i++)
        columns += divide_up(p->part[i].n, TILE);
    return columns * divide_up(p->m, TILE);
}

int64_t cuda_small_steps(const struct small_products *p)
{
    int64_t sum = 0, most = 0;
    for (int i = 0; i < p->parts; i++) {
        sum += divide_up(p->part[i].k, TILE);
        most = at_least(most, divide_up(p->part[i].k, TILE));
    }
    return p->summed ? sum : most;
}

void cuda_small_launch(const struct cuda_call *c, struct small_products p)
{
    small_kernel_fn *const kernel = p.f16 ? kernel_for<__half>(&p) : kernel_for<__nv_bfloat16>(&p);
    const int64_t tiles = cuda_small_tiles(&p), rows = divide_up(p.m, TILE);
    int before = 0;
    for (int i = 0; i < p.parts; i++) {
        p.part[i].before = before;
        before += (int)divide_up(p.summed ? p.part[i].k : p.part[i].n, TILE);
    }
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)p.split;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)p.split, (unsigned)(tiles / rows), (unsigned)rows);
    how.blockDim = dim3(TILE_THREADS);
    how.dynamicSmemBytes = ROOM;
    how.stream = c->stream;
    how.attrs = &cluster;
    how.numAttrs = p.split > 1;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ROOM) == cudaSuccess)
        cudaLaunchKernelEx(&how, kernel, p);
}
