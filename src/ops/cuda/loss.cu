/* Losses: of log-probabilities, and of a linear head whose logits are made, used and overwritten a chunk of rows at a time. */
#include <cuda_bf16.h>

#include "ops/cuda/products.cuh"

enum { LOSS_THREADS = 1024 };       /* of the one block that sums over all rows */

/* ---- of log-probabilities (rows, n) ---- */

static __global__ void nll(float *loss, float *count, const float *logp, const int32_t *targets, int64_t rows, int64_t n)
{
    double sum = 0, known = 0;
    EACH_OF_BLOCK(row, rows)
        if (targets[row] >= 0) {
            sum -= logp[row * n + targets[row]];
            known++;
        }
    sum = block_sum(sum);
    known = block_sum(known);
    if (threadIdx.x == 0) {
        *loss = (float)(sum / (known > 0 ? known : 1));
        *count = (float)known;
    }
}

static void nll_launch(const struct cuda_call *c)
{
    nll<<<1, LOSS_THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), in_floats(c, 0), (const int32_t *)c->in[1], in_count(c, 1),
                                           shape_last(cuda_in(c, 0)->shape));
}

static __global__ void nll_grad(float *dx, const int32_t *targets, const float *count, const float *d_loss, int64_t rows, int64_t n)
{
    EACH(row, rows)
        if (targets[row] >= 0)
            dx[row * n + targets[row]] = -*d_loss / *count;
}

static void nll_grad_launch(const struct cuda_call *c)
{
    const int64_t rows = in_count(c, 1), n = shape_last(cuda_in(c, 0)->shape);
    const int32_t *targets = (const int32_t *)c->in[1];
    cudaMemsetAsync(c->out[0], 0, value_bytes(cuda_out(c, 0)), c->stream);
    nll_grad<<<blocks_for(rows), THREADS, 0, c->stream>>>(out_floats(c, 0), targets, in_floats(c, 2), in_floats(c, 3), rows, n);
}

/* ---- of a linear head: x (rows, depth), w (vocab, depth) ---- */

struct head {
    int64_t rows, depth, vocab, chunk;      /* chunk: rows whose logits there are at once */
    bool gradients, bf16;
};

enum { LOGITS = 1 << 25, CHUNK_UNIT = 128 };        /* about so many logits at once; a chunk is a multiple of so many rows */

static struct head head_of(const struct program *p, const struct op *op)
{
    const struct shape x = p->values[op->in[0]].shape, w = p->values[op->in[1]].shape;
    const int64_t rows = shape_rows(x), fit = at_least(1, LOGITS / w.dim[0] / CHUNK_UNIT) * CHUNK_UNIT;
    return {rows, shape_last(x), w.dim[0], at_most(fit, rows), op->attrs.parts == 4, op->attrs.round == ROUND_BF16};
}

/* The scratch of a call, cut into parts. */
struct head_room {
    float *logits;                  /* (chunk, vocab) */
    void *dz;                       /* the same in bf16: the gradient of the logits as an operand; in f32 it takes their place */
    void *x, *w;                    /* (chunk, depth), padding as zeros; (vocab, depth) in bf16 */
    float *losses, *count;          /* (rows), one */
    size_t bytes;
};

static void *cut(struct head_room *r, void *scratch, size_t bytes)
{
    void *at = (char *)scratch + r->bytes;
    r->bytes += aligned(bytes);
    return at;
}

static struct head_room head_room(const struct head *h, void *scratch)
{
    struct head_room r = {};
    const size_t number = h->bf16 ? sizeof(__nv_bfloat16) : sizeof(float);
    r.logits = (float *)cut(&r, scratch, (size_t)(h->chunk * h->vocab) * sizeof(float));
    r.dz = h->bf16 && h->gradients ? cut(&r, scratch, (size_t)(h->chunk * h->vocab) * number) : r.logits;
    r.x = cut(&r, scratch, (size_t)(h->chunk * h->depth) * number);
    r.w = cut(&r, scratch, operand_room(h->vocab * h->depth, h->bf16));
    r.losses = (float *)cut(&r, scratch, (size_t)h->rows * sizeof(float));
    r.count = (float *)cut(&r, scratch, sizeof(float));
    return r;
}

static size_t linear_loss_scratch(const struct program *p, const struct op *op)
{
    const struct head h = head_of(p, op);
    return head_room(&h, NULL).bytes;
}

static __device__ inline void store(float *to, float x) { *to = x; }
static __device__ inline void store(__nv_bfloat16 *to, float x) { *to = __float2bfloat16_rn(x); }

/* The rows of a chunk as an operand; those of padding are zeros, whatever is in x. */
template <typename T> static __global__ void rows_kernel(T *to, const float *x, const int32_t *targets, int64_t rows, int64_t depth)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        EACH_OF_BLOCK(i, depth)
            store(&to[row * depth + i], targets[row] < 0 ? 0 : x[row * depth + i]);
}

static __global__ void count_targets(float *count, const int32_t *targets, int64_t rows)
{
    double known = 0;
    EACH_OF_BLOCK(row, rows)
        known += targets[row] >= 0;
    known = block_sum(known);
    if (threadIdx.x == 0)
        *count = (float)known;
}

/* z (rows, vocab): each row's loss; and dz = (softmax(z) - onehot) / count, which may be the memory of z. No gradients: dz is NULL. */
template <typename T>
static __global__ void loss_kernel(T *dz, float *losses, const float *z, const int32_t *targets, const float *count, int64_t rows,
                                   int64_t vocab)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *from = z + row * vocab;
        const int32_t target = targets[row];
        float most = -INFINITY, sum = 0;
        EACH_OF_BLOCK(i, target < 0 ? 0 : vocab)
            most = fmaxf(most, from[i]);
        most = block_max(most);
        EACH_OF_BLOCK(i, target < 0 ? 0 : vocab)
            sum += expf(from[i] - most);
        const float log_sum = logf(block_sum(sum));
        if (threadIdx.x == 0)
            losses[row] = target < 0 ? 0 : log_sum + (most - from[target]);
        __syncthreads();            /* from[target] is read before it is written */
        const float known = *count;
        if (dz)
            EACH_OF_BLOCK(i, vocab)
                store(&dz[row * vocab + i], target < 0 ? 0 : (expf(from[i] - most - log_sum) - (i == target)) / known);
    }
}

static __global__ void mean_loss(float *loss, float *count, const float *losses, const float *known, int64_t rows)
{
    double sum = 0;
    EACH_OF_BLOCK(row, rows)
        sum += losses[row];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *loss = (float)(sum / (*known > 0 ? *known : 1));
        *count = *known;
    }
}

/* Rows [first, first + rows): T is the type of the operands. */
template <typename T> static void chunk_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first,
                                               int64_t rows)
{
    const int32_t *targets = (const int32_t *)c->in[2] + first;
    const float *x = in_floats(c, 0) + first * h->depth;
    const void *w = h->bf16 ? r->w : c->in[1];
    rows_kernel<T><<<blocks_of(rows), threads_for_row(h->depth), 0, c->stream>>>((T *)r->x, x, targets, rows, h->depth);
    cuda_multiply(c, r->logits, {r->x, false, h->bf16}, {w, true, h->bf16}, rows, h->vocab, h->depth, 0);
    loss_kernel<T><<<blocks_of(rows), threads_for_row(h->vocab), 0, c->stream>>>(h->gradients ? (T *)r->dz : (T *)NULL, r->losses + first,
                                                                                 r->logits, targets, r->count, rows, h->vocab);
    if (!h->gradients)
        return;
    cuda_multiply(c, out_floats(c, 2) + first * h->depth, {r->dz, false, h->bf16}, {w, false, h->bf16}, rows, h->depth, h->vocab, 0);
    cuda_multiply(c, out_floats(c, 3), {r->dz, true, h->bf16}, {r->x, false, h->bf16}, h->vocab, h->depth, rows, first > 0);
}

static void linear_loss_launch(const struct cuda_call *c)
{
    const struct head h = head_of(c->program, c->op);
    const struct head_room r = head_room(&h, c->scratch);
    count_targets<<<1, LOSS_THREADS, 0, c->stream>>>(r.count, (const int32_t *)c->in[2], h.rows);
    cuda_operand(c, in_floats(c, 1), h.vocab * h.depth, true, h.bf16, r.w);
    for (int64_t first = 0; first < h.rows; first += h.chunk) {
        const int64_t rows = at_most(h.chunk, h.rows - first);
        if (h.bf16)
            chunk_launch<__nv_bfloat16>(c, &h, &r, first, rows);
        else
            chunk_launch<float>(c, &h, &r, first, rows);
    }
    mean_loss<<<1, LOSS_THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), r.losses, r.count, h.rows);
}

const struct cuda_kernel cuda_loss[] = {
    {OP_NLL, "nll", nll_launch, NULL},
    {OP_NLL_GRAD, "nll_grad", nll_grad_launch, NULL},
    {OP_LINEAR_LOSS, "chunks", linear_loss_launch, linear_loss_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
