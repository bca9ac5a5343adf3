/* The CUDA backend: opening and closing it, and the module's table. */
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda_int.h"

enum status cuda_said(cudaError_t e, struct error *err, const char *what)
{
    if (e == cudaSuccess)
        return OK;
    error_set(err, CANNOT, "the GPU failed at %s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
    if (err && e == cudaErrorMemoryAllocation)
        err->no_memory = true;
    return CANNOT;
}

/* ---- cuBLAS ---- */

/* Enough for the largest products of Hopper. With memory of its own cuBLAS allocates none, so that its calls can be captured, and it
 * sums in the same order every time. */
enum { BLAS_WORKSPACE = 32 << 20 };

static enum status blas_said(cublasStatus_t s, struct error *err)
{
    return s == CUBLAS_STATUS_SUCCESS ? OK : error_set(err, CANNOT, "cuBLAS cannot be used: %s", cublasGetStatusString(s));
}

enum status cuda_open_blas(struct cuda_backend *b, struct error *err)
{
    if (b->blas)
        return OK;
    enum status st = blas_said(cublasCreate(&b->blas), err);
    if (st == OK)
        st = cuda_said(cudaMalloc(&b->blas_workspace, BLAS_WORKSPACE), err, "memory for cuBLAS");
    if (st == OK)
        st = blas_said(cublasSetStream(b->blas, b->stream), err);
    if (st == OK)                       /* after the stream, which takes it away */
        st = blas_said(cublasSetWorkspace(b->blas, b->blas_workspace, BLAS_WORKSPACE), err);
    if (st == OK)
        st = blas_said(cublasSetMathMode(b->blas, CUBLAS_DEFAULT_MATH), err);      /* f32 is f32: no TF32 */
    return st;
}

/* ---- the backend ---- */

static void cuda_free(struct backend *base)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    if (!b)
        return;
    if (b->stream)
        cudaStreamSynchronize(b->stream);
    if (b->blas)
        cublasDestroy(b->blas);
    if (b->blas_workspace)
        cudaFree(b->blas_workspace);
    cuda_staging_free(&b->staging);
    if (b->stream)
        cudaStreamDestroy(b->stream);
    cudaGetLastError();
    free(b);
}

static const struct backend functions = {
    .name = "cuda", .lanes = 1, .available = cuda_available, .alloc = cuda_alloc, .free_memory = cuda_free_memory, .upload = cuda_upload,
    .download = cuda_download, .scratch = cuda_scratch, .prepare = cuda_prepare, .about = cuda_about, .run = cuda_run,
    .finish = cuda_finish, .release = cuda_release, .free = cuda_free};

static bool asks_for(const char *variable, bool otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strcmp(text, "0") != 0 : otherwise;
}

static enum status cuda_new(struct backend **out, bool graphs, struct error *err)
{
    struct cuda_backend *b = calloc(1, sizeof *b);
    if (!b)
        return error_no_memory(err, "the CUDA backend", sizeof *b);
    b->base = functions;
    b->graphs = asks_for("HONE_CUDA_GRAPH", graphs);
    b->checks = asks_for("HONE_CUDA_SYNC", false);
    enum status st = cuda_find_device(&b->about, err);
    b->base.device = b->about.name;
    b->base.address = b->about.address[0] ? b->about.address : NULL;
    if (st == OK)
        st = cuda_said(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), err, "a stream");
    if (st == OK)
        st = cuda_staging_new(&b->staging, err);
    if (st == OK)
        *out = &b->base;
    else
        cuda_free(&b->base);
    return st;
}

/* ---- the module ---- */

__attribute__((visibility("default"))) cuda_module_fn hone_cuda_module;

const struct cuda_module *hone_cuda_module(void)
{
    static const struct cuda_module module = {HONE_CUDA_BUILD, cuda_kernel_of, cuda_find_device, cuda_new, cuda_peaks};
    return &module;
}
