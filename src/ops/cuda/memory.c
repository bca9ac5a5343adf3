/* Memory on the GPU, and copies from and to it. They keep their order with what is run: what is read is read in the backend's stream, and
 * what is written travels beside it but is put in its place in that stream. */
#include <stdint.h>
#include <string.h>

#include "ops/cuda/cuda_int.h"

size_t cuda_available(struct backend *b)
{
    size_t free_bytes, total;
    (void)b;
    return cudaMemGetInfo(&free_bytes, &total) == cudaSuccess ? free_bytes : SIZE_MAX;
}

void *cuda_alloc(struct backend *base, size_t bytes)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    void *memory = NULL;
    const size_t most = bytes ? bytes : 1;
    if (cudaMalloc(&memory, most) != cudaSuccess) {
        cudaGetLastError();         /* the caller says it; it is no failure of what is run */
        return NULL;
    }
    if (cudaMemsetAsync(memory, 0, most, b->stream) == cudaSuccess)
        return memory;
    cudaFree(memory);
    return NULL;
}

/* Waits for the device first. */
void cuda_free_memory(struct backend *base, void *memory, size_t bytes)
{
    struct error lost;              /* a device that failed is told by what is run next */
    (void)bytes;
    cuda_place_uploads((struct cuda_backend *)base, &lost);         /* some of it may be on the way there */
    cudaFree(memory);
}

/* ---- copies ---- */

static enum status new_events(cudaEvent_t *events, int n, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < n && st == OK; i++)
        st = cuda_said(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), err, "an event");
    return st;
}

enum status cuda_staging_new(struct cuda_staging *s, struct error *err)
{
    const size_t bytes = (size_t)STAGES * STAGE_BYTES;
    void *memory = NULL;
    enum status st = cuda_said(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), err, "pinned memory");
    s->host = memory;
    if (st == OK)
        st = cuda_said(cudaMalloc(&memory, bytes), err, "memory that uploads land in");
    s->device = st == OK ? memory : NULL;
    if (st == OK)
        st = cuda_said(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), err, "a stream for copies");
    if (st == OK)
        st = new_events(s->there, STAGES, err);
    return st == OK ? new_events(&s->placed, 1, err) : st;
}

static void free_events(cudaEvent_t *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
}

void cuda_staging_free(struct cuda_staging *s)
{
    if (s->stream)
        cudaStreamSynchronize(s->stream);
    free_events(s->there, STAGES);
    free_events(&s->placed, 1);
    if (s->stream)
        cudaStreamDestroy(s->stream);
    if (s->device)
        cudaFree(s->device);
    if (s->host)
        cudaFreeHost(s->host);
}

/* The copies' stream keeps their order: when the last one is there, all are. */
static cudaError_t place_uploads(struct cuda_backend *b)
{
    struct cuda_staging *s = &b->staging;
    if (!s->landed.n)
        return cudaSuccess;
    cudaError_t e = cudaStreamWaitEvent(b->stream, s->there[(s->next + STAGES - 1) % STAGES], 0);
    if (e == cudaSuccess)
        e = cuda_place(&s->landed, b->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(s->placed, b->stream);
    s->landed.n = 0;
    return e;
}

enum status cuda_place_uploads(struct cuda_backend *b, struct error *err)
{
    return cuda_said(place_uploads(b), err, "a copy to it, or an op before that");
}

/* Stages are put in their places all at once: one that is under way to the same place must be there before. */
static bool must_place_first(const struct cuda_staging *s, const char *to, size_t bytes)
{
    bool must = s->landed.n == STAGES;
    for (int i = 0; i < s->landed.n; i++) {
        const struct landing *l = &s->landed.list[i];
        must |= to < (const char *)l->to + l->bytes && (const char *)l->to < to + bytes;
    }
    return must;
}

/* One stage: waits until the one that was in this pinned memory before is on the device, which is some steps ago. */
static cudaError_t upload_piece(struct cuda_backend *b, char *to, const char *host, size_t bytes)
{
    struct cuda_staging *s = &b->staging;
    cudaError_t e = must_place_first(s, to, bytes) ? place_uploads(b) : cudaSuccess;
    const int i = s->next;
    char *stage = s->host + (size_t)i * STAGE_BYTES, *landing = s->device + (size_t)i * STAGE_BYTES;
    if (e == cudaSuccess)
        e = cuda_wait_for(b, s->there[i]);
    if (e != cudaSuccess)
        return e;
    memcpy(stage, host, bytes);
    e = cudaStreamWaitEvent(s->stream, s->placed, 0);           /* what landed here before has left */
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(landing, stage, bytes, cudaMemcpyHostToDevice, s->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(s->there[i], s->stream);
    if (e != cudaSuccess)
        return e;
    s->next = (i + 1) % STAGES;
    s->landed.list[s->landed.n++] = (struct landing){to, landing, bytes};
    return cudaSuccess;
}

enum status cuda_upload(struct backend *base, void *to, const void *host, size_t bytes, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    cudaError_t e = cudaSuccess;
    for (size_t at = 0; at < bytes && e == cudaSuccess; at += STAGE_BYTES)
        e = upload_piece(b, (char *)to + at, (const char *)host + at, bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES);
    return cuda_said(e, err, "a copy to it, or an op before that");
}

/* A copy to memory that is not pinned returns when it is done, and what it comes behind may be a sum that a rank is missing from. */
enum status cuda_download(struct backend *base, void *host, const void *from, size_t bytes, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    cudaError_t e = place_uploads(b);
    if (e == cudaSuccess && b->comm.communicator)
        e = cuda_wait(b);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, b->stream);
    if (e == cudaSuccess)
        e = cuda_wait(b);
    return cuda_said(e, err, "a copy from it, or an op before that");
}
