/* What depends on the place of an element: dropout by counters, rotary positions, the causal mask. */
#include "ops/cuda/device.cuh"
#include "ops/cuda/types.cuh"
#include "program/rope.h"

/* ---- dropout: four elements for every block of random numbers ---- */

template <typename T> static __global__ void dropout_kernel(T *y, const T *x, int64_t n, bool wide, const struct dropout d)
{
    constexpr int P = 16 / (int)sizeof(T);
    const int64_t packs = wide ? n / P : 0;
    EACH(i, packs) {
        float v[P];
        load_pack<P>(v, x + i * P);
#pragma unroll
        for (int q = 0; q < P; q += 4) {
            const struct philox random = dropout_block(d, i * P + q);
#pragma unroll
            for (int k = 0; k < 4; k++)
                v[q + k] = dropout_drops(d, random.x[k]) ? 0 : v[q + k] * d.scale;
        }
        store_pack<P>(y + i * P, v);
    }
    EACH(j, n - packs * P) {
        const int64_t i = packs * P + j;
        const bool drops = dropout_drops(d, dropout_word(d, i));
        y[i] = from_float<T>(drops ? 0 : to_float(x[i]) * d.scale);
    }
}

static void dropout_launch(const struct cuda_call *c)
{
    const int64_t n = in_count(c, 0);
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        const int64_t packs = divide_up(n, 16 / (int64_t)sizeof(T));
        const bool wide = is_aligned(c->in[0], 16) && is_aligned(c->out[0], 16) && c->op->attrs.first % 4 == 0;
        dropout_kernel<T><<<blocks_at_once(packs, threads_at_once(packs)), threads_at_once(packs), 0, c->stream>>>(
            (T *)c->out[0], (const T *)c->in[0], n, wide, dropout_of(&c->op->attrs, c->in[1]));
    });
}

/* ---- the mask ---- */

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

static __global__ void rope_table(float *cosine, float *sine, int64_t rows, int64_t cols, double base, struct rope_stretch stretch)     /* (rows, cols) */
{
    EACH(i, rows * cols) {
        const double angle = (double)(i / cols) * rope_frequency(base, stretch, i % cols, cols);
        cosine[i] = (float)cos(angle);
        sine[i] = (float)sin(angle);
    }
}

static void rope_table_launch(const struct cuda_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    rope_table<<<blocks_for(a->rows * a->cols), THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), a->rows, a->cols,
                                                                         (double)a->base, a->stretch);
}

struct turns {
    const float *cosine, *sine;     /* (seq, half) */
    int64_t seq, half;
    const int32_t *places;          /* (B, T): rows of the tables, below 0: zeros; NULL: row t for all (b, t) */
    float sign;                     /* -1 turns back */
    struct { void *y; const void *x; int64_t packs, row; } part[2];         /* packs: of all, and of one row */
};

/* x (B, T, pairs, 2); a thread turns the pairs of a pack, P / 2 of them. One or two such tensors, which blockIdx.y tells apart. */
template <typename T, int P> static __global__ void rope(const __grid_constant__ struct turns t)
{
    T *y = (T *)t.part[blockIdx.y].y;
    const T *x = (const T *)t.part[blockIdx.y].x;
    const int64_t packs = t.part[blockIdx.y].packs, packs_of_row = t.part[blockIdx.y].row;
    EACH(i, packs) {
        const int64_t row = quotient(i, packs_of_row), j = i - row * packs_of_row;
        const int64_t place = t.places ? t.places[row] : modulo(row, t.seq), at = place * t.half + modulo(j * (P / 2), t.half);
        float v[P], co[P / 2], si[P / 2], to[P] = {};
        if (place < 0) {
            store_pack<P>(y + i * P, to);
            continue;
        }
        load_pack<P>(v, x + i * P);
        load_pack<P / 2>(co, t.cosine + at);
        load_pack<P / 2>(si, t.sine + at);
#pragma unroll
        for (int k = 0; k < P / 2; k++) {
            const float s = t.sign * si[k];
            to[2 * k] = v[2 * k] * co[k] - v[2 * k + 1] * s;
            to[2 * k + 1] = v[2 * k] * s + v[2 * k + 1] * co[k];
        }
        store_pack<P>(y + i * P, to);
    }
}

template <typename T, int P> static void launch_rope(const struct cuda_call *c, struct turns t)
{
    const unsigned parts = c->n_also ? 2 : 1;
    int64_t most = 0;
    for (unsigned i = 0; i < parts; i++) {
        const struct cuda_call *each = i ? c->also[0] : c;
        t.part[i] = {each->out[0], each->in[0], in_count(each, 0) / P, cuda_in(each, 0)->shape.dim[2] / P};
        most = at_least(most, t.part[i].packs);
    }
    const unsigned threads = threads_at_once(most);
    rope<T, P><<<dim3(blocks_at_once(most, threads), parts), threads, 0, c->stream>>>(t);
}

static bool is_wide(const struct cuda_call *c)
{
    return is_aligned(c->in[0], 16) && is_aligned(c->out[0], 16) && is_aligned(c->in[1], 16) && is_aligned(c->in[2], 16);
}

static void rope_launch(const struct cuda_call *c)
{
    const int64_t half = shape_last(cuda_in(c, 1)->shape);
    struct turns t = {};
    t.cosine = in_floats(c, 1), t.sine = in_floats(c, 2);
    t.seq = cuda_in(c, 0)->shape.dim[1], t.half = half;
    t.places = c->op->n_in > 3 ? (const int32_t *)c->in[3] : NULL;
    t.sign = c->op->attrs.inverse ? -1.0f : 1.0f;
    const bool wide = is_wide(c) && (!c->n_also || is_wide(c->also[0]));
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        constexpr int P = 16 / (int)sizeof(T);
        if (wide && half % (P / 2) == 0)    /* packs end with heads, and the table's rows are aligned */
            launch_rope<T, P>(c, t);
        else
            launch_rope<T, 2>(c, t);
    });
}

const struct cuda_kernel cuda_positions[] = {
    {OP_DROPOUT, "dropout", dropout_launch, NULL},
    {OP_CAUSAL_MASK, "causal_mask", causal_mask_launch, NULL},
    {OP_ROPE_TABLE, "rope_table", rope_table_launch, NULL},
    {OP_ROPE, "rope", rope_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
