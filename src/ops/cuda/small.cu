/* A block makes 64 x 64 numbers of a product with the tensor cores, 64 of k at a time, which come by asynchronous copies a few steps ahead.
 * Where a product has too few such tiles to fill the GPU, the blocks of a cluster divide k among them and add up their sums over distributed
 * shared memory; where that is not enough, several clusters put their sums into memory, and the last one adds them up. The order of sums is
 * that of the pieces of k: the same bits every time. */
#include <cooperative_groups.h>

#include "ops/cuda/small_tile.cuh"

namespace cg = cooperative_groups;

/* ---- sums of several blocks ---- */

/* Sums of the blocks of a cluster at this place, from the first rank on. */
static __device__ inline void gather(float (&v)[CHUNK], float *sums, int at, int blocks)
{
    load_pack<4>(*(float (*)[4])&v[0], sums + at);
    load_pack<4>(*(float (*)[4])&v[4], sums + at + 4);
#if __CUDA_ARCH__ >= 900
    if (blocks == 1)
        return;
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        v[i] = 0;
    for (int rank = 0; rank < blocks; rank++) {
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

/* Which of the blocks of its tile this one is. */
struct piece {
    int rank, blocks;               /* in its cluster, and how many there are in it */
    int cluster, clusters;
    int tile;
};

static __device__ inline piece piece_of(const small_products &p)
{
    const int blocks = p.pieces < CLUSTER ? p.pieces : CLUSTER, tile = blockIdx.z * gridDim.y + blockIdx.y;
    return {(int)blockIdx.x % blocks, blocks, (int)blockIdx.x / blocks, p.pieces / blocks, tile};
}

/* What the other clusters of this tile have put into memory, and this one. */
static __device__ inline void gather_clusters(float (&v)[CHUNK], const float *partial, int clusters)
{
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        v[i] = 0;
    for (int cluster = 0; cluster < clusters; cluster++)
#pragma unroll
        for (int i = 0; i < CHUNK; i += 4) {
            const float4 more = __ldcg((const float4 *)(partial + cluster * TILE * TILE + i));
            v[i] += more.x, v[i + 1] += more.y, v[i + 2] += more.z, v[i + 3] += more.w;
        }
}

static __device__ inline void put_partial(float *to, const float (&v)[CHUNK])
{
#pragma unroll
    for (int i = 0; i < CHUNK; i += 4)
        __stcg((float4 *)(to + i), make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]));
}

/* True in the last of the clusters; the counter is 0 again then. */
static __device__ inline bool is_last_cluster(unsigned *counter, int clusters)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1u) == (unsigned)clusters - 1;
        if (last)
            *counter = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* Blocks of a cluster take turns with the rows. */
template <class F> static __device__ inline void each_chunk(const small_products &p, const place &at, const piece &mine, const F &f)
{
    for (int i = mine.rank * TILE_THREADS + threadIdx.x; i < TILE * ROW_CHUNKS; i += mine.blocks * TILE_THREADS) {
        const int row = i / ROW_CHUNKS, column = i % ROW_CHUNKS * CHUNK, n = p.part[at.part].n - at.n - column;
        if (at.m + row < p.m && n > 0)
            f(row, column, n);
    }
}

template <typename T, bool GELU>
static __device__ inline void finish_tile(const small_products &p, const place &at, const piece &mine, float *sums, const float (&bias)[CHUNK])
{
    const small_part &s = p.part[at.part];
    float *partial = p.partial + (int64_t)mine.tile * mine.clusters * TILE * TILE;
    if (mine.clusters > 1) {
        each_chunk(p, at, mine, [&](int row, int column, int) {
            float v[CHUNK];
            gather(v, sums, row * SUM_STRIDE + column, mine.blocks);
            put_partial(partial + (mine.cluster * TILE + row) * TILE + column, v);
        });
        if (!is_last_cluster(p.counters + mine.tile * CLUSTER + mine.rank, mine.clusters))
            return;
    }
    each_chunk(p, at, mine, [&](int row, int column, int n) {
        float v[CHUNK];
        if (mine.clusters > 1)
            gather_clusters(v, partial + row * TILE + column, mine.clusters);
        else
            gather(v, sums, row * SUM_STRIDE + column, mine.blocks);
        finish_row<T, GELU>(p, s, v, bias, at.m + row, at.n + column, n);
    });
}

static __device__ inline int steps_of(const small_products &p, int part)
{
    return (p.summed ? p.part[p.parts - 1].before : 0) + (p.part[p.summed ? p.parts - 1 : part].k + TILE - 1) / TILE;
}

/* Blocks: (pieces, tiles in n of all parts, tiles in m). */
static __device__ inline place place_of(const small_products &p)
{
    place at = {};
    while (!p.summed && at.part + 1 < p.parts && (int)blockIdx.y >= p.part[at.part + 1].before)
        at.part++;
    const int steps = steps_of(p, at.part), piece = blockIdx.x;
    at.m = blockIdx.z * TILE;
    at.n = ((int)blockIdx.y - (p.summed ? 0 : p.part[at.part].before)) * TILE;
    at.first = steps * piece / p.pieces;
    at.end = steps * (piece + 1) / p.pieces;
    return at;
}

static __device__ inline void wait_for_cluster(int blocks)
{
#if __CUDA_ARCH__ >= 900
    if (blocks > 1) {
        cg::this_cluster().sync();
        return;
    }
#endif
    (void)blocks;
    __syncthreads();
}

template <typename T, bool TA, bool TB, bool GELU>
static __global__ void __launch_bounds__(TILE_THREADS, 3) small_kernel(const __grid_constant__ small_products p)
{
    extern __shared__ __align__(128) char room[];
    const place at = place_of(p);
    if (p.part[at.part].leave && *p.part[at.part].leave == 0)
        return;                             /* and so do all blocks of its cluster */
    const piece mine = piece_of(p);
    float bias[CHUNK];
    sums s = {};
    load_bias(bias, p.part[at.part], at.n + (int)threadIdx.x % ROW_CHUNKS * CHUNK);     /* those of every row; early, so that they are there */
    sum_up<T, TA, TB>(s, p, at, room);
    put_sums((float *)room, s);
    wait_for_cluster(mine.blocks);
    finish_tile<T, GELU>(p, at, mine, (float *)room, bias);
    if (mine.blocks > 1)
        wait_for_cluster(mine.blocks);      /* the others still read here */
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

bool cuda_small_is_aligned(const struct small_products *p)
{
    for (int i = 0; i < p->parts; i++)
        if (!aligned_for(p->part[i].a, p->part[i].a_stride) || !aligned_for(p->part[i].b, p->part[i].b_stride) ||
            (uintptr_t)p->part[i].y % 16 != 0)
            return false;
    return true;
}

bool cuda_small_fits(const struct small_products *p)
{
    return cuda_small_is_aligned(p) && kernel_for<__nv_bfloat16>(p) != NULL && divide_up(p->m, TILE) <= 65535;
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

static int64_t clusters_of(int pieces) { return at_least(1, pieces / CLUSTER); }

bool cuda_small_has_room(const struct small_products *p, int pieces)
{
    const int64_t tiles = cuda_small_tiles(p), clusters = clusters_of(pieces);
    return clusters == 1 || (tiles * CLUSTER * (int64_t)sizeof(unsigned) <= COUNTERS &&
                             tiles * clusters * TILE * TILE * (int64_t)sizeof(float) <= BLAS_WORKSPACE);
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
    p.partial = (float *)c->workspace;
    p.counters = cuda_counter(c);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)at_most(p.pieces, CLUSTER);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)p.pieces, (unsigned)(tiles / rows), (unsigned)rows);
    how.blockDim = dim3(TILE_THREADS);
    how.dynamicSmemBytes = ROOM;
    how.stream = c->stream;
    how.attrs = &cluster;
    how.numAttrs = p.pieces > 1;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ROOM) == cudaSuccess)
        cudaLaunchKernelEx(&how, kernel, p);
}
