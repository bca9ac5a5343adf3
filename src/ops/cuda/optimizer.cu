/* Counters, learning rate, clipping, AdamW, metrics. Ops over many tensors pass their addresses as parameters of kernels, as many at once
 * as fit, so that nothing has to be copied to the GPU. */
#include "ops/cuda/device.cuh"

enum { PARAMETER_BYTES = 4000 };    /* a kernel takes 4096 */

static __global__ void advance(uint32_t *counter) { ++*counter; }      /* unsigned: it may wrap */
static void advance_launch(const struct cuda_call *c) { advance<<<1, 1, 0, c->stream>>>((uint32_t *)c->out[0]); }

/* ---- learning rate: as lr_at on a CPU ---- */

struct schedule {
    float lr, min_lr;
    int32_t kind;
    int64_t warmup, total;
};

static __global__ void learning_rate(float *to, const int32_t *at, struct schedule a)
{
    const int64_t step = *at;
    if (step <= a.warmup) {
        *to = (float)(a.lr * (double)step / (double)a.warmup);
    } else if (a.kind == 2 || a.total <= a.warmup) {
        *to = a.lr;
    } else {
        double x = (double)(step - a.warmup) / (double)(a.total - a.warmup);
        x = x > 1 ? 1 : x;
        const double part = a.kind == 0 ? 0.5 * (1 + cos(3.141592653589793 * x)) : 1 - x;
        *to = (float)(a.min_lr + (a.lr - a.min_lr) * part);
    }
}

static void lr_launch(const struct cuda_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    const struct schedule s = {a->lr, a->min_lr, a->schedule, a->warmup, a->total};
    learning_rate<<<1, 1, 0, c->stream>>>(out_floats(c, 0), (const int32_t *)c->in[0], s);
}

/* ---- tensors by the block: items with a first block each, in ascending order ---- */

template <class Item> struct items {
    enum { MOST = PARAMETER_BYTES / sizeof(Item) };
    int n;
    Item item[MOST];
};

/* The last item whose first block is not behind this one. */
template <class Item> static __device__ const Item &item_of_block(const struct items<Item> &all)
{
    int low = 0, high = all.n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (all.item[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    return all.item[low];
}

/* ---- sums of squares: each block leaves one number, and one block per tensor sums those ---- */

enum { SQUARES_CHUNK = 32 * THREADS, SQUARES_BLOCKS = 1024 };       /* fewest elements of a block; most blocks of a tensor */

struct squares {
    const float *x;
    int64_t n;
    unsigned first, blocks;
};

static unsigned squares_blocks(int64_t n) { return (unsigned)at_least(1, at_most(divide_up(n, SQUARES_CHUNK), SQUARES_BLOCKS)); }

static __global__ void squares_parts(double *parts, const __grid_constant__ struct items<struct squares> all)
{
    const struct squares &a = item_of_block(all);
    double sum = 0;
    for (int64_t i = (int64_t)(blockIdx.x - a.first) * THREADS + threadIdx.x; i < a.n; i += (int64_t)a.blocks * THREADS)
        sum += (double)a.x[i] * a.x[i];
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

/* Adds these sums to *sum, which the first launch starts; the last one makes norm and factor of it. One block; a warp takes a tensor. */
static __global__ void clip(float *norm, float *factor, const float *loss, double *sum, float max_norm, bool begins, bool ends,
                            const __grid_constant__ struct items<struct sums> all)
{
    double part = 0;
    for (int i = threadIdx.x / WARP; i < all.n; i += THREADS / WARP)
        for (int64_t k = threadIdx.x % WARP; k < all.item[i].n; k += WARP)
            part += all.item[i].x[k];
    part = block_sum(part);
    if (threadIdx.x != 0)
        return;
    *sum = begins ? part : *sum + part;
    if (!ends)
        return;
    const float length = (float)sqrt(*sum);
    *norm = length;
    *factor = max_norm > 0 && length > max_norm ? max_norm / (length + 1e-6f) : 1;
    if (!isfinite(length) || !isfinite(*loss))
        *factor = NAN;
}

static void clip_launch(const struct cuda_call *c)
{
    for (int at = 1; at < c->op->n_in;) {
        struct items<struct sums> all;
        const bool begins = at == 1;
        for (all.n = 0; at < c->op->n_in && all.n < all.MOST; at++, all.n++)
            all.item[all.n] = {in_floats(c, at), in_count(c, at)};
        clip<<<1, THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), in_floats(c, 0), (double *)c->scratch,
                                           c->op->attrs.max_norm, begins, at == c->op->n_in, all);
    }
}

static size_t clip_scratch(const struct program *, const struct op *) { return sizeof(double); }

/* ---- AdamW: p -= lr wd p; p -= lr m^ / (sqrt(v^) + eps) ---- */

enum { ADAMW_CHUNK = 8 * THREADS };         /* elements of a block */

struct tensor {
    float *p, *m, *v;
    const float *grad;
    int64_t n;
    unsigned first;
};

struct adamw {
    const float *lr, *factor;
    const int32_t *step;
    float beta1, beta2, eps, decay;
};

/* 1 / (1 - beta^step): what the moments, which start at zero, are multiplied by. */
static __device__ float correction(float beta, int32_t step) { return (float)(1 / (1 - pow((double)beta, (double)step))); }

static __global__ void adamw_kernel(struct adamw a, const __grid_constant__ struct items<struct tensor> all)
{
    __shared__ float correct1, correct2;
    const float factor = *a.factor, lr = *a.lr;
    if (isnan(factor))
        return;                     /* this step's gradient is not finite: change nothing */
    if (threadIdx.x == 0) {
        correct1 = correction(a.beta1, *a.step);
        correct2 = correction(a.beta2, *a.step);
    }
    __syncthreads();
    const struct tensor &t = item_of_block(all);
    const int64_t start = (int64_t)(blockIdx.x - t.first) * ADAMW_CHUNK, end = start + ADAMW_CHUNK < t.n ? start + ADAMW_CHUNK : t.n;
    const float rest1 = (float)(1 - (double)a.beta1), rest2 = (float)(1 - (double)a.beta2);
    for (int64_t i = start + threadIdx.x; i < end; i += THREADS) {
        const float g = t.grad[i] * factor, p = t.p[i];
        const float m = a.beta1 * t.m[i] + rest1 * g, v = a.beta2 * t.v[i] + rest2 * g * g;
        t.m[i] = m;
        t.v[i] = v;
        t.p[i] = p - lr * (a.decay * p + m * correct1 / (sqrtf(v * correct2) + a.eps));
    }
}

/* OP_ADAMW has one tensor, OP_ADAMW_ALL attrs.parts of them; lr, step and factor follow the gradients. */
static void adamw_launch(const struct cuda_call *c)
{
    const struct op_attrs *o = &c->op->attrs;
    const int parts = c->op->kind == OP_ADAMW ? 1 : o->parts;
    const struct adamw a = {in_floats(c, 4 * parts), in_floats(c, 4 * parts + 2), (const int32_t *)c->in[4 * parts + 1],
                            o->beta1, o->beta2, o->eps, o->weight_decay};
    for (int at = 0; at < parts;) {
        struct items<struct tensor> all;
        unsigned blocks = 0;
        for (all.n = 0; at < parts && all.n < all.MOST; at++, all.n++) {
            all.item[all.n] = {out_floats(c, at), out_floats(c, parts + at), out_floats(c, 2 * parts + at), in_floats(c, 3 * parts + at),
                               in_count(c, at), blocks};
            blocks += (unsigned)divide_up(in_count(c, at), ADAMW_CHUNK);
        }
        adamw_kernel<<<blocks, THREADS, 0, c->stream>>>(a, all);
    }
}

/* ---- recent metrics: row step mod R of the ring (R, n) gets the scalars [first, first + scalars.n) ---- */

static __global__ void keep(float *ring, const uint32_t *step, int64_t rows, int64_t n, int64_t first,
                            const __grid_constant__ struct items<const float *> scalars)
{
    EACH(i, scalars.n)
        ring[*step % rows * n + first + i] = *scalars.item[i];
}

static void keep_launch(const struct cuda_call *c)
{
    const struct shape ring = cuda_in(c, 0)->shape;
    for (int at = 2; at < c->op->n_in;) {
        struct items<const float *> scalars;
        const int64_t first = at - 2;
        for (scalars.n = 0; at < c->op->n_in && scalars.n < scalars.MOST; at++, scalars.n++)
            scalars.item[scalars.n] = in_floats(c, at);
        keep<<<1, THREADS, 0, c->stream>>>(out_floats(c, 0), (const uint32_t *)c->in[1], ring.dim[0], ring.dim[1], first, scalars);
    }
}

const struct cuda_kernel cuda_optimizer[] = {
    {OP_ADVANCE, "advance", advance_launch, NULL},
    {OP_LR, "lr", lr_launch, NULL},
    {OP_SUM_SQUARES, "sum_squares", sum_squares_launch, sum_squares_scratch},
    {OP_CLIP, "clip", clip_launch, clip_scratch},
    {OP_ADAMW, "adamw", adamw_launch, NULL},
    {OP_ADAMW_ALL, "adamw", adamw_launch, NULL},
    {OP_KEEP, "keep", keep_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
