/* What a GPU reaches: large products of every kind of numbers, copies in its L2 cache, in its memory and from the host's, and what it
 * costs to start a kernel. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "ops/cuda/cuda_int.h"

static const int TURNS = 8, KERNELS = 256;
static const size_t LARGE = (size_t)256 << 20;              /* far more than any cache; two operands are this at most, a result too */
static const size_t SMALL = (size_t)4 << 20;                /* twice this is in every L2 that is used */
static const size_t UPLOAD = (size_t)32 << 20;
static const int AGAIN = 64;

struct product_kind {
    enum numbers numbers;
    cudaDataType_t type;
    cublasComputeType_t compute;
    int size;
};

static const struct product_kind products[] = {
    {NUMBERS_F32, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4096},
    {NUMBERS_TF32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4096},
    {NUMBERS_BF16, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 8192},
    {NUMBERS_F16, CUDA_R_16F, CUBLAS_COMPUTE_32F, 8192},
};

/* Past L1, so that it is L2 that is measured. */
static __global__ void copy_again(float4 *to, const float4 *from, size_t n, int times)
{
    for (int k = 0; k < times; k++)
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
            __stcg(&to[i], __ldcg(&from[i]));
}

/* Numbers of all sizes: with zeros a GPU runs at clocks that it cannot keep up. */
template <typename T> static __global__ void fill(T *x, size_t n)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x[i] = T((float)((unsigned)i * 2654435761u >> 8) * 0x1p-24f - 0.5f);
}

static __global__ void nothing() {}

struct bench {
    struct cuda_backend *b;
    char *x, *y;                    /* LARGE each */
    cudaEvent_t start, stop;
    const struct product_kind *kind;
    cudaGraphExec_t graph;          /* KERNELS that do nothing */
    void *host;                     /* UPLOAD bytes */
    bool refused;                   /* by cuBLAS, which tells it only to who calls */
};

/* ---- what is timed ---- */

static void fill_operands(struct bench *m)
{
    const cudaDataType_t type = m->kind->type;
    if (type == CUDA_R_16BF)
        fill<<<1024, 256, 0, m->b->stream>>>((__nv_bfloat16 *)m->x, LARGE / 2);
    else if (type == CUDA_R_16F)
        fill<<<1024, 256, 0, m->b->stream>>>((__half *)m->x, LARGE / 2);
    else
        fill<<<1024, 256, 0, m->b->stream>>>((float *)m->x, LARGE / 4);
}

static void product(struct bench *m)
{
    const float one = 1, zero = 0;
    const struct product_kind *k = m->kind;
    const int n = k->size;
    const char *second = m->x + (size_t)n * n * (k->type == CUDA_R_32F ? 4 : 2);
    for (int i = 0; i < TURNS; i++)
        m->refused |= cublasGemmEx(m->b->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, m->x, k->type, n, second, k->type, n, &zero, m->y,
                                   k->type, n, k->compute, CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS;
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

static void copy_from_host(struct bench *m)
{
    for (int i = 0; i < TURNS; i++)
        cudaMemcpyAsync(m->y, m->host, UPLOAD, cudaMemcpyHostToDevice, m->b->stream);
}

static void start_kernels(struct bench *m)
{
    for (int i = 0; i < KERNELS; i++)
        nothing<<<1, 32, 0, m->b->stream>>>();
}

static void replay_kernels(struct bench *m) { cudaGraphLaunch(m->graph, m->b->stream); }

/* ---- timing ---- */

/* Seconds, the best of some turns after one that warms up; 0: it failed. By the device's clock, or by the host's from the first call to
 * the end of the work. */
static double seconds(struct bench *m, void (*work)(struct bench *m), bool by_host)
{
    double best = 0;
    for (int i = 0; i < 4; i++) {
        float ms = 0;
        const int64_t start = clock_ns();
        cudaEventRecord(m->start, m->b->stream);
        work(m);
        cudaEventRecord(m->stop, m->b->stream);
        if (m->refused || cudaGetLastError() != cudaSuccess || cudaStreamSynchronize(m->b->stream) != cudaSuccess ||
            cudaEventElapsedTime(&ms, m->start, m->stop) != cudaSuccess)
            return 0;
        const double s = by_host ? (double)(clock_ns() - start) * 1e-9 : (double)ms * 1e-3;
        if (i > 0 && (best == 0 || s < best))
            best = s;
    }
    return best;
}

static double per_second(double amount, double s) { return s > 0 ? amount / s / 1e9 : 0; }

static void measure_products(struct bench *m, struct peaks *out)
{
    for (const struct product_kind &k : products) {
        m->kind = &k;
        m->refused = false;
        fill_operands(m);
        out->gflops[k.numbers] = per_second(2.0 * k.size * k.size * k.size * TURNS, seconds(m, product, false));
    }
}

static cudaError_t capture_kernels(struct bench *m)
{
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaStreamBeginCapture(m->b->stream, cudaStreamCaptureModeThreadLocal);
    if (e != cudaSuccess)
        return e;
    start_kernels(m);
    e = cudaStreamEndCapture(m->b->stream, &graph);
    if (e == cudaSuccess)
        e = cudaGraphInstantiate(&m->graph, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return e;
}

static void measure_launches(struct bench *m, struct peaks *out)
{
    out->gpu.launched_us = seconds(m, start_kernels, true) * 1e6 / KERNELS;
    if (capture_kernels(m) == cudaSuccess) {
        out->gpu.replayed_us = seconds(m, replay_kernels, false) * 1e6 / KERNELS;
        cudaGraphExecDestroy(m->graph);
    }
    cudaGetLastError();
}

static void measure_uploads(struct bench *m, struct peaks *out)
{
    if (cudaHostAlloc(&m->host, UPLOAD, cudaHostAllocDefault) == cudaSuccess) {
        memset(m->host, 1, UPLOAD);
        out->gpu.pinned_gb_per_s = per_second((double)UPLOAD * TURNS, seconds(m, copy_from_host, false));
        cudaFreeHost(m->host);
    }
    cudaGetLastError();
    m->host = malloc(UPLOAD);
    if (m->host) {
        memset(m->host, 1, UPLOAD);
        out->gpu.pageable_gb_per_s = per_second((double)UPLOAD * TURNS, seconds(m, copy_from_host, true));
        free(m->host);
    }
}

static void measure(struct bench *m, struct peaks *out)
{
    measure_products(m, out);
    out->copy_gb_per_s[1] = per_second(2.0 * SMALL * AGAIN, seconds(m, copy_cached, false));
    out->copy_gb_per_s[3] = per_second(2.0 * LARGE * TURNS, seconds(m, copy_memory, false));
    measure_launches(m, out);
    measure_uploads(m, out);
}

enum status cuda_peaks(struct backend *base, struct peaks *out, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    struct bench m = {};
    int l2 = 0;
    m.b = b;
    *out = (struct peaks){};
    out->threads = 1;
    cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, b->about.index);
    out->cache_bytes[1] = l2;
    out->cache_bytes[3] = b->about.memory_bytes;
    enum status st = cuda_open_blas(b, err);
    m.x = st == OK ? (char *)cuda_alloc(base, LARGE) : NULL;
    m.y = st == OK ? (char *)cuda_alloc(base, LARGE) : NULL;
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
