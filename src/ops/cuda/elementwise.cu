/* Ops that treat every element alike. An output may be the memory of an input of its shape: a thread reads what it needs of an element, or
 * of four in a row, before it writes it. */
#include "ops/cuda/columns.cuh"
#include "ops/cuda/device.cuh"

/* ---- y = f(a[, b]) ---- */

static bool fours(const void *a, const void *b, const void *c)
{
    return ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % sizeof(float4) == 0;
}

/* Four elements at a time where `wide` says that all of the memory is aligned for it; what is left over one by one. */
template <class F> static __global__ void map(float *y, const float *a, const float *b, int64_t n, bool wide, F f)
{
    const int64_t quads = wide ? n / 4 : 0;
    EACH(i, quads) {
        const float4 u = ((const float4 *)a)[i], v = ((const float4 *)b)[i];
        ((float4 *)y)[i] = make_float4(f(u.x, v.x), f(u.y, v.y), f(u.z, v.z), f(u.w, v.w));
    }
    EACH(i, n - 4 * quads)
        y[4 * quads + i] = f(a[4 * quads + i], b[4 * quads + i]);
}

template <class F> static void map_launch(const struct cuda_call *c, float *y, const float *a, const float *b, F f)
{
    const int64_t n = out_count(c, 0);
    const bool wide = fours(y, a, b);
    map<<<blocks_for(wide ? divide_up(n, 4) : n), THREADS, 0, c->stream>>>(y, a, b, n, wide, f);
}

template <class F> static void unary(const struct cuda_call *c)     /* b is read and not used: the compiler leaves it out */
{
    map_launch(c, out_floats(c, 0), in_floats(c, 0), in_floats(c, 0), F());
}

template <class F> static void binary(const struct cuda_call *c)
{
    map_launch(c, out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), F());
}

struct plus { __device__ float operator()(float a, float b) const { return a + b; } };
struct times { __device__ float operator()(float a, float b) const { return a * b; } };
struct gelu { __device__ float operator()(float x, float) const { return x * gelu_gate(x); } };
struct gelu_grad { __device__ float operator()(float x, float dy) const { return dy * gelu_slope(x, gelu_gate(x)); } };
struct silu { __device__ float operator()(float x, float) const { return x / (1 + expf(-x)); } };
struct silu_grad {
    __device__ float operator()(float x, float dy) const
    {
        const float s = sigmoid(x);
        return dy * s * (1 + x * (1 - s));
    }
};
struct swiglu { __device__ float operator()(float gate, float up) const { return gate / (1 + expf(-gate)) * up; } };

static __global__ void swiglu_grad(float *d_gate, float *d_up, const float *gate, const float *up, const float *dy, int64_t n)
{
    EACH(i, n) {
        const float g = gate[i], d = dy[i], s = sigmoid(g);
        d_up[i] = d * g * s;
        d_gate[i] = d * up[i] * s * (1 + g * (1 - s));
    }
}

static void swiglu_grad_launch(const struct cuda_call *c)
{
    const int64_t n = out_count(c, 0);
    swiglu_grad<<<blocks_for(n), THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), in_floats(c, 0), in_floats(c, 1),
                                                          in_floats(c, 2), n);
}

/* ---- over leading dimensions ---- */

/* i mod n; 64-bit division is many times as slow, and seldom needed. */
static __device__ inline int64_t modulo(int64_t i, int64_t n)
{
    return i <= UINT32_MAX && n <= UINT32_MAX ? (int64_t)((uint32_t)i % (uint32_t)n) : i % n;
}

static __global__ void add_repeated(float *y, const float *a, const float *b, int64_t n, int64_t period)
{
    EACH(i, n)
        y[i] = a[i] + b[modulo(i, period)];
}

static void add_launch(const struct cuda_call *c)
{
    const int64_t n = in_count(c, 0), period = in_count(c, 1);
    if (n == period)
        binary<plus>(c);
    else
        add_repeated<<<blocks_for(n), THREADS, 0, c->stream>>>(out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), n, period);
}

struct element_at {                 /* of a matrix (rows, cols) */
    const float *x;
    int64_t cols;
    __device__ void operator()(int64_t row, int64_t col, float *to) const { to[0] = x[row * cols + col]; }
};

static void sum_leading_launch(const struct cuda_call *c)
{
    const int64_t period = out_count(c, 0), rows = in_count(c, 0) / period;
    column_sums<1>(c->stream, {{out_floats(c, 0)}}, (float *)c->scratch, rows, period, element_at{in_floats(c, 0), period});
}

static size_t sum_leading_scratch(const struct program *p, const struct op *op)
{
    const int64_t period = shape_count(p->values[op->in[1]].shape);
    return column_scratch(1, shape_count(p->values[op->in[0]].shape) / period, period);
}

/* ---- dropout ---- */

static __global__ void dropout_kernel(float *y, const float *x, int64_t n, struct dropout d)
{
    EACH(block, (n + 3) / 4) {
        const struct philox random = dropout_block(d, block);
        for (int k = 0; k < 4 && 4 * block + k < n; k++)
            y[4 * block + k] = dropout_drops(d, random.x[k]) ? 0 : x[4 * block + k] * d.scale;
    }
}

static void dropout_launch(const struct cuda_call *c)
{
    const int64_t n = in_count(c, 0);
    dropout_kernel<<<blocks_for(divide_up(n, 4)), THREADS, 0, c->stream>>>(out_floats(c, 0), in_floats(c, 0), n,
                                                                           dropout_of(&c->op->attrs, c->in[1]));
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
static __global__ void accumulate(float *acc, const float *x, const float *weight, const int32_t *batch, int64_t n)
{
    const float by = weight ? *weight : 1;
    const bool first = batch && *batch == 1;
    EACH(i, n)
        acc[i] = (first ? 0 : acc[i]) + x[i] * by;
}

static void accumulate_launch(const struct cuda_call *c)
{
    const int64_t n = in_count(c, 1);
    const float *weight = c->op->n_in > 2 ? in_floats(c, 2) : NULL;
    const int32_t *batch = c->op->n_in > 3 ? (const int32_t *)c->in[3] : NULL;
    accumulate<<<blocks_for(n), THREADS, 0, c->stream>>>(out_floats(c, 0), in_floats(c, 1), weight, batch, n);
}

static __global__ void divide(float *y, const float *x, const float *by, int64_t n)
{
    const float divisor = *by;
    EACH(i, n)
        y[i] = x[i] / divisor;
}

static void divide_launch(const struct cuda_call *c)
{
    const int64_t n = in_count(c, 0);
    divide<<<blocks_for(n), THREADS, 0, c->stream>>>(out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), n);
}

static __global__ void causal_mask(float *y, int64_t rows)      /* (rows, rows) */
{
    EACH(i, rows * rows)
        y[i] = i % rows > i / rows ? -INFINITY : 0;
}

static void causal_mask_launch(const struct cuda_call *c)
{
    const int64_t rows = c->op->attrs.rows;
    causal_mask<<<blocks_for(rows * rows), THREADS, 0, c->stream>>>(out_floats(c, 0), rows);
}

/* ---- rotary positions ---- */

static __global__ void rope_table(float *cosine, float *sine, int64_t rows, int64_t cols, double base)     /* (rows, cols) */
{
    EACH(i, rows * cols) {
        const double angle = (double)(i / cols) * pow(base, -(double)(i % cols) / (double)cols);
        cosine[i] = (float)cos(angle);
        sine[i] = (float)sin(angle);
    }
}

static void rope_table_launch(const struct cuda_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    rope_table<<<blocks_for(a->rows * a->cols), THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), a->rows, a->cols,
                                                                         (double)a->base);
}

/* x (B, T, pairs, 2), cosine and sine (T, half); one thread turns one pair; sign: -1 turns back. A block has rows of its own. */
static __global__ void rope(float *y, const float *x, const float *cosine, const float *sine, int64_t rows, int64_t seq,
                            int64_t pairs, int64_t half, float sign)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        EACH_OF_BLOCK(j, pairs) {
            const int64_t at = row % seq * half + modulo(j, half), i = (row * pairs + j) * 2;
            const float co = cosine[at], si = sign * sine[at], u = x[i], v = x[i + 1];
            y[i] = u * co - v * si;
            y[i + 1] = u * si + v * co;
        }
}

static void rope_launch(const struct cuda_call *c)
{
    const struct shape s = cuda_in(c, 0)->shape;
    const int64_t rows = s.dim[0] * s.dim[1], pairs = s.dim[2] / 2, half = shape_last(cuda_in(c, 1)->shape);
    rope<<<blocks_of(rows), threads_for_row(2 * pairs), 0, c->stream>>>(out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), in_floats(c, 2),
                                                                       rows, s.dim[1], pairs, half, c->op->attrs.inverse ? -1.0f : 1.0f);
}

const struct cuda_kernel cuda_elementwise[] = {
    {OP_ADD, "add", add_launch, NULL},
    {OP_MUL, "mul", binary<times>, NULL},
    {OP_GELU, "gelu", unary<gelu>, NULL},
    {OP_GELU_GRAD, "gelu_grad", binary<gelu_grad>, NULL},
    {OP_SILU, "silu", unary<silu>, NULL},
    {OP_SILU_GRAD, "silu_grad", binary<silu_grad>, NULL},
    {OP_SWIGLU, "swiglu", binary<swiglu>, NULL},
    {OP_SWIGLU_GRAD, "swiglu_grad", swiglu_grad_launch, NULL},
    {OP_SUM_LEADING, "sum_leading", sum_leading_launch, sum_leading_scratch},
    {OP_DROPOUT, "dropout", dropout_launch, NULL},
    {OP_FILL, "fill", fill_launch, NULL},
    {OP_ZERO, "zero", zero_launch, NULL},
    {OP_HOST_READ, "host_read", host_read_launch, NULL},
    {OP_ACCUMULATE, "accumulate", accumulate_launch, NULL},
    {OP_DIVIDE, "divide", divide_launch, NULL},
    {OP_CAUSAL_MASK, "causal_mask", causal_mask_launch, NULL},
    {OP_ROPE_TABLE, "rope_table", rope_table_launch, NULL},
    {OP_ROPE, "rope", rope_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
