/* Counters, learning rate, AdamW, metrics. */
#include "ops/cuda/items.cuh"
#include "ops/cuda/types.cuh"

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

/* ---- AdamW: p -= lr wd p; p -= lr m^ / (sqrt(v^) + eps) ---- */

enum { ADAMW_AHEAD = 2, ADAMW_CHUNK = 4 * ADAMW_AHEAD * THREADS };      /* fours of a thread; elements of a block */

struct tensor {
    float *p, *m, *v;
    const float *grad;
    void *copy;                     /* narrow; NULL: there is none */
    int64_t n;
    unsigned first;
    int32_t group;                  /* that it is selected with; -1: it is always updated */
};

struct adamw {
    const float *lr, *factor;
    const int32_t *step;
    const float *mask;              /* of groups, and how often each was updated */
    const int32_t *updates;
    float beta1, beta2, eps, decay;
    float log1, log2;               /* of the betas */
};

/* What all elements share; correct: 1 / (1 - beta^step), what the moments, which start at zero, are multiplied by. */
struct adamw_step { float lr, factor, correct1, correct2, rest1, rest2; };

static __device__ inline float correction(float log_beta, int32_t step) { return -1 / expm1f(__fmul_rn((float)step, log_beta)); }

/* Every rounding is said: where the compiler chooses which products to fuse with a sum, it does so anew in each kernel and for each number of a thread, and
 * weights would hang on whether they have a copy, on who else is updated beside them, and on how ranks divide them. */
static __device__ inline float adamw_one(const struct adamw &a, const struct adamw_step &s, float p, float &m, float &v, float grad)
{
    const float g = __fmul_rn(grad, s.factor);
    m = __fmaf_rn(a.beta1, m, __fmul_rn(s.rest1, g));
    v = __fmaf_rn(__fmul_rn(s.rest2, g), g, __fmul_rn(a.beta2, v));
    const float change = __fdiv_rn(__fmul_rn(m, s.correct1), __fadd_rn(__fsqrt_rn(__fmul_rn(v, s.correct2)), a.eps));
    return __fmaf_rn(-s.lr, __fmaf_rn(a.decay, p, change), p);
}

/* Four elements of a tensor, read and written as 16 bytes each. */
struct adamw_four { float p[4], m[4], v[4], g[4]; };

static __device__ inline void load_four(struct adamw_four &x, const struct tensor &t, int64_t i)
{
    load_pack<4>(x.p, t.p + i);
    load_pack<4>(x.m, t.m + i);
    load_pack<4>(x.v, t.v + i);
    load_pack<4>(x.g, t.grad + i);
}

template <typename C> static __device__ inline void update_four(struct adamw_four &x, const struct tensor &t, int64_t i,
                                                                const struct adamw &a, const struct adamw_step &s)
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        x.p[k] = adamw_one(a, s, x.p[k], x.m[k], x.v[k], x.g[k]);
    store_pack<4>(t.p + i, x.p);
    store_pack<4>(t.m + i, x.m);
    store_pack<4>(t.v + i, x.v);
    if (t.copy)
        store_pack<4>((C *)t.copy + i, x.p);
}

template <typename C> static __device__ inline void update_one(const struct tensor &t, int64_t i, const struct adamw &a,
                                                               const struct adamw_step &s)
{
    float m = t.m[i], v = t.v[i];
    const float p = adamw_one(a, s, t.p[i], m, v, t.grad[i]);
    t.p[i] = p;
    t.m[i] = m;
    t.v[i] = v;
    if (t.copy)
        ((C *)t.copy)[i] = from_float<C>(p);
}

/* C: the type of copies. */
template <typename C, int BYTES>
static __global__ void __launch_bounds__(THREADS) adamw_kernel(const struct adamw a, const __grid_constant__ struct items<struct tensor, BYTES> all)
{
    const struct tensor &t = item_of_block(all);
    const float mask = t.group < 0 ? 1 : a.mask[t.group];
    if (mask == 0)
        return;                     /* not selected: not even read */
    const int64_t start = (int64_t)(blockIdx.x - t.first) * ADAMW_CHUNK, end = start + ADAMW_CHUNK < t.n ? start + ADAMW_CHUNK : t.n;
    const bool aligned = ((uintptr_t)t.p | (uintptr_t)t.m | (uintptr_t)t.v | (uintptr_t)t.grad | (uintptr_t)t.copy) % 16 == 0;
    const int64_t fours = aligned ? start + (end - start) / 4 * 4 : start, first = start + 4 * threadIdx.x;
    struct adamw_four x[ADAMW_AHEAD];
#pragma unroll
    for (int k = 0; k < ADAMW_AHEAD; k++)
        if (first + 4 * k * THREADS < fours)
            load_four(x[k], t, first + 4 * k * THREADS);
    const float factor = *a.factor;
    if (isnan(factor))
        return;                     /* this step's gradient is not finite: change nothing */
    const int32_t step = t.group < 0 ? *a.step : a.updates[t.group];
    const struct adamw_step s = {__fmul_rn(*a.lr, mask), factor, correction(a.log1, step), correction(a.log2, step),
                                 (float)(1 - (double)a.beta1), (float)(1 - (double)a.beta2)};
#pragma unroll
    for (int k = 0; k < ADAMW_AHEAD; k++)
        if (first + 4 * k * THREADS < fours)
            update_four<C>(x[k], t, first + 4 * k * THREADS, a, s);
    for (int64_t i = fours + threadIdx.x; i < end; i += THREADS)
        update_one<C>(t, i, a, s);
}

/* OP_ADAMW has one tensor, OP_ADAMW_ALL attrs.parts of them; the first attrs.copies have a copy. Inputs: parameters, moments, copies,
 * gradients, lr, step, factor, and where groups are selected, the mask and the counts of their updates. */
static struct tensor tensor_of(const struct cuda_call *c, int at, int parts, unsigned first)
{
    const int copies = c->op->attrs.copies;
    const struct value_slice *slice = cuda_in(c, parts + at)->slice;        /* of the parameter, that this rank updates; NULL: all of it */
    return {out_floats(c, at) + (slice ? slice->first : 0), out_floats(c, parts + at), out_floats(c, 2 * parts + at),
            in_floats(c, 3 * parts + copies + at), at < copies ? c->out[3 * parts + at] : NULL, in_count(c, parts + at), first,
            c->op->attrs.masked ? cuda_in(c, at)->group : -1};
}

static void adamw_launch(const struct cuda_call *c)
{
    const struct op_attrs *o = &c->op->attrs;
    const int parts = op_update_tensors(c->op), scalars = op_update_scalars(c->op);
    const struct adamw a = {in_floats(c, scalars), in_floats(c, scalars + 2), (const int32_t *)c->in[scalars + 1],
                            o->masked ? in_floats(c, scalars + 3) : NULL, o->masked ? (const int32_t *)c->in[scalars + 4] : NULL,
                            o->beta1, o->beta2, o->eps, o->weight_decay, (float)log((double)o->beta1), (float)log((double)o->beta2)};
    const enum dtype copy = o->copies > 0 ? cuda_in(c, 3 * parts)->dtype : F32;
    with_items<struct tensor>(parts, [&](auto all) {
        for (int at = 0; at < parts;) {
            unsigned blocks = 0;
            for (all.n = 0; at < parts && all.n < all.MOST; at++, all.n++) {
                all.item[all.n] = tensor_of(c, at, parts, blocks);
                blocks += (unsigned)divide_up(in_count(c, parts + at), ADAMW_CHUNK);
            }
            with_type(copy, [&](auto zero) { adamw_kernel<decltype(zero)><<<blocks, THREADS, 0, c->stream>>>(a, all); });
        }
    });
}

/* ---- recent metrics: row step mod R of the ring (R, n) gets the numbers of these values, from the row's place `from` on ---- */

struct kept {
    const float *x;
    unsigned first;                 /* in the row */
};

template <int BYTES> static __global__ void keep(float *ring, const uint32_t *step, int64_t rows, int64_t n, unsigned from, unsigned to,
                                                 const __grid_constant__ struct items<struct kept, BYTES> values)
{
    EACH(i, to - from) {
        const unsigned at = from + (unsigned)i;
        const struct kept &v = item_at(values, at);
        ring[*step % rows * n + at] = v.x[at - v.first];
    }
}

static void keep_launch(const struct cuda_call *c)
{
    const struct shape ring = cuda_in(c, 0)->shape;
    with_items<struct kept>(c->op->n_in - 2, [&](auto values) {
        unsigned end = 0;
        for (int at = 2; at < c->op->n_in;) {
            const unsigned from = end;
            for (values.n = 0; at < c->op->n_in && values.n < values.MOST; at++, values.n++) {
                values.item[values.n] = {in_floats(c, at), end};
                end += (unsigned)in_count(c, at);
            }
            keep<<<1, THREADS, 0, c->stream>>>(out_floats(c, 0), (const uint32_t *)c->in[1], ring.dim[0], ring.dim[1], from, end, values);
        }
    });
}

const struct cuda_kernel cuda_optimizer[] = {
    {OP_ADVANCE, "advance", advance_launch, NULL},
    {OP_LR, "lr", lr_launch, NULL},
    {OP_ADAMW, "adamw", adamw_launch, NULL},
    {OP_ADAMW_ALL, "adamw", adamw_launch, NULL},
    {OP_KEEP, "keep", keep_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
