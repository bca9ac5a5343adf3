/* Ops that treat every element alike. An output may be the memory of an input of its shape: a thread reads what it needs of the elements
 * that it has before it writes them. Those of nodes of one level are one launch. */
#include "ops/cuda/items.cuh"
#include "ops/cuda/products.h"
#include "ops/cuda/sums.h"
#include "ops/cuda/types.cuh"

/* ---- y = f(a, b..): 16 bytes of the narrowest type at a time ---- */

template <int IN, int OUT> struct arrays {
    const void *in[IN];
    void *out[OUT];
};
template <int IN, int OUT> struct rows_of_arrays { struct arrays<IN, OUT> row[GROUP_MOST]; };       /* one for each row of blocks */

template <typename Y, typename A, typename B> constexpr int shared_pack = sizeof(Y) == 2 || sizeof(A) == 2 || sizeof(B) == 2 ? 8 : 4;
template <int IN> constexpr int packs_ahead = IN == 1 ? 2 : 1;      /* of every input: loads that are under way at once */

/* f(const float (&in)[IN], float (&out)[OUT]) for P elements from `at` on. Outputs are of type Y, the first input of A, others of B. */
template <typename Y, typename A, typename B, int P, int IN, int OUT> struct map_part {
    float x[IN][P];
    __device__ inline void load(const struct arrays<IN, OUT> &a, int64_t at)
    {
        load_pack<P>(x[0], (const A *)a.in[0] + at);
#pragma unroll
        for (int j = 1; j < IN; j++)
            load_pack<P>(x[j], (const B *)a.in[j] + at);
    }
    template <class F> __device__ inline void store(const struct arrays<IN, OUT> &a, int64_t at, const F &f)
    {
        float y[OUT][P];
#pragma unroll
        for (int i = 0; i < P; i++) {
            float in[IN], out[OUT];
#pragma unroll
            for (int j = 0; j < IN; j++)
                in[j] = x[j][i];
            f(in, out);
#pragma unroll
            for (int j = 0; j < OUT; j++)
                y[j][i] = out[j];
        }
#pragma unroll
        for (int j = 0; j < OUT; j++)
            store_pack<P>((Y *)a.out[j] + at, y[j]);
    }
};

/* The first `packs` packs, and what is left over one by one. */
template <typename Y, typename A, typename B, int IN, int OUT, class F>
static __global__ void map(const __grid_constant__ struct rows_of_arrays<IN, OUT> all, int64_t n, int64_t packs, const F f)
{
    const struct arrays<IN, OUT> a = all.row[blockIdx.y];
    constexpr int P = shared_pack<Y, A, B>, K = packs_ahead<IN>;
    const int64_t first = (int64_t)blockIdx.x * K * blockDim.x + threadIdx.x;
    struct map_part<Y, A, B, P, IN, OUT> part[K];
#pragma unroll
    for (int k = 0; k < K; k++)
        if (first + k * (int)blockDim.x < packs)
            part[k].load(a, (first + k * (int)blockDim.x) * P);
#pragma unroll
    for (int k = 0; k < K; k++)
        if (first + k * (int)blockDim.x < packs)
            part[k].store(a, (first + k * (int)blockDim.x) * P, f);
    EACH(i, n - packs * P) {
        struct map_part<Y, A, B, 1, IN, OUT> one;
        one.load(a, packs * P + i);
        one.store(a, packs * P + i, f);
    }
}

template <int IN, int OUT> static bool are_aligned(const struct arrays<IN, OUT> &a)
{
    bool aligned = true;
    for (int i = 0; i < IN; i++)
        aligned &= is_aligned(a.in[i], 32);
    for (int i = 0; i < OUT; i++)
        aligned &= is_aligned(a.out[i], 32);
    return aligned;
}

template <int IN, int OUT> static struct arrays<IN, OUT> arrays_of(const struct cuda_call *c)
{
    struct arrays<IN, OUT> a;
    for (int i = 0; i < IN; i++)
        a.in[i] = c->in[i];
    for (int i = 0; i < OUT; i++)
        a.out[i] = c->out[i];
    return a;
}

template <typename Y, typename A, typename B, int IN, int OUT, class F>
static void launch_map(const struct cuda_call *c, const struct arrays<IN, OUT> &a, int64_t n, const F &f)
{
    constexpr int P = shared_pack<Y, A, B>;
    struct rows_of_arrays<IN, OUT> all = {};
    bool wide = are_aligned(a);
    all.row[0] = a;
    for (int i = 0; i < c->n_also; i++) {
        all.row[1 + i] = arrays_of<IN, OUT>(c->also[i]);
        wide &= are_aligned(all.row[1 + i]);
    }
    const int64_t packs = wide ? n / P : 0;
    const unsigned threads = threads_at_once(packs);
    const unsigned blocks = wide ? blocks_at_once(packs, (int64_t)packs_ahead<IN> * threads) : blocks_for(n);
    map<Y, A, B><<<dim3(blocks, 1 + (unsigned)c->n_also), threads, 0, c->stream>>>(all, n, packs, f);
}

/* All inputs and outputs of one type, which F knows. */
template <template <typename> class F, int IN, int OUT> static void alike(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_map<T, T, T>(c, arrays_of<IN, OUT>(c), out_count(c, 0), F<T>());
    });
}

#define MAP(name, IN, OUT) template <typename T> struct name { __device__ void operator()(const float (&in)[IN], float (&out)[OUT]) const

MAP(times, 2, 1) { out[0] = in[0] * in[1]; } };
MAP(gelu, 1, 1) { out[0] = in[0] * gelu_gate_for<T>(in[0]); } };
MAP(gelu_grad, 2, 1) { out[0] = in[1] * gelu_slope(in[0], gelu_gate_for<T>(in[0])); } };
MAP(silu, 1, 1) { out[0] = silu_for<T>(in[0]); } };
MAP(swiglu, 2, 1) { out[0] = silu_for<T>(in[0]) * in[1]; } };
MAP(silu_grad, 2, 1)                /* x, dy -> dx */
{
    const float s = sigmoid_for<T>(in[0]);
    out[0] = in[1] * s * (1 + in[0] * (1 - s));
} };
MAP(swiglu_grad, 3, 2)              /* gate, up, dy -> dgate, dup */
{
    const float g = in[0], s = sigmoid_for<T>(g);
    out[0] = in[2] * in[1] * s * (1 + g * (1 - s));
    out[1] = in[2] * g * s;
} };

static void mul_launch(const struct cuda_call *c)
{
    if (c->sums.n)
        cuda_multiply_and_sum(c);
    else
        alike<times, 2, 1>(c);
}

/* du = dy * gelu'(u): dy is the input that is not u. */
static void gelu_sweep_launch(const struct cuda_call *c)
{
    if (c->sums.n) {
        cuda_multiply_and_sum(c);
        return;
    }
    with_type(cuda_out(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        const struct arrays<2, 1> a = {{c->beside, c->in[0] == c->beside ? c->in[1] : c->in[0]}, {c->out[0]}};
        launch_map<T, T, T>(c, a, out_count(c, 0), gelu_grad<T>());
    });
}

const struct cuda_kernel cuda_gelu_sweep = {OP_MUL, "gelu_slope", gelu_sweep_launch, NULL};

struct plus { __device__ void operator()(const float (&in)[2], float (&out)[1]) const { out[0] = in[0] + in[1]; } };
struct same { __device__ void operator()(const float (&in)[1], float (&out)[1]) const { out[0] = in[0]; } };

struct scaled {
    float by;
    __device__ void operator()(const float (&in)[1], float (&out)[1]) const { out[0] = by * in[0]; }
};

static void scale_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_map<T, T, T>(c, arrays_of<1, 1>(c), out_count(c, 0), scaled{c->op->attrs.scale});
    });
}

static void cast_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto from) {
        with_type(cuda_out(c, 0)->dtype, [&](auto to) {
            using A = decltype(from);
            launch_map<decltype(to), A, A>(c, arrays_of<1, 1>(c), out_count(c, 0), same());
        });
    });
}

/* ---- means: of n values, added in their order ---- */

template <typename T, int P, int BYTES>
static __global__ void mean(T *y, int64_t packs, int64_t from, const __grid_constant__ struct items<const T *, BYTES> all)
{
    EACH(i, packs) {
        float sum[P], more[P];
        load_pack<P>(sum, all.item[0] + from + i * P);
#pragma unroll 4
        for (int k = 1; k < all.n; k++) {
            load_pack<P>(more, all.item[k] + from + i * P);
#pragma unroll
            for (int j = 0; j < P; j++)
                sum[j] += more[j];
        }
#pragma unroll
        for (int j = 0; j < P; j++)
            sum[j] /= (float)all.n;
        store_pack<P>(y + from + i * P, sum);
    }
}

template <typename T> static void mean_typed(const struct cuda_call *c)
{
    constexpr int P = pack_size<T>();
    with_items<const T *>(c->op->n_in, [&](auto all) {
        T *y = (T *)c->out[0];
        const int64_t n = out_count(c, 0);
        bool wide = is_aligned(y, 16);
        if (c->op->n_in > all.MOST) {
            refuse(c);
            return;
        }
        for (all.n = 0; all.n < c->op->n_in; all.n++) {
            all.item[all.n] = (const T *)c->in[all.n];
            wide &= is_aligned(c->in[all.n], 16);
        }
        const int64_t packs = wide ? n / P : 0, rest = n - packs * P;
        if (packs > 0)
            mean<T, P><<<blocks_at_once(packs, THREADS), THREADS, 0, c->stream>>>(y, packs, (int64_t)0, all);
        if (rest > 0)
            mean<T, 1><<<blocks_for(rest), THREADS, 0, c->stream>>>(y, rest, packs * P, all);
    });
}

static void mean_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) { mean_typed<decltype(zero)>(c); });
}

/* ---- over leading dimensions ---- */

/* y (packs), b (period) of them, again and again. */
template <typename T, typename U, int P> static __global__ void add_repeated(T *y, const T *a, const U *b, int64_t packs, int64_t period)
{
    EACH(i, packs) {
        float x[P], more[P];
        load_pack<P>(x, a + i * P);
        load_pack<P>(more, b + modulo(i, period) * P);
#pragma unroll
        for (int k = 0; k < P; k++)
            x[k] += more[k];
        store_pack<P>(y + i * P, x);
    }
}

template <typename T, typename U> static void add_typed(const struct cuda_call *c)
{
    constexpr int P = shared_pack<T, T, U>;
    const int64_t n = in_count(c, 0), period = in_count(c, 1);
    T *y = (T *)c->out[0];
    const T *a = (const T *)c->in[0];
    const U *b = (const U *)c->in[1];
    const bool wide = period % P == 0 && is_aligned(y, 32) && is_aligned(a, 32) && is_aligned(b, 32);
    if (n == period)
        launch_map<T, T, U>(c, arrays_of<2, 1>(c), n, plus());
    else if (wide)
        add_repeated<T, U, P><<<blocks_at_once(n / P, threads_at_once(n / P)), threads_at_once(n / P), 0, c->stream>>>(y, a, b, n / P, period / P);
    else
        add_repeated<T, U, 1><<<blocks_at_once(n, THREADS), THREADS, 0, c->stream>>>(y, a, b, n, period);
}

static void add_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto a) {
        with_type(cuda_in(c, 1)->dtype, [&](auto b) { add_typed<decltype(a), decltype(b)>(c); });
    });
}

/* ---- constants, accumulators ---- */

static __global__ void fill(float *y, float value, int64_t n)
{
    EACH(i, n)
        y[i] = value;
}

static void fill_launch(const struct cuda_call *c)
{
    fill<<<blocks_for(out_count(c, 0)), THREADS, 0, c->stream>>>(out_floats(c, 0), c->op->attrs.value, out_count(c, 0));
}

static void zero_launch(const struct cuda_call *c) { cudaMemsetAsync(c->out[0], 0, value_bytes(cuda_out(c, 0)), c->stream); }

static void host_read_launch(const struct cuda_call *c)
{
    cudaMemcpyAsync(c->out[0], c->in[0], value_bytes(cuda_out(c, 0)), cudaMemcpyDefault, c->stream);
}

/* acc = acc + x * weight, without acc in the first batch. */
struct accumulate {
    const float *weight;            /* NULL: 1 */
    const int32_t *batch;           /* NULL: never the first */
    __device__ void operator()(const float (&in)[2], float (&out)[1]) const
    {
        out[0] = (batch && __ldg(batch) == 1 ? 0 : in[0]) + in[1] * (weight ? __ldg(weight) : 1);
    }
};

static void accumulate_launch(const struct cuda_call *c)
{
    const struct accumulate f = {c->op->n_in > 2 ? in_floats(c, 2) : NULL, c->op->n_in > 3 ? (const int32_t *)c->in[3] : NULL};
    launch_map<float, float, float>(c, arrays_of<2, 1>(c), in_count(c, 1), f);
}

struct divide {
    const float *by;
    __device__ void operator()(const float (&in)[1], float (&out)[1]) const { out[0] = in[0] / __ldg(by); }
};

static void divide_launch(const struct cuda_call *c)
{
    launch_map<float, float, float>(c, arrays_of<1, 1>(c), in_count(c, 0), divide{in_floats(c, 1)});
}

const struct cuda_kernel cuda_elementwise[] = {
    {OP_ADD, "add", add_launch, NULL},
    {OP_MUL, "mul", mul_launch, NULL},
    {OP_GELU, "gelu", alike<gelu, 1, 1>, NULL},
    {OP_GELU_GRAD, "gelu_grad", alike<gelu_grad, 2, 1>, NULL},
    {OP_SILU, "silu", alike<silu, 1, 1>, NULL},
    {OP_SILU_GRAD, "silu_grad", alike<silu_grad, 2, 1>, NULL},
    {OP_SWIGLU, "swiglu", alike<swiglu, 2, 1>, NULL},
    {OP_SWIGLU_GRAD, "swiglu_grad", alike<swiglu_grad, 3, 2>, NULL},
    {OP_SCALE, "scale", scale_launch, NULL},
    {OP_CAST, "cast", cast_launch, NULL},
    {OP_MEAN, "mean", mean_launch, NULL},
    {OP_FILL, "fill", fill_launch, NULL},
    {OP_ZERO, "zero", zero_launch, NULL},
    {OP_HOST_READ, "host_read", host_read_launch, NULL},
    {OP_ACCUMULATE, "accumulate", accumulate_launch, NULL},
    {OP_DIVIDE, "divide", divide_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
