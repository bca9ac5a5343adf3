/* What one warp asks of the tensor cores and of the copies that run beside it. A fragment is what the 32 lanes have of a small matrix:
 * with g = lane / 4 and q = lane % 4,
 *   of a (16, 16), left operand: rows g and g + 8, columns 2 q, 2 q + 1, and those + 8;
 *   of b (16, 8), right operand: column g, rows 2 q, 2 q + 1, and those + 8;
 *   of c (16, 8), result in f32: rows g (c[0], c[1]) and g + 8 (c[2], c[3]), columns 2 q and 2 q + 1. */
#ifndef HONE_OPS_CUDA_TENSOR_CUH
#define HONE_OPS_CUDA_TENSOR_CUH

#include "ops/cuda/types.cuh"

/* Two numbers in a word, the first in its lower half. */
template <typename T> static __device__ inline uint32_t pair_of(float a, float b);
template <> __device__ inline uint32_t pair_of<__nv_bfloat16>(float a, float b)
{
    const __nv_bfloat162 p = __floats2bfloat162_rn(a, b);
    return *(const uint32_t *)&p;
}
template <> __device__ inline uint32_t pair_of<__half>(float a, float b)
{
    const __half2 p = __floats2half2_rn(a, b);
    return *(const uint32_t *)&p;
}

/* c += a b */
template <typename T> static __device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <> __device__ inline void multiply_add<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ inline void multiply_add<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Four matrices (8, 8) of 16-bit numbers from shared memory: lane l names row l % 8 of matrix l / 8, 16 bytes of it; word m of a lane is
 * row g, columns 2 q and 2 q + 1 of matrix m, or, transposed, column g, rows 2 q and 2 q + 1. */
static __device__ inline void load_matrices(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
static __device__ inline void load_matrices_transposed(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* 16 or 8 bytes from memory to shared memory, or zeros where nothing is there; they arrive when the copies are waited for. */
static __device__ inline void copy_16_bytes(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
static __device__ inline void copy_8_bytes(void *to, const void *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(shared_address(to)), "l"(from), "r"(there ? 8 : 0) : "memory");
}
static __device__ inline void wait_for_copies(void) { asm volatile("cp.async.wait_all;" : : : "memory"); }

static __device__ inline float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
