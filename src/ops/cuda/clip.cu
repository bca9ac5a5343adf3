/* The length of the gradient, and what it is multiplied by. */
#include "ops/cuda/items.cuh"

/* ---- sums of squares: each block leaves one number, and one block per tensor sums those ---- */

enum { SQUARES_CHUNK = 32 * THREADS, SQUARES_BLOCKS = 1024, SQUARES_AHEAD = 4 };    /* fewest elements of a block; most blocks of a tensor */

struct squares {
    const float *x;
    int64_t n;
    unsigned first, blocks;
};

static unsigned squares_blocks(int64_t n) { return (unsigned)at_least(1, at_most(divide_up(n, SQUARES_CHUNK), SQUARES_BLOCKS)); }

/* Four squares are summed in f32, what they come to in f64. */
static __global__ void __launch_bounds__(THREADS) squares_parts(double *parts, const __grid_constant__ struct items<struct squares> all)
{
    const struct squares &a = item_of_block(all);
    const float4 *x = (const float4 *)a.x;
    const int64_t n = (uintptr_t)x % sizeof *x == 0 ? a.n / 4 : 0, step = (int64_t)a.blocks * THREADS;
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
    for (int64_t i = 4 * n + start; i < a.n; i += step)
        sum += (double)(a.x[i] * a.x[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

static __global__ void squares_totals(float *to, const double *parts, const __grid_constant__ struct items<struct squares> all)
{
    const struct squares &a = all.item[blockIdx.x];
    double sum = 0;
    EACH_OF_BLOCK(i, a.blocks)
        sum += parts[a.first + i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        to[blockIdx.x] = (float)sum;
}

static void sum_squares_launch(const struct cuda_call *c)
{
    for (int at = 0; at < c->op->n_in;) {
        struct items<struct squares> all;
        unsigned blocks = 0;
        const int first = at;
        for (all.n = 0; at < c->op->n_in && all.n < all.MOST; at++, all.n++) {
            const int64_t n = in_count(c, at);
            all.item[all.n] = {in_floats(c, at), n, blocks, squares_blocks(n)};
            blocks += squares_blocks(n);
        }
        squares_parts<<<blocks, THREADS, 0, c->stream>>>((double *)c->scratch, all);
        squares_totals<<<(unsigned)all.n, THREADS, 0, c->stream>>>(out_floats(c, 0) + first, (const double *)c->scratch, all);
    }
}

static size_t sum_squares_scratch(const struct program *p, const struct op *op)
{
    size_t blocks = 0;              /* of all, though those of one launch alone are needed at once */
    for (int i = 0; i < op->n_in; i++)
        blocks += squares_blocks(shape_count(p->values[op->in[i]].shape));
    return blocks * sizeof(double);
}

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
static __global__ void clip(const struct clipping a, bool begins, bool ends, const __grid_constant__ struct items<struct sums> all)
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
    for (int at = first; at < c->op->n_in;) {
        struct items<struct sums> all;
        const bool begins = at == first;
        for (all.n = 0; at < c->op->n_in && all.n < all.MOST; at++, all.n++)
            all.item[all.n] = {in_floats(c, at), in_count(c, at)};
        clip<<<1, THREADS, 0, c->stream>>>(a, begins, at == c->op->n_in, all);
    }
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
