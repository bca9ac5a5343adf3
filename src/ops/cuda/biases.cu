/* Biases of products in the type that cuBLASLt wants: narrow where the result is. What casts them is a small kernel that the product would
 * wait for; so the first product of a list that has one casts those of all. They change with the optimizer's step, which is no part of a
 * forward. */
#include <stdlib.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/products.h"
#include "ops/cuda/types.cuh"

enum { CASTS_AT_ONCE = 128 };

struct casts { struct cuda_cast at[CASTS_AT_ONCE]; };

/* One row of blocks for each. */
template <typename T> static __global__ void cast_biases(const __grid_constant__ struct casts c)
{
    const struct cuda_cast &it = c.at[blockIdx.y];
    EACH(i, it.n)
        ((T *)it.to)[i] = from_float<T>(it.from[i]);
}

void cuda_cast_biases(const struct cuda_call *c, const struct cuda_cast *list, int n, enum dtype to)
{
    for (int first = 0; first < n; first += CASTS_AT_ONCE) {
        const int some = (int)at_most(n - first, CASTS_AT_ONCE);
        struct casts casts = {};
        int64_t most = 0;
        for (int i = 0; i < some; i++) {
            casts.at[i] = list[first + i];
            most = at_least(most, casts.at[i].n);
        }
        with_type(to, [&](auto zero) {
            cast_biases<decltype(zero)><<<dim3(blocks_for(most), (unsigned)some), THREADS, 0, c->stream>>>(casts);
        });
    }
}

/* ---- those of a list ---- */

/* How many parts of a call have a bias to cast, and the input where these begin. They are alike: all of them, or none. */
static int parts_with_bias(const struct cuda_call *c, int *first)
{
    const enum op_kind kind = c->op->kind;
    const int parts = kind == OP_PROJECT ? c->op->attrs.parts : 1;
    *first = 1 + parts;
    if ((kind != OP_PROJECT && kind != OP_MATMUL && kind != OP_LINEAR_GELU) || c->pieces || c->n_also || c->merged || c->op->n_in <= 1 + parts)
        return 0;
    for (int i = 0; i < parts; i++)
        if (!c->plans[i] || !c->plans[i]->adds_bias || c->plans[i]->wide_bias)
            return 0;
    return parts;
}

static size_t bias_bytes(const struct cuda_plan *p) { return aligned((size_t)p->product.n * dtype_size(p->product.result)); }

/* Gives each its place, from `at` on, and lists what is cast; without a list it only counts. Returns the bytes. */
static size_t place_biases(struct prepared *list, char *at, int *casts)
{
    size_t bytes = 0;
    *casts = 0;
    for (int i = 0; i < list->n; i++) {
        struct cuda_call *c = &list->calls[i];
        int first;
        const int parts = parts_with_bias(c, &first);
        for (int j = 0; j < parts; j++) {
            if (at) {
                c->biases[j] = at + bytes;
                list->casts[*casts] = {in_floats(c, first + j), at + bytes, c->plans[j]->product.n};
            }
            bytes += bias_bytes(c->plans[j]);
            ++*casts;
        }
    }
    return bytes;
}

/* Where ranks divide the optimizer, biases come from the others within the forward: at its first product they are not all there. */
static bool come_later(const struct prepared *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->calls[i].op->kind == OP_GATHER_WAIT)
            return true;
    return false;
}

void cuda_place_biases(struct cuda_backend *b, struct prepared *list)
{
    int n = 0, first = 0, ignored;
    const size_t bytes = place_biases(list, NULL, &n);
    if (n < 2 || come_later(list))
        return;
    list->casts = (struct cuda_cast *)calloc((size_t)n, sizeof *list->casts);
    list->biases = list->casts ? cuda_alloc(&b->base, bytes) : NULL;
    if (!list->biases) {            /* each product casts its own */
        cudaGetLastError();
        return;
    }
    place_biases(list, (char *)list->biases, &n);
    while (!parts_with_bias(&list->calls[first], &ignored))
        first++;
    list->calls[first].casts = list->casts;
    list->calls[first].n_casts = n;
    list->calls[first].casts_bytes = bytes;
}

void cuda_release_biases(struct cuda_backend *b, struct prepared *list)
{
    if (list->biases)
        cuda_free_memory(&b->base, list->biases, 0);
    free(list->casts);
}
