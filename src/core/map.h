/* A file mapped read-only into memory, that can be read safely even when another process truncates it: the read then
 * fails with an error instead of killing the process.
 *
 * map_init installs a SIGBUS handler where it is not there already. A fault outside map_read goes on to the handler
 * that was there before. */
#ifndef HONE_CORE_MAP_H
#define HONE_CORE_MAP_H

#include <stddef.h>

#include "core/error.h"

struct map {
    char *path;                     /* for messages */
    const unsigned char *data;      /* (size); read it through map_read only. NULL for an empty file */
    size_t size;
};

/* Maps a regular file; an empty one is fine. On failure *m is untouched. */
enum status map_init(struct map *m, const char *path, struct error *err);
void map_release(struct map *m);    /* a zeroed map is fine */

/* Copies bytes [offset, offset + bytes), which must lie inside the size found by map_init. Thread-safe. */
enum status map_read(const struct map *m, size_t offset, void *to, size_t bytes, struct error *err);

#endif
