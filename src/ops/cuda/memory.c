/* Memory on the GPU, and copies from and to it. All go through the backend's stream, so that they keep their order with what is run. */
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
void cuda_free_memory(struct backend *b, void *memory, size_t bytes)
{
    (void)b, (void)bytes;
    cudaFree(memory);
}

/* ---- copies ---- */

enum status cuda_staging_new(struct cuda_staging *s, struct error *err)
{
    void *memory = NULL;
    enum status st = cuda_said(cudaHostAlloc(&memory, (size_t)STAGES * STAGE_BYTES, cudaHostAllocDefault), err, "pinned memory");
    s->memory = memory;
    for (int i = 0; i < STAGES && st == OK; i++)
        st = cuda_said(cudaEventCreateWithFlags(&s->read[i], cudaEventDisableTiming), err, "an event");
    return st;
}

void cuda_staging_free(struct cuda_staging *s)
{
    for (int i = 0; i < STAGES; i++)
        if (s->read[i])
            cudaEventDestroy(s->read[i]);
    if (s->memory)
        cudaFreeHost(s->memory);
}

/* One stage: waits until the device has read what was in it before. */
static cudaError_t upload_piece(struct cuda_backend *b, char *to, const char *host, size_t bytes)
{
    struct cuda_staging *s = &b->staging;
    const int i = s->next;
    char *stage = s->memory + (size_t)i * STAGE_BYTES;
    cudaError_t e = cudaEventSynchronize(s->read[i]);
    if (e != cudaSuccess)
        return e;
    memcpy(stage, host, bytes);
    e = cudaMemcpyAsync(to, stage, bytes, cudaMemcpyHostToDevice, b->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(s->read[i], b->stream);
    s->next = (i + 1) % STAGES;
    return e;
}

enum status cuda_upload(struct backend *base, void *to, const void *host, size_t bytes, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    cudaError_t e = cudaSuccess;
    for (size_t at = 0; at < bytes && e == cudaSuccess; at += STAGE_BYTES)
        e = upload_piece(b, (char *)to + at, (const char *)host + at, bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES);
    return cuda_said(e, err, "a copy to it, or an op before that");
}

enum status cuda_download(struct backend *base, void *host, const void *from, size_t bytes, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    cudaError_t e = cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, b->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(b->stream);
    return cuda_said(e, err, "a copy from it, or an op before that");
}
