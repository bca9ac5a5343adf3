/* The safetensors format: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
 * The reader trusts nothing: lengths, offsets, overlaps, shapes and types are checked before a byte is used. */
#ifndef HONE_CORE_SAFETENSORS_H
#define HONE_CORE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { TENSOR_MAX_RANK = 8 };
/* What is written is f32, bf16 or i32; of the others, which foreign files have, some are only there to be passed over. */
enum tensor_type { TENSOR_F32, TENSOR_BF16, TENSOR_I32, TENSOR_F16, TENSOR_F64, TENSOR_I64, TENSOR_U8, TENSOR_BOOL };

struct tensor {
    const char *name;
    enum tensor_type type;
    int rank;
    int64_t dim[TENSOR_MAX_RANK];
    void *data;             /* contiguous, row-major */
};

size_t tensor_bytes(const struct tensor *t);
const char *tensor_type_name(enum tensor_type type);        /* "bf16" */

/* Writes a file and fsyncs it (no rename: the caller owns the naming). `metadata` is a NULL-terminated list of key and
 * value in turns, or NULL. *checksum (may be NULL) gets the XXH3-64 of the whole file. A full disk is an error. */
enum status safetensors_write(const char *path, const struct tensor *tensors, int n, const char *const *metadata,
                              uint64_t *checksum, struct error *err);

struct safetensors {
    int n;
    struct tensor *tensors;             /* data points into a private, read-only copy in memory */
    const struct tensor **by_name;      /* (n), sorted; in the same block as the tensors */
    void *bytes;                        /* owned */
    size_t size;
    uint64_t checksum;                  /* XXH3-64 of the whole file */
};

enum status safetensors_read(struct safetensors *out, const char *path, struct error *err);
/* The same from bytes in memory, which must stay alive; `name` is for messages. */
enum status safetensors_parse(struct safetensors *out, const char *name, const void *bytes, size_t size,
                              struct error *err);
/* Does the file hold exactly these tensors, by its header? Names, types, shapes, the layout and the file's size are compared;
 * the data is not read. */
enum status safetensors_check(const char *path, const struct tensor *tensors, int n, struct error *err);
const struct tensor *safetensors_find(const struct safetensors *s, const char *name);
void safetensors_release(struct safetensors *s);

#endif
