/* Rows in registers. LANES threads have a row together (0: all of a block), each E numbers of it, in packs of 16 bytes: pack p of lane l
 * begins at (p * lanes + l) * P. Threads always have the same numbers of a row, so that a row may be written over as it is read. A row
 * that is not of whole packs is read and written number by number: `whole` says which, best when it is known as code is compiled. */
#ifndef HONE_OPS_CUDA_ROW_PARTS_CUH
#define HONE_OPS_CUDA_ROW_PARTS_CUH

#include <type_traits>

#include "ops/cuda/device.cuh"
#include "ops/cuda/tensor.cuh"

template <typename T> constexpr int packed = 16 / (int)sizeof(T);    /* numbers of a pack */

struct rows { int64_t count, width; };

static inline struct rows rows_of(struct shape s)
{
    const int64_t width = shape_last(s);
    return {shape_count(s) / width, width};
}

/* ---- 16 bytes as they are in memory: numbers of 16 bits stay two to a register until they are used ---- */

static __device__ inline uint4 no_words(void) { return make_uint4(0, 0, 0, 0); }

template <typename T> static __device__ inline float number_at(const uint4 &words, int i)      /* i is known when this is compiled */
{
    const int k = i * (int)sizeof(T) / 4;
    const uint32_t word = k == 0 ? words.x : k == 1 ? words.y : k == 2 ? words.z : words.w;
    if constexpr (sizeof(T) == sizeof(float))
        return __uint_as_float(word);
    else if constexpr (std::is_same<T, __nv_bfloat16>::value)
        return __uint_as_float(i % 2 ? word & 0xffff0000u : word << 16);
    else
        return __half2float(__ushort_as_half((unsigned short)(i % 2 ? word >> 16 : word)));
}

/* The words of a pack. */
template <typename T> static __device__ inline uint4 words_of(const float (&v)[packed<T>])
{
    if constexpr (sizeof(T) == sizeof(float))
        return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3]));
    else
        return make_uint4(pair_of<T>(v[0], v[1]), pair_of<T>(v[2], v[3]), pair_of<T>(v[4], v[5]), pair_of<T>(v[6], v[7]));
}

/* The first n numbers of 16 bytes, which are aligned where they are `whole`; the others are 0. */
template <typename T> static __device__ inline uint4 load_some(const T *from, int n, bool whole)
{
    if (whole)
        return *(const uint4 *)from;
    using bits = typename std::conditional<sizeof(T) == 2, uint16_t, uint32_t>::type;
    uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < packed<T>; i++)
        if (i < n)
            word[i * (int)sizeof(T) / 4] |= (uint32_t)((const bits *)from)[i] << i * (int)sizeof(T) % 4 * 8;
    return make_uint4(word[0], word[1], word[2], word[3]);
}

template <int P, typename T> static __device__ inline void store_some(T *to, const float (&from)[P], int n, bool whole)
{
    if (whole) {
        store_pack<P>(to, from);
        return;
    }
#pragma unroll
    for (int i = 0; i < P; i++)
        if (i < n)
            to[i] = from_float<T>(from[i]);
}

/* ---- a thread's part of a row ---- */

/* Which part of which row a thread has: rows go to groups of threads in turn. EACH_ROW is the same for all threads of a block, so that
 * they can sum together; a row may be behind the last one. */
template <int LANES> struct row_place {
    int lane, lanes, group, groups;
    __device__ row_place()
    {
        constexpr int L = LANES ? LANES : 1;
        lane = LANES ? threadIdx.x % L : threadIdx.x;
        lanes = LANES ? LANES : blockDim.x;
        group = LANES ? threadIdx.x / L : 0;
        groups = LANES ? blockDim.x / L : 1;
    }
};

#define EACH_ROW(row, place, count)                                                                                   \
    for (int64_t row##_base = (int64_t)blockIdx.x * (place).groups, row = row##_base + (place).group;                 \
         row##_base < (count); row##_base += (int64_t)gridDim.x * (place).groups, row = row##_base + (place).group)

template <typename T, int E> struct row_part { uint4 at[E / packed<T>]; };

/* What is not there is 0. */
template <int E, typename T> static __device__ inline void load_part(row_part<T, E> &part, const T *row, int lane, int lanes, int width, bool whole)
{
    constexpr int P = packed<T>;
#pragma unroll
    for (int p = 0; p < E / P; p++) {
        const int at = (p * lanes + lane) * P;
        part.at[p] = at < width ? load_some(row + at, width - at, whole) : no_words();
    }
}

/* As numbers: element e of the part is number e % P of pack e / P. */
template <int E, typename T> static __device__ inline float part_at(const row_part<T, E> &part, int e)
{
    return number_at<T>(part.at[e / packed<T>], e % packed<T>);
}

/* The compiler forgets what it made of these words, and makes it again where it is used next, instead of keeping it in registers. */
template <int E, typename T> static __device__ inline void forget(row_part<T, E> &part)
{
#pragma unroll
    for (int p = 0; p < E / packed<T>; p++)
        asm volatile("" : "+r"(part.at[p].x), "+r"(part.at[p].y), "+r"(part.at[p].z), "+r"(part.at[p].w));
}

/* Whether element e of a thread's part is in a row of that width, for packs of P. */
template <int P> static __device__ inline bool in_row(int e, int lane, int lanes, int width)
{
    return (e / P * lanes + lane) * P + e % P < width;
}

template <int P, int E, typename T> static __device__ inline void store_part(T *row, const float (&x)[E], int lane, int lanes, int width, bool whole)
{
#pragma unroll
    for (int p = 0; p < E / P; p++) {
        const int at = (p * lanes + lane) * P;
        float some[P];
#pragma unroll
        for (int i = 0; i < P; i++)
            some[i] = x[p * P + i];
        if (at < width)
            store_some<P>(row + at, some, width - at, whole);
    }
}

/* Numbers in f32 beside a row of packs of P: gains and shifts. Those that are not there are 0. */
template <int P, int E> static __device__ inline void load_beside(float (&to)[E], const float *from, int lane, int lanes, int width, bool whole)
{
#pragma unroll
    for (int p = 0; p < E / P; p++) {
        const int at = (p * lanes + lane) * P;
#pragma unroll
        for (int q = 0; q < P; q += 4) {
            const bool there = at + q < width;
            const uint4 four = there ? load_some(from + at + q, width - at - q, whole) : no_words();
#pragma unroll
            for (int i = 0; i < 4; i++)
                to[p * P + q + i] = number_at<float>(four, i);
        }
    }
}

/* Of all threads that have the row; every one of them gets the result. */
template <int LANES, class Op> static __device__ inline float row_reduce(float x, float nothing, Op op)
{
    if constexpr (LANES == 0)
        x = block_reduce(x, nothing, op);
    else
        for (int d = LANES / 2; d > 0; d /= 2)
            x = op(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}
template <int LANES> static __device__ inline float row_sum(float x) { return row_reduce<LANES>(x, 0.0f, add_of()); }

/* ---- on the host: which threads have a row ---- */

enum { ROW_BLOCK_NUMBERS = 16, ROW_MOST = 512 * ROW_BLOCK_NUMBERS };    /* a thread's part where a block has a row; the widest row */

template <int N> using constant = std::integral_constant<int, N>;

/* Calls f with LANES, E and whether rows are of whole packs of P, for rows of that width, at most ROW_MOST. */
template <int P, class F> static void with_parts(int64_t width, const F &f)
{
    constexpr std::true_type whole;
    constexpr std::false_type ragged;
    if (width % P != 0 && width <= 256)
        f(constant<32>(), constant<8>(), ragged);
    else if (width % P != 0 && width <= 1024)
        f(constant<32>(), constant<32>(), ragged);
    else if (width % P != 0)
        f(constant<0>(), constant<ROW_BLOCK_NUMBERS>(), ragged);
    else if (width <= 64)
        f(constant<8>(), constant<8>(), whole);
    else if (width <= 128)
        f(constant<16>(), constant<8>(), whole);
    else if (width <= 256)
        f(constant<32>(), constant<8>(), whole);
    else if (width <= 384)
        f(constant<16>(), constant<24>(), whole);
    else if (width <= 512)
        f(constant<32>(), constant<16>(), whole);
    else if (width <= 768)
        f(constant<32>(), constant<24>(), whole);
    else if (width <= 1024)
        f(constant<32>(), constant<32>(), whole);
    else
        f(constant<0>(), constant<ROW_BLOCK_NUMBERS>(), whole);
}

/* Threads of a block whose rows are in registers, and blocks for one row after the other. */
struct row_grid { unsigned blocks, threads; };

static inline struct row_grid row_grid(struct rows s, int lanes)
{
    if (lanes == 0)
        return {blocks_of(s.count), (unsigned)divide_up(s.width, ROW_BLOCK_NUMBERS * WARP) * WARP};
    const unsigned threads = s.count * lanes <= 16384 ? 64 : 128;
    return {blocks_at_once(s.count, threads / lanes), threads};
}

#endif
