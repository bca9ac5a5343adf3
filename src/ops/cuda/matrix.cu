/* Ops that are products of matrices, and what is done to their results. */
#include "ops/cuda/device.cuh"
#include "ops/cuda/few.cuh"
#include "ops/cuda/products.h"
#include "ops/cuda/small.cuh"
#include "ops/cuda/types.cuh"

enum { PARTS_MOST = BIASES_MOST };  /* of OP_PROJECT: it has no more outputs */

/* ---- which products ---- */

static const struct value *value_at(const struct program *p, value_id v) { return &p->values[v]; }

/* cuBLAS makes narrow results of narrow operands alone: else f32 comes first, in scratch. */
static bool comes_wide(enum dtype operands, enum dtype result) { return operands == F32 && result != F32; }
static enum dtype product_result(enum dtype operands, enum dtype result) { return operands == F32 ? F32 : result; }

static struct product product_of(const struct program *p, const struct op *op, int a, int b, int out)
{
    const bool ta = op->attrs.trans_a, tb = op->attrs.trans_b;
    const struct value *first = value_at(p, op->in[a]), *second = value_at(p, op->in[b]);
    struct product y = {};
    y.m = ta ? shape_last(first->shape) : shape_rows(first->shape);
    y.k = ta ? shape_rows(first->shape) : shape_last(first->shape);
    y.n = tb ? shape_rows(second->shape) : shape_last(second->shape);
    y.trans_a = ta;
    y.trans_b = tb;
    y.tf32 = op->attrs.round == ROUND_TF32;
    y.operands = first->dtype;
    y.result = product_result(first->dtype, value_at(p, op->out[out])->dtype);
    return y;
}

int cuda_matrix_products(struct product *out, const struct program *p, const struct op *op)
{
    const int parts = op->kind == OP_PROJECT || op->kind == OP_PROJECT_GRAD ? op->attrs.parts : 1;
    for (int i = 0; i < parts && i < CALL_PLANS; i++) {
        if (op->kind == OP_PROJECT_GRAD) {
            out[i] = product_of(p, op, i, parts + i, 0);
            continue;
        }
        out[i] = product_of(p, op, 0, 1 + i, i);
        out[i].trans_b |= op->kind != OP_MATMUL;
        out[i].n = op->kind != OP_MATMUL ? shape_rows(value_at(p, op->in[1 + i])->shape) : out[i].n;
        if (op->kind == OP_MATMUL ? op->n_in > 2 : op->kind == OP_PROJECT && op->n_in > 1 + parts)
            out[i].end = END_BIAS;
    }
    return parts;
}

/* ---- as small products ---- */

static bool is_int(int64_t n) { return n <= INT32_MAX; }

static bool products_of_one(struct small_products *out, const struct cuda_call *c)
{
    struct product products[CALL_PLANS];
    const enum op_kind kind = c->op->kind;
    const int n = cuda_matrix_products(products, c->program, c->op);
    const bool biased = kind == OP_LINEAR_GELU || products[0].end == END_BIAS;
    *out = {};
    if (products[0].operands == F32 || n > SMALL_PARTS || !is_int(products[0].m) || (c->plans[0] && c->plans[0]->product.end == END_GELU))
        return false;               /* END_GELU: who reads its second output wants what GELU was applied to, and not the slope */
    out->m = (int)products[0].m;
    out->parts = n;
    out->trans_a = products[0].trans_a, out->trans_b = products[0].trans_b;
    out->summed = kind == OP_PROJECT_GRAD;
    out->each = n;
    out->gelu = kind == OP_LINEAR_GELU;
    out->wide = products[0].result == F32;
    out->f16 = products[0].operands == F16;
    for (int i = 0; i < n; i++) {
        const struct product *p = &products[i];
        struct small_part *s = &out->part[i];
        if (!is_int(p->n) || !is_int(p->k))
            return false;
        s->a = c->in[out->summed ? i : 0];
        s->b = c->in[out->summed ? n + i : 1 + i];
        s->y = c->out[out->summed ? 0 : i];
        s->bias = biased ? in_floats(c, 1 + n + i) : NULL;
        s->slope = out->gelu && c->op->n_out > 1 ? c->out[1] : NULL;
        s->leave = c->leave;
        s->m = out->m, s->n = (int)p->n, s->k = (int)p->k;
        s->a_stride = p->trans_a ? out->m : s->k;
        s->b_stride = p->trans_b ? s->k : s->n;
        s->y_stride = s->n;
    }
    return cuda_small_is_aligned(out);
}

/* Those of a group, one op behind the other: ops of one kind, which Hopper's kernel alone makes. */
static bool products_of_group(struct small_products *out, const struct cuda_call *c)
{
    bool all = products_of_one(out, c->n_also ? c->also[0] : c);
    for (int i = 1; i <= c->n_also && all; i++) {
        struct small_products more;
        all = products_of_one(&more, i < c->n_also ? c->also[i] : c) && out->parts + more.parts <= SMALL_PARTS;
        for (int j = 0; j < more.parts && all; j++)
            out->part[out->parts++] = more.part[j];
    }
    for (int i = 0; i < out->parts && !c->leave; i++)
        out->part[i].leave = NULL;          /* ops of a group may be left out, or may not */
    return all;
}

bool cuda_small_of(struct small_products *out, const struct cuda_call *c)
{
    return products_of_group(out, c) && (c->n_also || cuda_small_fits(out));
}

static void small_launch(const struct cuda_call *c)
{
    struct small_products p;
    if (!cuda_small_of(&p, c)) {
        refuse(c);
        return;
    }
    p.pieces = c->pieces;
    if (c->width)
        cuda_hopper_launch(c, &p, c->width);
    else
        cuda_small_launch(c, p);
}

/* ---- scratch: a result in f32 that becomes narrow, and biases as cuBLAS wants them ---- */

struct matrix_room {
    float *wide;                    /* (m, n) of the largest; NULL: results go where they belong */
    void *together;                 /* what together.cu wants */
    void *biases[PARTS_MOST];       /* in the type of the results; NULL: they are it already, or there are none */
    size_t bytes;
};

static void *cut(struct matrix_room *r, void *scratch, size_t bytes)
{
    void *at = (char *)scratch + r->bytes;
    r->bytes += aligned(bytes);
    return at;
}

static struct matrix_room matrix_room(const struct program *p, const struct op *op, void *scratch)
{
    struct product products[CALL_PLANS];
    struct matrix_room r = {};
    const int n = cuda_matrix_products(products, p, op);
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        most = at_least(most, products[i].m * products[i].n);
    if (comes_wide(products[0].operands, value_at(p, op->out[0])->dtype))
        r.wide = (float *)cut(&r, scratch, (size_t)most * sizeof(float));
    for (int i = 0; i < n && i < PARTS_MOST; i++)
        if ((products[i].end == END_BIAS || op->kind == OP_LINEAR_GELU) && products[i].result != F32)
            r.biases[i] = cut(&r, scratch, (size_t)products[i].n * dtype_size(products[i].result));
    r.together = cut(&r, scratch, cuda_together_scratch(p, op));
    return r;
}

static size_t matrix_scratch(const struct program *p, const struct op *op) { return matrix_room(p, op, NULL).bytes; }

/* ---- biases ---- */

static const struct cuda_plan *plan_for(const struct cuda_call *c, int part) { return c->at_once ? c->together : c->plans[part]; }

/* Makes those narrow that the plans of the call want so, or finds them where another call has put them; `first` is the input where they
 * begin. */
static void cast_biases(const struct cuda_call *c, struct matrix_room *r, int parts, int first)
{
    struct cuda_cast casts[PARTS_MOST];
    int n = 0;
    if (c->casts)
        cuda_cast_biases(c, c->casts, c->n_casts, c->plans[0]->product.result);
    for (int i = 0; i < parts; i++) {
        if (c->biases[i])
            r->biases[i] = c->biases[i];
        else if (r->biases[i] && plan_for(c, i)->adds_bias && !plan_for(c, i)->wide_bias)
            casts[n++] = {in_floats(c, first + i), r->biases[i], c->plans[i]->product.n};
    }
    if (n)
        cuda_cast_biases(c, casts, n, c->plans[0]->product.result);
}

/* y (rows, n) = u + bias; y may be u. No bias: NULL. */
template <typename T, typename U> static __global__ void add_bias(T *y, const U *u, const float *bias, int64_t rows, int64_t n)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        EACH_OF_BLOCK(i, n)
            y[row * n + i] = from_float<T>(to_float(u[row * n + i]) + (bias ? bias[i] : 0));
}

static void add_bias_launch(const struct cuda_call *c, const struct value *y, void *to, const void *u, bool wide, const float *bias)
{
    const int64_t rows = shape_rows(y->shape), n = shape_last(y->shape);
    with_type(y->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (wide)
            add_bias<T, float><<<blocks_of(rows), threads_for_row(n), 0, c->stream>>>((T *)to, (const float *)u, bias, rows, n);
        else
            add_bias<T, T><<<blocks_of(rows), threads_for_row(n), 0, c->stream>>>((T *)to, (const T *)u, bias, rows, n);
    });
}

/* ---- products of one input ---- */

static const void *bias_for(const struct cuda_plan *p, const void *narrow, const float *bias)
{
    return p->wide_bias || !narrow ? (const void *)bias : narrow;
}

/* Output i = input 0 times input 1 + i, plus bias. */
static void part_launch(const struct cuda_call *c, const struct matrix_room *r, int i, const float *bias)
{
    struct cuda_plan *plan = c->plans[i];
    void *to = r->wide ? r->wide : c->out[i];
    cuda_multiply(c, plan, {to, c->in[0], c->in[1 + i], bias_for(plan, r->biases[i], bias), c->beside, false});
    if (r->wide || (bias && !plan->adds_bias))
        add_bias_launch(c, cuda_out(c, i), c->out[i], to, r->wide, plan->adds_bias ? NULL : bias);
}

static void parts_launch(const struct cuda_call *c, int parts)
{
    struct matrix_room r = matrix_room(c->program, c->op, c->scratch);
    const bool biased = c->op->n_in > 1 + parts;
    cast_biases(c, &r, parts, 1 + parts);
    for (int i = 0; i < parts; i++)
        part_launch(c, &r, i, biased ? in_floats(c, 1 + parts + i) : NULL);
}

/* dx (rows, width) = sum of dy (rows, n) w (n, width) */
static void project_grad_launch(const struct cuda_call *c)
{
    const int parts = c->op->attrs.parts;
    const struct matrix_room r = matrix_room(c->program, c->op, c->scratch);
    void *to = r.wide ? r.wide : c->out[0];
    for (int i = 0; i < parts; i++)
        cuda_multiply(c, c->plans[i], {to, c->in[i], c->in[parts + i], NULL, NULL, i > 0});
    if (r.wide)
        add_bias_launch(c, cuda_out(c, 0), c->out[0], to, true, NULL);
}

/* ---- GELU of a product ---- */

/* u (rows, n) is x w^T; y becomes gelu(u + bias), and slope, where it is asked for, gelu' there. y may be u. A thread has N numbers of
 * some rows. */
template <int N, typename T, typename U>
static __global__ void bias_gelu(T *y, T *slope, const U *u, const float *bias, int64_t rows, int64_t n)
{
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    float shift[N];
    if (column >= n)
        return;
    load_pack<N>(shift, bias + column);
#pragma unroll 2
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += (int64_t)gridDim.y * blockDim.y) {
        float x[N], by[N];
        load_pack<N>(x, u + row * n + column);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float at = x[i] + shift[i], gate = gelu_gate_for<T>(at);
            x[i] = at * gate;
            by[i] = gelu_slope(at, gate);
        }
        store_pack<N>(y + row * n + column, x);
        if (slope)
            store_pack<N>(slope + row * n + column, by);
    }
}

template <int N, typename T, typename U> static void bias_gelu_launch(const struct cuda_call *c, const U *u, int64_t rows, int64_t n)
{
    enum { ROWS = 8, EACH_THREAD = 4, MOST = 65535 };
    const dim3 blocks((unsigned)divide_up(n, N * WARP), (unsigned)at_most(divide_up(rows, ROWS * EACH_THREAD), MOST));
    T *slope = c->op->n_out > 1 ? (T *)c->out[1] : (T *)NULL;
    bias_gelu<N, T, U><<<blocks, dim3(WARP, ROWS), 0, c->stream>>>((T *)c->out[0], slope, u, in_floats(c, 2), rows, n);
}

template <typename T, typename U> static void gelu_launch(const struct cuda_call *c, const U *u)
{
    const int64_t rows = shape_rows(cuda_out(c, 0)->shape), n = shape_last(cuda_out(c, 0)->shape);
    if (n % pack_size<T>() == 0)
        bias_gelu_launch<pack_size<T>(), T, U>(c, u, rows, n);
    else
        bias_gelu_launch<1, T, U>(c, u, rows, n);
}

static void linear_gelu_launch(const struct cuda_call *c)
{
    struct matrix_room r = matrix_room(c->program, c->op, c->scratch);
    if (c->plans[0]->product.end == END_GELU) {
        cast_biases(c, &r, 1, 2);
        cuda_multiply(c, c->plans[0], {c->out[0], c->in[0], c->in[1], bias_for(c->plans[0], r.biases[0], in_floats(c, 2)), c->out[1], false});
        return;
    }
    cuda_multiply(c, c->plans[0], {r.wide ? r.wide : c->out[0], c->in[0], c->in[1], NULL, NULL, false});
    with_type(cuda_out(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (r.wide)
            gelu_launch<T, float>(c, r.wide);
        else
            gelu_launch<T, T>(c, (const T *)c->out[0]);
    });
}

/* Each by itself, to time them. */
static void group_launch(const struct cuda_call *c)
{
    struct cuda_call own = *c;
    own.n_also = 0;
    own.at_once = c->alone.at_once, own.pieces = c->alone.pieces, own.width = c->alone.width;
    for (int i = 0; i < c->n_also; i++) {
        struct cuda_call each = *c->also[i];
        each.leave = NULL;
        cuda_matrix_launch(&each);
    }
    cuda_matrix_launch(&own);
}

/* Biases lie evenly apart where they are made narrow; as they are they do not. */
static void at_once_launch(const struct cuda_call *c)
{
    struct matrix_room r = matrix_room(c->program, c->op, c->scratch);
    cast_biases(c, &r, c->op->attrs.parts, 1 + c->op->attrs.parts);
    cuda_together_launch(c, r.together, r.biases[0], r.biases[0] ? (int64_t)(((char *)r.biases[1] - (char *)r.biases[0]) / 2) : 0);
}

void cuda_matrix_launch(const struct cuda_call *c)
{
    if (cuda_few_does(c))
        cuda_few_launch(c);
    else if (c->at_once)
        at_once_launch(c);
    else if (c->pieces)
        small_launch(c);
    else if (c->n_also)
        group_launch(c);
    else if (c->op->kind == OP_PROJECT_GRAD)
        project_grad_launch(c);
    else if (c->op->kind == OP_LINEAR_GELU)
        linear_gelu_launch(c);
    else
        parts_launch(c, c->op->kind == OP_PROJECT ? c->op->attrs.parts : 1);
}

const struct cuda_kernel cuda_matrix[] = {
    {OP_MATMUL, "cublaslt", cuda_matrix_launch, matrix_scratch},
    {OP_PROJECT, "cublaslt", cuda_matrix_launch, matrix_scratch},
    {OP_PROJECT_GRAD, "cublaslt", cuda_matrix_launch, matrix_scratch},
    {OP_LINEAR_GELU, "cublaslt", cuda_matrix_launch, matrix_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
