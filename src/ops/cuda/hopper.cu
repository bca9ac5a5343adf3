/* Products of a middling size on GPUs of compute capability 9.0: all products of one input, or the sum of several, or those of
 * several ops, in one kernel. A block makes 128 x N numbers, 64 of k at a time: one warp asks for tiles of operands, a few steps ahead, and two warpgroups multiply them. Two
 * blocks, one below the other, form a pair: each fetches one half of what both have of the right operand, for both, so that less is
 * read from the L2, which is what limits products of this size. Where there are too few tiles to fill the GPU, the pairs of a cluster divide k among them and add up
 * their sums over distributed shared memory, in the order of the pieces: the same bits every time. */
#include <cooperative_groups.h>

#include "ops/cuda/hopper.cuh"
#include "ops/cuda/small_results.cuh"

namespace cg = cooperative_groups;

enum { ROWS = 128, DEPTH = 64, PAIR = 2, CONSUMERS = 256, BLOCK = CONSUMERS + WARP, ROW_BYTES = DEPTH * 2, DEPTH_16 = 16 };
enum { BLOCK_OF_64 = 64 * ROW_BYTES };         /* 64 rows of an operand */

/* Stages of operands; sums take their place in the end. Barriers lie behind them. Where k is short fewer stages are used, so that several blocks
 * find room on a multiprocessor: one begins while another one ends. */
template <int N> struct room {
    static constexpr int A = ROWS * ROW_BYTES, B = N * ROW_BYTES, STAGE = A + B;
    static constexpr int STAGES = N == 64 ? 8 : N == 128 ? 6 : 5;
    static constexpr int STRIDE = N + 8;        /* of sums: no four rows begin in one bank */
    static constexpr int SUMS = ROWS * STRIDE * (int)sizeof(float), BARRIERS = 2 * STAGES * 8;
    static_assert(SUMS <= STAGES * STAGE, "sums take the place of operands");
    static_assert(STAGES * STAGE + BARRIERS <= 227 * 1024, "the shared memory of a block");
};

struct hopper_products {
    CUtensorMap a[SMALL_PARTS], b[SMALL_PARTS];
    struct small_products p;
    int barriers;                   /* where they begin in shared memory */
};

/* Where a block works: its rows, its columns, and its part of the steps in k. */
struct block_place { int m, n, part, first, end, member, piece; };

template <int N> static __device__ inline block_place place_of(const small_products &p)
{
    block_place at = {};
    const int of_one = p.summed ? (int)gridDim.y * p.each / p.parts : 0;        /* tiles; sums of one kernel are alike */
    while (!p.summed && at.part + 1 < p.parts && (int)blockIdx.y >= p.part[at.part + 1].before)
        at.part++;
    if (p.summed)
        at.part = (int)blockIdx.y / of_one * p.each;
    const int last = p.summed ? at.part + p.each - 1 : at.part;
    const int steps = (p.summed ? p.part[last].before : 0) + (p.part[last].k + DEPTH - 1) / DEPTH;
    const int tile = p.summed ? (int)blockIdx.y % of_one : (int)blockIdx.y - p.part[at.part].before, columns = (p.part[at.part].n + N - 1) / N;
    at.member = blockIdx.x % PAIR;
    at.piece = blockIdx.x / PAIR;
    at.m = (tile / columns * PAIR + at.member) * ROWS;
    at.n = tile % columns * N;
    at.first = steps * at.piece / p.pieces;
    at.end = steps * (at.piece + 1) / p.pieces;
    return at;
}

/* ---- the stages ---- */

template <int N> static __device__ inline uint32_t stage_at(uint32_t memory, int i) { return memory + i % room<N>::STAGES * room<N>::STAGE; }
template <int N> static __device__ inline uint32_t full_at(uint32_t barriers, int i) { return barriers + i % room<N>::STAGES * 8; }
template <int N> static __device__ inline uint32_t empty_at(uint32_t barriers, int i) { return full_at<N>(barriers, i) + room<N>::STAGES * 8; }

template <int N> static __device__ inline void begin(const hopper_products &all, const block_place &at, uint32_t barriers)
{
    if (threadIdx.x == CONSUMERS) {
        fetch_map(&all.a[at.part]);
        fetch_map(&all.b[at.part]);
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < room<N>::STAGES; i++) {
            barrier_init(full_at<N>(barriers, i), 1);
            barrier_init(empty_at<N>(barriers, i), PAIR * CONSUMERS / WARP);
        }
        barriers_are_there();
    }
    cg::this_cluster().sync();
}

/* This block's rows of a, and its half of what the pair has of b: of its columns, or, where these lie beside each other, of k. */
template <int N, bool TA, bool TB>
static __device__ inline void fetch_step(const hopper_products &all, const block_place &at, uint32_t stage, uint32_t full, int step)
{
    const small_products &p = all.p;
    int part = at.part;
    while (p.summed && part + 1 < at.part + p.each && step >= p.part[part + 1].before)
        part++;
    const int k = (step - (p.summed ? p.part[part].before : 0)) * DEPTH;
    const uint16_t pair = (uint16_t)(3 << (at.piece * PAIR));
    const uint32_t b = stage + room<N>::A;
    expect_bytes(full, room<N>::STAGE);
    if (TA) {
        copy_tile(stage, &all.a[part], at.m, k, full);
        copy_tile(stage + BLOCK_OF_64, &all.a[part], at.m + 64, k, full);
    } else {
        copy_tile(stage, &all.a[part], k, at.m, full);
    }
    if (TB)
        copy_tile_to(b + at.member * (N / PAIR) * ROW_BYTES, &all.b[part], k, at.n + at.member * (N / PAIR), full, pair);
    else
#pragma unroll
        for (int j = 0; j < N / 64; j++)
            copy_tile_to(b + j * BLOCK_OF_64 + at.member * BLOCK_OF_64 / PAIR, &all.b[part], at.n + j * 64, k + at.member * DEPTH / PAIR, full, pair);
}

/* One thread. A stage is filled again when both blocks have used it up: what is fetched here goes to both. */
template <int N, bool TA, bool TB> static __device__ inline void fetch_all(const hopper_products &all, const block_place &at, uint32_t memory)
{
    const uint32_t barriers = memory + all.barriers;
    for (int i = 0; i < at.end - at.first; i++) {
        if (i >= room<N>::STAGES)
            wait_at(empty_at<N>(barriers, i), (i / room<N>::STAGES - 1) & 1);
        fetch_step<N, TA, TB>(all, at, stage_at<N>(memory, i), full_at<N>(barriers, i), at.first + i);
    }
}

/* ---- sums ---- */

/* A warp has used up a stage: both blocks of the pair hear of it. */
template <int N> static __device__ inline void give_back(uint32_t barriers, int i, int piece)
{
    const int lane = threadIdx.x % WARP;
    if (lane < PAIR)
        arrive_at(empty_at<N>(barriers, i), piece * PAIR + lane);
}

/* The next 16 of k: columns of the stage, or rows, where the operand is transposed. */
template <bool TRANS> static __device__ inline uint64_t step_at(uint32_t operand, int k)
{
    return TRANS ? matrix_at(operand + k * DEPTH_16 * ROW_BYTES, BLOCK_OF_64) : matrix_at(operand + k * DEPTH_16 * 2, 0);
}

/* Two warpgroups, each with 64 rows; there is a step at least. The products of a step run while the next one is waited for. */
template <typename T, int N, bool TA, bool TB>
static __device__ inline void sum_up(float (&s)[N / 2], const block_place &at, uint32_t memory, uint32_t barriers)
{
    const int steps = at.end - at.first;
    for (int i = 0; i < steps; i++) {
        const uint32_t a = stage_at<N>(memory, i) + threadIdx.x / 128 * BLOCK_OF_64, b = stage_at<N>(memory, i) + room<N>::A;
        wait_at(full_at<N>(barriers, i), i / room<N>::STAGES & 1);
        products_begin();
#pragma unroll
        for (int k = 0; k < DEPTH / DEPTH_16; k++)
            warpgroup<T, N, TA, !TB>::multiply_add(s, step_at<TA>(a, k), step_at<!TB>(b, k), i > 0 || k > 0);
        products_end();
        wait_for_products<1>();
        if (i > 0)
            give_back<N>(barriers, i - 1, at.piece);
    }
    wait_for_products<0>();
}

template <int N> static __device__ inline void put_sums(float *to, const float (&s)[N / 2])
{
    const int lane = threadIdx.x % WARP, row = threadIdx.x / WARP * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            *(float2 *)&to[(row + half * 8) * room<N>::STRIDE + column + j * 8] = make_float2(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]);
}

/* Of the pieces, from the first on. */
static __device__ inline void gather(float (&v)[CHUNK], float *sums, int at, const block_place &mine, int pieces)
{
    for (int piece = 0; piece < pieces; piece++) {
        const float *from = pieces == 1 ? sums : cg::this_cluster().map_shared_rank(sums, piece * PAIR + mine.member);
        float more[CHUNK];
        load_pack<4>(*(float (*)[4])&more[0], from + at);
        load_pack<4>(*(float (*)[4])&more[4], from + at + 4);
#pragma unroll
        for (int i = 0; i < CHUNK; i++)
            v[i] = piece ? v[i] + more[i] : more[i];
    }
}

/* The blocks that share a tile take turns with its rows. */
template <typename T, int N, bool GELU> static __device__ inline void finish_tile(const small_products &p, const block_place &at, float *sums)
{
    const small_part &s = p.part[at.part];
    for (int i = at.piece * CONSUMERS + (int)threadIdx.x; i < ROWS * N / CHUNK; i += p.pieces * CONSUMERS) {
        const int row = i / (N / CHUNK), column = i % (N / CHUNK) * CHUNK, n = s.n - at.n - column;
        float v[CHUNK], bias[CHUNK];
        if (at.m + row >= s.m || n <= 0)
            continue;
        load_bias(bias, s, at.n + column);
        gather(v, sums, row * room<N>::STRIDE + column, at, p.pieces);
        finish_row<T, GELU>(p, s, v, bias, at.m + row, at.n + column, n);
    }
}

/* Blocks: (those of a cluster, tiles of all parts). */
template <typename T, int N, bool TA, bool TB, bool GELU>
static __global__ void __launch_bounds__(BLOCK, 1) hopper_kernel(const __grid_constant__ hopper_products all)
{
    extern __shared__ __align__(1024) char shared[];
    const uint32_t memory = shared_address(shared);
    const block_place at = place_of<N>(all.p);
    const bool multiplies = threadIdx.x < CONSUMERS;
    if (all.p.part[at.part].leave && *all.p.part[at.part].leave == 0)
        return;                         /* and so do all blocks of its cluster */
    begin<N>(all, at, memory + all.barriers);
    if (multiplies) {
        float s[N / 2];
        sum_up<T, N, TA, TB>(s, at, memory, memory + all.barriers);
        asm volatile("bar.sync 1, %0;" : : "n"((int)CONSUMERS) : "memory");      /* the other warpgroup has read all operands */
        put_sums<N>((float *)shared, s);
    } else if (threadIdx.x == CONSUMERS) {
        fetch_all<N, TA, TB>(all, at, memory);
    }
    __syncwarp();
    cg::this_cluster().sync();          /* sums are there, and nothing comes from the other block any more */
    if (multiplies)
        finish_tile<T, N, GELU>(all.p, at, (float *)shared);
    if (all.p.pieces > 1)
        cg::this_cluster().sync();      /* the others still read here */
}

/* ---- on the host ---- */

typedef void hopper_kernel_fn(const hopper_products);
typedef decltype(&cuTensorMapEncodeTiled) encode_fn;

static encode_fn encoder(void)
{
    static encode_fn found;
    void *function = NULL;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    if (!found && cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result) != cudaSuccess)
        return NULL;
#else
    if (!found && cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result) != cudaSuccess)
        return NULL;
#endif
    if (result == cudaDriverEntryPointSuccess)
        found = (encode_fn)function;
    return found;
}

bool cuda_hopper_map(CUtensorMap *out, const void *x, int rows, int columns, int stride, int tile_rows, bool f16)
{
    const encode_fn encode = encoder();
    const cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)stride * 2};
    const cuuint32_t box[2] = {64, (cuuint32_t)tile_rows}, steps[2] = {1, 1};
    return encode && encode(out, f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)x, size, strides, box, steps,
                            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static bool make_maps(struct hopper_products *h, int width)
{
    const struct small_products *p = &h->p;
    bool made = true;
    for (int i = 0; i < p->parts && made; i++) {
        const struct small_part *s = &p->part[i];
        made = p->trans_a ? cuda_hopper_map(&h->a[i], s->a, s->k, s->m, s->a_stride, DEPTH, p->f16) : cuda_hopper_map(&h->a[i], s->a, s->m, s->k, s->a_stride, ROWS, p->f16);
        made = made && (p->trans_b ? cuda_hopper_map(&h->b[i], s->b, s->n, s->k, s->b_stride, width / PAIR, p->f16)
                                   : cuda_hopper_map(&h->b[i], s->b, s->k, s->n, s->b_stride, DEPTH / PAIR, p->f16));
    }
    return made;
}

template <typename T, int N> static hopper_kernel_fn *kernel_of(const struct small_products *p)
{
    if (p->gelu)
        return p->trans_a || !p->trans_b ? NULL : hopper_kernel<T, N, false, true, true>;
    if (p->trans_a)
        return p->trans_b ? NULL : hopper_kernel<T, N, true, false, false>;
    return p->trans_b ? hopper_kernel<T, N, false, true, false> : hopper_kernel<T, N, false, false, false>;
}

template <typename T> static hopper_kernel_fn *kernel_for(const struct small_products *p, int width)
{
    return width == 64 ? kernel_of<T, 64>(p) : width == 128 ? kernel_of<T, 128>(p) : kernel_of<T, 192>(p);
}

/* ---- shared memory ---- */

/* In k, of the block that has the most. */
static int64_t most_steps(const struct small_products *p)
{
    int64_t most = 0, sum = 0;
    for (int i = 0; i < p->parts; i++) {
        const int64_t steps = divide_up(p->part[i].k, DEPTH);
        sum = p->summed && i % p->each ? sum + steps : steps;
        most = at_least(most, sum);
    }
    return divide_up(most, p->pieces);
}

template <int N> static int barriers_at(const struct small_products *p)
{
    return (int)at_least(at_most(most_steps(p), room<N>::STAGES) * room<N>::STAGE, room<N>::SUMS);
}

/* Says where barriers begin; returns the bytes of all. */
static int shared_room(int *barriers, const struct small_products *p, int width)
{
    *barriers = width == 64 ? barriers_at<64>(p) : width == 128 ? barriers_at<128>(p) : barriers_at<192>(p);
    return *barriers + (width == 64 ? room<64>::BARRIERS : width == 128 ? room<128>::BARRIERS : room<192>::BARRIERS);
}

/* Blocks that do not divide k. */
int64_t cuda_hopper_blocks(const struct small_products *p, int width)
{
    int64_t tiles = 0;
    for (int i = 0; i < p->parts; i += p->summed ? p->each : 1)
        tiles += divide_up(p->part[i].m, PAIR * ROWS) * divide_up(p->part[i].n, width);
    return tiles * PAIR;
}

bool cuda_hopper_fits(const struct small_products *p)
{
    return kernel_for<__half>(p, 64) && cuda_small_is_aligned(p) && cuda_hopper_blocks(p, 64) <= 65535 && encoder();
}

void cuda_hopper_launch(const struct cuda_call *c, const struct small_products *products, int width)
{
    struct hopper_products h = {};
    int before = 0;
    h.p = *products;
    const int bytes = shared_room(&h.barriers, &h.p, width);
    hopper_kernel_fn *const kernel = h.p.f16 ? kernel_for<__half>(&h.p, width) : kernel_for<__nv_bfloat16>(&h.p, width);
    for (int i = 0; i < h.p.parts; i++) {
        struct small_part *s = &h.p.part[i];
        before = h.p.summed && i % h.p.each == 0 ? 0 : before;
        s->before = before;
        before += (int)(h.p.summed ? divide_up(s->k, DEPTH) : divide_up(s->m, PAIR * ROWS) * divide_up(s->n, width));
    }
    if (!make_maps(&h, width) || cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess) {
        refuse(c);
        return;
    }
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)(PAIR * h.p.pieces);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(cluster.val.clusterDim.x, (unsigned)(cuda_hopper_blocks(&h.p, width) / PAIR));
    how.blockDim = dim3(BLOCK);
    how.dynamicSmemBytes = (size_t)bytes;
    how.stream = c->stream;
    how.attrs = &cluster;
    how.numAttrs = 1;
    cudaLaunchKernelEx(&how, kernel, h);
}
