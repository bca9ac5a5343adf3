/* The table of tensor types, sizes, and looking things up in a file that was read; see safetensors.h. */
#include "core/safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/safetensors_int.h"

const struct tensor_type_info tensor_types[TENSOR_TYPES] = {
    [TENSOR_F32] = {"F32", "f32", 4},
    [TENSOR_BF16] = {"BF16", "bf16", 2},
    [TENSOR_I32] = {"I32", "i32", 4},
    [TENSOR_F16] = {"F16", "f16", 2},
    [TENSOR_F64] = {"F64", "f64", 8},
    [TENSOR_I64] = {"I64", "i64", 8},
    [TENSOR_U8] = {"U8", "u8", 1},
    [TENSOR_BOOL] = {"BOOL", "bool", 1},
};

const char *tensor_type_name(enum tensor_type type) { return tensor_types[type].name; }

bool tensor_bytes_checked(const struct tensor *t, uint64_t *bytes)
{
    int64_t bound = (int64_t)tensor_types[t->type].bytes;
    bool empty = false;
    if (t->rank < 0 || t->rank > TENSOR_MAX_RANK)
        return false;
    for (int i = 0; i < t->rank; i++) {
        empty |= t->dim[i] == 0;
        if (t->dim[i] < 0 || __builtin_mul_overflow(bound, t->dim[i] ? t->dim[i] : 1, &bound))
            return false;
    }
    *bytes = empty ? 0 : (uint64_t)bound;
    return true;
}

size_t tensor_bytes(const struct tensor *t)
{
    uint64_t bytes = 0;
    const bool sound = tensor_bytes_checked(t, &bytes);
    assert(sound && bytes <= SIZE_MAX);
    (void)sound;
    return (size_t)bytes;
}

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    int low = 0, high = s->n;
    while (low < high) {
        const int middle = low + (high - low) / 2, order = strcmp(s->by_name[middle]->name, name);
        if (order == 0)
            return s->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void safetensors_release(struct safetensors *s)
{
    free(s->tensors);
    free(s->bytes);
    *s = (struct safetensors){0};
}
