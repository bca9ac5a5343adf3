/* File helpers; see fs.h. */
#include "core/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs_int.h"

bool fs_exists(const char *path) { return access(path, F_OK) == 0; }

static bool is_dir(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The new folder's name lives in its parent: without this a crash could lose a folder whose files are all on disk.
 * A parent that may be written but not read cannot be synced, and is left to the system. */
static enum status sync_parent(const char *path, struct error *err)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (!slash)
        return fs_sync_dir(".", err);
    slash[slash == parent] = '\0';              /* "/a" has the parent "/" */
    return access(parent, R_OK) == 0 ? fs_sync_dir(parent, err) : OK;
}

static enum status make_dir(const char *path, struct error *err)
{
    if (mkdir(path, 0777) == 0)
        return sync_parent(path, err);
    const int code = errno;
    if (is_dir(path))
        return OK;
    if (code == EEXIST)
        return error_set(err, BAD_INPUT, "cannot make the folder '%s': a file of that name is there", path);
    errno = code;
    return error_errno(err, "cannot make the folder '%s'", path);
}

enum status fs_make_dirs(const char *path, struct error *err)
{
    char part[PATH_MAX];
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return error_set(err, BAD_INPUT, "cannot make the folder '%.80s': its path has %zu bytes, expected 1 to %zu",
                         path, length, sizeof part - 1);
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
            continue;
        part[i] = '\0';
        const enum status st = make_dir(part, err);
        if (st != OK)
            return st;
        part[i] = path[i];
    }
    return OK;
}

static enum status check_regular(const char *path, const struct stat *s, size_t limit, struct error *err)
{
    if (S_ISDIR(s->st_mode))
        return error_set(err, BAD_INPUT, "'%s' is a folder; expected a file", path);
    if (!S_ISREG(s->st_mode))
        return error_set(err, BAD_INPUT, "'%s' is not a regular file", path);
    if (limit && (uintmax_t)s->st_size > limit)
        return error_set(err, BAD_INPUT, "'%s' is %jd bytes; at most %zu are read", path, (intmax_t)s->st_size, limit);
    return OK;
}

static enum status read_all(int fd, const char *path, char *data, size_t size, struct error *err)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, "cannot read '%s'", path);
        if (n == 0)
            return error_set(err, BAD_INPUT, "'%s' shrank from %zu to %zu bytes while it was read", path, size, done);
        done += (size_t)n;
    }
    data[size] = '\0';
    return OK;
}

static enum status read_open(int fd, const char *path, char **data, size_t *size, size_t limit, struct error *err)
{
    struct stat s;
    if (fstat(fd, &s) < 0)
        return error_errno(err, "cannot read '%s'", path);
    enum status st = check_regular(path, &s, limit, err);
    if (st != OK)
        return st;
    const size_t bytes = (size_t)s.st_size;
    char *text = malloc(bytes + 1);
    if (!text)
        return error_set(err, CANNOT, "out of memory: reading '%s' needs %.1f MB", path, (double)bytes / 1e6);
    st = read_all(fd, path, text, bytes, err);
    if (st != OK) {
        free(text);
        return st;
    }
    *data = text;
    *size = bytes;
    return OK;
}

enum status fs_read(const char *path, char **data, size_t *size, size_t limit, struct error *err)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);    /* O_NONBLOCK: opening a pipe must not wait */
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return error_errno(err, "cannot open '%s'", path);
    const enum status st = read_open(fd, path, data, size, limit, err);
    close(fd);
    return st;
}

enum status fs_write_synced(const char *path, const void *data, size_t size, struct error *err)
{
    struct fs_writer w;
    enum status st = fs_writer_open(&w, path, err);
    if (st != OK)
        return st;
    st = fs_writer_put(&w, data, size, err);
    if (st == OK)
        return fs_writer_close(&w, NULL, err);
    fs_writer_abort(&w);
    return st;
}

enum status fs_sync_dir(const char *path, struct error *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, "cannot open the folder '%s'", path);
    int rc;
    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    enum status st = OK;
    if (rc < 0 && errno != EINVAL)              /* EINVAL: this file system has no such thing as syncing a folder */
        st = error_errno(err, "cannot make the folder '%s' durable", path);
    close(fd);
    return st;
}

static int remove_at(int folder, const char *name);

/* All that is in it, then itself. */
static int remove_folder_at(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int failed = 0;
    if (!d) {
        const int code = errno;
        if (fd >= 0)
            close(fd);
        errno = code;
        return -1;
    }
    for (const struct dirent *e; !failed && (errno = 0, e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            failed = remove_at(fd, e->d_name);
    const int code = errno;
    closedir(d);
    errno = code;
    return failed || code ? -1 : unlinkat(folder, name, AT_REMOVEDIR);
}

/* Links are removed and not followed; what is gone already is fine. (fts(3) would do, but does not survive a failed allocation.) */
static int remove_at(int folder, const char *name)
{
    int failed = unlinkat(folder, name, 0);
    if (failed && errno == EISDIR)
        failed = remove_folder_at(folder, name);
    return failed && errno == ENOENT ? 0 : failed;
}

enum status fs_remove_tree(const char *path, struct error *err)
{
    return remove_at(AT_FDCWD, path) ? error_errno(err, "cannot remove '%s'", path) : OK;
}
