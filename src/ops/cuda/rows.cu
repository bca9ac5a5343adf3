/* Softmax and its logarithm over the last dimension, and their gradients. Rows that fit stay in registers; what is wider is read twice, by
 * a block per row. */
#include "ops/cuda/row_parts.cuh"

enum { WIDE_THREADS = 1024 };

/* exp(x - most) summed over numbers whose largest is not known before. -inf adds nothing: a part may have nothing else. */
struct scaled_sum { float most, sum; };

static __device__ inline struct scaled_sum add_number(struct scaled_sum a, float x)
{
    if (!(fabsf(x) < INFINITY))
        a.sum = x == -INFINITY ? a.sum : NAN;
    else if (x <= a.most)
        a.sum += expf(x - a.most);
    else
        a = {x, a.sum * expf(a.most - x) + 1};
    return a;
}

/* ---- forward: y = e^(x - most) / sum, or x - most - log sum ---- */

template <bool LOG> static __device__ inline float softmax_of(float x, float most, float by)
{
    return LOG ? x - most - by : expf(x - most) / by;
}

template <typename T, int LANES, int E, bool LOG> static __global__ void softmax(float *y, const T *x, const struct rows s)
{
    constexpr int P = packed<T>;
    const struct row_place<LANES> at;
    const int width = (int)s.width;
    EACH_ROW(row, at, s.count) {
        const bool live = row < s.count;
        row_part<T, E> part = {};
        float most = -INFINITY, sum = 0, to[E];
        if (live)
            load_part(part, x + row * width, at.lane, at.lanes, width, width % P == 0);
#pragma unroll
        for (int e = 0; e < E; e++)
            most = in_row<P>(e, at.lane, at.lanes, width) ? fmaxf(most, part_at(part, e)) : most;
        most = row_reduce<LANES>(most, -INFINITY, max_of());
#pragma unroll
        for (int e = 0; e < E; e++)
            sum += in_row<P>(e, at.lane, at.lanes, width) ? expf(part_at(part, e) - most) : 0;
        sum = row_sum<LANES>(sum);
        const float by = LOG ? logf(sum) : sum;
#pragma unroll
        for (int e = 0; e < E; e++)
            to[e] = softmax_of<LOG>(part_at(part, e), most, by);
        if (live)
            store_part<P>(y + row * width, to, at.lane, at.lanes, width, width % P == 0);
    }
}

template <typename T, bool LOG> static __global__ void wide_softmax(float *to, const T *from, const struct rows s)
{
    for (int64_t row = blockIdx.x; row < s.count; row += gridDim.x) {
        const T *x = from + row * s.width;
        float *y = to + row * s.width;
        struct scaled_sum part = {-INFINITY, 0};
#pragma unroll 4
        EACH_OF_BLOCK(i, s.width)
            part = add_number(part, to_float(x[i]));
        const float most = block_max(part.most);
        const float sum = block_sum(part.sum == 0 ? 0 : part.sum * expf(part.most - most)), by = LOG ? logf(sum) : sum;
#pragma unroll 4
        EACH_OF_BLOCK(i, s.width)
            y[i] = softmax_of<LOG>(to_float(x[i]), most, by);
    }
}

/* ---- backward: dx = y (dy - sum of y dy); of the logarithm: dx = dy - e^y sum of dy ---- */

template <bool LOG> static __device__ inline float grad_term(float y, float dy) { return LOG ? dy : y * dy; }
template <bool LOG> static __device__ inline float grad_of(float y, float dy, float sum) { return LOG ? dy - expf(y) * sum : y * (dy - sum); }

template <typename T, int LANES, int E, bool LOG>
static __global__ void softmax_grad(T *dx, const float *y, const float *dy, const struct rows s)
{
    const struct row_place<LANES> at;
    const int width = (int)s.width;
    EACH_ROW(row, at, s.count) {
        const bool live = row < s.count;
        row_part<float, E> out = {}, d = {};
        float sum = 0, to[E];
        if (live) {
            load_part(out, y + row * width, at.lane, at.lanes, width, width % packed<float> == 0);
            load_part(d, dy + row * width, at.lane, at.lanes, width, width % packed<float> == 0);
        }
#pragma unroll
        for (int e = 0; e < E; e++)
            sum += grad_term<LOG>(part_at(out, e), part_at(d, e));
        sum = row_sum<LANES>(sum);
#pragma unroll
        for (int e = 0; e < E; e++)
            to[e] = grad_of<LOG>(part_at(out, e), part_at(d, e), sum);
        if (live)
            store_part<packed<float>>(dx + row * width, to, at.lane, at.lanes, width, width % packed<float> == 0);
    }
}

template <typename T, bool LOG> static __global__ void wide_softmax_grad(T *to, const float *from, const float *gradient, const struct rows s)
{
    for (int64_t row = blockIdx.x; row < s.count; row += gridDim.x) {
        const float *y = from + row * s.width, *dy = gradient + row * s.width;
        float part = 0;
#pragma unroll 4
        EACH_OF_BLOCK(i, s.width)
            part += grad_term<LOG>(y[i], dy[i]);
        const float sum = block_sum(part);
#pragma unroll 4
        EACH_OF_BLOCK(i, s.width)
            to[row * s.width + i] = from_float<T>(grad_of<LOG>(y[i], dy[i], sum));
    }
}

/* ---- launches ---- */

/* As with_parts, in fewer steps: these are not what trains. */
template <class F> static void with_few_parts(int64_t width, const F &f)
{
    if (width <= 256)
        f(constant<WARP>(), constant<8>());
    else if (width <= 1024)
        f(constant<WARP>(), constant<32>());
    else
        f(constant<0>(), constant<ROW_BLOCK_NUMBERS>());
}

template <typename T, bool LOG> static void softmax_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    const T *x = (const T *)c->in[0];
    if (s.width > ROW_MOST)
        wide_softmax<T, LOG><<<blocks_of(s.count), WIDE_THREADS, 0, c->stream>>>(out_floats(c, 0), x, s);
    else
        with_few_parts(s.width, [&](auto lanes, auto numbers) {
            const struct row_grid grid = row_grid(s, lanes());
            softmax<T, lanes(), numbers(), LOG><<<grid.blocks, grid.threads, 0, c->stream>>>(out_floats(c, 0), x, s);
        });
}

template <typename T, bool LOG> static void softmax_grad_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    T *dx = (T *)c->out[0];
    if (s.width > ROW_MOST)
        wide_softmax_grad<T, LOG><<<blocks_of(s.count), WIDE_THREADS, 0, c->stream>>>(dx, in_floats(c, 0), in_floats(c, 1), s);
    else
        with_few_parts(s.width, [&](auto lanes, auto numbers) {
            const struct row_grid grid = row_grid(s, lanes());
            softmax_grad<T, lanes(), numbers(), LOG><<<grid.blocks, grid.threads, 0, c->stream>>>(dx, in_floats(c, 0), in_floats(c, 1), s);
        });
}

static void log_softmax_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) { softmax_launch<decltype(zero), true>(c); });
}

static void log_softmax_grad_launch(const struct cuda_call *c)
{
    with_type(cuda_out(c, 0)->dtype, [&](auto zero) { softmax_grad_launch<decltype(zero), true>(c); });
}

const struct cuda_kernel cuda_rows[] = {
    {OP_SOFTMAX, "softmax", softmax_launch<float, false>, NULL},
    {OP_SOFTMAX_GRAD, "softmax_grad", softmax_grad_launch<float, false>, NULL},
    {OP_LOG_SOFTMAX, "log_softmax", log_softmax_launch, NULL},
    {OP_LOG_SOFTMAX_GRAD, "log_softmax_grad", log_softmax_grad_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
