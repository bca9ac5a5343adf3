/* Attention as one op: a block has a tile of queries and goes through the keys, tile by tile; largest score and sum of each row are kept up
 * to date, and what was summed so far is scaled down when a larger score appears. */
#ifndef HONE_OPS_CUDA_FLASH_FORWARD_CUH
#define HONE_OPS_CUDA_FLASH_FORWARD_CUH

#include "ops/cuda/flash.cuh"

template <int R> struct row_state { float largest[R], sum[R]; };        /* of the rows that a thread has a part of */

/* Over the 16 threads that have one row: half a warp. */
template <class Op> static __device__ float row_reduce(float x, Op op)
{
    for (int d = SIDE / 2; d > 0; d /= 2)
        x = op(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* s: products in, weights e^(score - largest so far) out, zero where a key is not seen. down: what sums so far are multiplied by. */
template <int R>
static __device__ void weigh(float (&s)[R][R], float (&down)[R], struct row_state<R> *rows, const struct attention &a, int64_t b, int64_t i0,
                             int64_t j0)
{
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    UNROLL for (int r = 0; r < R; r++) {
        const int64_t i = i0 + y + SIDE * r, first = first_key(a, b, i);
        float most = -INFINITY, sum = 0;
        UNROLL for (int c = 0; c < R; c++) {
            s[r][c] *= a.scale;
            most = visible(a, i, j0 + x + SIDE * c, first) ? fmaxf(most, s[r][c]) : most;
        }
        most = fmaxf(rows->largest[r], row_reduce(most, max_of()));
        const float shift = most == -INFINITY ? 0 : most;       /* no finite score yet: weights are zero */
        UNROLL for (int c = 0; c < R; c++) {
            s[r][c] = visible(a, i, j0 + x + SIDE * c, first) ? expf(s[r][c] - shift) : 0;
            sum += s[r][c];
        }
        down[r] = expf(rows->largest[r] - shift);
        rows->sum[r] = rows->sum[r] * down[r] + row_reduce(sum, add_of());
        rows->largest[r] = most;
    }
}

template <int R, int C> static __device__ void scale_rows(float (&acc)[R][C], const float (&by)[R])
{
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++)
            acc[r][c] *= by[r];
}

/* y (B, T, H * D), largest and sums (B, H, T). Blocks of the last queries, which see the most keys, come first. */
template <int R, int C>
static __global__ void __launch_bounds__(SIDE * SIDE) attention_kernel(void *out, float *largest, float *sums, struct attention a)
{
    constexpr int TILE = R * SIDE;
    extern __shared__ float shared[];
    const int size = (int)a.size, y = threadIdx.x / SIDE;
    float *q = shared, *kv = q + TILE * pitch_of(size), *p = kv + TILE * pitch_of(size);
    const struct place at = place_of(a.heads, a.batch, blockIdx.x);
    const int64_t tiles = (a.seq + TILE - 1) / TILE, i0 = (tiles - 1 - at.tile) * TILE;
    const int64_t keys = key_at(a, at.b, 0, at.h / (a.heads / a.kv_heads)), queries = query_at(a, at.b, 0, at.h);
    const int64_t end = a.causal && i0 + TILE < a.seq ? i0 + TILE : a.seq;
    struct row_state<R> rows;
    float acc[R][C] = {}, s[R][R], down[R];
    UNROLL for (int r = 0; r < R; r++)
        rows.largest[r] = -INFINITY, rows.sum[r] = 0;
    load_tile<TILE>(q, a.q, queries, i0, a.heads * a.size, a);
    for (int64_t j0 = first_tile<TILE>(a, at.b, i0); j0 < end; j0 += TILE) {
        __syncthreads();            /* the tile of values, and p, have been used */
        load_tile<TILE>(kv, a.k, keys, j0, a.kv_heads * a.size, a);
        __syncthreads();
        dot_tiles(s, q, kv, size);
        weigh(s, down, &rows, a, at.b, i0, j0);
        scale_rows(acc, down);
        UNROLL for (int r = 0; r < R; r++)
            UNROLL for (int c = 0; c < R && a.dropout.tick; c++)
                s[r][c] *= kept(a, at.b, at.h, i0 + y + SIDE * r, j0 + threadIdx.x % SIDE + SIDE * c);
        store_tile(p, s);
        __syncthreads();            /* the tile of keys has been used */
        load_tile<TILE>(kv, a.v, keys, j0, a.kv_heads * a.size, a);
        __syncthreads();
        add_product<R, C, false>(acc, p, kv, size);
    }
    UNROLL for (int r = 0; r < R; r++) {
        const int64_t i = i0 + y + SIDE * r, row = (at.b * a.heads + at.h) * a.seq + i;
        down[r] = 1 / rows.sum[r];
        if (threadIdx.x % SIDE == 0 && i < a.seq) {
            largest[row] = rows.largest[r] == -INFINITY ? 0 : rows.largest[r];
            sums[row] = rows.sum[r];
        }
    }
    scale_rows(acc, down);
    write_rows(out, queries, acc, i0, a.heads * a.size, a);
}

#endif
