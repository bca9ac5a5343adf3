/* Norms over the last dimension, with or without a sum in front. A row is read once and stays in registers; what is wider than that takes
 * a block per row, which reads it again. Those of nodes of one level are one launch. */
#include "ops/cuda/row_parts.cuh"

template <typename T> struct norm_call {
    T *y, *sum;                             /* (rows, width), (rows, width) or NULL */
    float *mean, *rstd;                     /* (rows) or NULL, (rows) */
    const T *x, *more;                      /* (rows, width); more is added to x, and `sum` gets that; NULL: x alone */
    const float *gain, *shift;              /* (width), (width) or NULL */
    float eps;
};
template <typename T> struct norm_calls { struct norm_call<T> call[GROUP_MOST]; };     /* one for each row of blocks */

/* x[e] = the row's numbers, or the sums as they are stored on the way: what makes the norm again makes it of these. */
template <bool WHOLE, int E, typename T, class Place>
static __device__ inline void load_terms(float (&x)[E], const struct norm_call<T> &a, const Place &at, int64_t row, int width)
{
    row_part<T, E> part, more;
    load_part(part, a.x + row * width, at.lane, at.lanes, width, WHOLE);
    if (a.more)
        load_part(more, a.more + row * width, at.lane, at.lanes, width, WHOLE);
#pragma unroll
    for (int e = 0; e < E; e++)
        x[e] = a.more ? to_float(from_float<T>(part_at(part, e) + part_at(more, e))) : part_at(part, e);
    if (a.more)
        store_part<packed<T>>(a.sum + row * width, x, at.lane, at.lanes, width, WHOLE);
}

/* CENTRED: a layer norm, which takes the mean off; otherwise RMS. */
template <typename T, int LANES, int E, bool WHOLE, bool CENTRED>
static __global__ void norm_kernel(const __grid_constant__ struct norm_calls<T> all, const struct rows s)
{
    const struct norm_call<T> a = all.call[blockIdx.y];
    constexpr int P = packed<T>;
    const struct row_place<LANES> at;
    const int width = (int)s.width;
    EACH_ROW(row, at, s.count) {
        const bool live = row < s.count;
        float x[E] = {0}, gain[E] = {0}, sum = 0, squares = 0;
        if (live) {
            load_terms<WHOLE>(x, a, at, row, width);
            load_beside<P>(gain, a.gain, at.lane, at.lanes, width, WHOLE);
        }
        if (CENTRED) {
#pragma unroll
            for (int e = 0; e < E; e++)
                sum += x[e];
            sum = row_sum<LANES>(sum) / (float)width;
        }
#pragma unroll
        for (int e = 0; e < E; e++) {
            x[e] -= CENTRED ? sum : 0;
            squares += !CENTRED || in_row<P>(e, at.lane, at.lanes, width) ? x[e] * x[e] : 0;
        }
        const float rstd = 1 / sqrtf(row_sum<LANES>(squares) / (float)width + a.eps);
        if (!live)
            continue;
#pragma unroll
        for (int e = 0; e < E; e++)
            x[e] *= rstd * gain[e];
        if (CENTRED) {
            load_beside<P>(gain, a.shift, at.lane, at.lanes, width, WHOLE);
#pragma unroll
            for (int e = 0; e < E; e++)
                x[e] += gain[e];
        }
        store_part<P>(a.y + row * width, x, at.lane, at.lanes, width, WHOLE);
        if (at.lane == 0) {
            a.rstd[row] = rstd;
            if (CENTRED)
                a.mean[row] = sum;
        }
    }
}

/* ---- rows of any width ---- */

template <typename T> static __device__ inline float term_at(const struct norm_call<T> &a, int64_t i)
{
    return a.more ? to_float(from_float<T>(to_float(a.x[i]) + to_float(a.more[i]))) : to_float(a.x[i]);
}

template <typename T, bool CENTRED> static __global__ void wide_norm_kernel(const __grid_constant__ struct norm_calls<T> all, const struct rows s)
{
    const struct norm_call<T> a = all.call[blockIdx.y];
    for (int64_t row = blockIdx.x; row < s.count; row += gridDim.x) {
        const int64_t from = row * s.width;
        float part = 0, squares = 0;
        EACH_OF_BLOCK(i, CENTRED ? s.width : 0)
            part += term_at(a, from + i);
        const float mean = CENTRED ? block_sum(part) / (float)s.width : 0;
        EACH_OF_BLOCK(i, s.width)
            squares += (term_at(a, from + i) - mean) * (term_at(a, from + i) - mean);
        const float rstd = 1 / sqrtf(block_sum(squares) / (float)s.width + a.eps);
        EACH_OF_BLOCK(i, s.width) {
            const float x = term_at(a, from + i), z = (x - mean) * rstd * a.gain[i];
            if (a.more)
                a.sum[from + i] = from_float<T>(x);
            a.y[from + i] = from_float<T>(CENTRED ? z + a.shift[i] : z);
        }
        if (threadIdx.x == 0) {
            a.rstd[row] = rstd;
            if (CENTRED)
                a.mean[row] = mean;
        }
    }
}

/* ---- launches ---- */

template <bool CENTRED, typename T> static void launch_norms(const struct cuda_call *c, const struct norm_calls<T> &all)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    const unsigned n = 1 + (unsigned)c->n_also;
    if (s.width > ROW_MOST) {
        wide_norm_kernel<T, CENTRED><<<dim3(blocks_of(s.count), n), 1024, 0, c->stream>>>(all, s);
        return;
    }
    with_parts<packed<T>>(s.width, [&](auto lanes, auto numbers, auto whole) {
        const struct row_grid grid = row_grid(s, lanes());
        norm_kernel<T, lanes(), numbers(), whole(), CENTRED><<<dim3(grid.blocks, n), grid.threads, 0, c->stream>>>(all, s);
    });
}

/* Inputs: x[, more], gain[, shift]; outputs: y[, sum][, mean], rstd. */
template <bool CENTRED, bool ADDED, typename T> static struct norm_call<T> norm_of(const struct cuda_call *c)
{
    struct norm_call<T> a = {};
    a.x = (const T *)c->in[0];
    a.more = ADDED ? (const T *)c->in[1] : NULL;
    a.gain = in_floats(c, 1 + ADDED);
    a.shift = CENTRED ? in_floats(c, 2 + ADDED) : NULL;
    a.y = (T *)c->out[0];
    a.sum = ADDED ? (T *)c->out[1] : NULL;
    a.mean = CENTRED ? out_floats(c, 1 + ADDED) : NULL;
    a.rstd = out_floats(c, 1 + ADDED + CENTRED);
    a.eps = c->op->attrs.eps;
    return a;
}

template <bool CENTRED, bool ADDED> static void norm_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        struct norm_calls<T> all = {};
        all.call[0] = norm_of<CENTRED, ADDED, T>(c);
        for (int i = 0; i < c->n_also; i++)
            all.call[1 + i] = norm_of<CENTRED, ADDED, T>(c->also[i]);
        launch_norms<CENTRED>(c, all);
    });
}

const struct cuda_kernel cuda_norms[] = {
    {OP_LAYERNORM, "layernorm", norm_launch<true, false>, NULL},
    {OP_RMSNORM, "rmsnorm", norm_launch<false, false>, NULL},
    {OP_ADD_LAYERNORM, "add_layernorm", norm_launch<true, true>, NULL},
    {OP_ADD_RMSNORM, "add_rmsnorm", norm_launch<false, true>, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
