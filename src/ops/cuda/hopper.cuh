/* What a warpgroup asks of Hopper's tensor cores, and what a thread asks of its copies of tiles. Compiled for compute capability 9.0 alone. */
#ifndef HONE_OPS_CUDA_HOPPER_CUH
#define HONE_OPS_CUDA_HOPPER_CUH

#include <cuda.h>

#include "ops/cuda/tensor.cuh"

/* ---- meetings in shared memory: a barrier is passed when so many have arrived and all bytes that were announced are there ---- */

static __device__ inline void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}
/* What was begun can be seen by the copies, and by the other blocks of the cluster once they have met. */
static __device__ inline void barriers_are_there(void) { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }

static __device__ inline void expect_bytes(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}

/* At the barrier in the same place of that block of the cluster. What is handed over are tiles that wgmma has read, and no memory: a release for the
 * whole cluster would wait for all that the thread has written, in every step. */
static __device__ inline void arrive_at(uint32_t barrier, uint32_t block)
{
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}"
                 :
                 : "r"(barrier), "r"(block)
                 : "memory");
}

/* Until its phase of this parity is over. Tiles come by copies, which the barrier counts: an acquire for the whole cluster would empty the cache. */
static __device__ inline void wait_at(uint32_t barrier, uint32_t parity)
{
    uint32_t over;
    do
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    while (!over);
}

/* ---- copies of tiles: (column, row) is where they begin; what lies outside of the matrix is zeros ---- */

static __device__ inline void copy_tile(uint32_t to, const CUtensorMap *from, int column, int row, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :
                 : "r"(to), "l"(from), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

/* To the same place of all blocks of the cluster that the mask has, each with its barrier. */
static __device__ inline void copy_tile_to(uint32_t to, const CUtensorMap *from, int column, int row, uint32_t barrier, uint16_t mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 :
                 : "r"(to), "l"(from), "r"(column), "r"(row), "r"(barrier), "h"(mask)
                 : "memory");
}

static __device__ inline void fetch_map(const CUtensorMap *map) { asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory"); }

/* ---- products by a warpgroup ---- */

/* A matrix in shared memory: rows of 128 bytes, of which eight lie in all banks (as chunk_at of small_tile.cuh has them), and 1024 bytes
 * from eight rows to the next. `apart`: bytes from 64 columns to the next 64, where rows are what is summed over. */
static __device__ inline uint64_t matrix_at(uint32_t address, uint32_t apart)
{
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(apart >> 4) << 16 | (address & 0x3ffff) >> 4;
}

static __device__ inline void products_begin(void) { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
static __device__ inline void products_end(void) { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int LATER> static __device__ inline void wait_for_products(void)          /* all but so many of the last groups */
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(LATER) : "memory");
}

#define SUMS_8(s, i) "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), "+f"(s[i + 6]), "+f"(s[i + 7])
#define SUMS_32(s, i) SUMS_8(s, i), SUMS_8(s, i + 8), SUMS_8(s, i + 16), SUMS_8(s, i + 24)
#define PLACES_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PLACES_32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PLACES_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define MULTIPLY(N, TYPE, PLACES, A, B, TRANS_A, TRANS_B, ADD)                                                                    \
    "{\n.reg .pred p;\nsetp.ne.b32 p, " ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" PLACES "}, " A ", " B  \
    ", p, 1, 1, " TRANS_A ", " TRANS_B ";\n}"

/* s (64, N) = a (64, 16) b (16, N), or that is added: they are stored (64, 16) and (N, 16), or,
 * transposed, (16, 64) and (16, N). A thread of warp w has rows 16 w + lane / 4 and 8
 * below it, of every eight columns 2 (lane % 4) and the next: s[4 j], s[4 j + 1] are above, s[4 j + 2], s[4 j + 3] below. */
template <typename T, int N, bool TRANS_A, bool TRANS_B> struct warpgroup;
template <bool TRANS_A, bool TRANS_B> struct warpgroup<__nv_bfloat16, 64, TRANS_A, TRANS_B> {
    static __device__ inline void multiply_add(float (&s)[32], uint64_t a, uint64_t b, bool add)
    {
        asm volatile(MULTIPLY("64", "bf16", PLACES_0, "%32", "%33", "%34", "%35", "%36")
                     : SUMS_32(s, 0)
                     : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), "r"((int)add));
    }
};
template <bool TRANS_A, bool TRANS_B> struct warpgroup<__nv_bfloat16, 128, TRANS_A, TRANS_B> {
    static __device__ inline void multiply_add(float (&s)[64], uint64_t a, uint64_t b, bool add)
    {
        asm volatile(MULTIPLY("128", "bf16", PLACES_0 ", " PLACES_32, "%64", "%65", "%66", "%67", "%68")
                     : SUMS_32(s, 0), SUMS_32(s, 32)
                     : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), "r"((int)add));
    }
};
template <bool TRANS_A, bool TRANS_B> struct warpgroup<__nv_bfloat16, 192, TRANS_A, TRANS_B> {
    static __device__ inline void multiply_add(float (&s)[96], uint64_t a, uint64_t b, bool add)
    {
        asm volatile(MULTIPLY("192", "bf16", PLACES_0 ", " PLACES_32 ", " PLACES_64, "%96", "%97", "%98", "%99", "%100")
                     : SUMS_32(s, 0), SUMS_32(s, 32), SUMS_32(s, 64)
                     : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), "r"((int)add));
    }
};
template <bool TRANS_A, bool TRANS_B> struct warpgroup<__half, 64, TRANS_A, TRANS_B> {
    static __device__ inline void multiply_add(float (&s)[32], uint64_t a, uint64_t b, bool add)
    {
        asm volatile(MULTIPLY("64", "f16", PLACES_0, "%32", "%33", "%34", "%35", "%36")
                     : SUMS_32(s, 0)
                     : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), "r"((int)add));
    }
};
template <bool TRANS_A, bool TRANS_B> struct warpgroup<__half, 128, TRANS_A, TRANS_B> {
    static __device__ inline void multiply_add(float (&s)[64], uint64_t a, uint64_t b, bool add)
    {
        asm volatile(MULTIPLY("128", "f16", PLACES_0 ", " PLACES_32, "%64", "%65", "%66", "%67", "%68")
                     : SUMS_32(s, 0), SUMS_32(s, 32)
                     : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), "r"((int)add));
    }
};
template <bool TRANS_A, bool TRANS_B> struct warpgroup<__half, 192, TRANS_A, TRANS_B> {
    static __device__ inline void multiply_add(float (&s)[96], uint64_t a, uint64_t b, bool add)
    {
        asm volatile(MULTIPLY("192", "f16", PLACES_0 ", " PLACES_32 ", " PLACES_64, "%96", "%97", "%98", "%99", "%100")
                     : SUMS_32(s, 0), SUMS_32(s, 32), SUMS_32(s, 64)
                     : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), "r"((int)add));
    }
};

/* s (64, N) += a (64, 16) b (16, N): a is in registers, as words of two numbers of what a thread has of s: rows above and below of eight
 * columns, then of the next eight; b is stored (16, N). */
#define MULTIPLY_LEFT(N, TYPE, PLACES, A, B, ADD)                                                                                \
    "{\n.reg .pred p;\nsetp.ne.b32 p, " ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" PLACES "}, " A ", " B  \
    ", p, 1, 1, 1;\n}"
template <typename T, int N> struct warpgroup_left;
template <> struct warpgroup_left<__nv_bfloat16, 64> {
    static __device__ inline void multiply_add(float (&s)[32], const uint32_t (&a)[4], uint64_t b, bool add)
    {
        asm volatile(MULTIPLY_LEFT("64", "bf16", PLACES_0, "{%32, %33, %34, %35}", "%36", "%37")
                     : SUMS_32(s, 0)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
    }
};
template <> struct warpgroup_left<__nv_bfloat16, 128> {
    static __device__ inline void multiply_add(float (&s)[64], const uint32_t (&a)[4], uint64_t b, bool add)
    {
        asm volatile(MULTIPLY_LEFT("128", "bf16", PLACES_0 ", " PLACES_32, "{%64, %65, %66, %67}", "%68", "%69")
                     : SUMS_32(s, 0), SUMS_32(s, 32)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
    }
};
template <> struct warpgroup_left<__half, 64> {
    static __device__ inline void multiply_add(float (&s)[32], const uint32_t (&a)[4], uint64_t b, bool add)
    {
        asm volatile(MULTIPLY_LEFT("64", "f16", PLACES_0, "{%32, %33, %34, %35}", "%36", "%37")
                     : SUMS_32(s, 0)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
    }
};
template <> struct warpgroup_left<__half, 128> {
    static __device__ inline void multiply_add(float (&s)[64], const uint32_t (&a)[4], uint64_t b, bool add)
    {
        asm volatile(MULTIPLY_LEFT("128", "f16", PLACES_0 ", " PLACES_32, "{%64, %65, %66, %67}", "%68", "%69")
                     : SUMS_32(s, 0), SUMS_32(s, 32)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
    }
};

/* ---- on the host (hopper.cu) ---- */

/* Of (rows, columns) at x: tiles of so many rows, 64 columns wide. */
bool cuda_hopper_map(CUtensorMap *out, const void *x, int rows, int columns, int stride, int tile_rows, bool f16);

#endif
