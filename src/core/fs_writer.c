/* Writes one file through a buffer, with its checksum, and makes it durable; see fs_int.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs_int.h"

enum { BUFFER_BYTES = 1 << 20 };

static void release(struct fs_writer *w)
{
    free(w->buffer);
    XXH3_freeState(w->hash);
    *w = (struct fs_writer){.fd = -1};
}

static enum status open_writer(struct fs_writer *w, const char *path, int how, struct error *err)
{
    *w = (struct fs_writer){.path = path, .fd = -1};
    w->buffer = malloc(BUFFER_BYTES);
    w->hash = XXH3_createState();
    if (!w->buffer || !w->hash || XXH3_64bits_reset(w->hash) != XXH_OK) {
        release(w);
        return error_set(err, CANNOT, "out of memory for writing '%s'", path);
    }
    do
        w->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
    while (w->fd < 0 && errno == EINTR);
    if (w->fd >= 0)
        return OK;
    const enum status st = error_errno(err, "cannot create '%s'", path);
    release(w);
    return st;
}

enum status fs_writer_open(struct fs_writer *w, const char *path, struct error *err)
{
    return open_writer(w, path, O_TRUNC, err);
}

enum status fs_writer_open_fresh(struct fs_writer *w, const char *path, struct error *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return error_errno(err, "cannot replace '%s'", path);
    return open_writer(w, path, O_EXCL | O_NOFOLLOW, err);
}

/* Signals interrupt and full disks shorten a write: go on until every byte is out or an error says why not. */
static enum status write_all(struct fs_writer *w, const unsigned char *data, size_t size, struct error *err)
{
    while (size > 0) {
        const ssize_t n = write(w->fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EIO;
        if (n <= 0)
            return error_errno(err, "cannot write '%s' after %llu bytes", w->path,
                               (unsigned long long)w->written_bytes);
        data += n;
        size -= (size_t)n;
        w->written_bytes += (uint64_t)n;
    }
    return OK;
}

static enum status flush(struct fs_writer *w, struct error *err)
{
    XXH3_64bits_update(w->hash, w->buffer, w->used);
    const enum status st = write_all(w, w->buffer, w->used, err);
    w->used = 0;
    return st;
}

enum status fs_writer_put(struct fs_writer *w, const void *data, size_t size, struct error *err)
{
    const unsigned char *from = data;
    while (size > 0) {
        const size_t room = BUFFER_BYTES - w->used, n = size < room ? size : room;
        memcpy(w->buffer + w->used, from, n);
        w->used += n;
        from += n;
        size -= n;
        if (w->used == BUFFER_BYTES) {
            const enum status st = flush(w, err);
            if (st != OK)
                return st;
        }
    }
    return OK;
}

static enum status sync_file(struct fs_writer *w, struct error *err)
{
    int rc;
    do
        rc = fsync(w->fd);
    while (rc < 0 && errno == EINTR);
    return rc == 0 ? OK : error_errno(err, "cannot make '%s' durable", w->path);
}

enum status fs_writer_close(struct fs_writer *w, uint64_t *checksum, struct error *err)
{
    enum status st = flush(w, err);
    if (st == OK)
        st = sync_file(w, err);
    if (st != OK) {
        fs_writer_abort(w);
        return st;
    }
    if (close(w->fd) < 0 && errno != EINTR) {   /* after EINTR Linux has closed it */
        st = error_errno(err, "cannot close '%s'", w->path);
        w->fd = -1;
        fs_writer_abort(w);
        return st;
    }
    if (checksum)
        *checksum = XXH3_64bits_digest(w->hash);
    release(w);
    return OK;
}

void fs_writer_abort(struct fs_writer *w)
{
    struct stat s;
    if (w->fd >= 0)
        close(w->fd);
    if (lstat(w->path, &s) == 0 && S_ISREG(s.st_mode))  /* never a device such as /dev/full */
        unlink(w->path);
    release(w);
}
