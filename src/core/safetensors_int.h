/* What the reader and the writer of safetensors share: the table of types and the limits. */
#ifndef HONE_CORE_SAFETENSORS_INT_H
#define HONE_CORE_SAFETENSORS_INT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian and are used in place: this machine needs a byte swap"
#endif

enum {
    SAFETENSORS_LENGTH_BYTES = 8,           /* the length of the header, before it */
    SAFETENSORS_HEADER_MAX = 100000000,     /* the limit of the format's reference implementation */
    SAFETENSORS_NAME_MAX = 512,
    SAFETENSORS_ALIGN = 64,                 /* where our writer lets the data begin */
};

#define SAFETENSORS_METADATA "__metadata__"

struct tensor_type_info {
    const char *word;       /* "dtype" in the file */
    const char *name;       /* for messages */
    size_t bytes;           /* of one element */
};
enum { TENSOR_TYPES = TENSOR_BOOL + 1 };
extern const struct tensor_type_info tensor_types[TENSOR_TYPES];

/* The size of the tensor's data, or false when rank, a dimension or the size is out of range. Empty dimensions count
 * as 1 in the check, so that no product of some of the dimensions can overflow either. */
bool tensor_bytes_checked(const struct tensor *t, uint64_t *bytes);

/* What a header says, entry by entry. */
struct safetensors_entry {
    struct tensor t;        /* the name belongs to the JSON header, data is not set yet */
    uint64_t begin, end;    /* in the data */
    int order;              /* in the header */
};

struct safetensors_reader {
    const char *file;               /* for messages */
    const unsigned char *data;      /* what follows the header */
    uint64_t data_bytes;
    json_t *header;
    struct safetensors_entry *entries;
    int n;
    struct error *err;
};

/* Reads the header and checks every entry, then all together; afterwards they are in the order of their data. `bytes` need hold
 * no more than the header; `size` is that of the whole file. The caller frees entries and releases the header, also on failure. */
enum status safetensors_entries_load(struct safetensors_reader *r, const unsigned char *bytes, size_t size);

#endif
