/* Many tensors in one launch: their addresses are parameters of the kernel, as many at once as fit, so that nothing has to be copied to the
 * GPU. Each has a first block or number, in ascending order. */
#ifndef HONE_OPS_CUDA_ITEMS_CUH
#define HONE_OPS_CUDA_ITEMS_CUH

#include "ops/cuda/device.cuh"

/* A kernel takes 4096 bytes; from CUDA 12.1 on, 32764. All of them travel with every launch, so that a few items go in a small room. */
#if CUDART_VERSION >= 12010
enum { PARAMETER_BYTES = 32000, MIDDLING_BYTES = 10000, FEW_BYTES = 1000 };
#else
enum { PARAMETER_BYTES = 4000, MIDDLING_BYTES = 4000, FEW_BYTES = 1000 };
#endif

template <class Item, int BYTES> struct items {
    static constexpr int MOST = BYTES / (int)sizeof(Item);
    int n;
    Item item[MOST];
};

/* Calls f with the room for n items, or the largest. */
template <class Item, class F> static void with_items(int n, const F &f)
{
    if (n <= items<Item, FEW_BYTES>::MOST)
        f(items<Item, FEW_BYTES>());
    else if (n <= items<Item, MIDDLING_BYTES>::MOST)
        f(items<Item, MIDDLING_BYTES>());
    else
        f(items<Item, PARAMETER_BYTES>());
}

/* The last item whose `first` is not behind `at`. */
template <class Item, int BYTES> static __device__ const Item &item_at(const struct items<Item, BYTES> &all, unsigned at)
{
    int low = 0, high = all.n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (all.item[middle].first <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return all.item[low];
}

template <class Item, int BYTES> static __device__ const Item &item_of_block(const struct items<Item, BYTES> &all)
{
    return item_at(all, blockIdx.x);
}

#endif
