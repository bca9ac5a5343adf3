/* Loads NCCL, and opens communicators. */
#include "ops/cuda/nccl.h"

#include <stdlib.h>
#include <string.h>

#ifdef HONE_NCCL

#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <time.h>

#include "core/clock.h"

#define NCCL_FUNCTIONS(each)                                                                                           \
    each(ncclGetVersion) each(ncclGetUniqueId) each(ncclCommInitRank) each(ncclAllReduce) each(ncclCommDestroy)       \
    each(ncclCommAbort) each(ncclCommGetAsyncError) each(ncclGetErrorString) each(ncclReduce) each(ncclBroadcast)     \
    each(ncclGroupStart) each(ncclGroupEnd)

static struct {
#define NCCL_FIELD(name) __typeof__(name) *name;
    NCCL_FUNCTIONS(NCCL_FIELD)
#undef NCCL_FIELD
} nccl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct error refusal;
static int version;

/* ---- the library ---- */

static enum status load(struct error *err)
{
    const char *asked = getenv("HONE_NCCL");
    if (asked && !strcmp(asked, "0"))
        return error_set(err, CANNOT, "HONE_NCCL is 0 in the environment, which leaves NCCL out");
    const char *path = asked && *asked ? asked : HONE_NCCL;
    void *from = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!from) {
        const char *why = dlerror();
        return error_set(err, CANNOT, "NCCL cannot be loaded: %.600s", why ? why : path);
    }
#define NCCL_LOAD(name)                                                                                               \
    nccl.name = (__typeof__(nccl.name))dlsym(from, #name);                                                            \
    if (!nccl.name)                                                                                                   \
        return error_set(err, CANNOT, "NCCL cannot be used: '%.300s' has no %s", path, #name);
    NCCL_FUNCTIONS(NCCL_LOAD)
#undef NCCL_LOAD
    if (nccl.ncclGetVersion(&version) != ncclSuccess)
        return error_set(err, CANNOT, "NCCL cannot be used: '%.300s' does not tell its version", path);
    return OK;
}

static void load_once(void) { load(&refusal); }

enum status nccl_version(int *out, struct error *err)
{
    pthread_once(&once, load_once);
    if (refusal.status != OK && err)
        *err = refusal;
    *out = version;
    return refusal.status;
}

static enum status said(ncclResult_t r, struct error *err)
{
    return r == ncclSuccess ? OK : error_set(err, CANNOT, "NCCL failed between ranks: %s (NCCL_DEBUG=WARN in the environment says more)",
                                             nccl.ncclGetErrorString(r));
}

/* ---- communicators ---- */

/* What a thread of its own does, since NCCL waits for the other ranks without end. */
struct opening {
    ncclUniqueId id;
    int rank, size, device;
    ncclComm_t made;
    ncclResult_t result;
    bool left;                      /* the thread is stuck, and was left behind */
    _Atomic bool done;
};

/* The first sum connects the ranks. */
static ncclResult_t first_sum(struct opening *o)
{
    cudaStream_t stream = NULL;
    void *one = NULL;
    ncclResult_t r = ncclUnhandledCudaError;
    if (cudaMalloc(&one, sizeof(float)) == cudaSuccess && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
        cudaMemsetAsync(one, 0, sizeof(float), stream) == cudaSuccess)
        r = nccl.ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, o->made, stream);
    if (r == ncclSuccess && cudaStreamSynchronize(stream) != cudaSuccess)
        r = ncclUnhandledCudaError;
    if (stream)
        cudaStreamDestroy(stream);
    cudaFree(one);
    return r;
}

static void *opening_main(void *argument)
{
    struct opening *o = argument;
    o->result = cudaSetDevice(o->device) == cudaSuccess ? nccl.ncclCommInitRank(&o->made, o->size, o->id, o->rank) : ncclUnhandledCudaError;
    if (o->result == ncclSuccess)
        o->result = first_sum(o);
    atomic_store(&o->done, true);
    return NULL;
}

/* A thread that is stuck when the group fails stays so, with what it writes to: the process ends. */
static enum status open_in_thread(struct opening *o, struct comm *ranks, struct error *err)
{
    pthread_t thread;
    enum status st = OK;
    if (pthread_create(&thread, NULL, opening_main, o))
        return error_set(err, CANNOT, "cannot start the thread that opens NCCL");
    while (!atomic_load(&o->done) && st == OK) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        st = ranks ? ranks->status(ranks, err) : OK;
    }
    o->left = st != OK;
    if (o->left)
        pthread_detach(thread);
    else
        pthread_join(thread, NULL);
    return st;
}

enum status nccl_open(void **communicator, struct comm *ranks, struct error *err)
{
    struct opening *o = calloc(1, sizeof *o);
    if (!o)
        return error_no_memory(err, "a communicator of NCCL", sizeof *o);
    o->rank = ranks ? ranks->rank : 0;
    o->size = ranks ? ranks->size : 1;
    enum status st = nccl_version(&version, err);
    if (st == OK && cudaGetDevice(&o->device) != cudaSuccess)
        st = error_set(err, CANNOT, "the GPU of this rank is not known");
    if (st == OK && o->rank == 0)
        st = said(nccl.ncclGetUniqueId(&o->id), err);
    if (st == OK && ranks && o->size > 1)
        st = ranks->share(ranks, &o->id, sizeof o->id, err);
    if (st == OK)
        st = open_in_thread(o, ranks, err);
    if (st == OK)
        st = said(o->result, err);
    if (st == OK)
        *communicator = o->made;
    if (!o->left)
        free(o);
    return st;
}

static const char *word_of(ncclResult_t r) { return r == ncclSuccess ? NULL : nccl.ncclGetErrorString(r); }

const char *nccl_sum(void *communicator, float *data, int64_t n, cudaStream_t stream)
{
    return word_of(nccl.ncclAllReduce(data, data, (size_t)n, ncclFloat32, ncclSum, communicator, stream));
}

const char *nccl_sum_to(void *communicator, float *data, int64_t n, int rank, cudaStream_t stream)
{
    return word_of(nccl.ncclReduce(data, data, (size_t)n, ncclFloat32, ncclSum, rank, communicator, stream));
}

const char *nccl_broadcast(void *communicator, float *data, int64_t n, int rank, cudaStream_t stream)
{
    return word_of(nccl.ncclBroadcast(data, data, (size_t)n, ncclFloat32, rank, communicator, stream));
}

const char *nccl_group(bool begins) { return word_of(begins ? nccl.ncclGroupStart() : nccl.ncclGroupEnd()); }

bool nccl_works(void *communicator)
{
    ncclResult_t r = ncclSuccess;
    return nccl.ncclCommGetAsyncError(communicator, &r) == ncclSuccess && (r == ncclSuccess || r == ncclInProgress);
}

void nccl_close(void *communicator, bool whole)
{
    if (communicator && whole)
        nccl.ncclCommDestroy(communicator);
    else if (communicator)
        nccl.ncclCommAbort(communicator);
}

/* ---- when a rank is lost ---- */

static const int64_t LEAVES_NS = 10000000000;

struct nccl_leaving {
    pthread_t thread;
    void *communicator;
    int device;                     /* a thread begins with the first, and NCCL would open that, too */
    _Atomic bool done;
};

static void *leaving_main(void *argument)
{
    struct nccl_leaving *l = argument;
    cudaSetDevice(l->device);
    nccl.ncclCommAbort(l->communicator);
    atomic_store(&l->done, true);
    return NULL;
}

struct nccl_leaving *nccl_leave(void *communicator)
{
    struct nccl_leaving *l = calloc(1, sizeof *l);
    if (l)
        l->communicator = communicator;
    if (!l || cudaGetDevice(&l->device) != cudaSuccess || pthread_create(&l->thread, NULL, leaving_main, l)) {
        free(l);
        nccl_close(communicator, false);
        return NULL;
    }
    return l;
}

void nccl_left(struct nccl_leaving *l)
{
    const int64_t until = clock_ns() + LEAVES_NS;
    while (l && !atomic_load(&l->done) && clock_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (l && atomic_load(&l->done)) {
        pthread_join(l->thread, NULL);
        free(l);
    } else if (l) {
        pthread_detach(l->thread);
    }
}

#else

enum status nccl_version(int *out, struct error *err)
{
    *out = 0;
    return error_set(err, CANNOT, "this build of hone knows no NCCL: HONE_NCCL at configure time is the path of libnccl.so.2");
}

enum status nccl_open(void **communicator, struct comm *ranks, struct error *err)
{
    int version;
    (void)communicator, (void)ranks;
    return nccl_version(&version, err);
}

const char *nccl_sum(void *communicator, float *data, int64_t n, cudaStream_t stream)
{
    (void)communicator, (void)data, (void)n, (void)stream;
    return "there is no NCCL";
}

const char *nccl_sum_to(void *communicator, float *data, int64_t n, int rank, cudaStream_t stream)
{
    (void)rank;
    return nccl_sum(communicator, data, n, stream);
}

const char *nccl_broadcast(void *communicator, float *data, int64_t n, int rank, cudaStream_t stream)
{
    (void)rank;
    return nccl_sum(communicator, data, n, stream);
}

const char *nccl_group(bool begins)
{
    (void)begins;
    return "there is no NCCL";
}

bool nccl_works(void *communicator) { return !communicator; }

void nccl_close(void *communicator, bool whole) { (void)communicator, (void)whole; }

struct nccl_leaving *nccl_leave(void *communicator)
{
    (void)communicator;
    return NULL;
}

void nccl_left(struct nccl_leaving *l) { (void)l; }

#endif
