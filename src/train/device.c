/* The device that a configuration asks for. Without a word about it that is the CPU, also where there is a GPU. */
#include <stdio.h>

#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "train/train_int.h"

static int gpu_of(const struct config *c) { return c->dist.comm ? c->dist.comm->gpu : 0; }

static enum status refuse_cuda(struct error *err)
{
    if (!err)
        return CANNOT;
    const struct error why = *err;
    return error_set(err, why.status, "device is cuda, and %.900s; try device: cpu", why.text);
}

enum status train_open_backend(struct backend **out, const struct config *c, struct error *err)
{
    if (c->device != DEVICE_CUDA)
        return cpu_backend_new(out, division_threads(c), c->backend.kernels == KERNELS_REFERENCE, err);
    const bool alone = !c->dist.comm || c->dist.comm->size == 1;        /* NCCL sums for one rank, too, where it is asked for */
    const struct cuda_wish wish = {.device = gpu_of(c),
                                   .nccl = alone ? c->dist.transport == TRANSPORT_NCCL : c->dist.comm->nccl};
    return cuda_backend_new_for(out, &wish, err) == OK ? OK : refuse_cuda(err);
}

size_t train_available_bytes(const struct config *c)
{
    struct cuda_device d;
    if (c->device != DEVICE_CUDA)
        return cpu_available_bytes();
    return cuda_device_read_at(&d, gpu_of(c), NULL) == OK ? (size_t)d.free_bytes : SIZE_MAX;
}

const char *train_threads_warning(const struct config *c, char out[THREADS_WORDS])
{
    const int cores = cpu_usable_cores();
    if (c->device == DEVICE_CUDA || c->threads <= cores)
        return NULL;
    snprintf(out, THREADS_WORDS, "threads is %lld and this process may use %d core%s; try 0 (cpu-oversubscribed)", (long long)c->threads, cores, cores == 1 ? "" : "s");
    return out;
}
