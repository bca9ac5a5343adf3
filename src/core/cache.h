/* What is remembered of a machine between runs: JSON files in $XDG_CACHE_HOME/hone or ~/.cache/hone, each replaced whole or not
 * at all. A file that is missing, damaged or of another version is no file: what it held is measured again. For peaks that costs
 * time and nothing else; for choices (choices.h) the last bits of results, too. */
#ifndef HONE_CORE_CACHE_H
#define HONE_CORE_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* The text of a file in the folder, for free(). False: there is none, or it is too large to be one of ours. */
bool cache_read(const char *name, char **text, size_t *size);
/* Makes the folder where it is missing. */
enum status cache_replace(const char *name, const char *text, struct error *err);

/* Held by whoever reads, changes and replaces a file, so that two processes do not lose each other's changes; close() gives it
 * back. -1: it is not to be had, and changes may be lost. */
int cache_lock(void);

/* The document in a text, for json_decref, if it says {"version": version, ...}; else NULL. */
json_t *cache_parse(const char *text, size_t size, int version);

#endif
