/* Writes safetensors. The header is padded with spaces so that the data begins at a multiple of 64 bytes, and the
 * tensors of 4-byte types come before those of 2-byte types: the format allows no gaps, and so each tensor is aligned
 * to its type in the file all the same. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "core/fs_int.h"
#include "core/json_memory.h"
#include "core/safetensors_int.h"

static const size_t element_sizes[] = {4, 2};   /* the order in the file */
enum { N_SIZES = sizeof element_sizes / sizeof *element_sizes };

static enum status check_name(const char *path, const json_t *header, const char *name, struct error *err)
{
    const size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > SAFETENSORS_NAME_MAX)
        return error_set(err, BAD_INPUT, "cannot write '%s': a tensor's name is %zu bytes long, expected 1 to %d", path,
                         length, SAFETENSORS_NAME_MAX);
    if (strcmp(name, SAFETENSORS_METADATA) == 0)
        return error_set(err, BAD_INPUT, "cannot write '%s': no tensor may be named '%s'", path, name);
    if (json_object_get(header, name))
        return error_set(err, BAD_INPUT, "cannot write '%s': two tensors are named '%s'", path, name);
    return OK;
}

static enum status no_memory(const char *path, struct error *err)
{
    return error_set(err, CANNOT, "out of memory for the header of '%s'", path);
}

static json_t *entry_of(const struct tensor *t, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; shape && i < t->rank; i++)
        if (json_array_append_new(shape, json_integer(t->dim[i]))) {
            json_decref(shape);
            shape = NULL;
        }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", tensor_types[t->type].word, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

static enum status header_add(json_t *header, const char *path, const struct tensor *t, uint64_t *offset,
                              struct error *err)
{
    uint64_t bytes, end;
    const enum status st = check_name(path, header, t->name, err);
    if (st != OK)
        return st;
    if (!tensor_bytes_checked(t, &bytes) || __builtin_add_overflow(*offset, bytes, &end) || end > INT64_MAX)
        return error_set(err, BAD_INPUT, "cannot write '%s': the shape of tensor '%s' is out of range", path, t->name);
    if (!text_is_utf8(t->name))
        return error_set(err, BAD_INPUT, "cannot write '%s': the tensor name '%s' is not UTF-8", path, t->name);
    if (json_object_set_new(header, t->name, entry_of(t, *offset, end)) < 0)
        return no_memory(path, err);
    *offset = end;
    return OK;
}

static enum status header_add_metadata(json_t *header, const char *path, const char *const *metadata,
                                       struct error *err)
{
    json_t *object = json_object();
    enum status st = OK;
    for (int i = 0; metadata[i]; i += 2)
        if (!text_is_utf8(metadata[i]) || !text_is_utf8(metadata[i + 1]))
            st = error_set(err, BAD_INPUT, "cannot write '%s': the metadata '%s' is not UTF-8", path, metadata[i]);
        else if (json_object_set_new(object, metadata[i], json_string(metadata[i + 1])) < 0)
            st = no_memory(path, err);
    if (json_object_set_new(header, SAFETENSORS_METADATA, object) < 0)
        st = no_memory(path, err);
    return st;
}

static enum status header_build(json_t *header, const char *path, const struct tensor *tensors, int n,
                                const char *const *metadata, struct error *err)
{
    uint64_t offset = 0;
    enum status st = metadata ? header_add_metadata(header, path, metadata, err) : OK;
    for (int k = 0; k < N_SIZES; k++)
        for (int i = 0; i < n && st == OK; i++)
            if (tensor_types[tensors[i].type].bytes == element_sizes[k])
                st = header_add(header, path, &tensors[i], &offset, err);
    return st;
}

/* The length, the JSON text and the padding. */
static enum status put_header(struct fs_writer *w, const char *text, struct error *err)
{
    char spaces[SAFETENSORS_ALIGN];
    memset(spaces, ' ', sizeof spaces);
    const size_t length = strlen(text), begin = SAFETENSORS_LENGTH_BYTES + length;
    const size_t padding = (SAFETENSORS_ALIGN - begin % SAFETENSORS_ALIGN) % SAFETENSORS_ALIGN;
    const uint64_t field = length + padding;
    if (field > SAFETENSORS_HEADER_MAX)
        return error_set(err, BAD_INPUT, "cannot write '%s': its header would be %zu bytes, and %d is the most",
                         w->path, (size_t)field, SAFETENSORS_HEADER_MAX);
    enum status st = fs_writer_put(w, &field, sizeof field, err);
    if (st == OK)
        st = fs_writer_put(w, text, length, err);
    return st == OK ? fs_writer_put(w, spaces, padding, err) : st;
}

static enum status put_data(struct fs_writer *w, const struct tensor *tensors, int n, struct error *err)
{
    enum status st = OK;
    for (int k = 0; k < N_SIZES; k++)
        for (int i = 0; i < n && st == OK; i++)
            if (tensor_types[tensors[i].type].bytes == element_sizes[k])
                st = fs_writer_put(w, tensors[i].data, tensor_bytes(&tensors[i]), err);
    return st;
}

static enum status write_file(const char *path, const char *header, const struct tensor *tensors, int n,
                              uint64_t *checksum, struct error *err)
{
    struct fs_writer w;
    enum status st = fs_writer_open(&w, path, err);
    if (st != OK)
        return st;
    st = put_header(&w, header, err);
    if (st == OK)
        st = put_data(&w, tensors, n, err);
    if (st == OK)
        return fs_writer_close(&w, checksum, err);
    fs_writer_abort(&w);
    return st;
}

enum status safetensors_write(const char *path, const struct tensor *tensors, int n, const char *const *metadata,
                              uint64_t *checksum, struct error *err)
{
    json_t *header = json_object();
    char *text = NULL;
    enum status st = !header ? no_memory(path, err) : header_build(header, path, tensors, n, metadata, err);
    if (st == OK && !(text = json_memory_dump(header, JSON_COMPACT)))
        st = no_memory(path, err);
    if (st == OK)
        st = write_file(path, text, tensors, n, checksum, err);
    free(text);
    json_decref(header);
    return st;
}
