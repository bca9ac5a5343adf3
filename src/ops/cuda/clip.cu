/* The length of the gradient, and what it is multiplied by. */
#include "ops/cuda/items.cuh"

/* ---- sums of squares: each block leaves one number, and the block that comes last sums those, a warp for each tensor ---- */

enum { SQUARES_CHUNK = 32 * THREADS, SQUARES_BLOCKS = 1024, SQUARES_AHEAD = 4 };    /* fewest elements of a block; most blocks of a tensor */

struct squares {
    const float *x;
    int64_t n;
    const float *held;              /* 0 there: it counts as 0 and is not read; NULL: it is */
    unsigned first, blocks;
};

/* The values that are summed up; behind them stands what leaves some out. */
static int squares_values(const struct op *op) { return op->n_in - op->attrs.masked; }

static const float *held_of(const struct cuda_call *c, int at)
{
    const struct op_attrs *a = &c->op->attrs;
    return a->masked && a->members[at].group >= 0 ? in_floats(c, c->op->n_in - 1) + a->members[at].group : NULL;
}

static unsigned squares_blocks(int64_t n) { return (unsigned)at_least(1, at_most(divide_up(n, SQUARES_CHUNK), SQUARES_BLOCKS)); }

/* Four squares are summed in f32, what they come to in f64. */
static __device__ inline double squares_of_block(const struct squares &a)
{
    const float4 *x = (const float4 *)a.x;
    const int64_t count = a.held && *a.held == 0 ? 0 : a.n;
    const int64_t n = (uintptr_t)x % sizeof *x == 0 ? count / 4 : 0, step = (int64_t)a.blocks * THREADS;
    const int64_t start = (int64_t)(blockIdx.x - a.first) * THREADS + threadIdx.x;
    double sum = 0;
    for (int64_t i = start; i < n; i += SQUARES_AHEAD * step) {
        float4 v[SQUARES_AHEAD];
#pragma unroll
        for (int k = 0; k < SQUARES_AHEAD; k++)
            v[k] = i + k * step < n ? x[i + k * step] : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < SQUARES_AHEAD; k++)
            sum += (double)(v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w);
    }
    for (int64_t i = 4 * n + start; i < count; i += step)
        sum += (double)(a.x[i] * a.x[i]);
    return block_sum(sum);
}

template <int BYTES>
static __global__ void __launch_bounds__(THREADS) squares_kernel(float *to, double *parts, unsigned *counter,
                                                                 const __grid_constant__ struct items<struct squares, BYTES> all)
{
    const double mine = squares_of_block(item_of_block(all));
    if (threadIdx.x == 0)
        parts[blockIdx.x] = mine;
    if (!comes_last(counter, gridDim.x))
        return;
    for (int t = threadIdx.x / WARP; t < all.n; t += THREADS / WARP) {
        double sum = 0;
#pragma unroll 8
        for (unsigned i = threadIdx.x % WARP; i < all.item[t].blocks; i += WARP)
            sum += __ldcg(&parts[all.item[t].first + i]);       /* others have written it */
        sum = warp_reduce(sum, add_of());
        if (threadIdx.x % WARP == 0)
            to[t] = (float)sum;
    }
}

/* Of the inputs [from, to). */
static void squares_launch(const struct cuda_call *c, int from, int to)
{
    with_items<struct squares>(to - from, [&](auto all) {
        for (int at = from; at < to;) {
            unsigned blocks = 0;
            const int first = at;
            for (all.n = 0; at < to && all.n < all.MOST; at++, all.n++) {
                const int64_t n = in_count(c, at);
                all.item[all.n] = {in_floats(c, at), n, held_of(c, at), blocks, squares_blocks(n)};
                blocks += squares_blocks(n);
            }
            squares_kernel<<<blocks, THREADS, 0, c->stream>>>(out_floats(c, 0) + first, (double *)c->scratch, cuda_counter(c), all);
        }
    });
}

static void sum_squares_launch(const struct cuda_call *c) { squares_launch(c, 0, squares_values(c->op)); }

static size_t sum_squares_scratch(const struct program *p, const struct op *op)
{
    size_t blocks = 0;              /* of all, though those of one launch alone are needed at once */
    for (int i = 0; i < squares_values(op); i++)
        blocks += squares_blocks(shape_count(p->values[op->in[i]].shape));
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
    squares_launch(c, squares_begin(c, piece), squares_begin(c, piece + 1));
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

/* ---- clipping ---- */

struct sums {
    const float *x;
    int64_t n;
};

struct clipping {
    float *norm, *factor;
    const float *loss, *scale;      /* scale: what the gradients are multiplied by; NULL: 1 */
    double *sum;
    float max_norm;
};

/* Adds these sums to *sum, which the first launch starts; the last one makes norm and factor of it. One block; a warp takes a tensor. */
template <int BYTES>
static __global__ void clip(const struct clipping a, bool begins, bool ends, const __grid_constant__ struct items<struct sums, BYTES> all)
{
    double part = 0;
    for (int i = threadIdx.x / WARP; i < all.n; i += THREADS / WARP)
        for (int64_t k = threadIdx.x % WARP; k < all.item[i].n; k += WARP)
            part += all.item[i].x[k];
    part = block_sum(part);
    if (threadIdx.x != 0)
        return;
    *a.sum = begins ? part : *a.sum + part;
    if (!ends)
        return;
    const float scale = a.scale ? *a.scale : 1, length = (float)(sqrt(*a.sum) / scale);
    float factor = a.max_norm > 0 && length > a.max_norm ? a.max_norm / (length + 1e-6f) : 1;
    if (!isfinite(length) || !isfinite(*a.loss))
        factor = NAN;
    *a.norm = length;
    *a.factor = factor / scale;
}

static void clip_launch(const struct cuda_call *c)
{
    const bool scaled = c->op->attrs.scaled;
    const struct clipping a = {out_floats(c, 0), out_floats(c, 1), in_floats(c, 0), scaled ? in_floats(c, 1) : NULL, (double *)c->scratch,
                               c->op->attrs.max_norm};
    const int first = scaled ? 2 : 1;
    with_items<struct sums>(c->op->n_in - first, [&](auto all) {
        for (int at = first; at < c->op->n_in;) {
            const bool begins = at == first;
            for (all.n = 0; at < c->op->n_in && all.n < all.MOST; at++, all.n++)
                all.item[all.n] = {in_floats(c, at), in_count(c, at)};
            clip<<<1, THREADS, 0, c->stream>>>(a, begins, at == c->op->n_in, all);
        }
    });
}

static size_t clip_scratch(const struct program *, const struct op *) { return sizeof(double); }

/* ---- the loss scale: halved where the gradient is not finite, doubled after `total` steps in a row where it is ---- */

static __global__ void rescale(float *scale, int32_t *good, const float *factor, int64_t total)
{
    const bool broken = isnan(*factor);
    *good = broken ? 0 : *good + 1;
    if (broken && *scale > LEAST_LOSS_SCALE)
        *scale /= 2;
    if (*good >= total) {
        *good = 0;
        *scale = *scale < MOST_LOSS_SCALE ? *scale * 2 : *scale;
    }
}

static void rescale_launch(const struct cuda_call *c)
{
    rescale<<<1, 1, 0, c->stream>>>(out_floats(c, 0), (int32_t *)c->out[1], in_floats(c, 2), c->op->attrs.total);
}

const struct cuda_kernel cuda_clip[] = {
    {OP_SUM_SQUARES, "sum_squares", sum_squares_launch, sum_squares_scratch},
    {OP_CLIP, "clip", clip_launch, clip_scratch},
    {OP_RESCALE, "rescale", rescale_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
