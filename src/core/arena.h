/* A bump allocator: many small things with one lifetime, freed together. Running out of memory ends the process with
 * a message, as an arena holds small metadata only; large buffers are allocated elsewhere and report failure. */
#ifndef HONE_CORE_ARENA_H
#define HONE_CORE_ARENA_H

#include <stddef.h>

struct arena {
    struct arena_block *head;
};

void *arena_alloc(struct arena *a, size_t bytes);   /* zeroed, 16-byte aligned */
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *arena_copy(struct arena *a, const void *data, size_t bytes);
void arena_release(struct arena *a);                /* frees everything; the arena can be used again */

/* realloc that ends the process when metadata cannot be had: growing lists of small things. */
void *xrealloc(void *old, size_t bytes);
void *xcalloc(size_t count, size_t bytes);
char *xstrdup(const char *text);

#endif
