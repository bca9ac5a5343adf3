/* JSON while there is no memory. jansson does not stand that well: reading, it calls a good text wrong, reads part of it or
 * aborts; writing, it leaves out keys. So what it allocates is watched: reading falls back on a reserve, and writing is everything
 * or nothing. */
#ifndef HONE_CORE_JSON_MEMORY_H
#define HONE_CORE_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

#include "core/error.h"

/* Watches jansson's allocations, which `allocate` (NULL: malloc) makes. `give_up` (NULL: none) is called, and does not return,
 * where the reserve does not suffice for reading. Once, before anything is read. */
void json_memory_watch(void *(*allocate)(size_t size), void (*give_up)(void));

/* json_loadb; where it returns NULL, *no_memory says whether that is why. */
json_t *json_memory_load(const char *text, size_t size, size_t flags, json_error_t *why, bool *no_memory);
/* A file of at most so many bytes that holds one object; `what` it is of ends the message where it holds something else: " of tokens and ids". */
enum status json_memory_read_object(json_t **out, const char *path, size_t most, const char *what, struct error *err);
/* json_dumps: everything, or NULL. */
char *json_memory_dump(const json_t *j, size_t flags);

#endif
