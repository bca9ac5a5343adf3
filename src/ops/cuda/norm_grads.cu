/* Gradients of norms: with z = (x - mean) rstd and g = dy gain, dx = rstd (g - mean(g) - z mean(g z)); RMS: without means. dgain is the sum
 * of dy z over all rows, dshift that of dy. One sweep: blocks go through rows, write dx and keep the sums over their rows in registers. A
 * second kernel sums those of all blocks; it is a piece of its own, because nothing but the optimizer waits for it. How many blocks there
 * are depends on the shape alone. */
#include "ops/cuda/columns.cuh"
#include "ops/cuda/norm_sums.cuh"
#include "ops/cuda/products.h"

enum { GRAD_THREADS = 256, GRAD_BLOCKS = 256, GRAD_FEW = 128 };       /* fewer blocks than GRAD_FEW: twice as many of half the size */

template <typename T> struct norm_grad {
    T *dx;                                  /* (rows, width); may be the memory of dy */
    const T *dy, *x, *more;                 /* (rows, width); more is added to dx; NULL: nothing is */
    const float *parts;                     /* where dy is their sum: the first of PARTS, each (rows, width), `apart` from the next */
    int64_t apart;
    const float *gain, *mean, *rstd;        /* (width), (rows) or NULL, (rows) */
    float *d_gain, *d_shift;                /* (width) for every block, `stride` apart */
    float *sums;                            /* as these: the sums over rows of dx. NULL: nobody asks for them */
    int stride;
};

/* Rows that a group of threads has at once, so that their loads are under way together: as many as registers allow. */
template <int LANES, int E, bool WHOLE> constexpr int grad_rows = LANES == 0 || !WHOLE ? 1 : E == 8 ? 4 : E == 16 ? 2 : 1;
/* How many blocks a multiprocessor should have room for. */
template <typename T, int LANES, int E, bool WHOLE, bool CENTRED, int PARTS>
constexpr int grad_residents = LANES && WHOLE && sizeof(T) == 2 && E * (1 + CENTRED) <= (PARTS ? 24 : 48) ? 2 : 1;

template <typename T, int E> struct grad_row {
    row_part<T, E> dy, x, more;
    float rstd, mean, mean_g, mean_gz;
};

/* dy as it would be in memory: what PARTS products come to, rounded. */
template <int PARTS, typename T, int LANES, int E>
static __device__ inline void sum_row(row_part<T, E> &dy, const struct norm_grad<T> &a, const struct row_place<LANES> &at, int64_t row, int width)
{
    constexpr int P = packed<T>;
#pragma unroll
    for (int p = 0; p < E / P; p++) {
        const int first = (p * at.lanes + at.lane) * P;
        const float *from = a.parts + row * width + first;
        float v[PARTS][P];
        dy.at[p] = no_words();
        if (first >= width)
            continue;
#pragma unroll
        for (int k = 0; k < PARTS; k++)
#pragma unroll
            for (int i = 0; i < P; i += 4)
                load_pack<4>(*(float (*)[4])&v[k][i], from + k * a.apart + i);
#pragma unroll
        for (int k = 1; k < PARTS; k++)
#pragma unroll
            for (int i = 0; i < P; i++)
                v[0][i] += v[k][i];
        dy.at[p] = words_of<T>(v[0]);
    }
}

template <int PARTS, bool WHOLE, bool CENTRED, typename T, int LANES, int E>
static __device__ inline void load_row(struct grad_row<T, E> &r, const struct norm_grad<T> &a, const struct row_place<LANES> &at, int64_t row,
                                       int width)
{
    if constexpr (PARTS > 0)
        sum_row<PARTS>(r.dy, a, at, row, width);
    else
        load_part(r.dy, a.dy + row * width, at.lane, at.lanes, width, WHOLE);
    load_part(r.x, a.x + row * width, at.lane, at.lanes, width, WHOLE);
    if (a.more)
        load_part(r.more, a.more + row * width, at.lane, at.lanes, width, WHOLE);
    r.rstd = a.rstd[row];
    r.mean = CENTRED ? a.mean[row] : 0;
}

/* PARTS: dy is a sum of so many; 0: it is there. */
template <typename T, int LANES, int E, bool WHOLE, bool CENTRED, int PARTS>
static __global__ void __launch_bounds__(LANES ? GRAD_THREADS : 512, (grad_residents<T, LANES, E, WHOLE, CENTRED, PARTS>))
norm_grad_kernel(const struct norm_grad<T> a, const struct rows s)
{
    constexpr int P = packed<T>, R = grad_rows<LANES, E, WHOLE>;
    extern __shared__ __align__(32) float shared[];
    const struct row_place<LANES> at;
    const int width = (int)s.width;
    float gain[E], d_gain[E] = {0}, d_shift[CENTRED ? E : 1] = {0};
    load_beside<P>(gain, a.gain, at.lane, at.lanes, width, WHOLE);
    if (CENTRED && a.sums)
        clear_dx_sums<E>(shared, at);
    for (int64_t base = (int64_t)blockIdx.x * at.groups * R; base < s.count; base += (int64_t)gridDim.x * at.groups * R) {
        struct grad_row<T, E> r[R] = {};
#pragma unroll
        for (int k = 0; k < R; k++)
            if (base + k * at.groups + at.group < s.count)
                load_row<PARTS, WHOLE, CENTRED>(r[k], a, at, base + k * at.groups + at.group, width);
#pragma unroll
        for (int k = 0; k < R; k++) {
            float sum_g = 0, sum_gz = 0;
#pragma unroll
            for (int e = 0; e < E; e++) {
                const float d = part_at(r[k].dy, e), z = (part_at(r[k].x, e) - r[k].mean) * r[k].rstd, g = d * gain[e];
                sum_g += g;
                sum_gz += g * z;
                d_gain[e] += d * z;
                if (CENTRED)
                    d_shift[e] += d;
            }
            r[k].mean_g = CENTRED ? row_sum<LANES>(sum_g) / (float)width : 0;
            r[k].mean_gz = row_sum<LANES>(sum_gz) / (float)width;
        }
#pragma unroll
        for (int k = 0; k < R; k++) {
            float dx[E];
            forget(r[k].dy);
            forget(r[k].x);
#pragma unroll
            for (int e = 0; e < E; e++) {
                const float z = (part_at(r[k].x, e) - r[k].mean) * r[k].rstd, d = part_at(r[k].dy, e) * gain[e] - r[k].mean_g - z * r[k].mean_gz;
                dx[e] = r[k].rstd * d + (a.more ? part_at(r[k].more, e) : 0);
            }
            const int64_t row = base + k * at.groups + at.group;
            if (CENTRED && a.sums && row < s.count)
                add_dx<T>(shared, at, dx);
            if (row < s.count)
                store_part<P>(a.dx + row * width, dx, at.lane, at.lanes, width, WHOLE);
        }
    }
    if (CENTRED && a.sums)
        store_dx_sums<T, LANES, E>(a.sums + blockIdx.x * (int64_t)a.stride, shared, at, width);
    store_sums<T, WHOLE>(a.d_gain + blockIdx.x * (int64_t)a.stride, d_gain, shared, at, width);
    if constexpr (CENTRED)
        store_sums<T, WHOLE>(a.d_shift + blockIdx.x * (int64_t)a.stride, d_shift, shared, at, width);
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

/* The number of threads that have a row, as with_parts, and of rows that they have at once. */
struct grad_shape { int lanes, rows; };

template <int P> static struct grad_shape grad_shape(int64_t width)
{
    struct grad_shape shape = {};
    with_parts<P>(width, [&](auto lanes, auto numbers, auto whole) { shape = {lanes(), grad_rows<lanes(), numbers(), whole()>}; });
    return shape;
}

/* Few rows are one block's, and no sums are left to add; else each group of threads has as many rows as it takes at once, or more. */
static struct row_grid grad_grid(struct rows s, bool narrow)
{
    const struct grad_shape g = narrow ? grad_shape<8>(s.width) : grad_shape<4>(s.width);
    if (g.lanes == 0)
        return {(unsigned)at_most(s.count, 2 * GRAD_BLOCKS), row_grid(s, 0).threads};
    const int64_t blocks = divide_up(s.count, (int64_t)GRAD_THREADS / g.lanes * g.rows);
    if (blocks > 1 && blocks <= GRAD_FEW)
        return {(unsigned)divide_up(s.count, (int64_t)GRAD_THREADS / 2 / g.lanes * g.rows), GRAD_THREADS / 2};
    return {(unsigned)at_most(blocks, GRAD_BLOCKS), GRAD_THREADS};
}

/* Sums that a layer norm's blocks may have: of its gain and shift, and of dx; RMS: of its gain. */
static int sums_of(enum op_kind kind) { return kind == OP_LAYERNORM_GRAD ? 3 : 1; }

/* Bytes of what blocks may have summed: (blocks, sums, width); 0: there is one block. */
static size_t norm_grad_parts(const struct program *p, const struct op *op)
{
    const struct value *x = &p->values[op->in[1]];
    const struct rows s = rows_of(x->shape);
    const size_t blocks = s.width > ROW_MOST ? 1 : grad_grid(s, dtype_is_narrow(x->dtype)).blocks;
    return blocks > 1 ? blocks * (size_t)s.width * (size_t)sums_of(op->kind) * sizeof(float) : 0;
}

static float *parts_of(const struct cuda_call *c) { return (float *)(c->own ? c->own : c->scratch); }

template <typename T, bool CENTRED> static void launch_wide(const struct cuda_call *c, const struct norm_grad<T> &a, struct rows s)
{
    wide_gain_kernel<T, CENTRED><<<blocks_for(s.width), THREADS, 0, c->stream>>>(a, s);
    wide_grad_kernel<T, CENTRED><<<blocks_of(s.count), 1024, 0, c->stream>>>(a, s);
}

template <typename T, bool CENTRED> static void launch_grad(const struct cuda_call *c, struct norm_grad<T> a, struct rows s)
{
    const struct row_grid grid = grad_grid(s, sizeof(T) == 2);
    if (grid.blocks > 1) {
        a.stride = (int)s.width * (CENTRED ? 2 + c->sums.n : 1);
        a.d_gain = parts_of(c);
        a.d_shift = a.d_gain + s.width;
        a.sums = c->sums.n ? a.d_shift + s.width : NULL;
    }
    with_parts<packed<T>>(s.width, [&](auto lanes, auto numbers, auto whole) {
        const int64_t for_sums = lanes() ? grid.threads / WARP * s.width : 0, for_dx = a.sums ? (int64_t)grid.threads * numbers() : 0;
        const size_t room = (size_t)at_least(for_sums, for_dx) * sizeof(float);
        const auto launch = [&](auto parts) {
            norm_grad_kernel<T, lanes(), numbers(), whole(), CENTRED, parts()><<<grid.blocks, grid.threads, room, c->stream>>>(a, s);
        };
        if constexpr (!CENTRED && sizeof(T) == 2 && lanes() && whole())
            if (c->parts) {
                c->n_parts == 2 ? launch(constant<2>()) : launch(constant<3>());
                return;
            }
        launch(constant<0>());
    });
}

bool cuda_norm_grad_sums(const struct cuda_call *c)
{
    if (c->op->kind != OP_RMSNORM_GRAD || !dtype_is_narrow(cuda_in(c, 0)->dtype))
        return false;
    const int64_t width = shape_last(cuda_in(c, 1)->shape);
    return width % 8 == 0 && width <= ROW_MOST && grad_shape<8>(width).lanes > 0;
}

/* ---- pieces: dx and what every block has summed; then the sums of all ---- */

/* Inputs: dy, x, gain[, mean], rstd[, more]; outputs: dx, dgain[, dshift]. */
template <bool CENTRED> static void first_launch(const struct cuda_call *c)
{
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        const struct rows s = rows_of(cuda_in(c, 1)->shape);
        const int last = 4 + CENTRED;
        struct norm_grad<T> a = {};
        a.dx = (T *)c->out[0];
        a.dy = (const T *)c->in[0];
        a.parts = c->parts, a.apart = c->parts_apart;
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

template <bool CENTRED> static void sums_launch(const struct cuda_call *c)
{
    const int64_t width = shape_last(cuda_in(c, 1)->shape);
    const int64_t blocks = (int64_t)(norm_grad_parts(c->program, c->op) / sizeof(float)) / (width * sums_of(c->op->kind));
    float *const to[] = {out_floats(c, 1), CENTRED ? out_floats(c, 2) : NULL, c->sums.n ? c->sums.to[0] : NULL};
    sum_partial_columns(c, to, width, parts_of(c), blocks, width * (CENTRED ? 2 + c->sums.n : 1));
}

template <bool CENTRED> static void piece_launch(const struct cuda_call *c, int piece)
{
    if (piece == 0)
        first_launch<CENTRED>(c);
    else
        sums_launch<CENTRED>(c);
}

static int grad_pieces(const struct program *p, const struct op *op) { return norm_grad_parts(p, op) ? 2 : 1; }

template <bool CENTRED> static void norm_grad_launch(const struct cuda_call *c)
{
    for (int piece = 0; piece < grad_pieces(c->program, c->op); piece++)
        piece_launch<CENTRED>(c, piece);
}

static int grad_touches(const struct cuda_call *c, int piece, struct lane_touch *out)
{
    int n = 0;
    out[n++] = {c->own, norm_grad_parts(c->program, c->op), piece == 0};
    for (int i = 0; i < c->op->n_in && piece == 0; i++)
        out[n++] = cuda_touch_in(c, i);
    if (c->parts && piece == 0)
        out[n++] = {c->parts, c->parts_bytes, false};
    for (int i = piece == 0 ? 0 : 1; i < (piece == 0 ? 1 : c->op->n_out); i++)
        out[n++] = {c->out[i], value_bytes(cuda_out(c, i)), true};
    if (piece > 0 && c->sums.n)
        out[n++] = {c->sums.to[0], c->sums.to_bytes, true};
    return n;
}

static size_t no_scratch(const struct program *, const struct op *, int) { return 0; }

const struct cuda_pieces cuda_layernorm_grad_pieces = {OP_LAYERNORM_GRAD, grad_pieces, piece_launch<true>, grad_touches, norm_grad_parts,
                                                       no_scratch};
const struct cuda_pieces cuda_rmsnorm_grad_pieces = {OP_RMSNORM_GRAD, grad_pieces, piece_launch<false>, grad_touches, norm_grad_parts,
                                                     no_scratch};

const struct cuda_kernel cuda_norm_grads[] = {
    {OP_LAYERNORM_GRAD, "layernorm_grad", norm_grad_launch<true>, norm_grad_parts},
    {OP_RMSNORM_GRAD, "rmsnorm_grad", norm_grad_launch<false>, norm_grad_parts},
    {OP_KINDS, NULL, NULL, NULL},
};
