/* A file being written: buffered, checksummed on the way, durable once closed. Used by fs*.c and safetensors_write.c. */
#ifndef HONE_CORE_FS_INT_H
#define HONE_CORE_FS_INT_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "core/error.h"

struct fs_writer {
    const char *path;           /* borrowed */
    int fd;
    unsigned char *buffer;
    size_t used;                /* bytes waiting in the buffer */
    uint64_t written_bytes;
    XXH3_state_t *hash;
};

/* Creates the file or empties it. After OK the writer ends with exactly one of close and abort. */
enum status fs_writer_open(struct fs_writer *w, const char *path, struct error *err);
/* The same, but the file is a new one: what had its name, a link too, is unlinked before. */
enum status fs_writer_open_fresh(struct fs_writer *w, const char *path, struct error *err);
enum status fs_writer_put(struct fs_writer *w, const void *data, size_t size, struct error *err);
/* Flushes, fsyncs and closes; *checksum (may be NULL) gets the XXH3-64 of the file. On failure it has aborted. */
enum status fs_writer_close(struct fs_writer *w, uint64_t *checksum, struct error *err);
/* Closes and removes the unfinished file. */
void fs_writer_abort(struct fs_writer *w);

#endif
