/* The gradients of attention on tensor cores; what they are is said in flash_backward.cuh. Blocks of queries have queries as rows and sum
 * dq; blocks of keys have keys as rows, so that transposed weights are a left operand as they are, and sum dk and dv. Both make the
 * weights anew: seven products instead of five, but nothing that several blocks add to, and no weights in shared memory. */
#ifndef HONE_OPS_CUDA_FLASH_MMA_BACKWARD_CUH
#define HONE_OPS_CUDA_FLASH_MMA_BACKWARD_CUH

#include "ops/cuda/flash_mma.cuh"

enum { CHUNK = 32 };            /* queries or keys of a tile that are worked on at a time: as much as registers hold */

/* What a query's weights need: w = 2^(product * scale * log2(e) - shift), ds = w (m dy v - dot), where dot is dy y. */
struct row_stats { float shift, dot; };

template <typename T> struct flash_gradients {
    const T *dy, *y;                        /* (B, T, H * D) */
    const float *largest, *sums;            /* (B, H, T) */
    struct row_stats *stats;                /* (B, H, T): blocks of queries write them, blocks of keys read them */
    T *dq, *dk, *dv;
};

/* Those of rows [first, first + N) of head (b, h); zeros behind the last row. keep: writes them to g.stats too. */
template <class S, int N>
static __device__ inline void make_stats(struct row_stats *to, const struct flash_gradients<typename S::T> &g, const struct attention &a,
                                         int64_t b, int h, int first, bool keep)
{
    constexpr int LANES = S::SIZE < 64 ? S::SIZE / 8 : 8, AT_ONCE = S::COUNT / LANES;       /* lanes of a row, rows */
    const int lane = threadIdx.x % LANES;
    const int64_t head = (b * a.heads + h) * a.seq;
    UNROLL for (int i = 0; i < (N + AT_ONCE - 1) / AT_ONCE; i++) {
        const int row = i * AT_ONCE + threadIdx.x / LANES;
        const bool there = row < N && first + row < (int)a.seq;
        const int64_t at = query_at(a, b, first + row, h);
        float dot = 0;
        UNROLL for (int e = lane * 8; e < S::SIZE; e += LANES * 8)
            if (there && e < (int)a.size) {
                float u[8], w[8];
                load_pack(u, g.dy + at + e);
                load_pack(w, g.y + at + e);
                UNROLL for (int n = 0; n < 8; n++)
                    dot += u[n] * w[n];
            }
        UNROLL for (int d = LANES / 2; d > 0; d /= 2)
            dot += __shfl_xor_sync(0xffffffffu, dot, d);
        if (lane == 0 && row < N) {
            to[row] = {there ? g.largest[head + first + row] * LOG2_E + log2f(g.sums[head + first + row]) : 0, dot};
            if (keep && there)
                g.stats[head + first + row] = to[row];
        }
    }
}

template <class S> static __device__ inline void fill(float (&by)[S::M][2], float x)
{
    UNROLL for (int m = 0; m < S::M; m++)
        by[m][0] = by[m][1] = x;
}

/* ---- blocks of queries ---- */

/* s: products of queries and keys in, ds without its scale out; d: products of dy and values; stats: from row g on. */
template <class S>
static __device__ inline void query_slopes(float (&s)[S::M][CHUNK / 8][4], const float (&d)[S::M][CHUNK / 8][4],
                                           const struct row_stats *stats, const struct attention &a, uint32_t below, int64_t head, int i,
                                           int j)
{
    const float scale = a.scale * LOG2_E;
    UNROLL for (int m = 0; m < S::M; m++) {
        const struct row_stats rows[2] = {stats[16 * m], stats[16 * m + 8]};
        UNROLL for (int n = 0; n < CHUNK / 8; n++) {
            const uint32_t kept = S::DROPS ? kept_of_queries(a, below, head, i + 16 * m, j + 8 * n) : 0;
            UNROLL for (int e = 0; e < 4; e++) {
                const float dw = S::DROPS ? (kept >> e & 1 ? d[m][n][e] * a.dropout.scale : 0) : d[m][n][e];
                s[m][n][e] = power_of_two(s[m][n][e] * scale - rows[e / 2].shift) * (dw - rows[e / 2].dot);
            }
        }
    }
}

/* Blocks of the last queries, which see the most keys, come first. */
template <class S>
static __device__ inline void sum_query_gradients(const struct attention &a, const struct flash_gradients<typename S::T> &g,
                                                  const struct flash_order &o, int block, bool keep)
{
    using T = typename S::T;
    constexpr int ROWS = S::ROWS, OTHERS = S::OTHERS, TILE = OTHERS * S::PITCH;
    extern __shared__ uint4 flash_memory[];
    T *q = (T *)flash_memory, *dy = q + ROWS * S::PITCH, *kv = dy + ROWS * S::PITCH;
    struct row_stats *room = (struct row_stats *)(kv + 4 * TILE);       /* (ROWS) */
    const struct flash_place at = flash_place_of(o, block, (int)a.heads);
    const int seq = (int)a.seq, i0 = (o.tiles - 1 - at.tile) * ROWS, mine = threadIdx.x / WARP * 16 * S::M, i = i0 + mine;
    const int end = a.causal && i0 + ROWS < seq ? i0 + ROWS : seq;
    const int64_t queries = query_at(a, at.b, 0, at.h), keys = key_at(a, at.b, 0, at.h / (a.heads / a.kv_heads));
    const int64_t head = at.b * a.heads + at.h;
    const int width = (int)(a.heads * a.size), kv_width = (int)(a.kv_heads * a.size);
    const T *k = (const T *)a.k + keys, *v = (const T *)a.v + keys;
    struct held_rows<S> held_q, held_dy;
    float acc[S::M][S::SIZE / 8][4] = {}, s[S::M][CHUNK / 8][4], d[S::M][CHUNK / 8][4], by[S::M][2];
    fetch_rows<S, ROWS>(q, (const T *)a.q + queries, i0, a, width);
    fetch_rows<S, ROWS>(dy, g.dy + queries, i0, a, width);
    fetch_rows<S, OTHERS>(kv, k, 0, a, kv_width);
    fetch_rows<S, OTHERS>(kv + TILE, v, 0, a, kv_width);
    make_stats<S, ROWS>(room, g, a, at.b, at.h, i0, keep);
    for (int j0 = 0, stage = 0; j0 < end; j0 += OTHERS, stage ^= 1) {
        const T *tile = kv + stage * 2 * TILE;
        T *next = kv + (stage ^ 1) * 2 * TILE;
        wait_for_copies();
        __syncthreads();            /* this tile is there, and the one before it has been used */
        if (j0 + OTHERS < end) {
            fetch_rows<S, OTHERS>(next, k, j0 + OTHERS, a, kv_width);
            fetch_rows<S, OTHERS>(next + TILE, v, j0 + OTHERS, a, kv_width);
        }
        if (j0 == 0) {
            held_q.load(q + mine * S::PITCH);
            held_dy.load(dy + mine * S::PITCH);
        }
        ONE_BY_ONE for (int c = 0; c < OTHERS; c += CHUNK) {
            const int j = j0 + c;
            if (i >= seq || j >= seq || (a.causal && j > i + 16 * S::M - 1))
                continue;           /* nothing to see for this warp */
            dot_rows<S, CHUNK>(s, held_q, tile + c * S::PITCH);
            dot_rows<S, CHUNK>(d, held_dy, tile + TILE + c * S::PITCH);
            if (j + CHUNK > seq || (a.causal && j + CHUNK - 1 > i))
                hide_keys<S, CHUNK>(s, a, i, j);
            query_slopes<S>(s, d, room + mine + threadIdx.x % WARP / 4, a, o.drops_below, head, i, j);
            add_rows<S, CHUNK>(acc, s, tile + c * S::PITCH);
        }
    }
    fill<S>(by, a.scale);
    put_rows<S>(g.dq + queries, acc, by, q + mine * S::PITCH, i, a, width);
}

/* ---- blocks of keys ---- */

/* s: products of keys and queries in, weights as dropout leaves them out; d: products of values and dy in, ds without its scale out. */
template <class S>
static __device__ inline void key_slopes(float (&s)[S::M][CHUNK / 8][4], float (&d)[S::M][CHUNK / 8][4], const struct row_stats *stats,
                                         const struct attention &a, uint32_t below, int64_t head, int i, int j)
{
    const float scale = a.scale * LOG2_E;
    UNROLL for (int n = 0; n < CHUNK / 8; n++) {
        const float4 two = *(const float4 *)(stats + 8 * n + threadIdx.x % 4 * 2);         /* of queries 2 q and 2 q + 1 */
        UNROLL for (int m = 0; m < S::M; m++) {
            const uint32_t kept = S::DROPS ? kept_of_keys(a, below, head, i + 8 * n, j + 16 * m) : 0;
            UNROLL for (int e = 0; e < 4; e++) {
                const float w = power_of_two(s[m][n][e] * scale - (e % 2 ? two.z : two.x)), dot = e % 2 ? two.w : two.y;
                const bool stays = !S::DROPS || kept >> e & 1;
                const float dw = S::DROPS ? (stays ? d[m][n][e] * a.dropout.scale : 0) : d[m][n][e];
                s[m][n][e] = stays ? w : 0;
                d[m][n][e] = w * (dw - dot);
            }
        }
    }
}

/* One tile of queries, dy and their stats on its way; it is the tile of queries i on of head h. */
template <class S, bool ALONE>
static __device__ inline void fetch_queries(typename S::T *tile, struct row_stats *stats, const struct attention &a,
                                            const struct flash_gradients<typename S::T> &g, int64_t b, int h, int i)
{
    const int64_t queries = query_at(a, b, 0, h), row = i + (int)threadIdx.x;
    fetch_rows<S, S::OTHERS>(tile, (const typename S::T *)a.q + queries, i, a, (int)(a.heads * a.size));
    fetch_rows<S, S::OTHERS>(tile + S::OTHERS * S::PITCH, g.dy + queries, i, a, (int)(a.heads * a.size));
    if (ALONE)
        make_stats<S, S::OTHERS>(stats, g, a, b, h, i, false);
    else if (threadIdx.x < S::OTHERS)
        copy_8_bytes(stats + threadIdx.x, g.stats + (row < a.seq ? (b * a.heads + h) * a.seq + row : 0), row < a.seq);
}

template <class S, bool HELD> struct left_rows { using type = struct held_rows<S>; };
template <class S> struct left_rows<S, false> { using type = struct shared_rows<S>; };

/* Blocks of the first keys, which the most queries see, come first. ALONE: no block of queries has made the stats before. */
template <class S, bool ALONE>
static __device__ inline void sum_key_gradients(const struct attention &a, const struct flash_gradients<typename S::T> &g,
                                                const struct flash_order &o, int block)
{
    using T = typename S::T;
    constexpr int ROWS = S::ROWS, OTHERS = S::OTHERS, TILE = OTHERS * S::PITCH;
    extern __shared__ uint4 flash_memory[];
    T *k = (T *)flash_memory, *v = k + ROWS * S::PITCH, *tiles = v + ROWS * S::PITCH;       /* tiles: (2, q and dy, TILE) */
    struct row_stats *stats = (struct row_stats *)(tiles + 4 * TILE);                       /* (2, OTHERS) */
    const struct flash_place at = flash_place_of(o, block, (int)a.kv_heads);
    const int seq = (int)a.seq, j0 = at.tile * ROWS, mine = threadIdx.x / WARP * 16 * S::M, j = j0 + mine;
    const int first = a.causal ? j0 : 0, group = (int)(a.heads / a.kv_heads), each = (seq - first + OTHERS - 1) / OTHERS;
    const int64_t keys = key_at(a, at.b, 0, at.h);
    const int kv_width = (int)(a.kv_heads * a.size);
    typename left_rows<S, S::M * S::SIZE <= 64>::type left_k, left_v;
    float dk[S::M][S::SIZE / 8][4] = {}, dv[S::M][S::SIZE / 8][4] = {}, s[S::M][CHUNK / 8][4], d[S::M][CHUNK / 8][4], by[S::M][2];
    fetch_rows<S, ROWS>(k, (const T *)a.k + keys, j0, a, kv_width);
    fetch_rows<S, ROWS>(v, (const T *)a.v + keys, j0, a, kv_width);
    fetch_queries<S, ALONE>(tiles, stats, a, g, at.b, at.h * group, first);
    for (int it = 0, n = group * each; it < n; it++) {
        const int stage = it % 2, h = at.h * group + it / each, i0 = first + it % each * OTHERS, next = it + 1;
        const T *q = tiles + stage * 2 * TILE, *dy = q + TILE;
        wait_for_copies();
        __syncthreads();            /* this tile is there, and the one before it has been used */
        if (next < n)
            fetch_queries<S, ALONE>(tiles + (stage ^ 1) * 2 * TILE, stats + (stage ^ 1) * OTHERS, a, g, at.b, at.h * group + next / each,
                                    first + next % each * OTHERS);
        if (it == 0) {
            left_k.load(k + mine * S::PITCH);
            left_v.load(v + mine * S::PITCH);
        }
        ONE_BY_ONE for (int c = 0; c < OTHERS; c += CHUNK) {
            const int i = i0 + c;
            if (j >= seq || i >= seq || (a.causal && i + CHUNK - 1 < j))
                continue;           /* nobody sees a key of this warp */
            dot_rows<S, CHUNK>(s, left_k, q + c * S::PITCH);
            dot_rows<S, CHUNK>(d, left_v, dy + c * S::PITCH);
            if (a.causal && i < j + 16 * S::M - 1)
                hide_queries<S, CHUNK>(s, i, j);
            key_slopes<S>(s, d, stats + stage * OTHERS + c, a, o.drops_below, at.b * a.heads + h, i, j);
            add_rows<S, CHUNK>(dv, s, dy + c * S::PITCH);
            add_rows<S, CHUNK>(dk, d, q + c * S::PITCH);
        }
    }
    fill<S>(by, a.scale);
    put_rows<S>(g.dk + keys, dk, by, k + mine * S::PITCH, j, a, kv_width);
    fill<S>(by, S::DROPS ? a.dropout.scale : 1);
    put_rows<S>(g.dv + keys, dv, by, v + mine * S::PITCH, j, a, kv_width);
}

/* ---- kernels ---- */

template <class S>
static __global__ void __launch_bounds__(S::COUNT) flash_query_gradients(struct attention a, struct flash_gradients<typename S::T> g,
                                                                         struct flash_order o)
{
    sum_query_gradients<S>(a, g, o, (int)blockIdx.x, true);
}

template <class S>
static __global__ void __launch_bounds__(S::COUNT) flash_key_gradients(struct attention a, struct flash_gradients<typename S::T> g,
                                                                       struct flash_order o)
{
    sum_key_gradients<S, false>(a, g, o, (int)blockIdx.x);
}

/* Both at once, for short sequences, where starting a kernel costs more than making the stats twice. */
template <class S>
static __global__ void __launch_bounds__(S::COUNT) flash_all_gradients(struct attention a, struct flash_gradients<typename S::T> g,
                                                                       struct flash_order queries, struct flash_order keys, int key_blocks)
{
    if ((int)blockIdx.x < key_blocks)
        sum_key_gradients<S, true>(a, g, keys, (int)blockIdx.x);
    else
        sum_query_gradients<S>(a, g, queries, (int)blockIdx.x - key_blocks, false);
}

template <class S> static size_t flash_gradients_bytes(void)
{
    const int stats = S::ROWS > 2 * S::OTHERS ? S::ROWS : 2 * S::OTHERS;
    return (size_t)(2 * S::ROWS + 4 * S::OTHERS) * S::PITCH * sizeof(typename S::T) + stats * sizeof(struct row_stats);
}

#endif
