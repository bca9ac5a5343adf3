/* Looks at a safetensors file that was just written, by its header; see safetensors.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/safetensors_int.h"

static bool is_same(const struct tensor *a, const struct tensor *b)
{
    return !strcmp(a->name, b->name) && a->type == b->type && a->rank == b->rank &&
           !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

/* The writer puts types of four bytes before those of two. */
static enum status check_tensors(const struct safetensors_reader *r, const struct tensor *tensors, int n)
{
    int at = 0;
    if (r->n != n)
        return error_set(r->err, CANNOT, "'%s' holds %d tensors, and %d were written", r->file, r->n, n);
    for (size_t bytes = 4; bytes >= 2; bytes -= 2)
        for (int i = 0; i < n; i++)
            if (tensor_types[tensors[i].type].bytes == bytes && !is_same(&tensors[i], &r->entries[at++].t))
                return error_set(r->err, CANNOT, "'%s' does not hold the tensor '%s' as it was written", r->file,
                                 tensors[i].name);
    return OK;
}

/* The length and the text; *size is that of the whole file. NULL: an error. */
static unsigned char *read_header(const char *path, size_t *size, struct error *err)
{
    uint64_t length = 0;
    struct stat s;
    unsigned char *bytes = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &s) < 0 || pread(fd, &length, sizeof length, 0) < 0) {
        error_errno(err, "cannot read '%s'", path);
    } else if (length > SAFETENSORS_HEADER_MAX || (uint64_t)s.st_size < sizeof length + length) {
        error_set(err, CANNOT, "'%s' is not as it was written", path);
    } else if (!(bytes = malloc(sizeof length + length))) {
        error_set(err, CANNOT, "out of memory for the header of '%s'", path);
    } else if (pread(fd, bytes, sizeof length + length, 0) != (ssize_t)(sizeof length + length)) {
        error_set(err, CANNOT, "'%s' is not as it was written", path);
        free(bytes);
        bytes = NULL;
    }
    *size = bytes ? (size_t)s.st_size : 0;
    if (fd >= 0)
        close(fd);
    return bytes;
}

enum status safetensors_check(const char *path, const struct tensor *tensors, int n, struct error *err)
{
    struct error why;
    size_t size;
    struct safetensors_reader r = {.file = path, .err = &why};
    unsigned char *bytes = read_header(path, &size, &why);
    enum status st = bytes ? safetensors_entries_load(&r, bytes, size) : why.status;
    if (st == OK)
        st = check_tensors(&r, tensors, n);
    if (st != OK && err)
        *err = why;
    free(r.entries);
    json_decref(r.header);
    free(bytes);
    return st;
}
