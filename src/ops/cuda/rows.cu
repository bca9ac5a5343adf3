/* Ops that work row by row over the last dimension: norms and softmax. A block takes a row; each thread always takes the same elements of
 * it, so that an output may be the memory of an input. */
#include "ops/cuda/columns.cuh"
#include "ops/cuda/device.cuh"

#define EACH_ROW(row, rows) for (int64_t row = blockIdx.x; row < (rows); row += gridDim.x)

struct rows { int64_t count, width; };

static struct rows rows_of(struct shape s)
{
    const int64_t width = shape_last(s);
    return {shape_count(s) / width, width};
}

#define ROW_LAUNCH(kernel, c, s) kernel<<<blocks_of((s).count), threads_for_row((s).width), 0, (c)->stream>>>

/* ---- norms ---- */

struct norm {
    float *y, *sum, *mean, *rstd;           /* (rows, width), (rows, width) or NULL, (rows) or NULL, (rows) */
    const float *x, *more;                  /* (rows, width); more is added to x, and `sum` gets that; NULL: x alone */
    const float *gain, *shift;              /* (width), (width) or NULL */
    float eps;
};

/* CENTRED: a layer norm, which takes the mean off; otherwise RMS. */
template <bool CENTRED> static __global__ void norm_kernel(struct norm a, struct rows s)
{
    EACH_ROW(row, s.count) {
        const float *x = (a.sum ? a.sum : a.x) + row * s.width;
        float part = 0, squares = 0;
        EACH_OF_BLOCK(i, s.width) {
            if (a.sum)
                a.sum[row * s.width + i] = a.x[row * s.width + i] + a.more[row * s.width + i];
            part += CENTRED ? x[i] : 0;
        }
        const float mean = CENTRED ? block_sum(part) / (float)s.width : 0;
        EACH_OF_BLOCK(i, s.width)
            squares += (x[i] - mean) * (x[i] - mean);
        const float rstd = 1 / sqrtf(block_sum(squares) / (float)s.width + a.eps);
        EACH_OF_BLOCK(i, s.width) {
            const float z = (x[i] - mean) * rstd * a.gain[i];
            a.y[row * s.width + i] = CENTRED ? z + a.shift[i] : z;
        }
        if (threadIdx.x == 0) {
            a.rstd[row] = rstd;
            if (CENTRED)
                a.mean[row] = mean;
        }
    }
}

static void layernorm_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    const struct norm a = {out_floats(c, 0), NULL, out_floats(c, 1), out_floats(c, 2), in_floats(c, 0), NULL,
                           in_floats(c, 1), in_floats(c, 2), c->op->attrs.eps};
    ROW_LAUNCH(norm_kernel<true>, c, s)(a, s);
}

static void rmsnorm_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    const struct norm a = {out_floats(c, 0), NULL, NULL, out_floats(c, 1), in_floats(c, 0), NULL, in_floats(c, 1), NULL,
                           c->op->attrs.eps};
    ROW_LAUNCH(norm_kernel<false>, c, s)(a, s);
}

static void add_layernorm_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    const struct norm a = {out_floats(c, 0), out_floats(c, 1), out_floats(c, 2), out_floats(c, 3), in_floats(c, 0), in_floats(c, 1),
                           in_floats(c, 2), in_floats(c, 3), c->op->attrs.eps};
    ROW_LAUNCH(norm_kernel<true>, c, s)(a, s);
}

static void add_rmsnorm_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    const struct norm a = {out_floats(c, 0), out_floats(c, 1), NULL, out_floats(c, 2), in_floats(c, 0), in_floats(c, 1),
                           in_floats(c, 2), NULL, c->op->attrs.eps};
    ROW_LAUNCH(norm_kernel<false>, c, s)(a, s);
}

/* ---- gradients of norms: with z = (x - mean) rstd and g = dy gain, dx = rstd (g - mean(g) - z mean(g z)); RMS: no means ---- */

struct norm_grad {
    float *dx;                              /* (rows, width) */
    const float *dy, *x, *gain;             /* (rows, width), (rows, width), (width) */
    const float *mean, *rstd;               /* (rows) or NULL, (rows) */
    const float *more;                      /* (rows, width), added to dx; NULL: nothing is */
};

template <bool CENTRED> static __global__ void norm_grad_kernel(struct norm_grad a, struct rows s)
{
    EACH_ROW(row, s.count) {
        const float *dy = a.dy + row * s.width, *x = a.x + row * s.width, rstd = a.rstd[row], mean = CENTRED ? a.mean[row] : 0;
        float sum_g = 0, sum_gz = 0;
        EACH_OF_BLOCK(i, s.width) {
            const float g = dy[i] * a.gain[i];
            sum_g += g;
            sum_gz += g * (x[i] - mean) * rstd;
        }
        const float mean_g = CENTRED ? block_sum(sum_g) / (float)s.width : 0, mean_gz = block_sum(sum_gz) / (float)s.width;
        EACH_OF_BLOCK(i, s.width) {
            const float z = (x[i] - mean) * rstd, d = rstd * (dy[i] * a.gain[i] - mean_g - z * mean_gz);
            a.dx[row * s.width + i] = a.more ? d + a.more[row * s.width + i] : d;
        }
    }
}

struct gain_terms {                         /* of the gradients of gain, dy z, and shift, dy */
    const float *dy, *x, *mean, *rstd;
    int64_t width;
    bool shift;
    __device__ void operator()(int64_t row, int64_t col, float *to) const
    {
        const float d = dy[row * width + col];
        to[0] = d * (x[row * width + col] - (shift ? mean[row] : 0)) * rstd[row];
        if (shift)
            to[1] = d;
    }
};

/* The sums over rows come first: dx may be the memory of dy. */
static void layernorm_grad_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 1)->shape);
    const struct norm_grad a = {out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), in_floats(c, 2), in_floats(c, 3), in_floats(c, 4),
                                c->op->n_in > 5 ? in_floats(c, 5) : NULL};
    column_sums<2>(c->stream, {{out_floats(c, 1), out_floats(c, 2)}}, (float *)c->scratch, s.count, s.width,
                   gain_terms{a.dy, a.x, a.mean, a.rstd, s.width, true});
    ROW_LAUNCH(norm_grad_kernel<true>, c, s)(a, s);
}

static void rmsnorm_grad_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 1)->shape);
    const struct norm_grad a = {out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), in_floats(c, 2), NULL, in_floats(c, 3),
                                c->op->n_in > 4 ? in_floats(c, 4) : NULL};
    column_sums<1>(c->stream, {{out_floats(c, 1)}}, (float *)c->scratch, s.count, s.width,
                   gain_terms{a.dy, a.x, NULL, a.rstd, s.width, false});
    ROW_LAUNCH(norm_grad_kernel<false>, c, s)(a, s);
}

static size_t norm_grad_scratch(const struct program *p, const struct op *op)
{
    const struct rows s = rows_of(p->values[op->in[1]].shape);
    return column_scratch(op->kind == OP_LAYERNORM_GRAD ? 2 : 1, s.count, s.width);
}

/* ---- softmax ---- */

static __device__ float row_max(const float *x, int64_t n)
{
    float most = -INFINITY;
    EACH_OF_BLOCK(i, n)
        most = fmaxf(most, x[i]);
    return block_max(most);
}

static __global__ void softmax(float *to, const float *from, struct rows s)
{
    EACH_ROW(row, s.count) {
        const float *x = from + row * s.width, most = row_max(x, s.width);
        float *y = to + row * s.width, part = 0;
        EACH_OF_BLOCK(i, s.width)
            part += y[i] = expf(x[i] - most);
        const float sum = block_sum(part);
        EACH_OF_BLOCK(i, s.width)
            y[i] = y[i] / sum;
    }
}

static __global__ void log_softmax(float *to, const float *from, struct rows s)
{
    EACH_ROW(row, s.count) {
        const float *x = from + row * s.width, most = row_max(x, s.width);
        float *y = to + row * s.width, part = 0;
        EACH_OF_BLOCK(i, s.width)
            part += expf(x[i] - most);
        const float log_sum = logf(block_sum(part));
        EACH_OF_BLOCK(i, s.width)
            y[i] = x[i] - most - log_sum;
    }
}

/* dx = y (dy - sum of y dy) */
static __global__ void softmax_grad(float *to, const float *weights, const float *gradient, struct rows s)
{
    EACH_ROW(row, s.count) {
        const float *y = weights + row * s.width, *dy = gradient + row * s.width;
        float part = 0;
        EACH_OF_BLOCK(i, s.width)
            part += y[i] * dy[i];
        const float dot = block_sum(part);
        EACH_OF_BLOCK(i, s.width)
            to[row * s.width + i] = y[i] * (dy[i] - dot);
    }
}

/* dx = dy - e^y sum of dy */
static __global__ void log_softmax_grad(float *to, const float *logs, const float *gradient, struct rows s)
{
    EACH_ROW(row, s.count) {
        const float *y = logs + row * s.width, *dy = gradient + row * s.width;
        float part = 0;
        EACH_OF_BLOCK(i, s.width)
            part += dy[i];
        const float sum = block_sum(part);
        EACH_OF_BLOCK(i, s.width)
            to[row * s.width + i] = dy[i] - expf(y[i]) * sum;
    }
}

template <void (*kernel)(float *, const float *, struct rows)> static void softmax_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    ROW_LAUNCH(kernel, c, s)(out_floats(c, 0), in_floats(c, 0), s);
}

template <void (*kernel)(float *, const float *, const float *, struct rows)> static void softmax_grad_launch(const struct cuda_call *c)
{
    const struct rows s = rows_of(cuda_in(c, 0)->shape);
    ROW_LAUNCH(kernel, c, s)(out_floats(c, 0), in_floats(c, 0), in_floats(c, 1), s);
}

const struct cuda_kernel cuda_rows[] = {
    {OP_LAYERNORM, "layernorm", layernorm_launch, NULL},
    {OP_LAYERNORM_GRAD, "layernorm_grad", layernorm_grad_launch, norm_grad_scratch},
    {OP_RMSNORM, "rmsnorm", rmsnorm_launch, NULL},
    {OP_RMSNORM_GRAD, "rmsnorm_grad", rmsnorm_grad_launch, norm_grad_scratch},
    {OP_ADD_LAYERNORM, "add_layernorm", add_layernorm_launch, NULL},
    {OP_ADD_RMSNORM, "add_rmsnorm", add_rmsnorm_launch, NULL},
    {OP_SOFTMAX, "softmax", softmax_launch<softmax>, NULL},
    {OP_SOFTMAX_GRAD, "softmax_grad", softmax_grad_launch<softmax_grad>, NULL},
    {OP_LOG_SOFTMAX, "log_softmax", softmax_launch<log_softmax>, NULL},
    {OP_LOG_SOFTMAX_GRAD, "log_softmax_grad", softmax_grad_launch<log_softmax_grad>, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
