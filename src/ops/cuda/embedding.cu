/* Rows of a table by number, and their gradient where ids are few; embedding_grad.cu has it for many. */
#include "ops/cuda/embedding.cuh"

/* P numbers for each thread; a row has `row` packs. */
template <typename T, int P> static __global__ void embed(T *y, const float *table, const int32_t *ids, int64_t packs, int64_t row)
{
    EACH(i, packs) {
        const int64_t at = quotient(i, row);
        float x[P];
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

/* ---- gradient ----
 * A block has a few rows of the table and as many of its columns as it has threads. It goes through all ids in order, gathers those of its
 * rows, and adds their gradients to sums in shared memory: every number is the sum of its terms in the order of the ids, as on a CPU. */

enum { GRAD_THREADS = 128, GRAD_ROWS = 64, GRAD_BLOCKS = 512, GRAD_AHEAD = 4 };

struct gathered {                   /* of GRAD_THREADS ids in a row, those that are of the block's rows, in their order */
    int32_t index[GRAD_THREADS], row[GRAD_THREADS];
    int warps[GRAD_THREADS / WARP]; /* how many each warp found */
};

/* Thread t looks at id first + t; returns how many were found. */
static __device__ int gather(struct gathered *g, const int32_t *ids, int64_t first, int64_t n, int64_t from, int64_t rows)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t row = first + threadIdx.x < n ? ids[first + threadIdx.x] - from : -1;
    const bool mine = row >= 0 && row < rows;
    const unsigned found = __ballot_sync(0xffffffffu, mine);
    if (lane == 0)
        g->warps[warp] = __popc(found);
    __syncthreads();
    int at = __popc(found & ((1u << lane) - 1)), all = 0;
    for (int w = 0; w < GRAD_THREADS / WARP; w++) {
        at += w < warp ? g->warps[w] : 0;
        all += g->warps[w];
    }
    if (mine) {
        g->index[at] = (int32_t)threadIdx.x;
        g->row[at] = (int32_t)row;
    }
    __syncthreads();
    return all;
}

/* Adds what was gathered, element `col` of each; a few are read ahead, because each read takes long. */
template <typename T>
static __device__ void add_gathered(float (*sums)[GRAD_THREADS], const struct gathered *g, int found, const T *dy, int64_t width)
{
    for (int i = 0; i < found; i += GRAD_AHEAD) {
        float d[GRAD_AHEAD];
        for (int k = 0; k < GRAD_AHEAD; k++)
            d[k] = i + k < found ? to_float(dy[g->index[i + k] * width]) : 0;
        for (int k = 0; k < GRAD_AHEAD; k++)
            if (i + k < found)
                sums[g->row[i + k]][threadIdx.x] += d[k];
    }
}

/* d_table (vocab, width); dy (n, width). `rows` of the table are each block's. */
template <typename T>
static __global__ void embed_grad(float *d_table, const int32_t *ids, const T *dy, int64_t n, int64_t vocab, int64_t width, int64_t rows)
{
    __shared__ float sums[GRAD_ROWS][GRAD_THREADS];
    __shared__ struct gathered g;
    const int64_t from = blockIdx.x * rows, mine = vocab - from < rows ? vocab - from : rows;
    for (int64_t start = (int64_t)blockIdx.y * GRAD_THREADS; start < width; start += (int64_t)gridDim.y * GRAD_THREADS) {
        const int64_t col = start + threadIdx.x;
        for (int64_t r = 0; r < mine; r++)
            sums[r][threadIdx.x] = 0;
        for (int64_t first = 0; first < n; first += GRAD_THREADS) {
            const int found = gather(&g, ids, first, n, from, mine);
            if (col < width)
                add_gathered(sums, &g, found, dy + first * width + col, width);
            __syncthreads();        /* before the next ids are gathered */
        }
        for (int64_t r = 0; r < mine && col < width; r++)
            d_table[(from + r) * width + col] = sums[r][threadIdx.x];
    }
}

static void embed_grad_launch(const struct cuda_call *c)
{
    const struct shape table = cuda_in(c, 0)->shape;
    const int64_t vocab = table.dim[0], width = table.dim[1], n = in_count(c, 1);
    if (n > FEW_IDS) {
        launch_sorted_embed_grad(c);
        return;
    }
    /* many rows for each block where there are many; a large vocabulary has more blocks, not more rows for each */
    const int64_t rows = at_least(1, at_most(divide_up(vocab, GRAD_BLOCKS), GRAD_ROWS));
    const dim3 blocks((unsigned)divide_up(vocab, rows), (unsigned)at_most(divide_up(width, GRAD_THREADS), 65535));
    with_type(cuda_in(c, 2)->dtype, [&](auto zero) {
        embed_grad<<<blocks, GRAD_THREADS, 0, c->stream>>>(out_floats(c, 0), (const int32_t *)c->in[1], (const decltype(zero) *)c->in[2], n,
                                                           vocab, width, rows);
    });
}

const struct cuda_kernel cuda_embedding[] = {
    {OP_EMBED, "embed", embed_launch, NULL},
    {OP_EMBED_GRAD, "embed_grad", embed_grad_launch, sorted_embed_grad_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
