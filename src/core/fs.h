/* Small file helpers: folders, whole files, durable writes, and files in folders that others use, too. */
#ifndef HONE_CORE_FS_H
#define HONE_CORE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

bool fs_exists(const char *path);
enum status fs_make_dirs(const char *path, struct error *err);                  /* mkdir -p */
/* Reads a whole regular file into malloc'd memory with a NUL after it; refuses files above `limit` bytes (0: none). */
enum status fs_read(const char *path, char **data, size_t *size, size_t limit, struct error *err);
enum status fs_write_synced(const char *path, const void *data, size_t size, struct error *err);
enum status fs_sync_dir(const char *path, struct error *err);
enum status fs_remove_tree(const char *path, struct error *err);                /* a missing path is fine */

/* Is there anything of that name, a link to nothing included? What cannot be looked at is an error, never a "no". */
enum status fs_there(const char *path, bool *there, struct error *err);
/* Readers see the old file or the new one, whole. What is written goes into a fresh file beside it, never through a link. */
enum status fs_replace(const char *path, const void *data, size_t size, struct error *err);
/* Size and XXH3-64 of a regular file; a link is not followed. */
enum status fs_hash(const char *path, uint64_t *bytes, uint64_t *xxh3, struct error *err);
/* Holds FOLDER/.lock, which is made where it is missing, until *lock is closed; BAD_INPUT at once when another has it. */
enum status fs_lock(int *lock, const char *folder, struct error *err);
/* Does somebody hold it? Nothing is made, and who comes to hold it just now is not turned away. */
bool fs_is_locked(const char *folder);

#endif
