/* Gradients of norms: with z = (x - mean) rstd and g = dy gain, dx = rstd (g - mean(g) - z mean(g z)); RMS: without means. dgain is the sum
 * of dy z over all rows, dshift that of dy. One sweep: blocks go through rows, write dx and keep the sums over their rows in registers; a
 * second kernel sums those of all blocks. How many blocks there are depends on the shape alone. */
#include "ops/cuda/columns.cuh"
#include "ops/cuda/row_parts.cuh"

enum { GRAD_THREADS = 256, FEW_ROWS_THREADS = 1024, GRAD_BLOCKS = 256 };

template <typename T> struct norm_grad {
    T *dx;                                  /* (rows, width); may be the memory of dy */
    const T *dy, *x, *more;                 /* (rows, width); more is added to dx; NULL: nothing is */
    const float *gain, *mean, *rstd;        /* (width), (rows) or NULL, (rows) */
    float *d_gain, *d_shift;                /* (width) for every block, `stride` apart */
    int64_t stride;
};

/* What a thread has summed for its columns of the row; `to` gets the sums of all of the block. Groups of a warp are summed in registers,
 * warps through `shared` (warps, width). Where a block has one row at a time, a thread's sums are the block's. */
template <typename T, int LANES, int E>
static __device__ inline void store_sums(float *to, float (&sums)[E], float *shared, const struct row_place<LANES> &at, int width)
{
    constexpr int P = packed<T>;
    if constexpr (LANES == 0) {
        store_part<P>(to, sums, at.lane, at.lanes, width);
    } else {
        const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
        for (int e = 0; e < E; e++)
            for (int d = LANES; d < WARP; d *= 2)
                sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], d);
        if (LANES == WARP || threadIdx.x % WARP < LANES)
            store_part<P>(shared + warp * width, sums, at.lane, at.lanes, width);
        __syncthreads();
        for (int col = threadIdx.x; col < width; col += blockDim.x) {
            float all = 0;
#pragma unroll 8
            for (int w = 0; w < warps; w++)
                all += shared[w * width + col];
            to[col] = all;
        }
        __syncthreads();            /* before `shared` is used again */
    }
}

/* How many blocks a multiprocessor should have room for: two where their registers allow it. */
template <typename T, int LANES, int E, bool CENTRED> constexpr int grad_residents = LANES && E > 8 && sizeof(T) == 2 && E * (1 + CENTRED) <= 48 ? 2 : 1;

template <typename T, int LANES, int E, bool CENTRED>
static __global__ void __launch_bounds__(E == 8 ? FEW_ROWS_THREADS : LANES ? GRAD_THREADS : 512, (grad_residents<T, LANES, E, CENTRED>))
norm_grad_kernel(const struct norm_grad<T> a, const struct rows s)
{
    constexpr int P = packed<T>;
    extern __shared__ __align__(32) float shared[];
    const struct row_place<LANES> at;
    const int width = (int)s.width;
    float d_gain[E] = {0}, d_shift[CENTRED ? E : 1] = {0};
    EACH_ROW(row, at, s.count) {
        const bool live = row < s.count;
        row_part<T, E> dy = {}, x = {}, more = {};
        float gain[E] = {0}, rstd = 0, mean = 0, sum_g = 0, sum_gz = 0;
        if (live) {
            load_part(dy, a.dy + row * width, at.lane, at.lanes, width);
            load_part(x, a.x + row * width, at.lane, at.lanes, width);
            if (a.more)
                load_part(more, a.more + row * width, at.lane, at.lanes, width);
            rstd = a.rstd[row];
            mean = CENTRED ? a.mean[row] : 0;
            load_beside<P>(gain, a.gain, at.lane, at.lanes, width);
        }
#pragma unroll
        for (int e = 0; e < E; e++) {
            const float d = part_at(dy, e), z = (part_at(x, e) - mean) * rstd, g = d * gain[e];
            sum_g += g;
            sum_gz += g * z;
            d_gain[e] += d * z;
            if (CENTRED)
                d_shift[e] += d;
        }
        const float mean_g = CENTRED ? row_sum<LANES>(sum_g) / (float)width : 0, mean_gz = row_sum<LANES>(sum_gz) / (float)width;
#pragma unroll
        for (int e = 0; e < E; e++) {
            const float z = (part_at(x, e) - mean) * rstd;
            gain[e] = rstd * (part_at(dy, e) * gain[e] - mean_g - z * mean_gz) + (a.more ? part_at(more, e) : 0);
        }
        if (live)
            store_part<P>(a.dx + row * width, gain, at.lane, at.lanes, width);
    }
    store_sums<T, LANES, E>(a.d_gain + blockIdx.x * a.stride, d_gain, shared, at, width);
    if constexpr (CENTRED)
        store_sums<T, LANES, E>(a.d_shift + blockIdx.x * a.stride, d_shift, shared, at, width);
}

/* ---- rows of any width: first the sums, because dx may be the memory of dy ---- */

template <typename T, bool CENTRED> static __global__ void wide_gain_kernel(const struct norm_grad<T> a, const struct rows s)
{
    EACH(col, s.width) {
        float d_gain = 0, d_shift = 0;
        for (int64_t row = 0; row < s.count; row++) {
            const float d = to_float(a.dy[row * s.width + col]);
            d_gain += d * (to_float(a.x[row * s.width + col]) - (CENTRED ? a.mean[row] : 0)) * a.rstd[row];
            d_shift += d;
        }
        a.d_gain[col] = d_gain;
        if (CENTRED)
            a.d_shift[col] = d_shift;
    }
}

template <typename T, bool CENTRED> static __global__ void wide_grad_kernel(const struct norm_grad<T> a, const struct rows s)
{
    for (int64_t row = blockIdx.x; row < s.count; row += gridDim.x) {
        const T *dy = a.dy + row * s.width, *x = a.x + row * s.width;
        const float rstd = a.rstd[row], mean = CENTRED ? a.mean[row] : 0;
        float sum_g = 0, sum_gz = 0;
        EACH_OF_BLOCK(i, s.width) {
            const float g = to_float(dy[i]) * a.gain[i];
            sum_g += g;
            sum_gz += g * (to_float(x[i]) - mean) * rstd;
        }
        const float mean_g = CENTRED ? block_sum(sum_g) / (float)s.width : 0, mean_gz = block_sum(sum_gz) / (float)s.width;
        EACH_OF_BLOCK(i, s.width) {
            const float z = (to_float(x[i]) - mean) * rstd, d = rstd * (to_float(dy[i]) * a.gain[i] - mean_g - z * mean_gz);
            a.dx[row * s.width + i] = from_float<T>(a.more ? d + to_float(a.more[row * s.width + i]) : d);
        }
    }
}

/* ---- launches ---- */

/* The number of threads that have a row; 0: a block. As with_parts. */
static int lanes_of(int64_t width) { return width <= 64 ? 8 : width <= 128 ? 16 : width <= 1024 ? WARP : 0; }

/* Few short rows are one block's, and no sums are left to add; else each group of threads has a row or more. */
static struct row_grid grad_grid(struct rows s)
{
    const int lanes = lanes_of(s.width);
    if (lanes == 0)
        return {(unsigned)at_most(s.count, 2 * GRAD_BLOCKS), row_grid(s, 0).threads};
    if (s.width <= 256 && s.count * lanes <= FEW_ROWS_THREADS)
        return {1, (unsigned)divide_up(s.count * lanes, WARP) * WARP};
    return {(unsigned)at_most(divide_up(s.count, GRAD_THREADS / lanes), GRAD_BLOCKS), GRAD_THREADS};
}

static size_t norm_grad_scratch(const struct program *p, const struct op *op)
{
    const struct rows s = rows_of(p->values[op->in[1]].shape);
    const size_t blocks = s.width > ROW_MOST ? 1 : grad_grid(s).blocks;
    return blocks > 1 ? blocks * (size_t)s.width * (op->kind == OP_LAYERNORM_GRAD ? 2 : 1) * sizeof(float) : 0;
}

template <typename T, bool CENTRED> static void launch_wide(const struct cuda_call *c, const struct norm_grad<T> &a, struct rows s)
{
    wide_gain_kernel<T, CENTRED><<<blocks_for(s.width), THREADS, 0, c->stream>>>(a, s);
    wide_grad_kernel<T, CENTRED><<<blocks_of(s.count), 1024, 0, c->stream>>>(a, s);
}

template <typename T, bool CENTRED> static void launch_grad(const struct cuda_call *c, struct norm_grad<T> a, struct rows s)
{
    const struct row_grid grid = grad_grid(s);
    float *const d_gain = a.d_gain, *const d_shift = a.d_shift, *const parts = (float *)c->scratch;
    if (grid.blocks > 1) {                  /* parts (blocks, CENTRED ? 2 : 1, width) */
        a.stride = s.width * (CENTRED ? 2 : 1);
        a.d_gain = parts;
        a.d_shift = parts + s.width;
    }
    with_parts(s.width, [&](auto lanes, auto numbers) {
        const size_t shared = lanes() ? grid.threads / WARP * (size_t)s.width * sizeof(float) : 0;
        norm_grad_kernel<T, lanes(), numbers(), CENTRED><<<grid.blocks, grid.threads, shared, c->stream>>>(a, s);
    });
    if (grid.blocks > 1)
        sum_partial_columns(c->stream, d_gain, d_shift, s.width, parts, grid.blocks, a.stride);
}

/* Inputs: dy, x, gain[, mean], rstd[, more]; outputs: dx, dgain[, dshift]. */
template <bool CENTRED> static void norm_grad_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        const struct rows s = rows_of(cuda_in(c, 1)->shape);
        const int last = 4 + CENTRED;
        struct norm_grad<T> a = {};
        a.dx = (T *)c->out[0];
        a.dy = (const T *)c->in[0];
        a.x = (const T *)c->in[1];
        a.more = c->op->n_in > last ? (const T *)c->in[last] : NULL;
        a.gain = in_floats(c, 2);
        a.mean = CENTRED ? in_floats(c, 3) : NULL;
        a.rstd = in_floats(c, 3 + CENTRED);
        a.d_gain = out_floats(c, 1);
        a.d_shift = CENTRED ? out_floats(c, 2) : NULL;
        if (s.width > ROW_MOST)
            launch_wide<T, CENTRED>(c, a, s);
        else
            launch_grad<T, CENTRED>(c, a, s);
    });
}

const struct cuda_kernel cuda_norm_grads[] = {
    {OP_LAYERNORM_GRAD, "layernorm_grad", norm_grad_launch<true>, norm_grad_scratch},
    {OP_RMSNORM_GRAD, "rmsnorm_grad", norm_grad_launch<false>, norm_grad_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
