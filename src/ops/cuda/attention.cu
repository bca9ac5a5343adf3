/* Attention: as products of whole matrices by cuBLAS, head by head, and as one op that never stores the weights. */
#include "ops/cuda/cudnn.h"
#include "ops/cuda/flash_backward.cuh"
#include "ops/cuda/flash_forward.cuh"
#include "ops/cuda/flash_tensor.cuh"

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

/* Whether the result is made in f32 and rounded at last: what cuBLAS does not round itself, or rounds once for each head of a group. */
static bool is_rounded_last(const struct program *p, const struct op *op)
{
    const bool sums = op->kind == OP_ATTN_MIX_T && op->attrs.heads > op->attrs.kv_heads;
    return dtype_is_narrow(p->values[op->out[0]].dtype) && (sums || p->values[op->in[0]].dtype == F32);
}

static size_t heads_scratch(const struct program *p, const struct op *op)
{
    return is_rounded_last(p, op) ? (size_t)shape_count(p->values[op->out[0]].shape) * sizeof(float) : 0;
}

struct part { cublasOperation_t op; int64_t at, row, step; };       /* of a tensor: the first number, from row to row, from head to head */

/* y = scale * a b + beta y for `count` heads; a is of the op's second operand and b of its first. */
static cublasStatus_t multiply(const struct cuda_call *c, struct part a, struct part b, struct part y, int64_t m, int64_t n,
                               int64_t k, float beta, int64_t count)
{
    const enum dtype type = cuda_in(c, 0)->dtype;
    const bool wide = is_rounded_last(c->program, c->op);
    const enum dtype to = wide ? F32 : cuda_out(c, 0)->dtype;
    const cublasComputeType_t how =
        type == F32 && c->op->attrs.round == ROUND_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const char *x = (const char *)c->in[1], *w = (const char *)c->in[0];
    char *result = (char *)(wide ? c->scratch : c->out[0]);
    return cublasGemmStridedBatchedEx_64(c->blas, a.op, b.op, m, n, k, &c->op->attrs.scale, x + a.at * (int64_t)dtype_size(type), cuda_type(type),
                                         a.row, a.step, w + b.at * (int64_t)dtype_size(type), cuda_type(type), b.row, b.step, &beta,
                                         result + y.at * (int64_t)dtype_size(to), cuda_type(to), y.row, y.step, count, how, CUBLAS_GEMM_DEFAULT);
}

/* `count` heads, each `step` behind the one before it. cuBLAS thinks in columns, so operands are swapped: see matrix.cu. */
static cublasStatus_t heads_product(const struct cuda_call *c, const struct heads *d, struct offsets at, struct offsets step, int64_t count,
                                    float beta)
{
    const int64_t t = d->seq;
    const struct part query = {CUBLAS_OP_N, at.query, d->heads * d->size, step.query};
    const struct part key = {CUBLAS_OP_N, at.key, d->kv_heads * d->size, step.key};
    const struct part weights = {CUBLAS_OP_N, at.weights, t, step.weights};
    struct part first = c->op->kind == OP_ATTN_MIX_T ? query : key;
    struct part second = c->op->kind == OP_ATTN_SCORES ? query : weights;
    switch (c->op->kind) {
    case OP_ATTN_SCORES:            /* (T, T) = (T, D) (T, D)^T */
        first.op = CUBLAS_OP_T;
        return multiply(c, first, second, weights, t, t, d->size, beta, count);
    case OP_ATTN_MIX:               /* (T, D) = (T, T) (T, D) */
        return multiply(c, first, second, query, d->size, t, t, beta, count);
    default:                        /* (T, D) = (T, T)^T (T, D), summed over a group */
        second.op = CUBLAS_OP_T;
        return multiply(c, first, second, key, d->size, t, t, beta, count);
    }
}

template <typename T> static __global__ void round_numbers(T *to, const float *x, int64_t n)
{
    EACH(i, n)
        to[i] = from_float<T>(x[i]);
}

static void heads_launch(const struct cuda_call *c)
{
    const struct heads d = heads_of(c);
    const bool batches = d.heads < d.batch * d.group;       /* fewer calls, each over all batches */
    const int64_t calls = batches ? d.heads : d.batch * d.group, n = out_count(c, 0);
    for (int64_t i = 0; i < calls; i++) {
        const int64_t b = batches ? 0 : i / d.group, h = batches ? i : i % d.group;
        const struct offsets at = offsets_of(&d, b, h), next = batches ? offsets_of(&d, b + 1, h) : offsets_of(&d, b, h + d.group);
        const struct offsets step = {next.query - at.query, next.key - at.key, next.weights - at.weights};
        const bool adds = c->op->kind == OP_ATTN_MIX_T && h % d.group > 0;
        if (heads_product(c, &d, at, step, batches ? d.batch : d.kv_heads, adds) != CUBLAS_STATUS_SUCCESS)
            refuse(c);
    }
    if (is_rounded_last(c->program, c->op))
        with_type(cuda_out(c, 0)->dtype, [&](auto zero) {
            using T = decltype(zero);
            round_numbers<<<blocks_for(n), THREADS, 0, c->stream>>>((T *)c->out[0], (const float *)c->scratch, n);
        });
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
        attention_kernel<R, C><<<blocks, SIDE * SIDE, bytes, c->stream>>>(c->out[0], out_floats(c, 1), out_floats(c, 2), a);
    }
};

static void attention_launch(const struct cuda_call *c)
{
    if (cudnn_attention(c))
        return;
    const struct attention a = attention_of(c);
    if (!flash_tensor_takes(a))
        for_size(c, a.size, forward{c, a});
    else if (a.type == BF16)
        flash_tensor_forward<__nv_bfloat16>(c, a);
    else
        flash_tensor_forward<__half>(c, a);
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

static void plain_backward(const struct cuda_call *c, const struct attention &a)
{
    float *dots = (float *)c->scratch;
    const struct gradients g = {c->in[0], in_floats(c, 5), in_floats(c, 6), dots, c->out[0], c->out[1], c->out[2]};
    with_type(a.type, [&](auto zero) {
        using T = decltype(zero);
        dots_kernel<<<blocks_for(in_count(c, 5) * WARP), THREADS, 0, c->stream>>>(dots, (const T *)g.dy, (const T *)c->in[4], a);
    });
    for_size(c, a.size, backward{c, a, g});
}

static void attention_grad_launch(const struct cuda_call *c)
{
    if (cudnn_attention(c))
        return;
    const struct attention a = attention_of(c);
    if (!flash_tensor_takes(a))
        plain_backward(c, a);
    else if (a.type == BF16)
        flash_tensor_backward<__nv_bfloat16>(c, a);
    else
        flash_tensor_backward<__half>(c, a);
}

static size_t attention_grad_scratch(const struct program *p, const struct op *op)
{
    const size_t own = flash_tensor_scratch(shape_count(p->values[op->in[5]].shape));   /* more than the plain ones need */
    const size_t by_cudnn = cudnn_attention_scratch(p, op);
    return by_cudnn > own ? by_cudnn : own;
}

const struct cuda_kernel cuda_attention[] = {
    {OP_ATTN_SCORES, "cublas", heads_launch, heads_scratch},
    {OP_ATTN_MIX, "cublas", heads_launch, heads_scratch},
    {OP_ATTN_MIX_T, "cublas", heads_launch, heads_scratch},
    {OP_ATTENTION, "flash", attention_launch, cudnn_attention_scratch},
    {OP_ATTENTION_GRAD, "flash", attention_grad_launch, attention_grad_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
