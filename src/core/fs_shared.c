/* Files in folders that others use, too: looking without guessing, locks, checksums, replacing; see fs.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/fs_int.h"

enum { BLOCK_BYTES = 1 << 20 };

enum status fs_there(const char *path, bool *there, struct error *err)
{
    struct stat s;
    *there = lstat(path, &s) == 0;
    return *there || errno == ENOENT || errno == ENOTDIR ? OK : error_errno(err, "cannot look at '%s'", path);
}

/* FOLDER/.NAME.hone-tmp. The name is always the same, so that what a killed process left is gone after the next write;
 * writers into one folder hold its lock. */
static enum status temporary_name(char to[PATH_MAX], const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int n = snprintf(to, PATH_MAX, "%.*s.%s.hone-tmp", (int)(name - path), path, name);
    return n > 0 && n < PATH_MAX ? OK : error_set(err, BAD_INPUT, "the path '%.200s…' is too long", path);
}

enum status fs_replace(const char *path, const void *data, size_t size, struct error *err)
{
    char temporary[PATH_MAX];
    struct fs_writer w;
    enum status st = temporary_name(temporary, path, err);
    if (st == OK)
        st = fs_writer_open_fresh(&w, temporary, err);
    if (st != OK)
        return st;
    st = fs_writer_put(&w, data, size, err);
    if (st != OK) {
        fs_writer_abort(&w);
        return st;
    }
    st = fs_writer_close(&w, NULL, err);
    if (st == OK && rename(temporary, path)) {
        st = error_errno(err, "cannot replace '%s'", path);
        unlink(temporary);
    }
    return st;
}

static enum status hash_open(int fd, const char *path, unsigned char *block, XXH3_state_t *hash, uint64_t *bytes,
                             struct error *err)
{
    struct stat s;
    if (fstat(fd, &s) < 0)
        return error_errno(err, "cannot read '%s'", path);
    if (!S_ISREG(s.st_mode))
        return error_set(err, BAD_INPUT, "'%s' is not a regular file", path);
    for (*bytes = 0;;) {
        const ssize_t n = read(fd, block, BLOCK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, "cannot read '%s'", path);
        if (n == 0)
            return OK;
        XXH3_64bits_update(hash, block, (size_t)n);
        *bytes += (uint64_t)n;
    }
}

enum status fs_hash(const char *path, uint64_t *bytes, uint64_t *xxh3, struct error *err)
{
    unsigned char *block = malloc(BLOCK_BYTES);
    XXH3_state_t *hash = XXH3_createState();
    enum status st = OK;
    if (!block || !hash || XXH3_64bits_reset(hash) != XXH_OK)
        st = error_set(err, CANNOT, "out of memory for reading '%s'", path);
    if (st == OK) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        st = fd >= 0 ? hash_open(fd, path, block, hash, bytes, err) : error_errno(err, "cannot open '%s'", path);
        if (fd >= 0)
            close(fd);
    }
    if (st == OK)
        *xxh3 = XXH3_64bits_digest(hash);
    free(block);
    XXH3_freeState(hash);
    return st;
}

static int try_lock(int fd, int how)
{
    int rc;
    do
        rc = flock(fd, how | LOCK_NB);
    while (rc < 0 && errno == EINTR);
    return rc;
}

bool fs_is_locked(const char *folder)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/.lock", folder), fd = n > 0 && n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    const bool held = fd >= 0 && try_lock(fd, LOCK_SH) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

/* Who looks whether a folder is locked has it for a moment. */
static int take_lock(int fd)
{
    enum { TRIES = 10, PAUSE_US = 2000 };
    int rc = try_lock(fd, LOCK_EX);
    for (int i = 1; i < TRIES && rc < 0 && errno == EWOULDBLOCK; i++) {
        usleep(PAUSE_US);
        rc = try_lock(fd, LOCK_EX);
    }
    return rc;
}

/* Whether the file is still what the path names: who ends may remove it (fresh.c), and a lock on a file without a name locks nobody out. */
static bool has_name(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && s.st_nlink > 0;
}

enum status fs_lock(int *lock, const char *folder, struct error *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/.lock", folder);
    if (n < 0 || n >= (int)sizeof path)
        return error_set(err, BAD_INPUT, "the path '%.200s…' is too long", folder);
    for (;;) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
            return error_errno(err, "cannot write into '%s'", folder);
        if (take_lock(fd)) {
            const enum status st = errno == EWOULDBLOCK
                ? error_set(err, BAD_INPUT, "another hone is writing into '%s'; give another --out", folder)
                : error_errno(err, "cannot lock '%s'", path);
            close(fd);
            return st;
        }
        if (has_name(fd)) {
            *lock = fd;
            return OK;
        }
        close(fd);
    }
}
