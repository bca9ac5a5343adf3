/* A GPU for tests, where there is one; where there is none they are skipped, and say why. */
#ifndef HONE_TESTS_GPU_H
#define HONE_TESTS_GPU_H

#include <string.h>

#include "ops/cuda/cuda.h"
#include "support/models.h"

static struct backend *gpu, *gpu_plain;         /* replays graphs; starts every kernel by itself */
static struct error no_gpu;

static inline int open_gpu(void **state)
{
    (void)state;
    if (cuda_backend_new(&gpu, true, &no_gpu) == OK && cuda_backend_new(&gpu_plain, false, &no_gpu) == OK)
        print_message("on %s\n", gpu->device);
    else
        print_message("skipped: %s\n", no_gpu.text);
    return 0;
}

static inline int close_gpu(void **state)
{
    (void)state;
    if (gpu)
        gpu->free(gpu);
    if (gpu_plain)
        gpu_plain->free(gpu_plain);
    return 0;
}

/* It has the kernel for products of Hopper's. */
/* HONE_CUDA_CAPABILITY: kernels are chosen as on an older one. */
static inline bool is_hopper(void)
{
    return !getenv("HONE_CUDA_CAPABILITY") && (strstr(gpu->device, "H100") || strstr(gpu->device, "H200"));
}

/* First line of every test that needs one. */
#define NEEDS_GPU                                                                                                     \
    do {                                                                                                              \
        if (!gpu || !gpu_plain)                                                                                       \
            skip();                                                                                                   \
    } while (0)

#endif
