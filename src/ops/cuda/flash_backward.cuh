/* The gradients of attention as one op. With w the weight and m what dropout makes of it, y = sum of w m v, so dv = w m dy and
 * ds = w (m dy v - sum over all keys of the same), where that sum is dy y. One kernel has a tile of queries and sums dq over the keys; one
 * has a tile of keys and sums dk and dv over the queries of all heads of its group: both make the weights anew, and none adds to what
 * another one adds to. */
#ifndef HONE_OPS_CUDA_FLASH_BACKWARD_CUH
#define HONE_OPS_CUDA_FLASH_BACKWARD_CUH

#include "ops/cuda/flash.cuh"

struct gradients {
    const void *dy;                         /* (B, T, H * D) */
    const float *largest, *sums, *dots;     /* (B, H, T); dots: dy y */
    void *dq, *dk, *dv;
};

/* dots (B, H, T): a warp takes a row. */
template <typename T> static __global__ void dots_kernel(float *dots, const T *dy, const T *y, struct attention a)
{
    const int lane = threadIdx.x % WARP;
    const int64_t rows = a.batch * a.heads * a.seq, warps = (int64_t)gridDim.x * (blockDim.x / WARP);
    for (int64_t row = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP; row < rows; row += warps) {
        const int64_t i = row % a.seq, h = row / a.seq % a.heads, at = query_at(a, row / a.seq / a.heads, i, h);
        float sum = 0;
        for (int64_t e = lane; e < a.size; e += WARP)
            sum += to_float(dy[at + e]) * to_float(y[at + e]);
        sum = warp_reduce(sum, add_of());
        if (lane == 0)
            dots[row] = sum;
    }
}

/* s: products of queries and keys in, w m out; d: products of dy and values in, ds out. Zero where a key is not seen. */
template <int R>
static __device__ void weight_gradients(float (&s)[R][R], float (&d)[R][R], const struct attention &a, const struct gradients &g, int64_t b,
                                        int64_t h, int64_t i0, int64_t j0)
{
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    UNROLL for (int r = 0; r < R; r++) {
        const int64_t i = i0 + y + SIDE * r, row = (b * a.heads + h) * a.seq + i;
        const int64_t first = first_key(a, b, i);
        const bool there = i < a.seq;
        const float largest = there ? g.largest[row] : 0, sum = there ? g.sums[row] : 1, dot = there ? g.dots[row] : 0;
        UNROLL for (int c = 0; c < R; c++) {
            const int64_t j = j0 + x + SIDE * c;
            const bool seen = visible(a, i, j, first);
            const float w = seen ? expf(s[r][c] * a.scale - largest) / sum : 0, m = seen ? kept(a, b, h, i, j) : 0;
            s[r][c] = w * m;
            d[r][c] = seen ? w * (m * d[r][c] - dot) * a.scale : 0;
        }
    }
}

/* The tiles in shared memory; q and dy are of queries, k and v of keys, p of scores. */
struct tiles { float *q, *dy, *k, *v, *p; };

template <int TILE> static __device__ struct tiles tiles_in(float *shared, int size)
{
    const int one = TILE * pitch_of(size);
    return {shared, shared + one, shared + 2 * one, shared + 3 * one, shared + 4 * one};
}

/* Loads a tile of two operands that have rows alike. */
template <int TILE>
static __device__ void load_pair(float *to, float *also, const void *x, const void *other, int64_t at, int64_t first, int64_t stride,
                                 const struct attention &a)
{
    load_tile<TILE>(to, x, at, first, stride, a);
    load_tile<TILE>(also, other, at, first, stride, a);
}

template <int R, int C>
static __global__ void __launch_bounds__(SIDE * SIDE) query_gradients(struct attention a, struct gradients g)
{
    constexpr int TILE = R * SIDE;
    extern __shared__ float shared[];
    const int size = (int)a.size;
    const struct tiles t = tiles_in<TILE>(shared, size);
    const struct place at = place_of(a.heads, a.batch, blockIdx.x);
    const int64_t tiles = (a.seq + TILE - 1) / TILE, i0 = (tiles - 1 - at.tile) * TILE;
    const int64_t keys = key_at(a, at.b, 0, at.h / (a.heads / a.kv_heads)), queries = query_at(a, at.b, 0, at.h);
    const int64_t end = a.causal && i0 + TILE < a.seq ? i0 + TILE : a.seq;
    float dq[R][C] = {}, s[R][R], d[R][R];
    load_pair<TILE>(t.q, t.dy, a.q, g.dy, queries, i0, a.heads * a.size, a);
    for (int64_t j0 = first_tile<TILE>(a, at.b, i0); j0 < end; j0 += TILE) {
        __syncthreads();            /* the tiles of keys, and p, have been used */
        load_pair<TILE>(t.k, t.v, a.k, a.v, keys, j0, a.kv_heads * a.size, a);
        __syncthreads();
        dot_tiles(s, t.q, t.k, size);
        dot_tiles(d, t.dy, t.v, size);
        weight_gradients(s, d, a, g, at.b, at.h, i0, j0);
        store_tile(t.p, d);
        __syncthreads();
        add_product<R, C, false>(dq, t.p, t.k, size);
    }
    write_rows(g.dq, queries, dq, i0, a.heads * a.size, a);
}

/* Blocks of the first keys, which the most queries see, come first. */
template <int R, int C>
static __global__ void __launch_bounds__(SIDE * SIDE) key_gradients(struct attention a, struct gradients g)
{
    constexpr int TILE = R * SIDE;
    extern __shared__ float shared[];
    const int size = (int)a.size;
    const struct tiles t = tiles_in<TILE>(shared, size);
    const struct place at = place_of(a.kv_heads, a.batch, blockIdx.x);
    const int64_t j0 = at.tile * TILE, keys = key_at(a, at.b, 0, at.h), group = a.heads / a.kv_heads;
    float dk[R][C] = {}, dv[R][C] = {}, s[R][R], d[R][R];
    load_pair<TILE>(t.k, t.v, a.k, a.v, keys, j0, a.kv_heads * a.size, a);
    for (int64_t h = at.h * group; h < (at.h + 1) * group; h++)
        for (int64_t i0 = a.causal ? j0 : 0; i0 < a.seq && first_key(a, at.b, i0) < j0 + TILE; i0 += TILE) {
            const int64_t queries = query_at(a, at.b, 0, h);
            __syncthreads();        /* the tiles of queries, and p, have been used */
            load_pair<TILE>(t.q, t.dy, a.q, g.dy, queries, i0, a.heads * a.size, a);
            __syncthreads();
            dot_tiles(s, t.q, t.k, size);
            dot_tiles(d, t.dy, t.v, size);
            weight_gradients(s, d, a, g, at.b, h, i0, j0);
            store_tile(t.p, s);
            __syncthreads();
            add_product<R, C, true>(dv, t.p, t.dy, size);
            __syncthreads();
            store_tile(t.p, d);
            __syncthreads();
            add_product<R, C, true>(dk, t.p, t.q, size);
        }
    write_rows(g.dk, keys, dk, j0, a.kv_heads * a.size, a);
    write_rows(g.dv, keys, dv, j0, a.kv_heads * a.size, a);
}

#endif
