/* The loss of a linear head, x (rows, depth) and w (vocab, depth), whose logits are made, used and overwritten a chunk of rows at a time. They
 * are of the type of the operands; their gradient takes their place. */
#include <cuda_pipeline.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/products.h"
#include "ops/cuda/types.cuh"

struct head {
    int64_t rows, depth, vocab;
    int64_t stride;                 /* from a row of logits to the next: each is 16-byte aligned */
    int64_t chunk;                  /* rows whose logits there are at once */
    enum dtype operands, dx;
    bool gradients, tf32;
};

/* Large chunks make large products. But where the rows of x are short, moving logits takes longer than multiplying, and chunks are so
 * small that they stay in the L2 cache. */
enum { CHUNK_UNIT = 128, SHORT = 256 };
static const int64_t LOGITS_BYTES = 1 << 30, CACHED_BYTES = 24 << 20;

static int64_t rows_at_once(int64_t rows, int64_t row_bytes, int64_t depth)
{
    const int64_t fit = at_least(1, (depth <= SHORT ? CACHED_BYTES : LOGITS_BYTES) / row_bytes / CHUNK_UNIT) * CHUNK_UNIT;
    const int64_t even = divide_up(divide_up(rows, divide_up(rows, fit)), CHUNK_UNIT) * CHUNK_UNIT;
    return at_most(even, rows);
}

static struct head head_of(const struct program *p, const struct op *op)
{
    const struct value *x = &p->values[op->in[0]], *w = &p->values[op->in[1]];
    const int64_t size = (int64_t)dtype_size(x->dtype), pack = 16 / size;
    struct head h = {};
    h.rows = shape_rows(x->shape);
    h.depth = shape_last(x->shape);
    h.vocab = w->shape.dim[0];
    h.stride = divide_up(h.vocab, pack) * pack;
    h.chunk = rows_at_once(h.rows, h.stride * size, h.depth);
    h.operands = x->dtype;
    h.gradients = op->attrs.parts == 4;
    h.dx = h.gradients ? p->values[op->out[2]].dtype : F32;
    h.tf32 = op->attrs.round == ROUND_TF32;
    return h;
}

/* ---- the products of a chunk, and of the shorter one at the end where there is one ---- */

enum { LOGITS, DX, DW, CHUNK_PRODUCTS };

static void chunk_products(struct product out[CHUNK_PRODUCTS], const struct head *h, int64_t rows)
{
    struct product p = {};
    p.operands = p.result = h->operands;
    p.tf32 = h->tf32;
    p.m = rows, p.n = h->vocab, p.k = h->depth;
    p.trans_b = true;
    p.y_stride = h->stride;
    out[LOGITS] = p;
    p.n = h->depth, p.k = h->vocab;
    p.trans_b = false;
    p.a_stride = h->stride, p.y_stride = 0;
    p.result = h->operands == F32 ? F32 : h->dx;
    out[DX] = p;
    p.m = h->vocab, p.k = rows;
    p.trans_a = true;
    p.result = F32;
    out[DW] = p;
}

int cuda_loss_products(struct product *out, const struct program *p, const struct op *op)
{
    const struct head h = head_of(p, op);
    const int64_t rest = h.rows % h.chunk;
    chunk_products(out, &h, h.chunk);
    if (rest)
        chunk_products(out + CHUNK_PRODUCTS, &h, rest);
    return rest ? 2 * CHUNK_PRODUCTS : CHUNK_PRODUCTS;
}

/* ---- the scratch of a call, cut into parts ---- */

struct head_room {
    void *logits;                   /* (chunk, stride) */
    void *x;                        /* (chunk, depth), padding as zeros */
    float *dx;                      /* (chunk, depth) in f32, where narrow ones cannot be had of the operands; else NULL */
    float *losses, *count;          /* (rows), one */
    size_t bytes;
};

static void *cut(struct head_room *r, void *scratch, int64_t n, size_t size)
{
    void *at = (char *)scratch + r->bytes;
    r->bytes += aligned((size_t)n * size);
    return at;
}

static struct head_room head_room(const struct head *h, void *scratch)
{
    struct head_room r = {};
    const size_t size = dtype_size(h->operands);
    r.logits = cut(&r, scratch, h->chunk * h->stride, size);
    r.x = cut(&r, scratch, h->gradients ? h->chunk * h->depth : 0, size);
    r.dx = h->operands == F32 && h->dx != F32 ? (float *)cut(&r, scratch, h->chunk * h->depth, sizeof(float)) : NULL;
    r.losses = (float *)cut(&r, scratch, h->rows, sizeof(float));
    r.count = (float *)cut(&r, scratch, 1, sizeof(float));
    return r;
}

static size_t linear_loss_scratch(const struct program *p, const struct op *op)
{
    const struct head h = head_of(p, op);
    return head_room(&h, NULL).bytes;
}

/* ---- kernels ---- */

enum { SUM_THREADS = 1024 };        /* of the one block that sums over all rows */
enum { COUNTED_ROWS = 2048 };       /* up to so many targets every block counts by itself */

static __device__ inline float known_targets(const int32_t *targets, int64_t rows)
{
    int known = 0;
    EACH_OF_BLOCK(row, rows)
        known += targets[row] >= 0;
    return (float)block_sum(known);
}

static __global__ void count_targets(float *count, const int32_t *targets, int64_t rows)
{
    const float known = known_targets(targets, rows);
    if (threadIdx.x == 0)
        *count = known;
}

static __global__ void mean_loss(float *loss, float *count, const float *losses, const int32_t *targets, int64_t rows)
{
    double sum = 0;
    EACH_OF_BLOCK(row, rows)
        sum += losses[row];
    sum = block_sum(sum);
    const float known = known_targets(targets, rows);
    if (threadIdx.x == 0) {
        *loss = (float)(sum / (known > 0 ? known : 1));
        *count = known;
    }
}

template <typename T> static __global__ void narrow(T *to, const float *from, int64_t n)
{
    EACH(i, n)
        to[i] = from_float<T>(from[i]);
}

/* Where results are narrow the last bits do not count. */
template <typename T> static __device__ inline float exp_for(float x) { return sizeof(T) == sizeof(float) ? expf(x) : __expf(x); }

template <typename T> struct chunk {
    T *z;                           /* (rows, stride): logits, then their gradient */
    T *kept;                        /* (rows, depth): x for its product with that, padding as zeros. NULL: no gradients */
    const T *x;
    float *losses;
    const int32_t *targets, *all_targets;
    const float *count, *scale;     /* of known targets in all rows, NULL: they are counted here; NULL: 1 */
    int64_t rows, vocab, stride, depth, all_rows;
    bool held;                      /* a row fits into shared memory */
};

/* N numbers of x at a time, or one where rows are not aligned for it. */
template <int N, typename T> static __device__ void keep_row(T *to, const T *x, int64_t depth, bool padding)
{
    EACH_OF_BLOCK(i, depth / N) {
        pack<T, N> p = {};
        if (!padding)
            p = ((const pack<T, N> *)x)[i];
        ((pack<T, N> *)to)[i] = p;
    }
}

/* The largest and then the sum of exponentials of a row of which this thread has every blockDim.x-th pack: from is z or a copy of it, of
 * which a thread reads only what it wrote. */
template <typename T> static __device__ void row_loss(const chunk<T> &c, T *z, const T *from, float *loss, int32_t target, float factor)
{
    constexpr int N = pack_size<T>();
    const int64_t packs = c.stride / N;
    const float at_target = to_float(z[target]);        /* before it is overwritten: everybody waits for the largest */
    float most = -INFINITY, sum = 0;
    EACH_OF_BLOCK(p, packs) {
        float v[N];
        load_pack<N>(v, from + p * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            most = fmaxf(most, p * N + i < c.vocab ? v[i] : -INFINITY);
    }
    most = block_max(most);
    EACH_OF_BLOCK(p, packs) {
        float v[N];
        load_pack<N>(v, from + p * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += p * N + i < c.vocab ? exp_for<T>(v[i] - most) : 0;
    }
    const float log_sum = logf(block_sum(sum));
    if (threadIdx.x == 0)
        *loss = log_sum + (most - at_target);
    if (!c.kept)
        return;
    EACH_OF_BLOCK(p, packs) {
        float v[N];
        load_pack<N>(v, from + p * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = p * N + i < c.vocab ? (exp_for<T>(v[i] - most - log_sum) - (p * N + i == target)) * factor : 0;
        store_pack<N>(z + p * N, v);
    }
}

template <typename T> static __device__ void zero_row(T *z, int64_t packs)
{
    const float zeros[pack_size<T>()] = {};
    EACH_OF_BLOCK(p, packs)
        store_pack<pack_size<T>()>(z + p * pack_size<T>(), zeros);
}

/* Every thread copies the packs that it reads. */
template <typename T> static __device__ void copy_row(T *to, const T *z, int64_t packs)
{
    constexpr int N = pack_size<T>();
    EACH_OF_BLOCK(p, packs)
        __pipeline_memcpy_async(to + p * N, z + p * N, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

/* Each row's loss, and dz = (softmax(z) - onehot) * scale / count over z. */
template <typename T> static __global__ void __launch_bounds__(1024, 2) loss_kernel(chunk<T> c)
{
    extern __shared__ uint4 room[];
    constexpr int N = pack_size<T>();
    const float count = c.count ? *c.count : known_targets(c.all_targets, c.all_rows), factor = (c.scale ? *c.scale : 1) / count;
    for (int64_t row = blockIdx.x; row < c.rows; row += gridDim.x) {
        T *z = c.z + row * c.stride;
        const int32_t target = c.targets[row];
        if (c.kept && c.depth % N == 0)
            keep_row<N>(c.kept + row * c.depth, c.x + row * c.depth, c.depth, target < 0);
        else if (c.kept)
            keep_row<1>(c.kept + row * c.depth, c.x + row * c.depth, c.depth, target < 0);
        if (target < 0) {
            if (c.kept)
                zero_row(z, c.stride / N);
            if (threadIdx.x == 0)
                c.losses[row] = 0;
            continue;
        }
        if (c.held)
            copy_row((T *)room, z, c.stride / N);
        row_loss(c, z, c.held ? (const T *)room : z, &c.losses[row], target, factor);
    }
}

/* ---- launches ---- */

/* Shared memory that a row takes, where as much can be had: two rows at once fill that of an H100. */
template <typename T> static size_t held_bytes(int64_t stride)
{
    enum { PLAIN = 48 << 10, MOST = 110 << 10 };
    const size_t bytes = (size_t)stride * sizeof(T);
    if (bytes > MOST)
        return 0;
    if (bytes > PLAIN && cudaFuncSetAttribute(loss_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return bytes;
}

static unsigned row_threads(int64_t packs)
{
    return (unsigned)at_most(divide_up(packs > 512 ? divide_up(packs, 4) : packs, WARP) * WARP, 1024);
}

template <typename T> static void loss_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first,
                                              int64_t rows)
{
    const size_t bytes = held_bytes<T>(h->stride);
    chunk<T> k = {};
    k.z = (T *)r->logits;
    k.kept = h->gradients ? (T *)r->x : (T *)NULL;
    k.x = (const T *)c->in[0] + first * h->depth;
    k.losses = r->losses + first;
    k.all_targets = (const int32_t *)c->in[2];
    k.targets = k.all_targets + first;
    k.count = h->rows > COUNTED_ROWS ? r->count : NULL;
    k.scale = c->op->n_in > 3 ? in_floats(c, 3) : NULL;
    k.rows = rows, k.vocab = h->vocab, k.stride = h->stride, k.depth = h->depth, k.all_rows = h->rows;
    k.held = bytes > 0;
    loss_kernel<T><<<blocks_of(rows), row_threads(h->stride / pack_size<T>()), bytes, c->stream>>>(k);
}

/* Rows [first, first + rows): T is the type of the operands. */
template <typename T> static void chunk_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first,
                                               int64_t rows)
{
    struct cuda_plan *const *plans = c->plans + (rows < h->chunk ? CHUNK_PRODUCTS : 0);
    const T *x = (const T *)c->in[0] + first * h->depth;
    cuda_multiply(c, plans[LOGITS], r->logits, x, c->in[1], NULL, 0);
    loss_launch<T>(c, h, r, first, rows);
    if (!h->gradients)
        return;
    char *dx = (char *)c->out[2] + (size_t)(first * h->depth) * dtype_size(h->dx);
    cuda_multiply(c, plans[DX], r->dx ? (void *)r->dx : dx, r->logits, c->in[1], NULL, 0);
    cuda_multiply(c, plans[DW], c->out[3], r->logits, r->x, NULL, first > 0);
    if (r->dx)
        with_type(h->dx, [&](auto zero) {
            narrow<<<blocks_for(rows * h->depth), THREADS, 0, c->stream>>>((decltype(zero) *)dx, r->dx, rows * h->depth);
        });
}

static void linear_loss_launch(const struct cuda_call *c)
{
    const struct head h = head_of(c->program, c->op);
    const struct head_room r = head_room(&h, c->scratch);
    const int32_t *targets = (const int32_t *)c->in[2];
    if (h.rows > COUNTED_ROWS)
        count_targets<<<1, SUM_THREADS, 0, c->stream>>>(r.count, targets, h.rows);
    with_type(h.operands, [&](auto zero) {
        for (int64_t first = 0; first < h.rows; first += h.chunk)
            chunk_launch<decltype(zero)>(c, &h, &r, first, at_most(h.chunk, h.rows - first));
    });
    mean_loss<<<1, SUM_THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), r.losses, targets, h.rows);
}

const struct cuda_kernel cuda_head[] = {
    {OP_LINEAR_LOSS, "chunks", linear_loss_launch, linear_loss_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
