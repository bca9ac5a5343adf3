/* What the kernels share: loops over elements, sums of warps and blocks in a fixed order, random numbers by counter, and how a call is
 * divided into blocks. Nothing here depends on how many multiprocessors a GPU has, so that all GPUs of a kind give the same bits. */
#ifndef HONE_OPS_CUDA_DEVICE_CUH
#define HONE_OPS_CUDA_DEVICE_CUH

#include <math.h>
#include <stdint.h>

#include "ops/cuda/kernel.h"

enum { WARP = 32, THREADS = 256, MOST_BLOCKS = 8192 };

/* Every element of [0, n), over all threads of the grid. */
#define EACH(i, n)                                                                                                    \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)
/* Every element of [0, n), over the threads of a block. */
#define EACH_OF_BLOCK(i, n) for (int64_t i = threadIdx.x; i < (n); i += blockDim.x)

/* ---- on the host ---- */

static inline int64_t in_count(const struct cuda_call *c, int i) { return shape_count(cuda_in(c, i)->shape); }
static inline int64_t out_count(const struct cuda_call *c, int i) { return shape_count(cuda_out(c, i)->shape); }
static inline float *in_floats(const struct cuda_call *c, int i) { return (float *)c->in[i]; }
static inline float *out_floats(const struct cuda_call *c, int i) { return (float *)c->out[i]; }
static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline unsigned blocks_for(int64_t n) { return (unsigned)at_least(1, at_most(divide_up(n, THREADS), MOST_BLOCKS)); }
/* One block for each of so many things, as far as a grid goes; kernels go on from there in steps of the grid. */
static inline unsigned blocks_of(int64_t n) { return (unsigned)at_least(1, at_most(n, INT32_MAX)); }
/* So many threads as there are things, all at once: kernels that go through memory do better without a loop. */
static inline unsigned blocks_at_once(int64_t n, int64_t threads) { return (unsigned)at_least(1, at_most(divide_up(n, threads), INT32_MAX)); }
/* Small work is spread over more multiprocessors by smaller blocks. */
static inline unsigned threads_at_once(int64_t n) { return n <= 64 * THREADS ? 64 : THREADS; }
static inline bool is_aligned(const void *p, size_t bytes) { return (uintptr_t)p % bytes == 0; }
/* Threads for a row of n: whole warps, about four elements each. */
static inline unsigned threads_for_row(int64_t n) { return (unsigned)at_least(WARP, at_most(divide_up(n, 4 * WARP) * WARP, THREADS)); }
/* Parts of the scratch are aligned as memory of their own would be. */
static inline size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* A call that cannot be done becomes a launch that CUDA refuses: who asks CUDA afterwards hears of it. */
static __global__ void refused(void) {}
static inline void refuse(const struct cuda_call *c) { refused<<<0, 1, 0, c->stream>>>(); }

/* ---- sums in a fixed order ---- */

struct add_of { template <typename T> __device__ T operator()(T a, T b) const { return a + b; } };
struct max_of { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };      /* a NaN is passed over */

/* Every lane gets the result; both operations are commutative, so all of them get the same bits. */
template <typename T, class Op> static __device__ T warp_reduce(T x, Op op)
{
    for (int d = WARP / 2; d > 0; d /= 2)
        x = op(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* Every thread of the block, which is of whole warps, gets the result. */
template <typename T, class Op> static __device__ T block_reduce(T x, T nothing, Op op)
{
    __shared__ T parts[WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    x = warp_reduce(x, op);
    __syncthreads();                /* what an earlier call left there has been read */
    if (lane == 0)
        parts[warp] = x;
    __syncthreads();
    return warp_reduce(lane < warps ? parts[lane] : nothing, op);
}

template <typename T> static __device__ T block_sum(T x) { return block_reduce(x, (T)0, add_of()); }
static __device__ inline float block_max(float x) { return block_reduce(x, -INFINITY, max_of()); }

/* True in the block that comes here last of `blocks`, when all have written what they have; the counter is 0 again then. */
static __device__ inline bool comes_last(unsigned *counter, unsigned blocks)
{
    __shared__ bool last;
    __syncthreads();                /* all threads have written */
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last)
            *counter = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* i mod n and i / n; 64-bit division is many times as slow, and seldom needed. */
static __device__ inline int64_t modulo(int64_t i, int64_t n)
{
    return i <= UINT32_MAX && n <= UINT32_MAX ? (int64_t)((uint32_t)i % (uint32_t)n) : i % n;
}
static __device__ inline int64_t quotient(int64_t i, int64_t n)
{
    return i <= UINT32_MAX && n <= UINT32_MAX ? (int64_t)((uint32_t)i / (uint32_t)n) : i / n;
}

/* ---- random numbers: as core/rng.h, to the bit ---- */

struct philox { uint32_t x[4]; };

static __device__ inline struct philox philox(uint64_t key, uint64_t hi, uint64_t lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    struct philox c = {{(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)}};
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.x[0], p1 = (uint64_t)0xCD9E8D57u * c.x[2];
        c = {{(uint32_t)(p1 >> 32) ^ c.x[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c.x[3] ^ k1, (uint32_t)p0}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* What dropout multiplies by: element i is kept by word i % 4 of block i / 4, counted from `first`. */
struct dropout {
    const int32_t *tick;            /* NULL: everything is kept */
    uint64_t seed, stream;
    float prob, scale;              /* scale: 1 / (1 - prob) */
    int64_t first;                  /* the number of element 0 in the whole batch, of which this rank has a part */
};

static inline struct dropout dropout_of(const struct op_attrs *a, const void *tick)
{
    return {(const int32_t *)tick, a->seed, a->stream, a->prob, 1 / (1 - a->prob), a->first};
}

/* The words of elements [i, i + 4); d.first + i is a multiple of 4. */
static __device__ inline struct philox dropout_block(const struct dropout &d, int64_t i)
{
    return philox(d.seed, d.stream << 32 | (uint32_t)*d.tick, (uint64_t)(d.first + i) / 4);
}

/* The word of element i; no index: the words stay in registers. */
static __device__ inline uint32_t dropout_word(const struct dropout &d, int64_t i)
{
    const struct philox b = dropout_block(d, i);
    const int at = (int)((d.first + i) % 4);
    return at < 2 ? (at == 0 ? b.x[0] : b.x[1]) : (at == 2 ? b.x[2] : b.x[3]);
}

static __device__ inline bool dropout_drops(const struct dropout &d, uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f < d.prob;
}

/* ---- functions ---- */

static __device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/* What is rounded to T afterwards: for 16 bits, the functions of the hardware are exact enough and take a third of the time. */
template <typename T> static __device__ inline float sigmoid_for(float x)
{
    return sizeof(T) < sizeof(float) ? __fdividef(1, 1 + __expf(-x)) : sigmoid(x);
}
template <typename T> static __device__ inline float silu_for(float x)
{
    return sizeof(T) < sizeof(float) ? x * sigmoid_for<T>(x) : x / (1 + expf(-x));
}
template <typename T> static __device__ inline float gelu_gate_for(float x)
{
    return sigmoid_for<T>(1.5957691216057308f * x * fmaf(0.044715f * x, x, 1.0f));
}

/* GELU(x) = x g(x) with g = (1 + tanh u) / 2 = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): no difference of near numbers. */
static __device__ inline float gelu_gate(float x) { return sigmoid(1.5957691216057308f * x * fmaf(0.044715f * x, x, 1.0f)); }
static __device__ inline float gelu_slope(float x, float gate)
{
    return gate + x * gate * (1 - gate) * 1.5957691216057308f * fmaf(3 * 0.044715f * x, x, 1.0f);
}

#endif
