/* The CUDA backend: opening and closing it, and the module's table. */
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda_int.h"
#include "ops/cuda/nccl.h"
#include "ops/cuda/products.h"

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

/* With memory of its own cuBLAS allocates none, so that its calls can be captured, and it sums in the same order every time. */
static enum status blas_said(cublasStatus_t s, struct error *err)
{
    return s == CUBLAS_STATUS_SUCCESS ? OK : error_set(err, CANNOT, "cuBLAS cannot be used: %s", cublasGetStatusString(s));
}

/* What a handle works in. The stream comes first: it takes the memory away. */
static cublasStatus_t use_blas_in(struct cuda_backend *b, cudaStream_t stream, void *workspace)
{
    const cublasStatus_t s = cublasSetStream(b->blas, stream);
    return s == CUBLAS_STATUS_SUCCESS ? cublasSetWorkspace(b->blas, workspace, BLAS_WORKSPACE) : s;
}

enum status cuda_use_blas(struct cuda_backend *b, int lane, struct error *err)
{
    return blas_said(lane ? use_blas_in(b, b->sides[lane].stream, b->sides[lane].workspace)
                          : use_blas_in(b, b->stream, b->blas_workspace), err);
}

enum status cuda_open_blas(struct cuda_backend *b, struct error *err)
{
    if (b->blas)
        return OK;
    enum status st = blas_said(cublasCreate(&b->blas), err);
    if (st == OK)
        st = (b->blas_workspace = cuda_alloc(&b->base, WORKSPACE)) ? OK : error_no_memory(err, "cuBLAS", BLAS_WORKSPACE);
    if (st == OK)
        st = cuda_use_blas(b, 0, err);
    if (st == OK)
        st = blas_said(cublasSetMathMode(b->blas, CUBLAS_DEFAULT_MATH), err);      /* f32 is f32: no TF32 */
    return st;
}

/* Ops beside the main row give way to it where the device is full. Without memory for a lane there is one less. */
bool cuda_open_side(struct cuda_backend *b, int lane)
{
    struct cuda_side *s = &b->sides[lane];
    int least = 0, greatest = 0;
    if (!s->stream && (cudaDeviceGetStreamPriorityRange(&least, &greatest) != cudaSuccess ||
                       cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, least) != cudaSuccess))
        return false;
    if (!s->workspace)
        s->workspace = cuda_alloc(&b->base, WORKSPACE);
    return s->workspace != NULL;
}

static void close_side(struct cuda_side *s)
{
    if (s->workspace)
        cudaFree(s->workspace);
    if (s->stream)
        cudaStreamDestroy(s->stream);
}

/* ---- the backend ---- */

enum { LANES = 4 };                 /* of a graph, where nothing else is said */

static void cuda_free(struct backend *base)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    if (!b)
        return;
    if (b->stream)
        cuda_wait(b);
    cuda_comm_close(b);
    cuda_free_plans(b);
    if (b->blas)
        cublasDestroy(b->blas);
    if (b->blas_workspace)
        cudaFree(b->blas_workspace);
    for (int l = 0; l < LANES_MOST; l++)
        close_side(&b->sides[l]);
    cuda_staging_free(&b->staging);
    if (b->stream)
        cudaStreamDestroy(b->stream);
    cudaGetLastError();
    free(b->events);
    free(b->launches);
    free(b);
}

static const struct backend functions = {
    .name = "cuda", .lanes = 1, .available = cuda_available, .alloc = cuda_alloc, .free_memory = cuda_free_memory, .upload = cuda_upload,
    .download = cuda_download, .scratch = cuda_scratch, .beside = cuda_beside, .prepare = cuda_prepare, .about = cuda_about, .run = cuda_run, .kernels = cuda_kernels,
    .finish = cuda_finish, .release = cuda_release, .free = cuda_free};

static bool asks_for(const char *variable, bool otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strcmp(text, "0") != 0 : otherwise;
}

/* HONE_CUDA_GRAPH: 0: nothing is captured, 1: everything. */
static enum cuda_graphs graphs_asked_for(enum cuda_graphs otherwise)
{
    const char *text = getenv("HONE_CUDA_GRAPH");
    return !text || !*text ? otherwise : strcmp(text, "0") ? GRAPHS_ALWAYS : GRAPHS_NEVER;
}

/* HONE_CUDA_LANES: how many rows of ops a graph may have; 1: every op waits for the one before it. */
static int lanes_asked_for(void)
{
    const char *text = getenv("HONE_CUDA_LANES");
    const int n = text ? atoi(text) : 0;
    return n < 1 ? LANES : n < LANES_MOST ? n : LANES_MOST;
}

static enum status new_stream(struct cuda_backend *b, struct error *err)
{
    int least = 0, greatest = 0;
    const enum status st = cuda_said(cudaDeviceGetStreamPriorityRange(&least, &greatest), err, "priorities of streams");
    return st == OK ? cuda_said(cudaStreamCreateWithPriority(&b->stream, cudaStreamNonBlocking, greatest), err, "a stream") : st;
}

static enum status cuda_new(struct backend **out, const struct cuda_wish *wish, const struct cuda_choices *choices, struct error *err)
{
    struct cuda_backend *b = calloc(1, sizeof *b);
    if (!b)
        return error_no_memory(err, "the CUDA backend", sizeof *b);
    b->base = functions;
    b->choices = choices;
    b->graphs = graphs_asked_for(wish->graphs);
    b->comm.nccl = wish->nccl;
    b->checks = asks_for("HONE_CUDA_SYNC", false);
    b->merges = asks_for("HONE_CUDA_MERGE", true);
    b->names = asks_for("HONE_NVTX", false);
    b->lanes = lanes_asked_for();
    enum status st = cuda_find_device(&b->about, wish->device, err);
    b->base.device = b->about.name;
    b->base.address = b->about.address[0] ? b->about.address : NULL;
    if (st == OK)
        st = new_stream(b, err);
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
    static const struct cuda_module module = {HONE_CUDA_BUILD, cuda_kernel_of, cuda_count_devices, cuda_find_device, nccl_version, cuda_new, cuda_peaks};
    return &module;
}
