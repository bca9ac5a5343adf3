/* What the kernels of attention on tensor cores share. A warp has 16 M rows (queries, or keys in the gradient of keys and values) and goes
 * through tiles of the other side; products of both stay in its registers, as fragments, and become the left operand of the next product
 * there: with the rows on the left, weights never pass through shared memory. Heads of D numbers, D a multiple of 8, are held as SIZE
 * numbers, a multiple of 16, with zeros behind D.
 *
 * Rows of tiles are SIZE + 8 numbers apart: an odd number of 16-byte pieces, so that 8 rows in turn lie in different banks. */
#ifndef HONE_OPS_CUDA_FLASH_MMA_CUH
#define HONE_OPS_CUDA_FLASH_MMA_CUH

#include "ops/cuda/flash.cuh"
#include "ops/cuda/tensor.cuh"

#define LOG2_E 1.4426950408889634f

/* How a kernel is made: numbers of type T in memory, heads of SIZE, M x 16 rows for each warp, tiles of OTHERS rows of the other side. */
template <typename T_, int SIZE_, int M_, int WARPS_, int OTHERS_, bool DROPS_> struct flash_shape {
    using T = T_;
    static constexpr int SIZE = SIZE_, M = M_, WARPS = WARPS_, OTHERS = OTHERS_;
    static constexpr int ROWS = 16 * M * WARPS, COUNT = WARP * WARPS, PITCH = SIZE + 8;      /* COUNT: threads of a block */
    static constexpr bool DROPS = DROPS_;
};

/* What both kernels are called with, beside the tensors of struct attention. */
struct flash_order {
    int tiles;              /* of rows, in each head */
    int heads;              /* of all batches */
    int section;            /* heads that are worked on beside each other, so that what they share stays in the cache */
    uint32_t drops_below;   /* random words below it drop a weight */
};

/* Blocks go through the sections of heads; inside one, through the tiles, each of all its heads. */
struct flash_place { int64_t b; int h, tile; };

static __device__ inline struct flash_place flash_place_of(const struct flash_order &o, int block, int heads)
{
    const int section = block / (o.section * o.tiles), first = section * o.section, left = o.heads - first;
    const int width = left < o.section ? left : o.section, rest = block - first * o.tiles, head = first + rest % width;
    return {head / heads, head % heads, rest / width};
}

/* ---- tiles ---- */

/* Rows [first, first + N) of one head on their way into a tile; zeros behind the last row, and behind the last number of a row. */
template <class S, int N>
static __device__ inline void fetch_rows(typename S::T *to, const typename S::T *from, int first, const struct attention &a, int stride)
{
    constexpr int PIECES = S::SIZE / 8;
    UNROLL for (int i = 0; i < (N * PIECES + S::COUNT - 1) / S::COUNT; i++) {
        const int at = i * S::COUNT + threadIdx.x, row = at / PIECES, e = at % PIECES * 8;
        const bool there = first + row < (int)a.seq && e < (int)a.size;
        if (N * PIECES % S::COUNT == 0 || at < N * PIECES)
            copy_16_bytes(to + row * S::PITCH + e, there ? from + (first + row) * stride + e : from, there);
    }
}

/* Left operands: 16 M rows of a tile, in registers or read anew for each use. */
template <class S> struct held_rows {
    uint32_t at[S::M][S::SIZE / 16][4];

    __device__ inline void load(const typename S::T *rows)
    {
        const int lane = threadIdx.x % WARP;
        UNROLL for (int m = 0; m < S::M; m++)
            UNROLL for (int k = 0; k < S::SIZE / 16; k++)
                load_matrices(at[m][k], rows + (16 * m + lane % 16) * S::PITCH + 16 * k + lane / 16 * 8);
    }
    __device__ inline void get(uint32_t (&to)[4], int m, int k) const
    {
        UNROLL for (int i = 0; i < 4; i++)
            to[i] = at[m][k][i];
    }
};

template <class S> struct shared_rows {
    const typename S::T *rows;

    __device__ inline void load(const typename S::T *r) { rows = r + threadIdx.x % 16 * S::PITCH + threadIdx.x % WARP / 16 * 8; }
    __device__ inline void get(uint32_t (&to)[4], int m, int k) const { load_matrices(to, rows + 16 * m * S::PITCH + 16 * k); }
};

/* ---- products ---- */

/* c (16 M, N) = a (16 M, SIZE) b^T: b are N rows of a tile. */
template <class S, int N, class A>
static __device__ inline void dot_rows(float (&c)[S::M][N / 8][4], const A &a, const typename S::T *b)
{
    const int lane = threadIdx.x % WARP;
    b += (lane / 16 * 8 + lane % 8) * S::PITCH + lane / 8 % 2 * 8;
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int n = 0; n < N / 8; n++)
            UNROLL for (int i = 0; i < 4; i++)
                c[m][n][i] = 0;
    UNROLL for (int k = 0; k < S::SIZE / 16; k++) {
        uint32_t u[S::M][4], w[4];
        UNROLL for (int m = 0; m < S::M; m++)
            a.get(u[m], m, k);
        UNROLL for (int n = 0; n < N / 16; n++) {
            load_matrices(w, b + 16 * n * S::PITCH + 16 * k);
            UNROLL for (int m = 0; m < S::M; m++) {
                multiply_add<typename S::T>(c[m][2 * n], u[m], w[0], w[1]);
                multiply_add<typename S::T>(c[m][2 * n + 1], u[m], w[2], w[3]);
            }
        }
    }
}

/* acc (16 M, SIZE) += p (16 M, N) b: b are N rows of a tile. Results of a product are fragments of a left operand already. */
template <class S, int N>
static __device__ inline void add_rows(float (&acc)[S::M][S::SIZE / 8][4], const float (&p)[S::M][N / 8][4], const typename S::T *b)
{
    using T = typename S::T;
    const int lane = threadIdx.x % WARP;
    b += lane % 16 * S::PITCH + lane / 16 * 8;
    UNROLL for (int k = 0; k < N / 16; k++) {
        uint32_t u[S::M][4], w[4];
        UNROLL for (int m = 0; m < S::M; m++)
            UNROLL for (int i = 0; i < 4; i++)
                u[m][i] = pair_of<T>(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
        UNROLL for (int n = 0; n < S::SIZE / 16; n++) {
            load_matrices_transposed(w, b + 16 * k * S::PITCH + 16 * n);
            UNROLL for (int m = 0; m < S::M; m++) {
                multiply_add<T>(acc[m][2 * n], u[m], w[0], w[1]);
                multiply_add<T>(acc[m][2 * n + 1], u[m], w[2], w[3]);
            }
        }
    }
}

/* by * acc to rows [first, first + 16 M) of one head, by way of a tile's rows that only this warp still uses: 16 bytes at a time. */
template <class S>
static __device__ inline void put_rows(typename S::T *to, float (&acc)[S::M][S::SIZE / 8][4], const float (&by)[S::M][2], typename S::T *rows,
                                       int first, const struct attention &a, int stride)
{
    using T = typename S::T;
    constexpr int PIECES = S::SIZE / 8;
    const int lane = threadIdx.x % WARP;
    __syncwarp();
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int n = 0; n < S::SIZE / 8; n++)
            UNROLL for (int half = 0; half < 2; half++)
                *(uint32_t *)(rows + (16 * m + lane / 4 + 8 * half) * S::PITCH + 8 * n + lane % 4 * 2) =
                    pair_of<T>(acc[m][n][2 * half] * by[m][half], acc[m][n][2 * half + 1] * by[m][half]);
    __syncwarp();
    UNROLL for (int i = 0; i < 16 * S::M * PIECES / WARP; i++) {
        const int row = (i * WARP + lane) / PIECES, e = (i * WARP + lane) % PIECES * 8;
        if (first + row < (int)a.seq && e < (int)a.size)
            *(uint4 *)(to + (first + row) * stride + e) = *(const uint4 *)(rows + row * S::PITCH + e);
    }
}

/* ---- which weights there are ---- */

/* The last key that query i sees. */
static __device__ inline int last_key(const struct attention &a, int i)
{
    const int last = (int)a.seq - 1;
    return a.causal && i < last ? i : last;
}

/* s: products of queries i on and keys j on; -infinity where a key is not seen. */
template <class S, int N> static __device__ inline void hide_keys(float (&s)[S::M][N / 8][4], const struct attention &a, int i, int j)
{
    const int lane = threadIdx.x % WARP;
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            const int last = last_key(a, i + 16 * m + lane / 4 + 8 * half) - j - lane % 4 * 2;
            UNROLL for (int n = 0; n < N / 8; n++)
                UNROLL for (int e = 0; e < 2; e++)
                    if (8 * n + e > last)
                        s[m][n][2 * half + e] = -INFINITY;
        }
}

/* The same with keys as rows; what is behind the last key is not written, and what is behind the last query counts for nothing. */
template <class S, int N> static __device__ inline void hide_queries(float (&s)[S::M][N / 8][4], int i, int j)
{
    const int lane = threadIdx.x % WARP;
    UNROLL for (int m = 0; m < S::M; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            const int first = j + 16 * m + lane / 4 + 8 * half - i - lane % 4 * 2;
            UNROLL for (int n = 0; n < N / 8; n++)
                UNROLL for (int e = 0; e < 2; e++)
                    if (8 * n + e < first)
                        s[m][n][2 * half + e] = -INFINITY;
        }
}

/* Four weights in a row from (b, h, i, j) on: bit n is set where weight n is kept. */
static __device__ inline uint32_t kept_quad(const struct attention &a, uint32_t drops_below, int64_t head, int i, int j)
{
    const struct philox p = dropout_block(a.dropout, (head * a.seq + i) * a.seq + j);
    uint32_t bits = 0;
    UNROLL for (int n = 0; n < 4; n++)
        bits |= (uint32_t)(p.x[n] >= drops_below) << n;
    return bits;
}

static __device__ inline uint32_t kept_one(const struct attention &a, uint32_t drops_below, int64_t head, int i, int j)
{
    return dropout_word(a.dropout, (head * a.seq + i) * a.seq + j) >= drops_below;
}

/* Which of a lane's four numbers of a fragment (16, 8) are kept, the first weight being (i, j): rows are queries and columns keys, or the
 * other way round. Where T, and what was counted before, are multiples of 4, each lane makes the numbers of one block and gives the others their part of it. */
static __device__ inline uint32_t kept_of_queries(const struct attention &a, uint32_t below, int64_t head, int i, int j)
{
    const int lane = threadIdx.x % WARP, g = lane / 4, q = lane % 4;
    if ((a.seq | a.dropout.first) % 4 == 0) {       /* lanes of even q make row g, those of odd q row g + 8 */
        const uint32_t bits = kept_quad(a, below, head, i + g + q % 2 * 8, j + q / 2 * 4);
        const uint32_t upper = __shfl_sync(0xffffffffu, bits, lane & ~1), lower = __shfl_sync(0xffffffffu, bits, lane | 1);
        return (upper >> q % 2 * 2 & 3) | (lower >> q % 2 * 2 & 3) << 2;
    }
    uint32_t bits = 0;
    UNROLL for (int n = 0; n < 4; n++)
        bits |= kept_one(a, below, head, i + g + n / 2 * 8, j + 2 * q + n % 2) << n;
    return bits;
}

static __device__ inline uint32_t kept_of_keys(const struct attention &a, uint32_t below, int64_t head, int i, int j)
{
    const int lane = threadIdx.x % WARP, g = lane / 4, q = lane % 4;
    uint32_t bits = 0;
    if ((a.seq | a.dropout.first) % 4 == 0) {       /* four lanes have four keys each of rows g and g + 8, for two queries: four blocks */
        const uint32_t mine = kept_quad(a, below, head, i + 2 * q + g % 2, j + g / 4 * 4 + g % 4 / 2 * 8);
        UNROLL for (int n = 0; n < 4; n++)
            bits |= (__shfl_sync(0xffffffffu, mine, (lane & ~12) | n << 2) >> g % 4 & 1) << n;
        return bits;
    }
    UNROLL for (int n = 0; n < 4; n++)
        bits |= kept_one(a, below, head, i + 2 * q + n % 2, j + g + n / 2 * 8) << n;
    return bits;
}

/* Over the four lanes that have one row. */
template <class Op> static __device__ inline float quad_reduce(float x, Op op)
{
    x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

#endif
