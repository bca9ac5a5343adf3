/* The loss of a linear head of which logits would be many and cheap: rows are short, the vocabulary is not. A block has 128 rows of x in
 * shared memory and goes through all of w, 128 rows at a time, which a warp fetches a few steps ahead; each block of a pair fetches one half for both.
 * Two warpgroups multiply. The first sweep keeps of the logits what softmax needs. The second makes them again, and of them dz, which goes to
 * memory for the gradient of w, and as a left operand, as it is in registers, into the sum dx = dz w. */
#include <cooperative_groups.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/head_hopper.h"
#include "ops/cuda/hopper.cuh"

namespace cg = cooperative_groups;

enum { ROWS = 128, TILE = 128, PAIR = 2, CONSUMERS = 256, BLOCK = CONSUMERS + 128, ROW_BYTES = 128, DEPTH_16 = 16, STAGES = 5 };
enum { COLUMNS = ROWS * ROW_BYTES, HALF = TILE / PAIR * ROW_BYTES };       /* bytes of 64 columns of a tile; of half its rows */

static constexpr float LOG2_E = 1.4426950408889634f;

/* x, stages of w, barriers: that x is there, that stages are full, that they are empty. C: columns of 64 that x and w have. */
template <int C> struct room {
    static constexpr int X = C * COLUMNS, STAGE = C * COLUMNS, BARRIERS = X + STAGES * STAGE, BYTES = BARRIERS + (1 + 2 * STAGES) * 8;
    static_assert(BYTES <= 227 * 1024, "the shared memory of a block");
    static __device__ inline uint32_t stage(uint32_t memory, int i) { return memory + X + i % STAGES * STAGE; }
    static __device__ inline uint32_t there(uint32_t memory) { return memory + BARRIERS; }
    static __device__ inline uint32_t full(uint32_t memory, int i) { return memory + BARRIERS + 8 + i % STAGES * 8; }
    static __device__ inline uint32_t empty(uint32_t memory, int i) { return full(memory, i) + STAGES * 8; }
};

struct head_maps {
    CUtensorMap x, w;
    struct head_sweep h;
    int tiles;
};

/* ---- operands ---- */

template <int C> static __device__ inline void begin(const head_maps &m, uint32_t memory)
{
    if (threadIdx.x == CONSUMERS) {
        fetch_map(&m.x);
        fetch_map(&m.w);
    }
    if (threadIdx.x == 0) {
        barrier_init(room<C>::there(memory), 1);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(room<C>::full(memory, i), 1);
            barrier_init(room<C>::empty(memory, i), PAIR * CONSUMERS / WARP);
        }
        barriers_are_there();
    }
    cg::this_cluster().sync();
}

/* One thread. A stage is filled again when both blocks have used it up: what is fetched here goes to both. */
template <int C> static __device__ inline void fetch_all(const head_maps &m, uint32_t memory)
{
    const int member = blockIdx.x % PAIR;
    expect_bytes(room<C>::there(memory), room<C>::X);
    for (int c = 0; c < C; c++)
        copy_tile(memory + c * COLUMNS, &m.x, c * 64, blockIdx.x * ROWS, room<C>::there(memory));
    for (int i = 0; i < m.tiles; i++) {
        if (i >= STAGES)
            wait_at(room<C>::empty(memory, i), (i / STAGES - 1) & 1);
        expect_bytes(room<C>::full(memory, i), room<C>::STAGE);
        for (int c = 0; c < C; c++)
            copy_tile_to(room<C>::stage(memory, i) + c * COLUMNS + member * HALF, &m.w, c * 64, i * TILE + member * (TILE / PAIR),
                         room<C>::full(memory, i), 3);
    }
}

/* A warp has used up a stage: both blocks of the pair hear of it. */
template <int C> static __device__ inline void give_back(uint32_t memory, int i)
{
    const int lane = threadIdx.x % WARP;
    if (lane < PAIR)
        arrive_at(room<C>::empty(memory, i), lane);
}

/* Starts z (64 rows of this warpgroup, 128) = x w^T for tile i, when that is there. */
template <typename T, int C> static __device__ inline void start_logits(float (&z)[TILE / 2], uint32_t memory, int i)
{
    const uint32_t x = memory + threadIdx.x / 128 * 64 * ROW_BYTES, w = room<C>::stage(memory, i);
    wait_at(room<C>::full(memory, i), i / STAGES & 1);
    products_begin();
#pragma unroll
    for (int k = 0; k < C * 4; k++) {
        const uint32_t at = k / 4 * COLUMNS + k % 4 * DEPTH_16 * 2;
        warpgroup<T, TILE, false, false>::multiply_add(z, matrix_at(x + at, 0), matrix_at(w + at, 0), k > 0);
    }
    products_end();
}

/* Reads of these come behind the wait that is before this. */
static __device__ inline void settle(float (&z)[TILE / 2])
{
#pragma unroll
    for (int e = 0; e < TILE / 2; e++)
        asm volatile("" : "+f"(z[e]) : : "memory");
}

/* ---- what a thread has: rows first() and eight below it, of every eight columns two (hopper.cuh) ---- */

static __device__ inline int first_row(void) { return (int)(blockIdx.x * ROWS + threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4); }
static __device__ inline int first_column(void) { return threadIdx.x % 4 * 2; }

/* Logit e of a tile; columns that are behind the last count for nothing. What wgmma sums up is not written to: it would wait. */
template <bool WHOLE> static __device__ inline float logit(const float (&z)[TILE / 2], int e, int there)
{
    return WHOLE || e / 4 * 8 + e % 2 < there ? z[e] : -INFINITY;
}

/* Calls f(i) with the place of the target of the row, `half` of which is 0 or 1, where this thread has it. */
template <class F> static __device__ inline void at_target(int target, int tile, int half, const F &f)
{
    const int column = target - tile * TILE - first_column();
    if (target < tile * TILE || target >= (tile + 1) * TILE || column < 0 || column % 8 > 1)
        return;
#pragma unroll
    for (int e = 0; e < TILE / 4; e++)
        if (column == e / 2 * 8 + e % 2)
            f(e / 2 * 4 + half * 2 + e % 2);
}

static __device__ inline int target_of(const head_sweep &h, int row) { return row < h.rows ? h.targets[row] : -1; }

/* ---- the first sweep ---- */

struct softmax { float most, sum, hit; };       /* of what a thread has of a row: the largest, the sum of e^(z - most), the target's */

template <bool WHOLE> static __device__ inline void add_row(struct softmax &r, const float (&z)[TILE / 2], int half, int there)
{
    float most = r.most, sum[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < TILE / 8; j++)
        most = fmaxf(most, fmaxf(logit<WHOLE>(z, 4 * j + 2 * half, there), logit<WHOLE>(z, 4 * j + 2 * half + 1, there)));
    const float shift = -most * LOG2_E;
#pragma unroll
    for (int j = 0; j < TILE / 8; j++) {
        sum[0] += power_of_two(fmaf(logit<WHOLE>(z, 4 * j + 2 * half, there), LOG2_E, shift));
        sum[1] += power_of_two(fmaf(logit<WHOLE>(z, 4 * j + 2 * half + 1, there), LOG2_E, shift));
    }
    r.sum = r.sum * power_of_two((r.most - most) * LOG2_E) + (sum[0] + sum[1]);
    r.most = most;
}

template <bool WHOLE>
static __device__ inline void add_tile(struct softmax (&rows)[2], const float (&z)[TILE / 2], int tile, const int (&targets)[2], int vocab)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        add_row<WHOLE>(rows[half], z, half, vocab - tile * TILE - first_column());
        at_target(targets[half], tile, half, [&](int e) { rows[half].hit = z[e]; });
    }
}

/* Of the four threads that have the row; the first of them has the result. */
static __device__ inline void join(struct softmax &r)
{
#pragma unroll
    for (int d = 1; d < 4; d *= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, r.most, d), sum = __shfl_xor_sync(0xffffffffu, r.sum, d), most = fmaxf(r.most, other);
        r.sum = r.sum * power_of_two((r.most - most) * LOG2_E) + sum * power_of_two((other - most) * LOG2_E);
        r.most = most;
        r.hit += __shfl_xor_sync(0xffffffffu, r.hit, d);
    }
}

/* x of this block, padding as zeros. */
template <typename T> static __device__ inline void keep_rows(const head_sweep &h)
{
    constexpr int P = pack_size<T>();
    const int packs = (int)(h.depth / P);
    for (int i = threadIdx.x; i < ROWS * packs; i += CONSUMERS) {
        const int64_t row = blockIdx.x * ROWS + i / packs, at = row * packs + i % packs;
        if (row < h.rows)
            ((uint4 *)h.kept)[at] = h.targets[row] < 0 ? make_uint4(0, 0, 0, 0) : ((const uint4 *)h.x)[at];
    }
}

/* Logits of the second tile are made while those of the first are used. WHOLE: all columns of both are there. */
template <typename T, int C, bool WHOLE>
static __device__ inline void add_two(struct softmax (&rows)[2], uint32_t memory, int tile, const int (&targets)[2], int vocab)
{
    float z[TILE / 2], next[TILE / 2];
    start_logits<T, C>(z, memory, tile);
    start_logits<T, C>(next, memory, tile + 1);
    wait_for_products<1>();
    settle(z);
    give_back<C>(memory, tile);
    add_tile<WHOLE>(rows, z, tile, targets, vocab);
    wait_for_products<0>();
    settle(next);
    give_back<C>(memory, tile + 1);
    add_tile<WHOLE>(rows, next, tile + 1, targets, vocab);
}

/* m.tiles is even. */
template <typename T, int C> static __device__ inline void first_sweep(const head_maps &m, uint32_t memory)
{
    const head_sweep &h = m.h;
    const int row = first_row(), vocab = (int)h.vocab, targets[2] = {target_of(h, row), target_of(h, row + 8)};
    struct softmax rows[2] = {{-INFINITY, 0, 0}, {-INFINITY, 0, 0}};
    wait_at(room<C>::there(memory), 0);
    for (int i = 0; i + 2 < m.tiles; i += 2)
        add_two<T, C, true>(rows, memory, i, targets, vocab);
    add_two<T, C, false>(rows, memory, m.tiles - 2, targets, vocab);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        join(rows[half]);
        const int at = row + 8 * half;
        if (threadIdx.x % 4 || at >= h.rows)
            continue;
        const bool known = targets[half] >= 0;
        h.losses[at] = known ? logf(rows[half].sum) + (rows[half].most - rows[half].hit) : 0;
        h.shifts[at] = known ? rows[half].most * LOG2_E + log2f(rows[half].sum) : INFINITY;
    }
    if (h.kept)
        keep_rows<T>(h);
}

/* ---- the second sweep ---- */

/* Word k of block b, of which the threads 0 to 3 of a row have one each, goes to word k of thread b. */
static __device__ inline uint4 turn(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    const uint32_t ab = __shfl_xor_sync(0xffffffffu, odd ? a : b, 1), cd = __shfl_xor_sync(0xffffffffu, odd ? c : d, 1);
    const uint32_t a1 = odd ? ab : a, b1 = odd ? b : ab, c1 = odd ? cd : c, d1 = odd ? d : cd;
    const uint32_t first = __shfl_xor_sync(0xffffffffu, high ? a1 : c1, 2), second = __shfl_xor_sync(0xffffffffu, high ? b1 : d1, 2);
    return high ? make_uint4(first, second, c1, d1) : make_uint4(a1, b1, first, second);
}

/* Words (two rows, blocks of eight columns) of rows first_row() and eight below it, in 16 bytes; columns from `column` on, `end` of them there. */
template <typename T, int BLOCKS>
static __device__ inline void store_words(T *to, const uint32_t (&words)[2][BLOCKS], int64_t stride, int64_t rows, int column, int64_t end)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first_row() + 8 * half;
#pragma unroll
        for (int j = 0; j < BLOCKS; j += 4) {
            const uint4 all = turn(words[half][j], words[half][j + 1], words[half][j + 2], words[half][j + 3]);
            const int at = column + (j + (int)threadIdx.x % 4) * 8;
            if (row < rows && at < end)
                *(uint4 *)(to + row * stride + at) = all;
        }
    }
}

template <typename T, int N> static __device__ inline void make_words(uint32_t (&words)[2][N / 8], const float (&v)[N / 2])
{
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        words[0][j] = pair_of<T>(v[4 * j], v[4 * j + 1]);
        words[1][j] = pair_of<T>(v[4 * j + 2], v[4 * j + 3]);
    }
}

/* dx (64, 64 C) += dz (64, 128) w (128, 64 C), in the background. */
template <typename T, int C>
static __device__ inline void start_dx(float (&dx)[C * 32], const uint32_t (&dz)[2][TILE / 8], uint32_t w, bool add)
{
    products_begin();
#pragma unroll
    for (int k = 0; k < TILE / DEPTH_16; k++) {
        const uint32_t left[4] = {dz[0][2 * k], dz[1][2 * k], dz[0][2 * k + 1], dz[1][2 * k + 1]};
        warpgroup_left<T, C * 64>::multiply_add(dx, left, matrix_at(w + k * DEPTH_16 * ROW_BYTES, COLUMNS), add || k > 0);
    }
    products_end();
}

template <typename T, int C> static __device__ inline void store_dx(const head_sweep &h, const float (&dx)[C * 32])
{
    if (!h.wide_dx) {
        uint32_t words[2][C * 8];
        make_words<T, C * 64>(words, dx);
        store_words((T *)h.dx, words, h.depth, h.rows, 0, h.depth);
        return;
    }
#pragma unroll
    for (int e = 0; e < C * 32; e += 2) {
        const int row = first_row() + e / 2 % 2 * 8, column = e / 4 * 8 + first_column();
        if (row < h.rows && column < h.depth)
            *(float2 *)((float *)h.dx + row * h.depth + column) = make_float2(dx[e], dx[e + 1]);
    }
}

/* What rows of a thread have: dz = 2^(z log2(e) - shift), at the target less the factor. */
struct slopes { int target[2]; float shift[2], factor; };

template <typename T, bool WHOLE>
static __device__ inline void make_dz(uint32_t (&words)[2][TILE / 8], const float (&z)[TILE / 2], const slopes &rows, int tile, int vocab)
{
    float dz[TILE / 2];
#pragma unroll
    for (int e = 0; e < TILE / 2; e++)
        dz[e] = power_of_two(fmaf(logit<WHOLE>(z, e, vocab - tile * TILE - first_column()), LOG2_E, -rows.shift[e / 2 % 2]));
#pragma unroll
    for (int half = 0; half < 2; half++)
        at_target(rows.target[half], tile, half, [&](int e) { dz[e] -= rows.factor; });
    make_words<T, TILE>(words, dz);
}

/* The tile before this one is given back when its products are done. */
template <typename T, int C> static __device__ inline void wait_for_logits(float (&z)[TILE / 2], uint32_t memory, int i)
{
    start_logits<T, C>(z, memory, i);
    wait_for_products<1>();
    if (i > 0)
        give_back<C>(memory, i - 1);
    wait_for_products<0>();
    settle(z);
}

template <typename T, int C> static __device__ inline void second_sweep(const head_maps &m, uint32_t memory)
{
    const head_sweep &h = m.h;
    const int row = first_row(), vocab = (int)h.vocab, last = m.tiles - 1;
    slopes rows = {{target_of(h, row), target_of(h, row + 8)}, {INFINITY, INFINITY}, (h.scale ? *h.scale : 1) / *h.count};
    for (int half = 0; half < 2; half++)
        if (rows.target[half] >= 0)
            rows.shift[half] = h.shifts[row + 8 * half] - log2f(rows.factor);
    float z[TILE / 2], dx[C * 32];
    uint32_t words[2][TILE / 8];
    wait_at(room<C>::there(memory), 0);
    for (int i = 0; i < last; i++) {
        wait_for_logits<T, C>(z, memory, i);
        make_dz<T, true>(words, z, rows, i, vocab);
        start_dx<T, C>(dx, words, room<C>::stage(memory, i), i > 0);
        store_words((T *)h.dz, words, h.stride, h.rows, i * TILE, h.stride);
    }
    wait_for_logits<T, C>(z, memory, last);
    make_dz<T, false>(words, z, rows, last, vocab);
    start_dx<T, C>(dx, words, room<C>::stage(memory, last), last > 0);
    store_words((T *)h.dz, words, h.stride, h.rows, last * TILE, h.stride);
    wait_for_products<0>();
    store_dx<T, C>(h, dx);
}

/* ---- */

template <typename T, int C, bool SECOND> static __global__ void __launch_bounds__(BLOCK, 1) head_kernel(const __grid_constant__ head_maps m)
{
    extern __shared__ __align__(1024) char shared[];
    const uint32_t memory = shared_address(shared);
    begin<C>(m, memory);
    if (threadIdx.x >= CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");           /* registers go to those who multiply */
        if (threadIdx.x == CONSUMERS)
            fetch_all<C>(m, memory);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        if (SECOND)
            second_sweep<T, C>(m, memory);
        else
            first_sweep<T, C>(m, memory);
    }
    __syncwarp();
    cg::this_cluster().sync();          /* nothing comes from the other block any more, nor goes there */
}

/* ---- on the host ---- */

enum { MOST_DEPTH = 128, FEWEST_ROWS = 64 * ROWS, FEWEST_WORDS = 8 * TILE };

bool cuda_head_sweeps(const struct head_sweep *h)
{
    int device = 0;
    return cudaGetDevice(&device) == cudaSuccess && cuda_capability(device) == 90 && h->depth <= MOST_DEPTH && h->depth % 8 == 0 && h->rows >= FEWEST_ROWS && h->rows <= INT32_MAX / 2 &&
           h->vocab >= FEWEST_WORDS && h->vocab <= INT32_MAX / 2 && is_aligned(h->x, 16) && is_aligned(h->w, 16);
}

template <typename T, int C, bool SECOND> static cudaError_t start(const struct cuda_call *c, const head_maps &m)
{
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = PAIR;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)(divide_up(m.h.rows, PAIR * ROWS) * PAIR));
    how.blockDim = dim3(BLOCK);
    how.dynamicSmemBytes = room<C>::BYTES;
    how.stream = c->stream;
    how.attrs = &cluster;
    how.numAttrs = 1;
    const cudaError_t e = cudaFuncSetAttribute(head_kernel<T, C, SECOND>, cudaFuncAttributeMaxDynamicSharedMemorySize, room<C>::BYTES);
    return e == cudaSuccess ? cudaLaunchKernelEx(&how, head_kernel<T, C, SECOND>, m) : e;
}

template <bool SECOND> static void launch(const struct cuda_call *c, const struct head_sweep *h)
{
    head_maps m = {};
    m.h = *h;
    m.tiles = (int)divide_up(h->vocab, TILE);
    m.tiles += SECOND ? 0 : m.tiles % 2;
    const bool wide = h->depth > 64;
    bool made = cuda_hopper_map(&m.x, SECOND ? h->kept : h->x, (int)h->rows, (int)h->depth, (int)h->depth, ROWS, h->f16);
    made = made && cuda_hopper_map(&m.w, h->w, (int)h->vocab, (int)h->depth, (int)h->depth, TILE / PAIR, h->f16);
    if (made && h->f16)
        made = (wide ? start<__half, 2, SECOND>(c, m) : start<__half, 1, SECOND>(c, m)) == cudaSuccess;
    else if (made)
        made = (wide ? start<__nv_bfloat16, 2, SECOND>(c, m) : start<__nv_bfloat16, 1, SECOND>(c, m)) == cudaSuccess;
    if (!made)
        refuse(c);
}

void cuda_head_first(const struct cuda_call *c, const struct head_sweep *h) { launch<false>(c, h); }
void cuda_head_second(const struct cuda_call *c, const struct head_sweep *h) { launch<true>(c, h); }
