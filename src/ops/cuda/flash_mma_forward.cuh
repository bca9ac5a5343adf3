/* Attention on tensor cores: a warp has 16 M queries and goes through the keys, tile by tile, while the next tile is on its way. Scores
 * are kept as products, without the scale, and weights are powers of two: scale and log2(e) are one factor. */
#ifndef HONE_OPS_CUDA_FLASH_MMA_FORWARD_CUH
#define HONE_OPS_CUDA_FLASH_MMA_FORWARD_CUH

#include "ops/cuda/flash_mma.cuh"

template <int M> struct quad_state { float largest[M][2], sum[M][2]; };        /* rows g and g + 8; sums: this lane's part */

/* s: products in, weights out, relative to the largest so far; acc, what was summed so far, is scaled down to that. */
template <class S>
static __device__ inline void weigh_rows(float (&s)[S::M][S::OTHERS / 8][4], float (&acc)[S::M][S::SIZE / 8][4], struct quad_state<S::M> *rows,
                                         float scale)
{
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            float most = rows->largest[m][half], sum = 0;
            UNROLL for (int n = 0; n < S::OTHERS / 8; n++)
                most = fmaxf(most, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
            most = quad_reduce(most, max_of());
            const float shift = most == -INFINITY ? 0 : most * scale;       /* no finite score yet: weights are zero */
            const float down = power_of_two(rows->largest[m][half] * scale - shift);
            UNROLL for (int n = 0; n < S::OTHERS / 8; n++)
                UNROLL for (int e = 0; e < 2; e++) {
                    const float w = power_of_two(s[m][n][2 * half + e] * scale - shift);
                    s[m][n][2 * half + e] = w;
                    sum += w;
                }
            UNROLL for (int n = 0; n < S::SIZE / 8; n++)
                UNROLL for (int e = 0; e < 2; e++)
                    acc[m][n][2 * half + e] *= down;
            rows->sum[m][half] = rows->sum[m][half] * down + sum;
            rows->largest[m][half] = most;
        }
}

template <class S>
static __device__ inline void drop(float (&s)[S::M][S::OTHERS / 8][4], const struct attention &a, uint32_t below, int64_t head, int i, int j)
{
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int n = 0; n < S::OTHERS / 8; n++) {
            const uint32_t kept = kept_of_queries(a, below, head, i + 16 * m, j + 8 * n);
            UNROLL for (int e = 0; e < 4; e++)
                s[m][n][e] = kept >> e & 1 ? s[m][n][e] : 0;
        }
}

/* largest and sums of this warp's rows, and what y is to be multiplied by. */
template <class S>
static __device__ inline void finish_rows(float (&by)[S::M][2], const struct quad_state<S::M> &rows, float *largest, float *sums,
                                          const struct attention &a, int i)
{
    const int lane = threadIdx.x % WARP;
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            const float sum = quad_reduce(rows.sum[m][half], add_of()), most = rows.largest[m][half];
            const int row = i + 16 * m + lane / 4 + 8 * half;
            by[m][half] = (S::DROPS ? a.dropout.scale : 1) / sum;
            if (lane % 4 == 0 && row < (int)a.seq) {
                largest[row] = most == -INFINITY ? 0 : most * a.scale;
                sums[row] = sum;
            }
        }
}

/* y (B, T, H * D), largest and sums (B, H, T). Blocks of the last queries, which see the most keys, come first. */
template <class S>
static __global__ void __launch_bounds__(S::COUNT) flash_forward(typename S::T *out, float *largest, float *sums, struct attention a,
                                                                 struct flash_order o)
{
    using T = typename S::T;
    constexpr int ROWS = S::ROWS, OTHERS = S::OTHERS, TILE = OTHERS * S::PITCH;
    extern __shared__ uint4 flash_memory[];
    T *q = (T *)flash_memory, *kv = q + ROWS * S::PITCH;        /* kv: (2, key and value, TILE) */
    const struct flash_place at = flash_place_of(o, (int)blockIdx.x, (int)a.heads);
    const int seq = (int)a.seq, i0 = (o.tiles - 1 - at.tile) * ROWS, mine = threadIdx.x / WARP * 16 * S::M, i = i0 + mine;
    const int end = a.causal && i0 + ROWS < seq ? i0 + ROWS : seq;
    const int64_t queries = query_at(a, at.b, 0, at.h), keys = key_at(a, at.b, 0, at.h / (a.heads / a.kv_heads));
    const int64_t head = at.b * a.heads + at.h;
    const int width = (int)(a.heads * a.size), kv_width = (int)(a.kv_heads * a.size);
    const T *k = (const T *)a.k + keys, *v = (const T *)a.v + keys;
    const float scale = a.scale * LOG2_E;
    struct held_rows<S> held;
    struct quad_state<S::M> rows;
    float acc[S::M][S::SIZE / 8][4] = {}, s[S::M][OTHERS / 8][4], by[S::M][2];
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int half = 0; half < 2; half++)
            rows.largest[m][half] = -INFINITY, rows.sum[m][half] = 0;
    fetch_rows<S, ROWS>(q, (const T *)a.q + queries, i0, a, width);
    fetch_rows<S, OTHERS>(kv, k, 0, a, kv_width);
    fetch_rows<S, OTHERS>(kv + TILE, v, 0, a, kv_width);
    for (int j = 0, stage = 0; j < end; j += OTHERS, stage ^= 1) {
        const T *tile = kv + stage * 2 * TILE;
        T *next = kv + (stage ^ 1) * 2 * TILE;
        wait_for_copies();
        __syncthreads();            /* this tile is there, and the one before it has been used */
        if (j + OTHERS < end) {
            fetch_rows<S, OTHERS>(next, k, j + OTHERS, a, kv_width);
            fetch_rows<S, OTHERS>(next + TILE, v, j + OTHERS, a, kv_width);
        }
        if (j == 0)
            held.load(q + mine * S::PITCH);
        if (i >= seq || (a.causal && j > i + 16 * S::M - 1))
            continue;               /* nothing to see for this warp */
        dot_rows<S, OTHERS>(s, held, tile);
        if (j + OTHERS > seq || (a.causal && j + OTHERS - 1 > i))
            hide_keys<S, OTHERS>(s, a, i, j);
        weigh_rows<S>(s, acc, &rows, scale);
        if (S::DROPS)
            drop<S>(s, a, o.drops_below, head, i, j);
        add_rows<S, OTHERS>(acc, s, tile + TILE);
    }
    finish_rows<S>(by, rows, largest + head * seq, sums + head * seq, a, i);
    put_rows<S>((T *)out + queries, acc, by, q + mine * S::PITCH, i, a, width);
}

/* The same for short sequences: all N keys and values that there can be are on their way at once, and waited for once. BLOCKS: of a
 * multiprocessor at a time. */
template <class S, int N, int BLOCKS>
static __global__ void __launch_bounds__(S::COUNT, BLOCKS) flash_short_forward(typename S::T *out, float *largest, float *sums,
                                                                               struct attention a, struct flash_order o)
{
    using T = typename S::T;
    constexpr int ROWS = S::ROWS, OTHERS = S::OTHERS;
    extern __shared__ uint4 flash_memory[];
    T *q = (T *)flash_memory, *k = q + ROWS * S::PITCH, *v = k + N * S::PITCH;
    const int heads = (int)a.heads, all = (int)blockIdx.x % o.heads, b = all / heads, h = all % heads;
    const int seq = (int)a.seq, i0 = (o.tiles - 1 - (int)blockIdx.x / o.heads) * ROWS, mine = threadIdx.x / WARP * 16, i = i0 + mine;
    const int end = a.causal && i0 + ROWS < seq ? i0 + ROWS : seq;
    const int64_t queries = query_at(a, b, 0, h), keys = key_at(a, b, 0, h / (heads / (int)a.kv_heads));
    const int width = heads * (int)a.size, kv_width = (int)(a.kv_heads * a.size);
    struct shared_rows<S> left;
    struct quad_state<1> rows = {{{-INFINITY, -INFINITY}}, {{0, 0}}};
    float acc[1][S::SIZE / 8][4] = {}, s[1][OTHERS / 8][4], by[1][2];
    fetch_rows<S, ROWS>(q, (const T *)a.q + queries, i0, a, width);
    ONE_BY_ONE for (int j = 0; j < end; j += OTHERS) {
        fetch_rows<S, OTHERS>(k + j * S::PITCH, (const T *)a.k + keys, j, a, kv_width);
        fetch_rows<S, OTHERS>(v + j * S::PITCH, (const T *)a.v + keys, j, a, kv_width);
    }
    wait_for_copies();
    __syncthreads();
    left.load(q + mine * S::PITCH);
    if (i >= seq)
        return;
    ONE_BY_ONE for (int j = 0; j < end && !(a.causal && j > i + 15); j += OTHERS) {
        dot_rows<S, OTHERS>(s, left, k + j * S::PITCH);
        if (j + OTHERS > seq || (a.causal && j + OTHERS - 1 > i))
            hide_keys<S, OTHERS>(s, a, i, j);
        weigh_rows<S>(s, acc, &rows, a.scale * LOG2_E);
        add_rows<S, OTHERS>(acc, s, v + j * S::PITCH);
    }
    finish_rows<S>(by, rows, largest + (int64_t)all * seq, sums + (int64_t)all * seq, a, i);
    put_rows<S>(out + queries, acc, by, q + mine * S::PITCH, i, a, width);
}

template <class S, int N> static size_t flash_short_bytes(void) { return (size_t)(S::ROWS + 2 * N) * S::PITCH * sizeof(typename S::T); }

template <class S> static size_t flash_forward_bytes(void)
{
    return (size_t)(S::ROWS + 4 * S::OTHERS) * S::PITCH * sizeof(typename S::T);
}

#endif
