/* Sums over rows: of a value, of others like it, or of what is multiplied on the way. */
#include "ops/cuda/columns.cuh"
#include "ops/cuda/sums.h"
#include "ops/cuda/tensor.cuh"

/* ---- over the leading dimensions of a value ---- */

template <typename T, bool WHOLE> static void sum_matrices(const struct cuda_call *c, const struct columns &s)
{
    struct plain_rows<T, WHOLE> rows = {{(const T *)c->in[0]}};
    for (int k = 0; k < c->sums.n; k++)
        rows.x[1 + k] = (const T *)c->sums.of[k];
    launch_column_sums(c, s, rows, column_plan(s.rows, s.cols, packed<T>), 1 + c->sums.n);
}

static void sum_leading_launch(const struct cuda_call *c)
{
    struct columns s = {};
    s.cols = s.split = out_count(c, 0);
    s.rows = in_count(c, 0) / s.cols;
    s.to[0] = out_floats(c, 0);
    s.leave = c->leave;
    for (int k = 0; k < c->sums.n; k++)
        s.to[1 + k] = c->sums.to[k];
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (s.cols % packed<T> == 0)
            sum_matrices<T, true>(c, s);
        else
            sum_matrices<T, false>(c, s);
    });
}

static size_t sum_leading_scratch(const struct program *p, const struct op *op)
{
    const struct value *x = &p->values[op->in[0]];
    const int64_t period = shape_count(p->values[op->in[1]].shape);
    return column_scratch(shape_count(x->shape) / period, period, 16 / (int)dtype_size(x->dtype));
}

const struct cuda_kernel cuda_sums[] = {
    {OP_SUM_LEADING, "sum_leading", sum_leading_launch, sum_leading_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};

/* ---- of what is multiplied ---- */

/* du = dy * slope, and what is stored of it is added up. du may be the memory of dy or of the slope's values: a thread reads what it needs of
 * its numbers before it writes them. */
template <typename T, class Slope> struct multiplied_rows {
    static constexpr int P = packed<T>, AHEAD = 2, BLOCKS = 4;
    struct words { uint4 dy, at; };
    T *du;
    const T *dy, *at;
    __device__ inline words load(int64_t i, int) const { return {*(const uint4 *)(dy + i), __ldcs((const uint4 *)(at + i))}; }
    __device__ inline void add(float (&sum)[P], const words &w, int64_t i) const
    {
        float v[P];
#pragma unroll
        for (int k = 0; k < P; k++)
            v[k] = number_at<T>(w.dy, k) * Slope::of(number_at<T>(w.at, k));
        const uint4 to = words_of<T>(v);
#pragma unroll
        for (int k = 0; k < P; k++)
            sum[k] += number_at<T>(to, k);
        *(uint4 *)(du + i) = to;
    }
};

struct slope_itself { static __device__ inline float of(float slope) { return slope; } };
template <typename T> struct slope_of_gelu { static __device__ inline float of(float u) { return gelu_slope(u, gelu_gate_for<T>(u)); } };

template <typename T, class Slope> static void multiply_and_sum(const struct cuda_call *c, const void *dy, const void *at)
{
    struct columns s = {};
    s.cols = s.split = shape_last(cuda_out(c, 0)->shape);
    s.rows = out_count(c, 0) / s.cols;
    s.to[0] = c->sums.to[0];
    const struct multiplied_rows<T, Slope> rows = {(T *)c->out[0], (const T *)dy, (const T *)at};
    launch_column_sums(c, s, rows, column_plan(s.rows, s.cols, packed<T>), 1);
}

void cuda_multiply_and_sum(const struct cuda_call *c)
{
    with_type(cuda_out(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (c->beside)
            multiply_and_sum<T, slope_of_gelu<T>>(c, c->in[0] == c->beside ? c->in[1] : c->in[0], c->beside);
        else
            multiply_and_sum<T, slope_itself>(c, c->in[0], c->in[1]);
    });
}
