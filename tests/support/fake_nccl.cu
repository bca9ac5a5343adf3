/* NCCL of a job whose other ranks can be lost, as far as one rank sees it: sums are what they were, and after fake_nccl_lose() they never end,
 * until they are aborted. As NCCL's, an abort returns when the last graph with sums in it is gone. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <time.h>

#include <atomic>

#include "fake_nccl.h"

static int *goes_on;                /* pinned: sums look at it */
static std::atomic<int> graphs;

static void nap(void)
{
    const struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

__global__ void sum(const volatile int *go)
{
    while (!*go)
        __nanosleep(1000);
}

static void CUDART_CB graph_is_gone(void *) { graphs--; }

/* A graph that is captured keeps this, and so do those that are made of it. */
static void note_graph(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    cudaUserObject_t object;
#if CUDART_VERSION < 13000
    const cudaError_t e = cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL);
#else
    const cudaError_t e = cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL);
#endif
    if (e != cudaSuccess || status != cudaStreamCaptureStatusActive ||
        cudaUserObjectCreate(&object, goes_on, graph_is_gone, 1, cudaUserObjectNoDestructorSync) != cudaSuccess)
        return;
    graphs++;
    cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
}

static void say(int go) { *(volatile int *)goes_on = go; }

extern "C" {

void fake_nccl_lose(void) { say(0); }
int fake_nccl_graphs(void) { return graphs; }

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    *id = ncclUniqueId();
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    (void)ranks, (void)id, (void)rank;
    if (cudaHostAlloc((void **)&goes_on, sizeof *goes_on, cudaHostAllocDefault) != cudaSuccess)
        return ncclUnhandledCudaError;
    say(1);
    *out = (ncclComm_t)goes_on;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    (void)from, (void)to, (void)n, (void)type, (void)op, (void)c;
    note_graph(stream);
    sum<<<1, 1, 0, stream>>>(goes_on);
    return cudaGetLastError() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t stream)
{
    (void)root;
    return ncclAllReduce(from, to, n, type, op, c, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t type, int root, ncclComm_t c, cudaStream_t stream)
{
    (void)root;
    return ncclAllReduce(from, to, n, type, ncclSum, c, stream);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    (void)c;
    while (graphs)
        nap();
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    say(1);
    return ncclCommDestroy(c);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error)
{
    (void)c;
    *error = ncclSuccess;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r) { return r == ncclSuccess ? "no error" : "an error"; }
ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }

}
