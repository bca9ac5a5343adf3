/* A bump allocator: many small things with one lifetime, freed together. It never returns NULL, as an arena holds small metadata
 * only: where that cannot be had, the process ends (arena_on_exhausted). Large buffers are allocated elsewhere and report failure. */
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

/* What is called when metadata cannot be had, by whatever thread asked for it; it ends the process and must not return. Without one
 * (tests, other programs) that is abort(). src/cli says in a line what happened. */
typedef void exhausted_fn(void);
void arena_on_exhausted(exhausted_fn *end);

/* realloc and the like that end the process in the same way: growing lists of small things. */
void *xrealloc(void *old, size_t bytes);
void *xcalloc(size_t count, size_t bytes);
char *xstrdup(const char *text);
void *xneed(void *p);                               /* p, of whatever allocates and has given it, or NULL */

#endif
