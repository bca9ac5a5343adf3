/* Rows of a table by number, and their gradient where ids are few; embedding_grad.cu has it for many. */
#include "ops/cuda/embedding.cuh"

/* P numbers for each thread; a row has `row` packs. */
template <typename T, int P> static __global__ void embed(T *y, const float *table, const int32_t *ids, int64_t packs, int64_t row)
{
    EACH(i, packs) {
        const int64_t at = quotient(i, row);
        float x[P] = {0};
        if (ids[at] >= 0)
            load_pack<P>(x, table + (ids[at] * row + i - at * row) * P);
        store_pack<P>(y + i * P, x);
    }
}

template <typename T, int P> static void launch_embed(const struct cuda_call *c)
{
    const int64_t width = shape_last(cuda_in(c, 0)->shape), packs = out_count(c, 0) / P;
    const unsigned threads = threads_at_once(packs);
    embed<T, P><<<blocks_at_once(packs, threads), threads, 0, c->stream>>>((T *)c->out[0], in_floats(c, 0), (const int32_t *)c->in[1],
                                                                           packs, width / P);
}

static void embed_launch(const struct cuda_call *c)
{
    with_type(cuda_out(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        constexpr int P = packed<T>;
        if (shape_last(cuda_in(c, 0)->shape) % P == 0 && is_aligned(c->in[0], 32) && is_aligned(c->out[0], 16))
            launch_embed<T, P>(c);
        else
            launch_embed<T, 1>(c);
    });
}

/* ---- gradient of few ids ----
 * A block has one row of the table and a tile of its columns. It gathers the places of the row's id in order; its warps share them, and
 * what these have is summed. */

enum { GRAD_THREADS = 256, GRAD_WARPS = GRAD_THREADS / WARP, GRAD_AHEAD = 8, FEW_IDS_AHEAD = FEW_IDS / GRAD_THREADS };

/* places (FEW_IDS): where `id` is, in order; returns how many there are. Thread t looks at FEW_IDS_AHEAD ids next to each other. */
static __device__ int gather(int32_t *places, const int32_t *ids, int n, int32_t id)
{
    __shared__ int warps[GRAD_WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, first = threadIdx.x * FEW_IDS_AHEAD;
    unsigned found = 0;
#pragma unroll
    for (int k = 0; k < FEW_IDS_AHEAD; k++)
        found |= (unsigned)(first + k < n && ids[first + k] == id) << k;
    int upto = __popc(found);       /* of this warp's threads, up to this one */
    for (int d = 1; d < WARP; d *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, upto, d);
        upto += lane >= d ? other : 0;
    }
    if (lane == WARP - 1)
        warps[warp] = upto;
    __syncthreads();
    int at = upto - __popc(found), all = 0;
    for (int w = 0; w < GRAD_WARPS; w++) {
        at += w < warp ? warps[w] : 0;
        all += warps[w];
    }
#pragma unroll
    for (int k = 0; k < FEW_IDS_AHEAD; k++)
        if (found >> k & 1)
            places[at++] = first + k;
    __syncthreads();
    return all;
}

/* d_table (vocab, width), row blockIdx.x; dy (n, width). */
template <typename T>
static __global__ void __launch_bounds__(GRAD_THREADS) embed_grad(float *d_table, const int32_t *ids, const T *dy, int n, int64_t width)
{
    constexpr int P = packed<T>;
    __shared__ int32_t places[FEW_IDS];
    __shared__ float sums[GRAD_WARPS][WARP * P];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, found = gather(places, ids, n, blockIdx.x);
    const int share = (found + GRAD_WARPS - 1) / GRAD_WARPS, end = min(found, (warp + 1) * share);
    const int64_t tile = (int64_t)blockIdx.y * WARP * P, col = tile + lane * P, mine = tile + threadIdx.x;
    const int some = (int)min((long long)P, (long long)(width - col));
    const bool whole = width % P == 0;
    float sum[P] = {0};
    for (int i = warp * share; i < end && some > 0; i += GRAD_AHEAD) {
        uint4 ahead[GRAD_AHEAD];
#pragma unroll
        for (int k = 0; k < GRAD_AHEAD; k++)
            ahead[k] = i + k < end ? load_some(dy + places[i + k] * width + col, some, whole) : no_words();
#pragma unroll
        for (int k = 0; k < GRAD_AHEAD; k++)
#pragma unroll
            for (int p = 0; p < P; p++)
                sum[p] += number_at<T>(ahead[k], p);
    }
#pragma unroll
    for (int p = 0; p < P; p++)
        sums[warp][lane * P + p] = sum[p];
    __syncthreads();
    if (threadIdx.x >= WARP * P || mine >= width)
        return;
    float all = 0;
    for (int w = 0; w < GRAD_WARPS; w++)
        all += sums[w][threadIdx.x];
    d_table[blockIdx.x * width + mine] = all;
}

static void embed_grad_launch(const struct cuda_call *c)
{
    const struct shape table = cuda_in(c, 0)->shape;
    const int64_t width = table.dim[1], n = in_count(c, 1);
    if (are_many_ids(n, table.dim[0])) {
        launch_sorted_embed_grad(c);
        return;
    }
    with_type(cuda_in(c, 2)->dtype, [&](auto zero) {
        using T = decltype(zero);
        const dim3 blocks((unsigned)table.dim[0], (unsigned)divide_up(width, (int64_t)WARP * packed<T>));
        embed_grad<<<blocks, GRAD_THREADS, 0, c->stream>>>(out_floats(c, 0), (const int32_t *)c->in[1], (const T *)c->in[2], (int)n, width);
    });
}

const struct cuda_kernel cuda_embedding[] = {
    {OP_EMBED, "embed", embed_launch, NULL},
    {OP_EMBED_GRAD, "embed_grad", embed_grad_launch, sorted_embed_grad_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
