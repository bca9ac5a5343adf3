/* Any bytes as a safetensors file: refused, or each tensor is aligned, readable to its end, and all cover the data. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;      /* what was read is used: the reads stay */

static void require(int condition)
{
    if (!condition)
        abort();
}

static size_t read_tensor(const struct safetensors *s, const struct tensor *t)
{
    const size_t bytes = tensor_bytes(t);
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += ((const unsigned char *)t->data)[i];
    sink += sum;
    require((uintptr_t)t->data % (t->type == TENSOR_F32 || t->type == TENSOR_I32 ? 4 : 1) == 0);
    require(t->name[0] && strlen(t->name) <= 512);
    require(safetensors_find(s, t->name) == t);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors s;
    struct error err = {.text = ""};
    if (safetensors_parse(&s, "input", data, size, &err) != OK) {
        require(err.text[0] && err.status != OK);
        return 0;
    }
    uint64_t header;
    size_t covered = 0;
    memcpy(&header, data, sizeof header);
    for (int i = 0; i < s.n; i++)
        covered += read_tensor(&s, &s.tensors[i]);
    require(covered == size - sizeof header - header);
    safetensors_release(&s);
    return 0;
}
