/* Where the bytes come from: a file, standard input or memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import_int.h"

static enum status check_kind(const char *path, int fd, int64_t *total, struct error *err)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return error_errno(err, "cannot read '%s'", path);
    if (S_ISDIR(s.st_mode))
        return error_set(err, BAD_INPUT, "'%s' is a folder; expected a trace (.json or .json.gz)", path);
    *total = S_ISREG(s.st_mode) ? (int64_t)s.st_size : -1;
    return OK;
}

enum status import_read(struct trace **out, const char *path, import_progress *progress, void *context,
                        struct error *err)
{
    const bool standard = !strcmp(path, "-");
    struct source_from from = {.block = IMPORT_BLOCK, .threaded = true};
    from.fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (from.fd < 0)
        return error_errno(err, "cannot open '%s'", path);
    enum status st = check_kind(path, from.fd, &from.total, err);
    if (st == OK)
        st = kineto_read(out, path, &from, progress, context, err);
    if (!standard)
        close(from.fd);
    return st;
}

enum status import_read_memory(struct trace **out, const char *name, const void *data, size_t size, struct error *err)
{
    const struct source_from from = {.data = data ? data : "", .size = size, .total = (int64_t)size,
                                     .block = size < IMPORT_BLOCK ? size + 1 : IMPORT_BLOCK};
    return kineto_read(out, name, &from, NULL, NULL, err);
}
