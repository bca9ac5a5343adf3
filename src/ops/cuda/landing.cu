/* Puts uploads that have landed in their places: one small kernel for all of a batch, at the head of a step. */
#include <stdint.h>

#include "ops/cuda/cuda_int.h"

enum { PLACE_THREADS = 256, PLACE_BLOCKS = 64 };       /* blocks: of one landing, at most */

/* blockIdx.y: which of them. Words of 16 bytes where both ends are aligned to that, as memory of values is; bytes for the rest. */
static __global__ void place(const __grid_constant__ struct landings all)
{
    const struct landing l = all.list[blockIdx.y];
    const bool aligned = ((uintptr_t)l.to | (uintptr_t)l.from) % sizeof(uint4) == 0;
    const size_t words = aligned ? l.bytes / sizeof(uint4) : 0, threads = (size_t)gridDim.x * PLACE_THREADS;
    const size_t first = (size_t)blockIdx.x * PLACE_THREADS + threadIdx.x;
    for (size_t i = first; i < words; i += threads)
        ((uint4 *)l.to)[i] = ((const uint4 *)l.from)[i];
    for (size_t i = words * sizeof(uint4) + first; i < l.bytes; i += threads)
        ((char *)l.to)[i] = ((const char *)l.from)[i];
}

cudaError_t cuda_place(const struct landings *l, cudaStream_t stream)
{
    size_t most = 0;
    for (int i = 0; i < l->n; i++)
        most = l->list[i].bytes > most ? l->list[i].bytes : most;
    const unsigned wanted = (unsigned)(most / (PLACE_THREADS * sizeof(uint4))) + 1, at_most = PLACE_BLOCKS;
    place<<<dim3(wanted < at_most ? wanted : at_most, (unsigned)l->n), PLACE_THREADS, 0, stream>>>(*l);
    return cudaGetLastError();
}
