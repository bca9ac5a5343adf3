/* How fast files are read from where they lie, past what the system keeps of them in memory. */
#ifndef HONE_CORE_DISK_H
#define HONE_CORE_DISK_H

#include <stdbool.h>

#include "core/error.h"

enum disk_way {
    DISK_DIRECT,                        /* O_DIRECT: the system's cache was passed by */
    DISK_DROPPED,                       /* read after the cache had given it up */
    DISK_CACHED,                        /* it was in memory, and stayed there: what was measured is no disk */
    DISK_MEMORY,                        /* it lies on a file system in memory */
};

struct disk_speed {
    double bytes, seconds;              /* read, and in which time */
    enum disk_way way;
};
double disk_bytes_per_s(const struct disk_speed *s);            /* 0: nothing was read */
const char *disk_way_words(enum disk_way way);                  /* "past the page cache (O_DIRECT)" */

/* Reads a file from its beginning, in large blocks, until its end or for about `seconds`. */
enum status disk_read_file(struct disk_speed *out, const char *path, double seconds, struct error *err);
/* The same of a file that is made in a folder for it, and is gone before this returns. */
enum status disk_read_folder(struct disk_speed *out, const char *folder, double seconds, struct error *err);

/* Bytes/s that reading so many windows a second of so many bytes, anywhere in files of `all_bytes`, takes of a disk: whole pages. 0: all of it stays in
 * the memory that is free, once it was read. */
double disk_need(double windows_per_s, double window_bytes, double all_bytes, double free_bytes);
/* Is a disk known to be slower than that? Little that was read says nothing, and memory is no disk. */
bool disk_is_slow(const struct disk_speed *s, double need);
enum { DISK_LEAST_BYTES = 1000000 };

#endif
