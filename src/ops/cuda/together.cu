/* Several products of one op as one call of cuBLASLt: those of one input (OP_PROJECT), or those that are added up (OP_PROJECT_GRAD), where they
 * are alike and their memory lies evenly apart. A product of a small model takes as long to begin and to end as to multiply. Those that
 * are added up come in f32, beside each other in scratch, and are summed in their order. */
#include "ops/cuda/device.cuh"
#include "ops/cuda/products.h"
#include "ops/cuda/types.cuh"

/* More than a cache holds wins nothing. */
static const size_t SUMMED_BYTES = (size_t)24 << 20;

static bool is_summed(const struct op *op) { return op->kind == OP_PROJECT_GRAD; }

static size_t summed_bytes(const struct program *p, const struct op *op)
{
    return is_summed(op) ? (size_t)op->attrs.parts * aligned((size_t)shape_count(p->values[op->out[0]].shape) * sizeof(float)) : 0;
}

size_t cuda_together_scratch(const struct program *p, const struct op *op)
{
    const size_t bytes = summed_bytes(p, op);
    return bytes <= SUMMED_BYTES ? bytes : 0;
}

static bool are_alike(const struct product *x, const struct product *y) { return x->m == y->m && x->n == y->n && x->k == y->k; }

enum status cuda_plan_together(struct cuda_backend *b, struct cuda_call *c, const struct product *products, int n, struct error *err)
{
    struct product all = products[0];
    bool may = (c->op->kind == OP_PROJECT || is_summed(c->op)) && dtype_is_narrow(all.operands) && summed_bytes(c->program, c->op) <= SUMMED_BYTES;
    for (int i = 1; i < n; i++)
        may &= are_alike(&products[i], &all);
    if (!may)
        return OK;
    all.batch = n;
    all.result = is_summed(c->op) ? F32 : all.result;
    const enum status st = cuda_plan_product(b, &c->together, &all, c->op->timed, err);
    /* plain cuBLAS does not do it, and who adds the bias must be the call; it is f32 there, where the result is */
    if (st == OK && (c->together->n_ways == 0 || (all.end == END_BIAS && (!c->together->adds_bias || c->together->wide_bias))))
        c->together = NULL;
    return st;
}

/* Elements from one to the next; -1: they do not lie so. */
static int64_t apart(void *const *at, int n, enum dtype t)
{
    const int64_t step = (char *)at[1] - (char *)at[0];
    bool even = step > 0 && step % 16 == 0;
    for (int i = 2; i < n; i++)
        even &= (char *)at[i] - (char *)at[i - 1] == step;
    return even ? step / (int64_t)dtype_size(t) : -1;
}

static struct product_apart apart_of(const struct cuda_call *c)
{
    const int n = c->op->attrs.parts;
    const enum dtype t = c->together->product.operands;
    if (is_summed(c->op))
        return {apart(c->in, n, t), apart(c->in + n, n, t), (int64_t)(aligned((size_t)out_count(c, 0) * sizeof(float)) / sizeof(float)), 0};
    return {0, apart(c->in + 1, n, t), apart(c->out, n, c->together->product.result), 0};
}

bool cuda_may_together(const struct cuda_call *c)
{
    if (!c->together)
        return false;
    const struct product_apart a = apart_of(c);
    return a.a >= 0 && a.b >= 0 && a.y >= 0;
}

/* y (n) = the sum of `parts` of them. */
template <int N, typename T> static __global__ void sum_parts(T *y, const float *x, int parts, int64_t apart, int64_t n)
{
    EACH(i, n / N) {
        float sum[N], more[N];
        load_pack<N>(sum, x + i * N);
        for (int k = 1; k < parts; k++) {
            load_pack<N>(more, x + k * apart + i * N);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += more[j];
        }
        store_pack<N>(y + i * N, sum);
    }
}

static void sum_parts_launch(const struct cuda_call *c, const float *x, int64_t apart)
{
    const int64_t n = out_count(c, 0);
    const int parts = c->op->attrs.parts;
    with_type(cuda_out(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        T *y = (T *)c->out[0];
        if (n % 4 == 0)
            sum_parts<4><<<blocks_at_once(n / 4, threads_at_once(n / 4)), threads_at_once(n / 4), 0, c->stream>>>(y, x, parts, apart, n);
        else
            sum_parts<1><<<blocks_for(n), THREADS, 0, c->stream>>>(y, x, parts, apart, n);
    });
}

void cuda_together_launch(const struct cuda_call *c, void *scratch, const void *bias, int64_t bias_apart)
{
    const bool summed = is_summed(c->op);
    struct product_apart apart = apart_of(c);
    apart.bias = bias_apart;
    void *to = c->parts ? c->parts : summed ? scratch : c->out[0];
    cuda_multiply_batch(c, c->together, {to, c->in[0], c->in[summed ? c->op->attrs.parts : 1], bias, NULL, false}, apart);
    if (summed && !c->parts)
        sum_parts_launch(c, (const float *)to, apart.y);
}

/* ---- a sum that its only reader makes ---- */

/* The call that reads the sum, as its first input; NULL: there are others, or it cannot add up. */
static struct cuda_call *summing_reader(struct prepared *list, const struct cuda_call *c)
{
    const value_id sum = c->op->out[0];
    struct cuda_call *reader = NULL;
    int readers = 0;
    for (int i = 0; i < list->n; i++)
        for (int j = 0; j < list->calls[i].op->n_in; j++)
            if (list->calls[i].program == c->program && list->calls[i].op->in[j] == sum) {
                reader = &list->calls[i];
                readers++;
            }
    const bool can = readers == 1 && reader > c && reader->op->in[0] == sum && !reader->merged && !value_is_persistent(cuda_out(c, 0));
    return can && cuda_norm_grad_sums(reader) ? reader : NULL;
}

enum { PARTS_MOST = 3 };            /* that a reader adds up */

static bool leaves_parts(const struct cuda_call *c)
{
    return is_summed(c->op) && c->at_once && !c->merged && c->op->attrs.parts <= PARTS_MOST;
}

static void leave_parts(struct cuda_call *c, float *to)
{
    c->parts = to;
    c->n_parts = c->op->attrs.parts;
    c->parts_apart = apart_of(c).y;
    c->parts_bytes = summed_bytes(c->program, c->op);
}

/* Lets calls leave their parts in `to`, without which they are only counted; returns the bytes that the largest needs. There is one memory
 * for all, so that the reader of one comes before the next. */
static size_t place_parts(struct prepared *list, float *to)
{
    const struct cuda_call *before = NULL;
    size_t most = 0;
    for (int i = 0; i < list->n; i++) {
        struct cuda_call *c = &list->calls[i], *reader = c > before && leaves_parts(c) ? summing_reader(list, c) : NULL;
        if (!reader)
            continue;
        most = summed_bytes(c->program, c->op) > most ? summed_bytes(c->program, c->op) : most;
        before = reader;
        if (to) {
            leave_parts(c, to);
            reader->parts = to, reader->n_parts = c->n_parts, reader->parts_apart = c->parts_apart, reader->parts_bytes = c->parts_bytes;
        }
    }
    return most;
}

void cuda_place_parts(struct cuda_backend *b, struct prepared *list)
{
    const size_t bytes = place_parts(list, NULL);
    list->parts = bytes ? cuda_alloc(&b->base, bytes) : NULL;
    if (list->parts)
        place_parts(list, (float *)list->parts);
    else
        cudaGetLastError();         /* each makes its sum */
}

static bool is_read_by_norm_grad(const struct program *p, value_id v)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_RMSNORM_GRAD && p->ops[i].in[0] == v)
            return true;
    return false;
}

size_t cuda_parts_most_bytes(const struct program *p)
{
    size_t most = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (is_summed(op) && op->attrs.parts <= PARTS_MOST && dtype_is_narrow(p->values[op->in[0]].dtype) && is_read_by_norm_grad(p, op->out[0]))
            most = (size_t)at_least((int64_t)most, (int64_t)cuda_together_scratch(p, op));
    }
    return most;
}

void cuda_release_parts(struct cuda_backend *b, struct prepared *list)
{
    if (list->parts)
        cuda_free_memory(&b->base, list->parts, 0);
}
