/* Which kernel of attention on tensor cores serves a call, and in which order its blocks run. Shape and device alone choose, so that the
 * same call gives the same bits. */
#ifndef HONE_OPS_CUDA_FLASH_MMA_LAUNCH_CUH
#define HONE_OPS_CUDA_FLASH_MMA_LAUNCH_CUH

#include "ops/cuda/flash_mma_backward.cuh"
#include "ops/cuda/flash_mma_forward.cuh"
#include "ops/cuda/flash_mma_short.cuh"
#include "ops/cuda/flash_tensor.cuh"

enum {
    FULL = 256,                     /* blocks that fill a GPU: with fewer, blocks have fewer rows */
    SHORT = 128,                    /* sequences up to it: all gradients by one kernel */
    WHOLE = 128,                    /* sequences up to it, 64 or 128: gradients of a head by one block; 0: never */
    WAITS_ONCE = 128,               /* sequences up to it, 64 or 128: all keys are fetched at once; 0: never */
    CACHED_BYTES = 16 << 20,        /* what the heads of a section have together */
};

/* Blocks of 64 rows, or of 128 where heads are small enough for the registers. */
template <typename T, int SIZE, bool DROPS> using few_rows = flash_shape<T, SIZE, 1, 4, SIZE <= 64 ? 64 : 32, DROPS>;
template <typename T, int SIZE> using many_rows = flash_shape<T, SIZE, SIZE == 32 || SIZE == 64 ? 2 : 1, 4, SIZE <= 64 ? 64 : 32, false>;

/* Calls f with the size that heads of `size` are held in, as a type. */
template <int N> struct size_of_head { static constexpr int SIZE = N; };
template <class F> static void with_size(int64_t size, const F &f)
{
    if (size <= 16)
        f(size_of_head<16>());
    else if (size <= 32)
        f(size_of_head<32>());
    else if (size <= 64)
        f(size_of_head<64>());
    else
        f(size_of_head<128>());
}

static uint32_t drops_below(const struct attention &a)      /* x 2^-24 < prob, x the upper 24 bits, without a float */
{
    return (uint32_t)ceil((double)a.dropout.prob * 0x1p24) << 8;
}

/* shared: tensors (T, D) that all tiles of a head read. */
static struct flash_order order_of(const struct attention &a, int64_t heads, int rows, int shared)
{
    const int64_t all = a.batch * heads, tiles = divide_up(a.seq, rows), bytes = shared * a.seq * a.size * 2;
    const int64_t section = tiles * all <= 2 * FULL ? all : at_most(all, at_least(16, CACHED_BYTES / bytes));
    return {(int)tiles, (int)all, (int)section, drops_below(a)};
}

static int64_t blocks_in(const struct flash_order &o) { return (int64_t)o.tiles * o.heads; }

template <typename Kernel, typename... Args>
static void launch(const struct cuda_call *c, Kernel kernel, int64_t blocks, int threads, size_t bytes, Args... args)
{
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    kernel<<<(unsigned)blocks, threads, bytes, c->stream>>>(args...);
}

/* ---- forward ---- */

template <class S> static void launch_forward(const struct cuda_call *c, const struct attention &a)
{
    const struct flash_order o = order_of(a, a.heads, S::ROWS, 2);
    launch(c, flash_forward<S>, blocks_in(o), S::COUNT, flash_forward_bytes<S>(), (typename S::T *)c->out[0], out_floats(c, 1),
           out_floats(c, 2), a, o);
}

template <class S, int N, int BLOCKS> static bool launch_short(const struct cuda_call *c, const struct attention &a)
{
    const struct flash_order o = order_of(a, a.heads, S::ROWS, 2);
    launch(c, flash_short_forward<S, N, BLOCKS>, blocks_in(o), S::COUNT, flash_short_bytes<S, N>(), (typename S::T *)c->out[0],
           out_floats(c, 1), out_floats(c, 2), a, o);
    return true;
}

/* Few heads: as much at once as registers hold. Many short ones: as many blocks beside each other as registers allow, by looking at fewer
 * keys at a time. */
template <typename T, int SIZE> static bool short_heads(const struct cuda_call *c, const struct attention &a)
{
    if (a.dropout.tick || a.seq > WAITS_ONCE)
        return false;
    if (a.batch * a.heads <= FULL)
        return launch_short<flash_shape<T, SIZE, 1, 4, 64, false>, 128, 1>(c, a);
    return a.seq <= 64 && launch_short<flash_shape<T, SIZE, 1, 4, 32, false>, 64, SIZE <= 32 ? 8 : 1>(c, a);
}

template <typename T> void flash_tensor_forward(const struct cuda_call *c, const struct attention &a)
{
    with_size(a.size, [&](auto size) {
        using many = many_rows<T, size.SIZE>;
        using few = few_rows<T, size.SIZE, false>;
        if constexpr (size.SIZE <= 64)
            if (short_heads<T, size.SIZE>(c, a))
                return;
        if (a.dropout.tick)
            launch_forward<few_rows<T, size.SIZE, true>>(c, a);
        else if (a.seq <= few::ROWS || blocks_in(order_of(a, a.heads, many::ROWS, 2)) < FULL)
            launch_forward<few>(c, a);
        else
            launch_forward<many>(c, a);
    });
}

/* ---- backward ---- */

template <class S>
static void launch_both(const struct cuda_call *c, const struct attention &a, const struct flash_gradients<typename S::T> &g)
{
    const struct flash_order queries = order_of(a, a.heads, S::ROWS, 2), keys = order_of(a, a.kv_heads, S::ROWS, 2);
    launch(c, flash_query_gradients<S>, blocks_in(queries), S::COUNT, flash_gradients_bytes<S>(), a, g, queries);
    launch(c, flash_key_gradients<S>, blocks_in(keys), S::COUNT, flash_gradients_bytes<S>(), a, g, keys);
}

template <class S>
static void launch_at_once(const struct cuda_call *c, const struct attention &a, const struct flash_gradients<typename S::T> &g)
{
    const struct flash_order queries = order_of(a, a.heads, S::ROWS, 2), keys = order_of(a, a.kv_heads, S::ROWS, 2);
    launch(c, flash_all_gradients<S>, blocks_in(queries) + blocks_in(keys), S::COUNT, flash_gradients_bytes<S>(), a, g, queries, keys,
           (int)blocks_in(keys));
}

/* Whether a block may have so much shared memory on this device. */
static bool has_shared(size_t bytes)
{
    int device = 0, most = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess && bytes <= (size_t)most;
}

/* S: see flash_mma_short.cuh. BLOCKS: of a multiprocessor at a time, which bounds registers. */
template <class S, int BLOCKS>
static bool launch_whole(const struct cuda_call *c, const struct attention &a, const struct flash_gradients<typename S::T> &g)
{
    const size_t bytes = short_head<S>::bytes();
    if (!has_shared(bytes))
        return false;
    launch(c, flash_short_gradients<S, BLOCKS>, a.batch * a.heads, S::COUNT, bytes, a, g);
    return true;
}

/* Twice as many warps as rows need where heads are too few to fill a GPU. Many longer heads are better off with smaller blocks. */
template <typename T, int SIZE>
static bool whole_heads(const struct cuda_call *c, const struct attention &a, const struct flash_gradients<T> &g)
{
    const int64_t heads = a.batch * a.heads;
    if (a.dropout.tick || a.heads != a.kv_heads || a.seq > WHOLE)
        return false;
    if (a.seq > 64)
        return heads <= FULL && launch_whole<flash_shape<T, SIZE, 1, 16, 128, false>, 1>(c, a, g);
    return heads <= FULL ? launch_whole<flash_shape<T, SIZE, 1, 8, 64, false>, 1>(c, a, g)
                         : launch_whole<flash_shape<T, SIZE, 1, 4, 64, false>, SIZE <= 32 ? 5 : 1>(c, a, g);
}

template <typename T> void flash_tensor_backward(const struct cuda_call *c, const struct attention &a)
{
    const struct flash_gradients<T> g = {(const T *)c->in[0], (const T *)c->in[4], in_floats(c, 5), in_floats(c, 6),
                                         (struct row_stats *)c->scratch, (T *)c->out[0], (T *)c->out[1], (T *)c->out[2]};
    with_size(a.size, [&](auto size) {
        using many = many_rows<T, size.SIZE>;
        if constexpr (size.SIZE <= 64)
            if (whole_heads<T, size.SIZE>(c, a, g))
                return;
        if (a.dropout.tick)
            launch_both<few_rows<T, size.SIZE, true>>(c, a, g);
        else if (a.seq <= SHORT || blocks_in(order_of(a, a.kv_heads, many::ROWS, 2)) < FULL)
            launch_at_once<few_rows<T, size.SIZE, false>>(c, a, g);
        else
            launch_both<many>(c, a, g);
    });
}

#endif
