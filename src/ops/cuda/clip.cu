/* The length of the gradient, and what it is multiplied by. */
#include "ops/cuda/items.cuh"

struct sums {
    const float *x;
    int64_t n;
    int64_t first;                  /* numbers before it */
};

struct clipping {
    float *norm, *factor;
    const float *loss, *scale;      /* scale: what the gradients are multiplied by; NULL: 1 */
    double *sums;                   /* (THREADS), from launch to launch */
    float max_norm;
};

/* Thread t adds up numbers t, t + THREADS... of all, however many of them each value has: the bits are the same. `single`: each has one. */
template <int BYTES> static __device__ double sum_of_thread(double sum, bool single, const struct items<struct sums, BYTES> &all)
{
    const int start = single ? (int)((threadIdx.x + THREADS - all.item[0].first % THREADS) % THREADS) : 0, step = single ? THREADS : 1;
    for (int i = start; i < all.n; i += step) {
        const struct sums &s = all.item[i];
        for (int64_t k = single ? 0 : (threadIdx.x + THREADS - s.first % THREADS) % THREADS; k < s.n; k += THREADS)
            sum += s.x[k];
    }
    return sum;
}

/* The last launch makes norm and factor. One block. */
template <int BYTES>
static __global__ void clip(const struct clipping a, bool begins, bool ends, bool single, const __grid_constant__ struct items<struct sums, BYTES> all)
{
    const double mine = sum_of_thread(begins ? 0 : a.sums[threadIdx.x], single, all);
    if (!ends) {
        a.sums[threadIdx.x] = mine;
        return;
    }
    const double sum = block_sum(mine);
    if (threadIdx.x != 0)
        return;
    const float scale = a.scale ? *a.scale : 1, length = (float)(sqrt(sum) / scale);
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
        int64_t before = 0;
        for (int at = first; at < c->op->n_in;) {
            const bool begins = at == first;
            bool single = true;
            for (all.n = 0; at < c->op->n_in && all.n < all.MOST; at++, all.n++) {
                all.item[all.n] = {in_floats(c, at), in_count(c, at), before};
                single &= in_count(c, at) == 1;
                before += in_count(c, at);
            }
            clip<<<1, THREADS, 0, c->stream>>>(a, begins, at == c->op->n_in, single, all);
        }
    });
}

static size_t clip_scratch(const struct program *, const struct op *) { return THREADS * sizeof(double); }

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
    {OP_CLIP, "clip", clip_launch, clip_scratch},
    {OP_RESCALE, "rescale", rescale_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
