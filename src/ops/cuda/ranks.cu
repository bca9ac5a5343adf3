/* Sums over shards and ranks. They are those of a CPU (src/ops/cpu/ranks.c), bit for bit, wherever a part of the sum is made: a product is
 * rounded, then added, and numbers too small for their full precision are zero.
 *
 * A gradient may lie in its bucket already (src/passes/buckets.c): then nothing is copied, and without a weight or a total nothing is
 * launched. */
#include "ops/cuda/items.cuh"
#include "ops/cuda/reductions.h"
#include "ops/cuda/types.cuh"

static __device__ inline float times(float a, float b)
{
    float y;
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

static __device__ inline float plus(float a, float b)
{
    float y;
    asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

/* ---- over the shards of this rank ---- */

enum { LEVELS_MOST = 32 };

struct levels {
    float *sum[LEVELS_MOST];
    int n;
    int64_t each;                   /* micro-batches of a shard */
    const int32_t *batch;           /* from 1 */
    const float *weight;            /* NULL: 1 */
};

/* N elements from `at` on. A shard that is done meets those before it, as carries do when one is added to a number. */
template <int N> static __device__ inline void sum_part(const struct levels &l, const float *x, int64_t at)
{
    const int64_t micro = *l.batch - 1, shard = micro / l.each, within = micro - shard * l.each;
    const float weight = l.weight ? *l.weight : 1;
    float v[N], more[N];
    load_pack<N>(v, x + at);
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = times(v[i], weight);
    if (within > 0) {
        load_pack<N>(more, l.sum[0] + at);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = plus(more[i], v[i]);
    }
    if (within == l.each - 1) {
        int level = 1;
        for (int64_t left = shard; (left & 1) && level < l.n; left >>= 1, level++) {
            load_pack<N>(more, l.sum[level] + at);
#pragma unroll
            for (int i = 0; i < N; i++)
                v[i] = plus(v[i], more[i]);
        }
        if (level < l.n)
            store_pack<N>(l.sum[level] + at, v);
    }
    store_pack<N>(l.sum[0] + at, v);
}

static __global__ void sum_shards(const __grid_constant__ struct levels l, const float *x, int64_t n, int64_t packs)
{
    EACH(i, packs)
        sum_part<4>(l, x, 4 * i);
    EACH(i, n - 4 * packs)
        sum_part<1>(l, x, 4 * packs + i);
}

static void sum_shards_launch(const struct cuda_call *c)
{
    struct levels l = {};
    l.n = c->op->attrs.parts;
    l.each = c->op->attrs.total;
    l.batch = (const int32_t *)c->in[l.n];
    l.weight = c->op->n_in > l.n + 2 ? in_floats(c, l.n + 2) : NULL;
    if (l.n > LEVELS_MOST) {
        refuse(c);
        return;
    }
    bool wide = is_aligned(c->in[l.n + 1], 16);
    for (int i = 0; i < l.n; i++) {
        l.sum[i] = out_floats(c, i);
        wide &= is_aligned(l.sum[i], 16);
    }
    const int64_t n = in_count(c, l.n + 1), packs = wide ? n / 4 : 0;
    sum_shards<<<blocks_for(wide ? packs : n), THREADS, 0, c->stream>>>(l, in_floats(c, l.n + 1), n, packs);
}

/* ---- into buckets, and out of them ---- */

enum { AHEAD = 2, CHUNK = 4 * AHEAD * THREADS };        /* elements of a block */

struct part {
    float *to;
    const float *from;
    int64_t n;
    unsigned first;
};

struct weighted {                   /* NULL: as they are */
    const float *by;
    __device__ inline float weight() const { return by ? *by : 1; }
    __device__ inline float of(float x, float w) const { return by ? times(x, w) : x; }
};

struct divided {
    const float *by;
    __device__ inline float weight() const { return by ? *by : 1; }
    __device__ inline float of(float x, float w) const { return by ? x / w : x; }         /* as OP_DIVIDE does it */
};

template <class F, int BYTES>
static __global__ void __launch_bounds__(THREADS) move_parts(const F f, const __grid_constant__ struct items<struct part, BYTES> all)
{
    const struct part &p = item_of_block(all);
    const int64_t start = (int64_t)(blockIdx.x - p.first) * CHUNK, end = start + CHUNK < p.n ? start + CHUNK : p.n;
    const bool wide = ((uintptr_t)p.to | (uintptr_t)p.from) % 16 == 0;
    const int64_t fours = wide ? start + (end - start) / 4 * 4 : start;
    const float by = f.weight();
    for (int64_t i = start + 4 * threadIdx.x; i < fours; i += 4 * THREADS) {
        float v[4];
        load_pack<4>(v, p.from + i);
#pragma unroll
        for (int k = 0; k < 4; k++)
            v[k] = f.of(v[k], by);
        store_pack<4>(p.to + i, v);
    }
    for (int64_t i = fours + threadIdx.x; i < end; i += THREADS)
        p.to[i] = f.of(p.from[i], by);
}

/* What stays where it is and as it is needs no launch. part_of(i) tells where part i goes. */
template <class F, class Part> static void launch_parts(const struct cuda_call *c, const F &f, int n, const Part &part_of)
{
    with_items<struct part>(n, [&](auto all) {
        for (int i = 0; i < n;) {
            unsigned blocks = 0;
            for (all.n = 0; i < n && all.n < all.MOST; i++) {
                struct part p = part_of(i);
                if (p.to == p.from && !f.by)
                    continue;
                p.first = blocks;
                blocks += (unsigned)divide_up(p.n, CHUNK);
                all.item[all.n++] = p;
            }
            if (blocks)
                move_parts<F><<<blocks, THREADS, 0, c->stream>>>(f, all);
        }
    });
}

static void reduce_start_launch(const struct cuda_call *c)
{
    const int n = c->op->attrs.parts;
    int64_t at = 0;
    launch_parts(c, weighted{c->op->n_in > n ? in_floats(c, n) : NULL}, n, [&](int i) {
        const struct part p = {out_floats(c, 0) + at, in_floats(c, i), in_count(c, i), 0};
        at += p.n;
        return p;
    });
    cuda_reduction_start(c);
}

static void reduce_wait_launch(const struct cuda_call *c)
{
    const int n = c->op->attrs.parts, first = c->op->n_in - n;
    int64_t at = c->op->attrs.first;                    /* of a slice */
    cuda_reduction_wait(c);
    launch_parts(c, divided{first > 1 ? in_floats(c, 1) : NULL}, n, [&](int i) {
        const struct part p = {out_floats(c, i), in_floats(c, 0) + at, out_count(c, i), 0};
        at += p.n;
        return p;
    });
}

bool cuda_reduction_is_free(const struct cuda_call *c)
{
    const bool starts = c->op->kind == OP_REDUCE_START;
    const int n = c->op->attrs.parts;
    bool stays = c->op->n_in == (starts ? n : n + 1);
    int64_t at = starts ? 0 : c->op->attrs.first;
    for (int i = 0; i < n && stays; at += starts ? in_count(c, i) : out_count(c, i), i++)
        stays = starts ? in_floats(c, i) == out_floats(c, 0) + at : out_floats(c, i) == in_floats(c, 0) + at;
    return stays;
}

/* ---- slices of weights ---- */

struct gathered {
    float *to;
    const float *from;              /* on the host; NULL: nothing comes from there */
    void *copy;                     /* narrow; NULL: there is none */
    int64_t n, lo, hi;              /* [lo, hi) is this rank's own */
    unsigned first;
};

/* What others have sent goes to its place, and copies are made of all. */
template <typename C, int BYTES>
static __global__ void __launch_bounds__(THREADS) take_slices(const int32_t *arrived, const __grid_constant__ struct items<struct gathered, BYTES> all)
{
    const struct gathered &g = item_of_block(all);
    const int64_t start = (int64_t)(blockIdx.x - g.first) * CHUNK, end = start + CHUNK < g.n ? start + CHUNK : g.n;
    if (arrived && !*arrived)
        return;
    for (int64_t i = start + threadIdx.x; i < end; i += THREADS) {
        const bool theirs = g.from && (i < g.lo || i >= g.hi);
        const float x = theirs ? g.from[i] : g.to[i];
        if (theirs)
            g.to[i] = x;
        if (g.copy)
            ((C *)g.copy)[i] = from_float<C>(x);
    }
}

static void *copy_of(const struct cuda_call *c, int i)
{
    const struct op_attrs *a = &c->op->attrs;
    for (int k = 0; k < a->copies; k++)
        if (a->members[k].unit == i)
            return c->out[a->parts + k];
    return NULL;
}

static void gather_start_launch(const struct cuda_call *c) { cuda_gather_start(c); }

static void gather_wait_launch(const struct cuda_call *c)
{
    const int n = c->op->attrs.parts;
    const int32_t *arrived = cuda_gather_wait(c);
    const enum dtype copy = c->op->attrs.copies ? cuda_in(c, n)->dtype : F32;
    with_items<struct gathered>(n, [&](auto all) {
        for (int at = 0; at < n;) {
            unsigned blocks = 0;
            for (all.n = 0; at < n && all.n < all.MOST; at++) {
                const struct cuda_arrival a = cuda_arrival_of(c, at);
                const struct gathered g = {out_floats(c, at), a.host, copy_of(c, at), in_count(c, at), a.own.first, a.own.first + a.own.n, blocks};
                if (!g.from && !g.copy)
                    continue;
                all.item[all.n++] = g;
                blocks += (unsigned)divide_up(g.n, CHUNK);
            }
            if (blocks)
                with_type(copy, [&](auto zero) { take_slices<decltype(zero)><<<blocks, THREADS, 0, c->stream>>>(arrived, all); });
        }
    });
}

const struct cuda_kernel cuda_ranks[] = {
    {OP_SUM_SHARDS, "sum_shards", sum_shards_launch, NULL},
    {OP_REDUCE_START, "reduce_start", reduce_start_launch, NULL},
    {OP_REDUCE_WAIT, "reduce_wait", reduce_wait_launch, NULL},
    {OP_GATHER_START, "gather_start", gather_start_launch, NULL},
    {OP_GATHER_WAIT, "gather_wait", gather_wait_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
