/* Sums of squares of gradients: of whole tensors, and of the slices that ranks have of them.
 *
 * A warp sums those of SLICE_BLOCK numbers, and rounds: such sums are what ranks tell each other where they divide the optimizer
 * (OP_SQUARE_BLOCKS). They are added up in an order that hangs on how many there are alone, by who has made them and by who was told
 * (OP_SUM_BLOCKS): each block of threads leaves one number, and the block that comes last sums those, a warp for each tensor. */
#include "ops/cuda/items.cuh"

enum { WARPS = THREADS / WARP, SQUARES_MOST = 1024, SQUARES_FOURS = SLICE_BLOCK / 4 / WARP };     /* most blocks of threads for a tensor; fours of a lane */

/* Four numbers from i on, zeros behind the last. */
static __device__ inline float4 four_at(const float *x, int64_t i, int64_t n, bool aligned)
{
    if (aligned && i + 4 <= n)
        return *(const float4 *)(x + i);
    return make_float4(i < n ? x[i] : 0, i + 1 < n ? x[i + 1] : 0, i + 2 < n ? x[i + 2] : 0, i + 3 < n ? x[i + 3] : 0);
}

/* Block k of n numbers, by a warp. Four squares are summed in f32, what they come to in f64. */
static __device__ inline float block_squares(const float *x, int64_t n, int64_t k)
{
    const bool aligned = (uintptr_t)x % sizeof(float4) == 0;
    const int64_t first = k * SLICE_BLOCK + 4 * (threadIdx.x % WARP);
    float4 v[SQUARES_FOURS];
    double sum = 0;
#pragma unroll
    for (int i = 0; i < SQUARES_FOURS; i++)
        v[i] = four_at(x, first + 4 * WARP * i, n, aligned);
#pragma unroll
    for (int i = 0; i < SQUARES_FOURS; i++)
        sum += (double)fmaf(v[i].w, v[i].w, fmaf(v[i].z, v[i].z, fmaf(v[i].y, v[i].y, __fmul_rn(v[i].x, v[i].x))));
    return (float)warp_reduce(sum, add_of());
}

struct squares {
    const float *x;                 /* numbers, or sums of blocks of them */
    int64_t n;                      /* numbers */
    int64_t sums;                   /* blocks of them */
    const float *held;              /* 0 there: it counts as 0 and is not read; NULL: it is */
    float *to;
    unsigned first, blocks;         /* of threads */
};

/* The values that are summed up; behind them stands what leaves some out. */
static int squares_values(const struct op *op) { return op->n_in - op->attrs.masked; }

static const float *held_of(const struct cuda_call *c, int at)
{
    const struct op_attrs *a = &c->op->attrs;
    return a->masked && a->members[at].group >= 0 ? in_floats(c, c->op->n_in - 1) + a->members[at].group : NULL;
}

static int64_t sums_of(int64_t n) { return divide_up(n, SLICE_BLOCK); }
static unsigned squares_blocks(int64_t sums) { return (unsigned)at_least(1, at_most(divide_up(sums, WARPS), SQUARES_MOST)); }

template <bool SUMMED, int BYTES>
static __global__ void __launch_bounds__(THREADS) squares_kernel(double *parts, unsigned *counter,
                                                                 const __grid_constant__ struct items<struct squares, BYTES> all)
{
    const struct squares &a = item_of_block(all);
    const int64_t end = a.held && *a.held == 0 ? 0 : a.sums;
    double mine = 0;
    for (int64_t k = (int64_t)(blockIdx.x - a.first) * WARPS + threadIdx.x / WARP; k < end; k += (int64_t)a.blocks * WARPS)
        mine += SUMMED ? a.x[k] : block_squares(a.x, a.n, k);
    mine = block_sum(threadIdx.x % WARP == 0 ? mine : 0);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = mine;
    if (!comes_last(counter, gridDim.x))
        return;
    for (int t = threadIdx.x / WARP; t < all.n; t += WARPS) {
        double sum = 0;
#pragma unroll 8
        for (unsigned i = threadIdx.x % WARP; i < all.item[t].blocks; i += WARP)
            sum += __ldcg(&parts[all.item[t].first + i]);       /* others have written it */
        sum = warp_reduce(sum, add_of());
        if (threadIdx.x % WARP == 0)
            *all.item[t].to = (float)sum;
    }
}

/* of(i): tensor i of [from, to), without its blocks of threads. */
template <bool SUMMED, class Of> static void squares_launch(const struct cuda_call *c, int from, int to, const Of &of)
{
    with_items<struct squares>(to - from, [&](auto all) {
        for (int at = from; at < to;) {
            unsigned blocks = 0;
            for (all.n = 0; at < to && all.n < all.MOST; at++, all.n++) {
                struct squares s = of(at);
                s.first = blocks;
                s.blocks = squares_blocks(s.sums);
                blocks += s.blocks;
                all.item[all.n] = s;
            }
            squares_kernel<SUMMED><<<blocks, THREADS, 0, c->stream>>>((double *)c->scratch, cuda_counter(c), all);
        }
    });
}

static void sum_values(const struct cuda_call *c, int from, int to)
{
    squares_launch<false>(c, from, to, [&](int i) -> struct squares {
        return {in_floats(c, i), in_count(c, i), sums_of(in_count(c, i)), held_of(c, i), out_floats(c, 0) + i, 0, 0};
    });
}

static void sum_squares_launch(const struct cuda_call *c) { sum_values(c, 0, squares_values(c->op)); }

static size_t sum_squares_scratch(const struct program *p, const struct op *op)
{
    size_t blocks = 0;              /* of all, though those of one launch alone are needed at once */
    for (int i = 0; i < squares_values(op); i++)
        blocks += squares_blocks(sums_of(shape_count(p->values[op->in[i]].shape)));
    return blocks * sizeof(double);
}

/* ---- in pieces: gradients of the last layers are there long before those of the first, and still in the cache ---- */

enum { SQUARES_PIECES = 8 };
static const size_t SQUARES_PIECE = (size_t)4 << 20;        /* bytes; of less than that a piece wins nothing */

static size_t squares_bytes(const struct program *p, const struct op *op, int to)
{
    size_t bytes = 0;
    for (int i = 0; i < to; i++)
        bytes += value_bytes(&p->values[op->in[i]]);
    return bytes;
}

static int squares_pieces(const struct program *p, const struct op *op)
{
    const size_t most = squares_bytes(p, op, squares_values(op)) / SQUARES_PIECE;
    const int n = most < SQUARES_PIECES ? (int)most : (int)SQUARES_PIECES;
    return n < 1 ? 1 : n < squares_values(op) ? n : squares_values(op);
}

/* Piece i begins with the first input that begins behind i of so many equal parts of all bytes. There may be no input in it. */
static int squares_begin(const struct cuda_call *c, int piece)
{
    const int values = squares_values(c->op);
    const size_t all = squares_bytes(c->program, c->op, values), pieces = (size_t)squares_pieces(c->program, c->op);
    int i = 0;
    while (i < values && squares_bytes(c->program, c->op, i) < all / pieces * (size_t)piece)
        i++;
    return (size_t)piece == pieces ? values : i;
}

static void squares_piece_launch(const struct cuda_call *c, int piece)
{
    sum_values(c, squares_begin(c, piece), squares_begin(c, piece + 1));
}

static int squares_touches(const struct cuda_call *c, int piece, struct lane_touch *out)
{
    const int from = squares_begin(c, piece), to = squares_begin(c, piece + 1);
    for (int i = from; i < to; i++)
        out[i - from] = cuda_touch_in(c, i);
    out[to - from] = {out_floats(c, 0) + from, (size_t)(to - from) * sizeof(float), true};
    if (c->op->attrs.masked)
        out[to - from + 1] = cuda_touch_in(c, c->op->n_in - 1);
    return to - from + 1 + c->op->attrs.masked;
}

const struct cuda_pieces cuda_squares_pieces = {OP_SUM_SQUARES, squares_pieces, squares_piece_launch, squares_touches, NULL, NULL};

/* ---- slices of the optimizer ---- */

struct slice_squares {
    const float *x;
    int64_t n;
    const float *held;
    float *to;
    unsigned first;
};

template <int BYTES> static __global__ void square_blocks(const __grid_constant__ struct items<struct slice_squares, BYTES> all)
{
    const struct slice_squares &a = item_of_block(all);
    const int64_t k = (int64_t)(blockIdx.x - a.first) * WARPS + threadIdx.x / WARP;
    if (k * SLICE_BLOCK >= a.n || (a.held && *a.held == 0))
        return;
    const float sum = block_squares(a.x, a.n, k);
    if (threadIdx.x % WARP == 0)
        a.to[k] = sum;
}

static void square_blocks_launch(const struct cuda_call *c)
{
    const int n = squares_values(c->op);
    cudaMemsetAsync(c->out[0], 0, (size_t)c->op->attrs.rows * sizeof(float), c->stream);
    with_items<struct slice_squares>(n, [&](auto all) {
        for (int at = 0; at < n;) {
            unsigned blocks = 0;
            for (all.n = 0; at < n && all.n < all.MOST; at++, all.n++) {
                all.item[all.n] = {in_floats(c, at), in_count(c, at), held_of(c, at), out_floats(c, 0) + c->op->attrs.members[at].unit, blocks};
                blocks += (unsigned)divide_up(sums_of(in_count(c, at)), WARPS);
            }
            square_blocks<<<blocks, THREADS, 0, c->stream>>>(all);
        }
    });
}

/* Those of result i. */
static int64_t blocks_between(const struct op_attrs *a, int64_t all, int i) { return (i + 1 < a->parts ? a->members[i + 1].unit : all) - a->members[i].unit; }

static void sum_blocks_launch(const struct cuda_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    squares_launch<true>(c, 0, a->parts, [&](int i) -> struct squares {
        return {in_floats(c, 0) + a->members[i].unit, 0, blocks_between(a, in_count(c, 0), i), NULL, out_floats(c, i), 0, 0};
    });
}

static size_t sum_blocks_scratch(const struct program *p, const struct op *op)
{
    size_t blocks = 0;
    for (int i = 0; i < op->attrs.parts; i++)
        blocks += squares_blocks(blocks_between(&op->attrs, shape_count(p->values[op->in[0]].shape), i));
    return blocks * sizeof(double);
}

const struct cuda_kernel cuda_squares[] = {
    {OP_SUM_SQUARES, "sum_squares", sum_squares_launch, sum_squares_scratch},
    {OP_SQUARE_BLOCKS, "square_blocks", square_blocks_launch, NULL},
    {OP_SUM_BLOCKS, "sum_blocks", sum_blocks_launch, sum_blocks_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
