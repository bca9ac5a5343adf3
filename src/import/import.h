/* Reads what the PyTorch profiler (Kineto) wrote, into a trace. One pass over the bytes; kept are packed events and
 * interned names only. Tolerant: what other programs write is not always JSON (unescaped quotes and backslashes, NaN,
 * invalid UTF-8, cut-off files), and what can be read is read. */
#ifndef HONE_IMPORT_IMPORT_H
#define HONE_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "trace/trace.h"

/* Called now and then from the reading thread with the bytes of the file taken so far and its size (-1: unknown). */
typedef void import_progress(void *context, int64_t done, int64_t total);

/* Reads a file, plain or compressed with gzip (told by its first bytes, not its name), or standard input for "-".
 * On success the caller owns *out; its origin says what was odd (warnings, truncated). Fails when the file cannot be
 * read or holds nothing of a trace; *out is then untouched. `progress` may be NULL. */
enum status import_read(struct trace **out, const char *path, import_progress *progress, void *context, struct error *err);

/* The same from memory, which stays with the caller. `name` is for messages. */
enum status import_read_memory(struct trace **out, const char *name, const void *data, size_t size, struct error *err);

/* Numbers the ranks of a job of which no trace says its own, by names of files such as worker0 and gpu0: where they are 0 to n - 1 and nothing
 * in the traces speaks against it. Otherwise all stay unknown. */
void import_number_ranks(struct trace **traces, int n);

/* The traces that a path names: itself, or the *.json and *.json.gz of a folder (not of its subfolders), sorted.
 * The caller frees each and the list. Fails when there is none. */
enum status import_find(char ***paths, int *n, const char *path, struct error *err);

#endif
