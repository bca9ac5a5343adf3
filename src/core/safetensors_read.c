/* Reads safetensors from bytes that may be hostile: header length, JSON, every entry alone, then all entries together
 * (in the order of their offsets they must cover the data exactly: no overlap, no gap). Only then are tensors made. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "core/safetensors_int.h"

static enum status header_load(struct safetensors_reader *r, const unsigned char *bytes, size_t size)
{
    uint64_t length;
    json_error_t why;
    bool no_memory;
    if (size < sizeof length)
        return error_set(r->err, BAD_INPUT, "'%s' is %zu bytes: too short for a safetensors file", r->file, size);
    memcpy(&length, bytes, sizeof length);
    if (length > SAFETENSORS_HEADER_MAX || length > size - sizeof length)
        return error_set(r->err, BAD_INPUT,
                         "'%s' claims a header of %" PRIu64 " bytes in a file of %zu: truncated, or not safetensors",
                         r->file, length, size);
    const char *text = (const char *)bytes + sizeof length;
    if (length == 0 || text[0] != '{')
        return error_set(r->err, BAD_INPUT, "'%s': the header does not begin with '{': not safetensors", r->file);
    r->header = json_memory_load(text, length, JSON_REJECT_DUPLICATES, &why, &no_memory);
    if (no_memory)
        return error_set(r->err, CANNOT, "out of memory for the header of '%s'", r->file);
    if (!r->header)
        return error_set(r->err, BAD_INPUT, "'%s': the header is not right at line %d column %d: %s", r->file, why.line,
                         why.column, why.text);
    r->data = bytes + sizeof length + length;
    r->data_bytes = size - sizeof length - length;
    return OK;
}

static enum status check_metadata(const struct safetensors_reader *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return error_set(r->err, BAD_INPUT, "'%s': %s is not an object", r->file, SAFETENSORS_METADATA);
    json_object_foreach(metadata, key, value)
        if (!json_is_string(value))
            return error_set(r->err, BAD_INPUT, "'%s': the value of '%.64s' in %s is not a string", r->file, key,
                             SAFETENSORS_METADATA);
    return OK;
}

static enum status entry_type(const struct safetensors_reader *r, struct safetensors_entry *e, const json_t *value)
{
    const char *word = json_string_value(json_object_get(value, "dtype"));
    if (!word)
        return error_set(r->err, BAD_INPUT, "'%s': tensor '%s' has no dtype", r->file, e->t.name);
    for (int i = 0; i < TENSOR_TYPES; i++)
        if (strcmp(word, tensor_types[i].word) == 0) {
            e->t.type = (enum tensor_type)i;
            return OK;
        }
    return error_set(r->err, BAD_INPUT,
                     "'%s': tensor '%s' has dtype %.16s; supported are F32, F16, BF16 and F64: convert it before saving",
                     r->file, e->t.name, word);
}

static enum status entry_shape(const struct safetensors_reader *r, struct safetensors_entry *e, const json_t *value)
{
    const json_t *shape = json_object_get(value, "shape");
    const size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > TENSOR_MAX_RANK)
        return error_set(r->err, BAD_INPUT, "'%s': tensor '%s' needs a shape of 0 to %d numbers", r->file, e->t.name,
                         TENSOR_MAX_RANK);
    e->t.rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        e->t.dim[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || e->t.dim[i] < 0)
            return error_set(r->err, BAD_INPUT, "'%s': dimension %zu of tensor '%s' is not a whole number from 0 up",
                             r->file, i, e->t.name);
    }
    return OK;
}

static enum status entry_offsets(const struct safetensors_reader *r, struct safetensors_entry *e, const json_t *value)
{
    const json_t *pair = json_object_get(value, "data_offsets");
    const json_t *begin = json_array_get(pair, 0), *end = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return error_set(r->err, BAD_INPUT, "'%s': tensor '%s' needs data_offsets of two whole numbers", r->file,
                         e->t.name);
    const json_int_t b = json_integer_value(begin), f = json_integer_value(end);
    if (b < 0 || f < b || (uint64_t)f > r->data_bytes)
        return error_set(r->err, BAD_INPUT,
                         "'%s': the data of tensor '%s' is said to be bytes %lld to %lld of %" PRIu64
                         ": truncated or damaged", r->file, e->t.name, (long long)b, (long long)f, r->data_bytes);
    e->begin = (uint64_t)b;
    e->end = (uint64_t)f;
    return OK;
}

static enum status entry_check_size(const struct safetensors_reader *r, const struct safetensors_entry *e)
{
    uint64_t bytes;
    if (!tensor_bytes_checked(&e->t, &bytes))
        return error_set(r->err, BAD_INPUT, "'%s': the shape of tensor '%s' is too large", r->file, e->t.name);
    if (bytes != e->end - e->begin)
        return error_set(r->err, BAD_INPUT,
                         "'%s': tensor '%s' has %" PRIu64 " bytes of data, and its shape needs %" PRIu64, r->file,
                         e->t.name, e->end - e->begin, bytes);
    return OK;
}

static enum status entry_parse(const struct safetensors_reader *r, struct safetensors_entry *e, const char *name, const json_t *value)
{
    const size_t length = strlen(name);
    if (length == 0 || length > SAFETENSORS_NAME_MAX)
        return error_set(r->err, BAD_INPUT, "'%s': a tensor's name is %zu bytes long, expected 1 to %d", r->file,
                         length, SAFETENSORS_NAME_MAX);
    if (!json_is_object(value))
        return error_set(r->err, BAD_INPUT, "'%s': the entry of tensor '%s' is not an object", r->file, name);
    e->t.name = name;
    enum status st = entry_type(r, e, value);
    if (st == OK)
        st = entry_shape(r, e, value);
    if (st == OK)
        st = entry_offsets(r, e, value);
    return st == OK ? entry_check_size(r, e) : st;
}

static enum status entries_parse(struct safetensors_reader *r)
{
    const char *name;
    json_t *value;
    const size_t most = json_object_size(r->header);
    r->entries = calloc(most ? most : 1, sizeof *r->entries);
    if (!r->entries)
        return error_set(r->err, CANNOT, "out of memory for the %zu tensors of '%s'", most, r->file);
    json_object_foreach(r->header, name, value) {
        const bool is_metadata = strcmp(name, SAFETENSORS_METADATA) == 0;
        const enum status st =
            is_metadata ? check_metadata(r, value) : entry_parse(r, &r->entries[r->n], name, value);
        if (st != OK)
            return st;
        r->entries[r->n].order = r->n;
        r->n += !is_metadata;
    }
    return OK;
}

/* Empty tensors sort before the one that begins where they are, and among themselves as in the header. */
static int compare_entries(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->order - y->order;
}

static enum status entries_check_cover(const struct safetensors_reader *r)
{
    uint64_t at = 0;
    qsort(r->entries, (size_t)r->n, sizeof *r->entries, compare_entries);
    for (int i = 0; i < r->n; at = r->entries[i++].end) {
        const struct safetensors_entry *e = &r->entries[i];
        if (e->begin < at)
            return error_set(r->err, BAD_INPUT, "'%s': the data of tensor '%s' overlaps that of another", r->file,
                             e->t.name);
        if (e->begin > at)
            return error_set(r->err, BAD_INPUT, "'%s': bytes %" PRIu64 " to %" PRIu64 " before tensor '%s' belong to "
                             "no tensor", r->file, at, e->begin, e->t.name);
    }
    if (at != r->data_bytes)
        return error_set(r->err, BAD_INPUT, "'%s': the last %" PRIu64 " bytes belong to no tensor", r->file,
                         r->data_bytes - at);
    return OK;
}

enum status safetensors_entries_load(struct safetensors_reader *r, const unsigned char *bytes, size_t size)
{
    enum status st = header_load(r, bytes, size);
    if (st == OK)
        st = entries_parse(r);
    return st == OK ? entries_check_cover(r) : st;
}

static bool in_place(const struct safetensors_reader *r, const struct safetensors_entry *e)
{
    return (uintptr_t)(r->data + e->begin) % tensor_types[e->t.type].bytes == 0;
}

static size_t round_up(size_t bytes) { return (bytes + 15) & ~(size_t)15; }

/* One block holds the tensors, their order by name, then aligned copies of what lies unaligned in a foreign file, then the names. */
struct block {
    char *base;
    size_t by_name, copies, names, total;       /* where each part begins, and where all ends */
};

static struct block block_plan(const struct safetensors_reader *r)
{
    struct block b = {.by_name = round_up((size_t)r->n * sizeof(struct tensor))};
    b.names = b.copies = b.by_name + round_up((size_t)r->n * sizeof(struct tensor *));
    for (int i = 0; i < r->n; i++)
        if (!in_place(r, &r->entries[i]))
            b.names += round_up((size_t)(r->entries[i].end - r->entries[i].begin));
    b.total = b.names;
    for (int i = 0; i < r->n; i++)
        b.total += strlen(r->entries[i].t.name) + 1;
    return b;
}

/* Makes one tensor; its copy and its name take the next bytes of their parts of the block. */
static struct tensor tensor_build(const struct safetensors_reader *r, const struct safetensors_entry *e, struct block *b)
{
    struct tensor t = e->t;
    const size_t name_bytes = strlen(t.name) + 1, bytes = (size_t)(e->end - e->begin);
    t.name = memcpy(b->base + b->names, t.name, name_bytes);
    b->names += name_bytes;
    t.data = (void *)(r->data + e->begin);
    if (!in_place(r, e)) {
        t.data = memcpy(b->base + b->copies, t.data, bytes);
        b->copies += round_up(bytes);
    }
    return t;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct tensor *const *)a)->name, (*(const struct tensor *const *)b)->name);
}

static enum status tensors_build(const struct safetensors_reader *r, struct safetensors *out)
{
    struct block b = block_plan(r);
    b.base = malloc(b.total ? b.total : 1);
    if (!b.base)
        return error_set(r->err, CANNOT, "out of memory: the tensors of '%s' need %.1f MB", r->file,
                         (double)b.total / 1e6);
    out->tensors = (struct tensor *)(void *)b.base;
    out->by_name = (const struct tensor **)(void *)(b.base + b.by_name);
    out->n = r->n;
    for (int i = 0; i < r->n; i++) {
        out->tensors[i] = tensor_build(r, &r->entries[i], &b);
        out->by_name[i] = &out->tensors[i];
    }
    qsort(out->by_name, (size_t)out->n, sizeof *out->by_name, compare_names);
    return OK;
}

enum status safetensors_parse(struct safetensors *out, const char *name, const void *bytes, size_t size,
                              struct error *err)
{
    struct safetensors_reader r = {.file = name, .err = err};
    struct safetensors s = {.size = size};
    enum status st = safetensors_entries_load(&r, bytes, size);
    if (st == OK)
        st = tensors_build(&r, &s);
    if (st == OK) {
        s.checksum = XXH3_64bits(bytes, size);
        *out = s;
    }
    free(r.entries);
    json_decref(r.header);
    return st;
}

enum status safetensors_read(struct safetensors *out, const char *path, struct error *err)
{
    char *bytes;
    size_t size;
    enum status st = fs_read(path, &bytes, &size, 0, err);
    if (st != OK)
        return st;
    st = safetensors_parse(out, path, bytes, size, err);
    if (st == OK)
        out->bytes = bytes;
    else
        free(bytes);
    return st;
}
