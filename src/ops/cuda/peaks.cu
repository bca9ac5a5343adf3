/* What a GPU reaches: large products in f32 and with operands in bf16, and copies in its L2 cache and in its memory. */
#include <stdio.h>

#include "ops/cuda/cuda_int.h"

static const int SIZE = 4096, BF16_SIZE = 8192, TURNS = 8;  /* of the products: two operands are LARGE at most, a result too */
static const size_t LARGE = (size_t)256 << 20;              /* far more than any cache */
static const size_t SMALL = (size_t)4 << 20;                /* twice this is in every L2 that is used */
static const int AGAIN = 64;

/* Past L1, so that it is L2 that is measured. */
static __global__ void copy_again(float4 *to, const float4 *from, size_t n, int times)
{
    for (int k = 0; k < times; k++)
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
            __stcg(&to[i], __ldcg(&from[i]));
}

/* Numbers of all sizes: with zeros a GPU runs at clocks that it cannot keep up. */
static __global__ void fill(float *x, size_t n)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x[i] = (float)((unsigned)i * 2654435761u >> 8) * 0x1p-24f - 0.5f;
}

struct bench {
    struct cuda_backend *b;
    float *x, *y;                   /* LARGE each */
    cudaEvent_t start, stop;
};

static void product(struct bench *m)
{
    const float one = 1, zero = 0;
    for (int i = 0; i < TURNS; i++)
        cublasSgemm(m->b->blas, CUBLAS_OP_T, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, m->x, SIZE, m->x + (size_t)SIZE * SIZE, SIZE, &zero, m->y,
                    SIZE);
}

static void product_bf16(struct bench *m)
{
    const float one = 1, zero = 0;
    const int n = BF16_SIZE;
    const char *second = (const char *)m->x + 2 * (size_t)n * n;
    for (int i = 0; i < TURNS; i++)
        cublasGemmEx(m->b->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, m->x, CUDA_R_16BF, n, second, CUDA_R_16BF, n, &zero, m->y,
                     CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static void copy_cached(struct bench *m)
{
    copy_again<<<1024, 256, 0, m->b->stream>>>((float4 *)m->y, (const float4 *)m->x, SMALL / sizeof(float4), AGAIN);
}

static void copy_memory(struct bench *m)
{
    for (int i = 0; i < TURNS; i++)
        cudaMemcpyAsync(m->y, m->x, LARGE, cudaMemcpyDeviceToDevice, m->b->stream);
}

/* Seconds, the best of some turns after one that warms up; 0: it failed. */
static double seconds(struct bench *m, void (*work)(struct bench *m))
{
    float best = 0;
    for (int i = 0; i < 4; i++) {
        float ms = 0;
        cudaEventRecord(m->start, m->b->stream);
        work(m);
        cudaEventRecord(m->stop, m->b->stream);
        if (cudaGetLastError() != cudaSuccess || cudaStreamSynchronize(m->b->stream) != cudaSuccess ||
            cudaEventElapsedTime(&ms, m->start, m->stop) != cudaSuccess)
            return 0;
        if (i > 0 && (best == 0 || ms < best))
            best = ms;
    }
    return (double)best * 1e-3;
}

static double per_second(double amount, double s) { return s > 0 ? amount / s / 1e9 : 0; }

static void measure(struct bench *m, struct peaks *out)
{
    fill<<<1024, 256, 0, m->b->stream>>>(m->x, LARGE / sizeof(float));
    out->gemm_gflops = per_second(2.0 * SIZE * SIZE * SIZE * TURNS, seconds(m, product));
    out->bf16_gflops = per_second(2.0 * BF16_SIZE * BF16_SIZE * BF16_SIZE * TURNS, seconds(m, product_bf16));
    out->copy_gb_per_s[2] = per_second(2.0 * SMALL * AGAIN, seconds(m, copy_cached));
    out->copy_gb_per_s[3] = per_second(2.0 * LARGE * TURNS, seconds(m, copy_memory));
}

enum status cuda_peaks(struct backend *base, struct peaks *out, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    struct bench m = {b, NULL, NULL, NULL, NULL};
    int l2 = 0;
    *out = (struct peaks){};
    out->threads = 1;
    cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0);
    out->cache_bytes[2] = l2;
    out->cache_bytes[3] = b->about.memory_bytes;
    enum status st = cuda_open_blas(b, err);
    m.x = st == OK ? (float *)cuda_alloc(base, LARGE) : NULL;
    m.y = st == OK ? (float *)cuda_alloc(base, LARGE) : NULL;
    if (st == OK && (!m.x || !m.y))
        st = error_no_memory(err, "measuring the GPU", 2 * LARGE);
    if (st == OK)
        st = cuda_said(cudaEventCreate(&m.start), err, "an event");
    if (st == OK)
        st = cuda_said(cudaEventCreate(&m.stop), err, "an event");
    if (st == OK)
        measure(&m, out);
    if (m.start)
        cudaEventDestroy(m.start);
    if (m.stop)
        cudaEventDestroy(m.stop);
    cuda_free_memory(base, m.x, LARGE);
    cuda_free_memory(base, m.y, LARGE);
    return st;
}
