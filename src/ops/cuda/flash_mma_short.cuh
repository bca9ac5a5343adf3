/* The gradients of attention over short sequences: a block has a whole head in shared memory, read once, and makes its weights and their
 * slopes ds once, there too. Then each warp takes 16 rows of dq, dk or dv after another: five products, nothing that is made twice, and
 * few registers, as no warp has a product while it makes weights. S::OTHERS: rows of a tile, so many as the sequence has or more. */
#ifndef HONE_OPS_CUDA_FLASH_MMA_SHORT_CUH
#define HONE_OPS_CUDA_FLASH_MMA_SHORT_CUH

#include "ops/cuda/flash_mma_backward.cuh"

/* Where a block has what. Results pass by the values' tile, 16 rows for each warp: no product needs values any more then. */
template <class S> struct short_head {
    using T = typename S::T;
    static constexpr int TILE = S::OTHERS * S::PITCH, PITCH = S::OTHERS + 8, WEIGHTS = S::OTHERS * PITCH;
    static constexpr int VALUES = (S::OTHERS > S::ROWS ? S::OTHERS : S::ROWS) * S::PITCH;
    T *q, *k, *dy, *v, *w, *ds;         /* w, ds: (queries, keys), PITCH numbers from row to row */
    struct row_stats *stats;

    __device__ inline explicit short_head(void *memory)
    {
        q = (T *)memory, k = q + TILE, dy = k + TILE, v = dy + TILE, w = v + VALUES, ds = w + WEIGHTS;
        stats = (struct row_stats *)(ds + WEIGHTS);
    }
    static size_t bytes(void) { return (3 * TILE + VALUES + 2 * WEIGHTS) * sizeof(T) + S::OTHERS * sizeof(struct row_stats); }
};

/* y and the statistics of those pieces of dy that this thread copies, in the order of fetch_rows: it needs to wait for nobody else. */
template <class S> struct early_stats {
    static constexpr int PIECES = S::SIZE / 8, ALL = S::OTHERS * PIECES, EACH = (ALL + S::COUNT - 1) / S::COUNT;
    pack<typename S::T, 8> y[EACH];
    float largest[EACH], sum[EACH];

    __device__ inline void load(const struct flash_gradients<typename S::T> &g, const struct attention &a, int64_t queries, int64_t head,
                                int stride)
    {
        UNROLL for (int i = 0; i < EACH; i++) {
            const int at = i * S::COUNT + threadIdx.x, row = at / PIECES, e = at % PIECES * 8;
            const bool there = row < (int)a.seq && e < (int)a.size;
            largest[i] = 0, sum[i] = 1;
            if (there)
                y[i] = *(const pack<typename S::T, 8> *)(g.y + queries + row * stride + e);
            if (there && e == 0)
                largest[i] = g.largest[head * a.seq + row], sum[i] = g.sums[head * a.seq + row];
        }
    }
    __device__ inline void store(struct row_stats *to, const typename S::T *dy, const struct attention &a) const
    {
        UNROLL for (int i = 0; i < EACH; i++) {
            const int at = i * S::COUNT + threadIdx.x, row = at / PIECES, e = at % PIECES * 8;
            float u[8], dot = 0;
            if (row < (int)a.seq && e < (int)a.size) {
                load_pack(u, dy + row * S::PITCH + e);
                UNROLL for (int n = 0; n < 8; n++)
                    dot += u[n] * to_float(y[i].at[n]);
            }
            UNROLL for (int d = PIECES / 2; d > 0; d /= 2)
                dot += __shfl_xor_sync(0xffffffffu, dot, d);
            if (e == 0 && at < ALL)
                to[row] = {largest[i] * LOG2_E + log2f(sum[i]), dot};
        }
    }
};

/* Weights and slopes of queries [i, i + 16) and keys [j, j + CHUNK). */
template <class S> static __device__ inline void make_weights(const struct short_head<S> &m, const struct attention &a, int i, int j)
{
    using T = typename S::T;
    const int lane = threadIdx.x % WARP;
    const float scale = a.scale * LOG2_E;
    struct shared_rows<S> q, dy;
    float s[1][CHUNK / 8][4], d[1][CHUNK / 8][4];
    q.load(m.q + i * S::PITCH);
    dy.load(m.dy + i * S::PITCH);
    dot_rows<S, CHUNK>(s, q, m.k + j * S::PITCH);
    dot_rows<S, CHUNK>(d, dy, m.v + j * S::PITCH);
    if (j + CHUNK > (int)a.seq || (a.causal && j + CHUNK - 1 > i))
        hide_keys<S, CHUNK>(s, a, i, j);
    UNROLL for (int half = 0; half < 2; half++) {
        const int row = i + lane / 4 + 8 * half, at = row * m.PITCH + j + lane % 4 * 2;
        const struct row_stats of = m.stats[row];
        UNROLL for (int n = 0; n < CHUNK / 8; n++) {
            const float w0 = power_of_two(s[0][n][2 * half] * scale - of.shift), w1 = power_of_two(s[0][n][2 * half + 1] * scale - of.shift);
            *(uint32_t *)(m.w + at + 8 * n) = pair_of<T>(w0, w1);
            *(uint32_t *)(m.ds + at + 8 * n) = pair_of<T>(w0 * (d[0][n][2 * half] - of.dot), w1 * (d[0][n][2 * half + 1] - of.dot));
        }
    }
}

/* acc (16, SIZE) = rows [i, i + 16) of w times b, or of w transposed, over [from, to) of what they have in common. */
template <class S, bool TRANS>
static __device__ inline void mix_rows(float (&acc)[1][S::SIZE / 8][4], const typename S::T *w, int i, const typename S::T *b, int from, int to)
{
    constexpr int PITCH = short_head<S>::PITCH;
    const int lane = threadIdx.x % WARP;
    w += TRANS ? (lane / 16 * 8 + lane % 8) * PITCH + i + lane / 8 % 2 * 8 : (i + lane % 16) * PITCH + lane / 16 * 8;
    b += lane % 16 * S::PITCH + lane / 16 * 8;
    UNROLL for (int n = 0; n < S::SIZE / 8; n++)
        UNROLL for (int e = 0; e < 4; e++)
            acc[0][n][e] = 0;
    for (int k = from; k < to; k += 16) {
        uint32_t u[4], x[S::SIZE / 16][4];
        if (TRANS)
            load_matrices_transposed(u, w + k * PITCH);
        else
            load_matrices(u, w + k);
        UNROLL for (int n = 0; n < S::SIZE / 16; n++)
            load_matrices_transposed(x[n], b + k * S::PITCH + 16 * n);
        UNROLL for (int n = 0; n < S::SIZE / 16; n++) {
            multiply_add<typename S::T>(acc[0][2 * n], u, x[n][0], x[n][1]);
            multiply_add<typename S::T>(acc[0][2 * n + 1], u, x[n][2], x[n][3]);
        }
    }
}

/* 16 rows of dk, dv or dq (0, 1 or 2), from row i on; of causal weights only what is not zero. */
template <class S>
static __device__ inline void sum_rows(const struct short_head<S> &m, const struct attention &a, const struct flash_gradients<typename S::T> &g,
                                       int64_t at, int which, int i)
{
    const int end = ((int)a.seq + 15) / 16 * 16, width = (int)(a.heads * a.size);
    float acc[1][S::SIZE / 8][4], by[1][2];
    if (which == 2)
        mix_rows<S, false>(acc, m.ds, i, m.k, 0, a.causal ? i + 16 : end);
    else
        mix_rows<S, true>(acc, which == 0 ? m.ds : m.w, i, which == 0 ? m.q : m.dy, a.causal ? i : 0, end);
    fill<S>(by, which == 1 ? 1 : a.scale);
    put_rows<S>((which == 0 ? g.dk : which == 1 ? g.dv : g.dq) + at, acc, by, m.v + threadIdx.x / WARP * 16 * S::PITCH, i, a, width);
}

/* As many key heads as heads, no dropout. First rows of dk and dv and last rows of dq are the longest: warps that have two rows of tiles
 * get one of each kind. */
template <class S, int BLOCKS>
static __global__ void __launch_bounds__(S::COUNT, BLOCKS) flash_short_gradients(struct attention a, struct flash_gradients<typename S::T> g)
{
    using T = typename S::T;
    constexpr int N = S::OTHERS, STRIPS = N / 16;
    extern __shared__ uint4 flash_memory[];
    const struct short_head<S> m(flash_memory);
    const int heads = (int)a.heads, b = (int)blockIdx.x / heads, seq = (int)a.seq, width = heads * (int)a.size, warp = threadIdx.x / WARP;
    const int64_t at = query_at(a, b, 0, (int)blockIdx.x % heads);
    struct early_stats<S> early;
    fetch_rows<S, N>(m.q, (const T *)a.q + at, 0, a, width);
    fetch_rows<S, N>(m.k, (const T *)a.k + at, 0, a, width);
    fetch_rows<S, N>(m.dy, g.dy + at, 0, a, width);
    fetch_rows<S, N>(m.v, (const T *)a.v + at, 0, a, width);
    early.load(g, a, at, blockIdx.x, width);
    wait_for_copies();
    early.store(m.stats, m.dy, a);
    __syncthreads();                /* tiles and statistics are there */
    ONE_BY_ONE for (int part = warp; part < STRIPS * (N / CHUNK); part += S::WARPS) {
        const int i = part % STRIPS * 16, j = part / STRIPS * CHUNK;
        if (i < seq && j < seq && (!a.causal || j <= i + 15))
            make_weights<S>(m, a, i, j);
    }
    __syncthreads();                /* all weights are there, and values have been used */
    ONE_BY_ONE for (int part = warp; part < 3 * STRIPS; part += S::WARPS)
        if (part % STRIPS * 16 < seq)
            sum_rows<S>(m, a, g, at, part / STRIPS, part % STRIPS * 16);
}

#endif
