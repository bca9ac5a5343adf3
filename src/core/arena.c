/* Bump allocation in blocks that double up to 1 MiB; see arena.h. */
#include "core/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

static exhausted_fn *end_process = abort;

void arena_on_exhausted(exhausted_fn *end) { end_process = end ? end : abort; }

void *xneed(void *p)
{
    if (!p) {
        end_process();
        abort();                    /* it must not return */
    }
    return p;
}

void *xrealloc(void *old, size_t bytes) { return xneed(realloc(old, bytes ? bytes : 1)); }
void *xcalloc(size_t count, size_t bytes) { return xneed(calloc(count ? count : 1, bytes ? bytes : 1)); }
char *xstrdup(const char *text) { return xneed(strdup(text)); }

static struct arena_block *block_new(struct arena *a, size_t bytes)
{
    size_t size = a->head ? a->head->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    if (size < bytes)
        size = bytes;
    struct arena_block *b = xneed(malloc(sizeof *b + size));
    b->next = a->head;
    b->used = 0;
    b->size = size;
    a->head = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct arena_block *b = a->head;
    if (!b || b->size - b->used < bytes)
        b = block_new(a, bytes);
    void *p = b->data + b->used;
    b->used += bytes;
    return memset(p, 0, bytes);
}

void *arena_copy(struct arena *a, const void *data, size_t bytes)
{
    void *p = arena_alloc(a, bytes);
    return bytes ? memcpy(p, data, bytes) : p;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->head = NULL;
}
