/* Attention: as products of whole matrices by cuBLAS, head by head, and as one op that never stores the weights. */
#include "ops/cuda/cudnn.h"
#include "ops/cuda/flash_backward.cuh"
#include "ops/cuda/flash_forward.cuh"

/* ---- products of heads ----
 * One call does as many heads as lie at one distance from each other: a head of all batches, or the heads at one place of their groups. */

struct heads { int64_t batch, heads, kv_heads, group, seq, size; };

static struct heads heads_of(const struct cuda_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    const struct shape x = cuda_in(c, c->op->kind == OP_ATTN_SCORES ? 0 : 1)->shape;
    const int64_t wide = c->op->kind == OP_ATTN_MIX ? a->kv_heads : a->heads;
    return {x.dim[0], a->heads, a->kv_heads, a->heads / a->kv_heads, x.dim[1], x.dim[2] / wide};
}

struct offsets { int64_t query, key, weights; };    /* of head h: in (B, T, H, D), (B, T, K, D), (B, H, T, T) */

static struct offsets offsets_of(const struct heads *d, int64_t b, int64_t h)
{
    return {(b * d->seq * d->heads + h) * d->size, (b * d->seq * d->kv_heads + h / d->group) * d->size,
            (b * d->heads + h) * d->seq * d->seq};
}

/* `count` heads, each `step` behind the one before it. cuBLAS thinks in columns, so operands are swapped: see matrix.cu. */
static cublasStatus_t heads_product(const struct cuda_call *c, const struct heads *d, struct offsets at, struct offsets step, int64_t count,
                                    float beta)
{
    const float *alpha = &c->op->attrs.scale, *first = in_floats(c, 0), *second = in_floats(c, 1);
    const int64_t q = d->heads * d->size, k = d->kv_heads * d->size, t = d->seq;        /* from row to row */
    float *y = out_floats(c, 0);
    switch (c->op->kind) {
    case OP_ATTN_SCORES:            /* (T, T) = (T, D) (T, D)^T */
        return cublasSgemmStridedBatched_64(c->blas, CUBLAS_OP_T, CUBLAS_OP_N, t, t, d->size, alpha, second + at.key, k, step.key,
                                            first + at.query, q, step.query, &beta, y + at.weights, t, step.weights, count);
    case OP_ATTN_MIX:               /* (T, D) = (T, T) (T, D) */
        return cublasSgemmStridedBatched_64(c->blas, CUBLAS_OP_N, CUBLAS_OP_N, d->size, t, t, alpha, second + at.key, k, step.key,
                                            first + at.weights, t, step.weights, &beta, y + at.query, q, step.query, count);
    default:                        /* (T, D) = (T, T)^T (T, D), summed over a group */
        return cublasSgemmStridedBatched_64(c->blas, CUBLAS_OP_N, CUBLAS_OP_T, d->size, t, t, alpha, second + at.query, q, step.query,
                                            first + at.weights, t, step.weights, &beta, y + at.key, k, step.key, count);
    }
}

static void heads_launch(const struct cuda_call *c)
{
    const struct heads d = heads_of(c);
    const bool batches = d.heads < d.batch * d.group;       /* fewer calls, each over all batches */
    const int64_t calls = batches ? d.heads : d.batch * d.group;
    for (int64_t i = 0; i < calls; i++) {
        const int64_t b = batches ? 0 : i / d.group, h = batches ? i : i % d.group;
        const struct offsets at = offsets_of(&d, b, h), next = batches ? offsets_of(&d, b + 1, h) : offsets_of(&d, b, h + d.group);
        const struct offsets step = {next.query - at.query, next.key - at.key, next.weights - at.weights};
        const bool adds = c->op->kind == OP_ATTN_MIX_T && h % d.group > 0;
        if (heads_product(c, &d, at, step, batches ? d.batch : d.kv_heads, adds) != CUBLAS_STATUS_SUCCESS)
            refuse(c);
    }
}

/* ---- as one op ---- */

enum { LARGEST_HEAD = 512 };

/* Calls f.run<R, C>() for heads of that size: tiles of 16 R queries and keys, results of 16 C numbers. */
template <class F> static void for_size(const struct cuda_call *c, int64_t size, const F &f)
{
    if (size <= 32)
        f.template run<4, 2>();
    else if (size <= 64)
        f.template run<4, 4>();
    else if (size <= 128)
        f.template run<2, 8>();
    else if (size <= 256)
        f.template run<1, 16>();
    else if (size <= LARGEST_HEAD)
        f.template run<1, 32>();
    else
        refuse(c);
}

/* Lets a kernel use so much shared memory. */
template <typename Kernel> static void allow_shared(Kernel kernel, size_t bytes)
{
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

struct forward {
    const struct cuda_call *c;
    struct attention a;

    template <int R, int C> void run() const
    {
        const int tile = R * SIDE;
        const size_t bytes = flash_shared(tile, a.size, 2);
        const unsigned blocks = (unsigned)(divide_up(a.seq, tile) * a.heads * a.batch);
        allow_shared(attention_kernel<R, C>, bytes);
        attention_kernel<R, C><<<blocks, SIDE * SIDE, bytes, c->stream>>>(out_floats(c, 0), out_floats(c, 1), out_floats(c, 2), a);
    }
};

static void attention_launch(const struct cuda_call *c)
{
    if (cudnn_attention(c))
        return;
    const struct attention a = attention_of(c);
    for_size(c, a.size, forward{c, a});
}

struct backward {
    const struct cuda_call *c;
    struct attention a;
    struct gradients g;

    template <int R, int C> void run() const
    {
        const int tile = R * SIDE;
        const size_t bytes = flash_shared(tile, a.size, 4);
        const int64_t tiles = divide_up(a.seq, tile);
        allow_shared(query_gradients<R, C>, bytes);
        allow_shared(key_gradients<R, C>, bytes);
        query_gradients<R, C><<<(unsigned)(tiles * a.heads * a.batch), SIDE * SIDE, bytes, c->stream>>>(a, g);
        key_gradients<R, C><<<(unsigned)(tiles * a.kv_heads * a.batch), SIDE * SIDE, bytes, c->stream>>>(a, g);
    }
};

static void attention_grad_launch(const struct cuda_call *c)
{
    if (cudnn_attention(c))
        return;
    const struct attention a = attention_of(c);
    float *dots = (float *)c->scratch;
    const struct gradients g = {in_floats(c, 0), in_floats(c, 5), in_floats(c, 6), dots, out_floats(c, 0), out_floats(c, 1),
                                out_floats(c, 2)};
    dots_kernel<<<blocks_for(in_count(c, 5) * WARP), THREADS, 0, c->stream>>>(dots, g.dy, in_floats(c, 4), a);
    for_size(c, a.size, backward{c, a, g});
}

static size_t attention_grad_scratch(const struct program *p, const struct op *op)
{
    const size_t dots = (size_t)shape_count(p->values[op->in[5]].shape) * sizeof(float), by_cudnn = cudnn_attention_scratch(p, op);
    return by_cudnn > dots ? by_cudnn : dots;
}

const struct cuda_kernel cuda_attention[] = {
    {OP_ATTN_SCORES, "cublas", heads_launch, NULL},
    {OP_ATTN_MIX, "cublas", heads_launch, NULL},
    {OP_ATTN_MIX_T, "cublas", heads_launch, NULL},
    {OP_ATTENTION, "flash", attention_launch, cudnn_attention_scratch},
    {OP_ATTENTION_GRAD, "flash", attention_grad_launch, attention_grad_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
