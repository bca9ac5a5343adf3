/* What the kernels of attention as one op share: tiles of queries and keys in shared memory, and products of tiles.
 *
 * A block of 16 x 16 threads works on a tile of TILE queries and TILE keys. Thread (x, y) has the scores of queries y + 16 r and keys
 * x + 16 c, and of a result (TILE, D) the elements (y + 16 r, x + 16 c): a tile is TILE / 16 = R by R, a result R by C for each thread,
 * with D at most 16 C. Rows of tiles are an odd number of elements apart, so that threads which walk down a column use different banks. */
#ifndef HONE_OPS_CUDA_FLASH_CUH
#define HONE_OPS_CUDA_FLASH_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/types.cuh"

enum { SIDE = 16 };

#define UNROLL _Pragma("unroll")         /* what a thread has of a tile stays in registers */
#define ONE_BY_ONE _Pragma("unroll 1")    /* so many registers as one round needs */

static __host__ __device__ inline int pitch_of(int64_t size) { return (int)size | 1; }       /* from row to row of a tile (TILE, D) */

struct attention {
    int64_t batch, heads, kv_heads, seq, size;      /* size: D of one head */
    const void *q, *k, *v;                          /* (B, T, H * D), (B, T, K * D), (B, T, K * D) */
    enum dtype type;                                /* of those, and of results and their gradients */
    struct dropout dropout;
    float scale;
    bool causal;
    const int32_t *starts;                          /* (B, T): the first key that each query sees, growing along a row; NULL: all see the first */
};

static inline struct attention attention_of(const struct cuda_call *c)
{
    const int first = c->op->kind == OP_ATTENTION_GRAD, tick = op_attention_tick(c->op), starts = op_attention_starts(c->op);
    const struct op_attrs *o = &c->op->attrs;
    const struct shape q = cuda_in(c, first)->shape;
    return {q.dim[0], o->heads, o->kv_heads, q.dim[1], q.dim[2] / o->heads, c->in[first], c->in[first + 1], c->in[first + 2],
            cuda_in(c, first)->dtype, dropout_of(o, tick >= 0 ? c->in[tick] : NULL), o->scale, o->causal,
            starts >= 0 ? (const int32_t *)c->in[starts] : NULL};
}

/* Where query (b, i, h) starts, and key or value (b, j, kv). */
static __device__ inline int64_t query_at(const struct attention &a, int64_t b, int64_t i, int64_t h)
{
    return ((b * a.seq + i) * a.heads + h) * a.size;
}
static __device__ inline int64_t key_at(const struct attention &a, int64_t b, int64_t j, int64_t kv)
{
    return ((b * a.seq + j) * a.kv_heads + kv) * a.size;
}

/* Which tile and head a block has: heads of all batches beside each other. */
struct place { int64_t b, h, tile; };

static __device__ inline struct place place_of(int64_t heads, int64_t batch, int64_t block)
{
    const int64_t all = heads * batch;
    return {block % all / heads, block % heads, block / all};
}

/* Rows [first, first + TILE) of a head that starts at `from` into shared memory (TILE, D); zeros behind the last one. */
template <int TILE, typename T>
static __device__ void load_tile_of(float *to, const T *from, int64_t first, int64_t stride, const struct attention &a)
{
    const int pitch = pitch_of(a.size), width = (int)a.size;
    for (int i = threadIdx.x; i < TILE * width; i += SIDE * SIDE) {
        const int row = i / width, e = i % width;
        to[row * pitch + e] = first + row < a.seq ? to_float(from[(first + row) * stride + e]) : 0;
    }
}

/* A head that starts `at` numbers behind x, of the type that the op's numbers have. */
template <int TILE>
static __device__ void load_tile(float *to, const void *x, int64_t at, int64_t first, int64_t stride, const struct attention &a)
{
    if (a.type == BF16)
        load_tile_of<TILE>(to, (const __nv_bfloat16 *)x + at, first, stride, a);
    else if (a.type == F16)
        load_tile_of<TILE>(to, (const __half *)x + at, first, stride, a);
    else
        load_tile_of<TILE>(to, (const float *)x + at, first, stride, a);
}

/* s (R, R) = a b^T of two tiles (TILE, D). */
template <int R> static __device__ void dot_tiles(float (&s)[R][R], const float *a, const float *b, int size)
{
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, pitch = pitch_of(size);
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < R; c++)
            s[r][c] = 0;
    for (int e = 0; e < size; e++) {
        float u[R], w[R];
        UNROLL for (int r = 0; r < R; r++)
            u[r] = a[(y + SIDE * r) * pitch + e];
        UNROLL for (int c = 0; c < R; c++)
            w[c] = b[(x + SIDE * c) * pitch + e];
        UNROLL for (int r = 0; r < R; r++)
            UNROLL for (int c = 0; c < R; c++)
                s[r][c] += u[r] * w[c];
    }
}

/* acc (R, C) += p b, or p^T b: p (TILE, TILE), b (TILE, D). */
template <int R, int C, bool TRANS>
static __device__ void add_product(float (&acc)[R][C], const float *p, const float *b, int size)
{
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, tile = R * SIDE, pitch = pitch_of(size);
    for (int j = 0; j < tile; j++) {
        float u[R];
        UNROLL for (int r = 0; r < R; r++)
            u[r] = p[TRANS ? j * pitch_of(tile) + y + SIDE * r : (y + SIDE * r) * pitch_of(tile) + j];
        UNROLL for (int c = 0; c < C; c++) {
            const int e = x + SIDE * c;
            const float w = e < size ? b[j * pitch + e] : 0;
            UNROLL for (int r = 0; r < R; r++)
                acc[r][c] += u[r] * w;
        }
    }
}

/* The threads' parts of a tile into shared memory (TILE, TILE). */
template <int R> static __device__ void store_tile(float *to, const float (&s)[R][R])
{
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < R; c++)
            to[(y + SIDE * r) * pitch_of(R * SIDE) + x + SIDE * c] = s[r][c];
}

/* A result (TILE, D) to rows [first, first + TILE) of a head that starts at `to`. */
template <typename T, int R, int C>
static __device__ void write_rows_of(T *to, const float (&acc)[R][C], int64_t first, int64_t stride, const struct attention &a)
{
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) {
            const int64_t i = first + y + SIDE * r, e = x + SIDE * c;
            if (i < a.seq && e < a.size)
                to[i * stride + e] = from_float<T>(acc[r][c]);
        }
}

template <int R, int C>
static __device__ void write_rows(void *to, int64_t at, const float (&acc)[R][C], int64_t first, int64_t stride, const struct attention &a)
{
    if (a.type == BF16)
        write_rows_of((__nv_bfloat16 *)to + at, acc, first, stride, a);
    else if (a.type == F16)
        write_rows_of((__half *)to + at, acc, first, stride, a);
    else
        write_rows_of((float *)to + at, acc, first, stride, a);
}

/* The first key that query i sees: where its sample begins. */
static __device__ inline int64_t first_key(const struct attention &a, int64_t b, int64_t i)
{
    return a.starts && i < a.seq ? a.starts[b * a.seq + i] : 0;
}

/* first: the query's first key. */
static __device__ inline bool visible(const struct attention &a, int64_t i, int64_t j, int64_t first)
{
    return i < a.seq && j < a.seq && j >= first && (!a.causal || j <= i);
}

/* Where the tile begins that has the first key of query i0 and those behind it. */
template <int TILE> static __device__ inline int64_t first_tile(const struct attention &a, int64_t b, int64_t i0)
{
    return first_key(a, b, i0) / TILE * TILE;
}

/* What dropout multiplies weight (b, h, i, j) by, as OP_DROPOUT does on the weights (B, H, T, T). */
static __device__ inline float kept(const struct attention &a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!a.dropout.tick)
        return 1;
    const int64_t at = ((b * a.heads + h) * a.seq + i) * a.seq + j;
    return dropout_drops(a.dropout, dropout_word(a.dropout, at)) ? 0 : a.dropout.scale;
}

/* Bytes of shared memory for so many tiles of rows and one of scores. */
static inline size_t flash_shared(int tile, int64_t size, int tiles)
{
    return (size_t)(tiles * tile * pitch_of(size) + tile * pitch_of(tile)) * sizeof(float);
}

#endif
