/* Small file helpers: folders, whole files, durable writes. */
#ifndef HONE_CORE_FS_H
#define HONE_CORE_FS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

bool fs_exists(const char *path);
enum status fs_make_dirs(const char *path, struct error *err);                  /* mkdir -p */
/* Reads a whole regular file into malloc'd memory with a NUL after it; refuses files above `limit` bytes (0: none). */
enum status fs_read(const char *path, char **data, size_t *size, size_t limit, struct error *err);
enum status fs_write_synced(const char *path, const void *data, size_t size, struct error *err);
enum status fs_sync_dir(const char *path, struct error *err);
enum status fs_remove_tree(const char *path, struct error *err);                /* a missing path is fine */

#endif
