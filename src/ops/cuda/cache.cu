/* Keys and values that are kept while text is generated, and attention of a query over them. */
#include "ops/cuda/device.cuh"
#include "ops/cuda/types.cuh"

/* ---- what is kept ---- */

struct stored {
    int64_t samples, room, batch, seq, width;       /* (S, C, W) gets (B, T, W) */
    const int32_t *places;                          /* (B, T) */
};

template <typename T> static __global__ void store_kv(T *keys, T *values, const T *k, const T *v, const struct stored s)
{
    EACH(i, s.samples * s.seq * s.width) {
        const int64_t at = quotient(i, s.width), column = i - at * s.width;
        const int64_t sample = quotient(at, s.seq), row = s.batch == 1 ? at - sample * s.seq : at, place = s.places[row];
        if (place >= 0 && place < s.room) {
            keys[(sample * s.room + place) * s.width + column] = k[row * s.width + column];
            values[(sample * s.room + place) * s.width + column] = v[row * s.width + column];
        }
    }
}

static void store_launch(const struct cuda_call *c)
{
    const struct shape kept = cuda_in(c, 0)->shape, x = cuda_in(c, 2)->shape;
    const struct stored s = {kept.dim[0], kept.dim[1], x.dim[0], x.dim[1], x.dim[2], (const int32_t *)c->in[4]};
    const int64_t n = s.samples * s.seq * s.width;
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        store_kv<T><<<blocks_at_once(n, threads_at_once(n)), threads_at_once(n), 0, c->stream>>>((T *)c->out[0], (T *)c->out[1], (const T *)c->in[2],
                                                                                               (const T *)c->in[3], s);
    });
}

/* ---- attention ----
 * A block has a query and a head. Its warps divide the keys, each with a running softmax, and are put together in their order. A lane has the
 * numbers of a head that are 32 apart. */

struct sight {
    int64_t heads, group, seq, room, size;
    const int32_t *places;                          /* (B, T) */
    float scale;
};

enum { AHEAD = 4 };                                 /* keys that a warp reads at once */

/* What a warp has seen: largest score, sum of e^(score - largest), values times that. */
template <int E> struct seen { float largest, sum, y[E]; };

template <typename T, int E> static __device__ void read_head(float (&to)[E], const T *from, int64_t size)
{
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int64_t i = threadIdx.x % WARP + e * WARP;
        to[e] = i < size ? to_float(from[i]) : 0;
    }
}

/* AHEAD keys from j on, `warps` apart, of which the first is one; -inf is the score of what is none. */
template <typename T, int E> static __device__ void see(struct seen<E> &s, const float (&q)[E], const T *k, const T *v, int64_t row, int64_t j,
                                                       int64_t warps, int64_t n, const struct sight &d)
{
    float key[AHEAD][E], value[AHEAD][E], score[AHEAD], largest = s.largest;
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        const int64_t at = (j + a * warps < n ? j + a * warps : n - 1) * row;
        read_head<T, E>(key[a], k + at, d.size);
        read_head<T, E>(value[a], v + at, d.size);
    }
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        float sum = 0;
#pragma unroll
        for (int e = 0; e < E; e++)
            sum += q[e] * key[a][e];
        sum = d.scale * warp_reduce(sum, add_of());
        score[a] = j + a * warps < n ? sum : -INFINITY;
        largest = fmaxf(largest, score[a]);
    }
    const float shift = largest == -INFINITY ? 0 : largest, less = expf(s.largest - shift);
    s.largest = largest;
    s.sum *= less;
#pragma unroll
    for (int e = 0; e < E; e++)
        s.y[e] *= less;
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        const float w = expf(score[a] - shift);
        s.sum += w;
#pragma unroll
        for (int e = 0; e < E; e++)
            s.y[e] += j + a * warps < n ? w * value[a][e] : 0;
    }
}

/* What the warps of a block have seen: (warps, 2 + size) in shared memory. */
static __device__ float together(const float *all, int64_t warps, int64_t size, int64_t e)
{
    float largest = -INFINITY, sum = 0, y = 0;
    for (int64_t w = 0; w < warps; w++)
        largest = fmaxf(largest, all[w * (2 + size)]);
    const float shift = largest == -INFINITY ? 0 : largest;
    for (int64_t w = 0; w < warps; w++) {
        const float *of = all + w * (2 + size);
        const float less = expf(of[0] - shift);
        sum += less * of[1];
        y += less * of[2 + e];
    }
    return y / sum;
}

template <typename T, int E> static __global__ void attend_kv(T *y, const T *q, const T *keys, const T *values, const struct sight d)
{
    extern __shared__ float parts[];
    const int64_t row = quotient(blockIdx.x, d.heads), head = blockIdx.x - row * d.heads, n = d.places[row] + 1;
    const int64_t warps = blockDim.x / WARP, warp = threadIdx.x / WARP, width = d.heads / d.group * d.size;
    const int64_t sample = quotient(row, d.seq) * d.room * width + head / d.group * d.size;
    float own[E];
    struct seen<E> s = {-INFINITY, 0, {}};
    read_head<T, E>(own, q + (row * d.heads + head) * d.size, d.size);
    for (int64_t j = warp; j < n; j += AHEAD * warps)
        see<T, E>(s, own, keys + sample, values + sample, width, j, warps, n, d);
    float *to = parts + warp * (2 + d.size);
    if (threadIdx.x % WARP == 0) {
        to[0] = s.largest;
        to[1] = s.sum;
    }
#pragma unroll
    for (int e = 0; e < E; e++)
        if ((int64_t)(threadIdx.x % WARP + e * WARP) < d.size)
            to[2 + threadIdx.x % WARP + e * WARP] = s.y[e];
    __syncthreads();
    EACH_OF_BLOCK(e, d.size)
        y[(row * d.heads + head) * d.size + e] = from_float<T>(n > 0 ? together(parts, warps, d.size, e) : 0);
}

template <typename T, int E> static void launch_attend(const struct cuda_call *c, const struct sight &d)
{
    const int64_t rows = in_count(c, 3), warps = E > 4 ? 8 : 32;
    attend_kv<T, E><<<blocks_of(rows * d.heads), (unsigned)(warps * WARP), (size_t)(warps * (2 + d.size)) * sizeof(float), c->stream>>>(
        (T *)c->out[0], (const T *)c->in[0], (const T *)c->in[1], (const T *)c->in[2], d);
}

static void attend_launch(const struct cuda_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    const struct shape q = cuda_in(c, 0)->shape;
    const struct sight d = {a->heads, a->heads / a->kv_heads, q.dim[1], cuda_in(c, 1)->shape.dim[1], q.dim[2] / a->heads, (const int32_t *)c->in[3],
                            a->scale};
    with_type(cuda_in(c, 0)->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (d.size <= 1 * WARP)
            launch_attend<T, 1>(c, d);
        else if (d.size <= 2 * WARP)
            launch_attend<T, 2>(c, d);
        else if (d.size <= 4 * WARP)
            launch_attend<T, 4>(c, d);
        else if (d.size <= 16 * WARP)
            launch_attend<T, 16>(c, d);
        else
            refuse(c);
    });
}

const struct cuda_kernel cuda_cache[] = {
    {OP_STORE_KV, "store_kv", store_launch, NULL},
    {OP_ATTEND_KV, "attend_kv", attend_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
