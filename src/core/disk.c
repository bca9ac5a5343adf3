/* Timed reads of a file; see disk.h. */
#include "core/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/clock.h"

enum { BLOCK = 4 << 20, ALIGNED = 4096, MADE_BYTES = 32 << 20, MOST_BLOCKS = 256 };
static const double RESIDENT = 0.1;         /* of a file's pages: so few in memory do not count */
static const double STAYS = 0.5;            /* of the memory that is free: what is smaller stays there once it was read */
static const long MEMORY_SYSTEMS[] = {0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */};

double disk_bytes_per_s(const struct disk_speed *s) { return s->seconds > 0 ? s->bytes / s->seconds : 0; }

const char *disk_way_words(enum disk_way way)
{
    static const char *const words[] = {"past the page cache (O_DIRECT)", "after the page cache was dropped", "from the page cache, which kept it: not the disk",
                                        "from a file system in memory"};
    return words[way];
}

double disk_need(double windows_per_s, double window_bytes, double all_bytes, double free_bytes)
{
    return all_bytes < STAYS * free_bytes ? 0 : windows_per_s * (window_bytes + ALIGNED);
}

bool disk_is_slow(const struct disk_speed *s, double need)
{
    return (s->way == DISK_DIRECT || s->way == DISK_DROPPED) && s->bytes >= DISK_LEAST_BYTES && need > disk_bytes_per_s(s);
}

static bool in_memory(int file)
{
    struct statfs s;
    if (fstatfs(file, &s))
        return false;
    for (size_t i = 0; i < sizeof MEMORY_SYSTEMS / sizeof *MEMORY_SYSTEMS; i++)
        if ((long)s.f_type == MEMORY_SYSTEMS[i])
            return true;
    return false;
}

/* How much of its beginning the system has in memory. */
static double resident_share(int file, size_t bytes)
{
    const size_t pages = (bytes + ALIGNED - 1) / ALIGNED;
    void *map = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    unsigned char *there = calloc(pages ? pages : 1, 1);
    size_t n = 0;
    if (map != MAP_FAILED && there && mincore(map, bytes, there) == 0)
        for (size_t i = 0; i < pages; i++)
            n += there[i] & 1;
    if (map != MAP_FAILED)
        munmap(map, bytes);
    free(there);
    return pages ? (double)n / (double)pages : 0;
}

/* Asks the system to forget what it has of the file; what is not written yet stays, so that it is written first. */
static enum disk_way drop(int file, size_t bytes)
{
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    return resident_share(file, bytes) > RESIDENT ? DISK_CACHED : DISK_DROPPED;
}

static enum status read_blocks(struct disk_speed *out, int file, const char *path, double seconds, struct error *err)
{
    void *block = NULL;
    if (posix_memalign(&block, ALIGNED, BLOCK))
        return error_no_memory(err, "a block of a file", BLOCK);
    const double start = clock_s();
    ssize_t n = 1;
    for (int i = 0; i < MOST_BLOCKS && n > 0 && (i == 0 || clock_s() - start < seconds); i++) {
        n = read(file, block, BLOCK);
        out->bytes += n > 0 ? (double)n : 0;
    }
    out->seconds = clock_s() - start;
    const int code = errno;
    free(block);
    errno = code;
    return n < 0 ? error_errno(err, "cannot read '%s'", path) : OK;
}

/* Opens it so that the cache is passed by, where the file system can do that. */
static int open_direct(const char *path, bool *direct)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
    *direct = file >= 0;
    return file < 0 && errno == EINVAL ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : file;
}

enum status disk_read_file(struct disk_speed *out, const char *path, double seconds, struct error *err)
{
    struct stat s;
    bool direct;
    const int file = open_direct(path, &direct);
    *out = (struct disk_speed){0};
    if (file < 0)
        return error_errno(err, "cannot open '%s'", path);
    enum status st = OK;
    if (fstat(file, &s))
        st = error_errno(err, "cannot look at '%s'", path);
    else if (!S_ISREG(s.st_mode))
        st = error_set(err, BAD_INPUT, "'%s' is no regular file", path);
    if (st == OK) {
        const size_t most = (size_t)BLOCK * MOST_BLOCKS, size = (size_t)s.st_size < most ? (size_t)s.st_size : most;
        out->way = in_memory(file) ? DISK_MEMORY : direct ? DISK_DIRECT : drop(file, size);
        st = read_blocks(out, file, path, seconds, err);
    }
    close(file);
    return st;
}

/* Numbers that no file system makes smaller. */
static enum status fill(int file, const char *path, struct error *err)
{
    uint64_t *block = malloc(BLOCK), x = 88172645463325252u;
    enum status st = block ? OK : error_no_memory(err, "a block of a file", BLOCK);
    for (int done = 0; st == OK && done < MADE_BYTES; done += BLOCK) {
        for (size_t i = 0; i < BLOCK / sizeof *block; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            block[i] = x;
        }
        const ssize_t n = write(file, block, BLOCK);
        if (n != BLOCK) {
            errno = n < 0 ? errno : ENOSPC;
            st = error_errno(err, "cannot write '%s'", path);
        }
    }
    free(block);
    if (st == OK && fsync(file))
        st = error_errno(err, "cannot write '%s'", path);
    return st;
}

enum status disk_read_folder(struct disk_speed *out, const char *folder, double seconds, struct error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/.hone-disk-XXXXXX", folder) >= (int)sizeof path)
        return error_set(err, BAD_INPUT, "the path of the folder '%.80s...' is too long", folder);
    const int file = mkostemp(path, O_CLOEXEC);
    if (file < 0)
        return error_errno(err, "cannot make a file in '%s'", folder);
    enum status st = fill(file, path, err);
    close(file);
    if (st == OK)
        st = disk_read_file(out, path, seconds, err);
    unlink(path);
    return st;
}
