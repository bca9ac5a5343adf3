/* Many tensors in one launch: their addresses are parameters of the kernel, as many at once as fit, so that nothing has to be copied to the
 * GPU. Each has a first block, in ascending order. */
#ifndef HONE_OPS_CUDA_ITEMS_CUH
#define HONE_OPS_CUDA_ITEMS_CUH

#include "ops/cuda/device.cuh"

/* A kernel takes 4096 bytes; from CUDA 12.1 on, 32764. */
#if CUDART_VERSION >= 12010
enum { PARAMETER_BYTES = 32000 };
#else
enum { PARAMETER_BYTES = 4000 };
#endif

template <class Item> struct items {
    enum { MOST = PARAMETER_BYTES / sizeof(Item) };
    int n;
    Item item[MOST];
};

/* The last item whose first block is not behind this one. */
template <class Item> static __device__ const Item &item_of_block(const struct items<Item> &all)
{
    int low = 0, high = all.n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (all.item[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    return all.item[low];
}

#endif
