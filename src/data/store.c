/* Rows of token ids in 1, 2 or 4 bytes; see data_int.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "data/data_int.h"

enum { CHUNK_TOKENS = 2048 };

void store_release(struct store *s)
{
    free(s->name);
    free(s->memory);
    map_release(&s->map);
    *s = (struct store){.name = NULL};
}

enum status store_init_memory(struct store *s, const char *name, int64_t count, int64_t vocab, struct error *err)
{
    const int width = vocab <= 1 << 8 ? 1 : vocab <= 1 << 16 ? 2 : 4;
    size_t bytes;
    void *memory = NULL;
    if (!__builtin_mul_overflow((size_t)count, (size_t)width, &bytes))
        memory = malloc(bytes ? bytes : 1);
    if (!memory)
        return error_set(err, CANNOT,
                         "out of memory: %lld tokens of '%s' need %.1f MB; set data.chars or data.max_chars "
                         "smaller", (long long)count, name, (double)count * width / 1e6);
    *s = (struct store){.name = xstrdup(name), .memory = memory, .width = width, .count = count};
    return OK;
}

void store_set(struct store *s, int64_t at, int32_t id)
{
    if (s->width == 1)
        ((uint8_t *)s->memory)[at] = (uint8_t)id;
    else if (s->width == 2)
        ((uint16_t *)s->memory)[at] = (uint16_t)id;
    else
        ((int32_t *)s->memory)[at] = id;
}

/* Turns n ids of `width` bytes into 32 bits. */
static void widen(const void *from, int width, int64_t n, int32_t *out)
{
    const uint8_t *bytes = from;
    const uint16_t *words = from;
    if (width == 4)
        memcpy(out, from, (size_t)n * 4);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = width == 2 ? words[i] : bytes[i];
}

enum status store_read(const struct store *s, int64_t first, int64_t n, int32_t *out, struct error *err)
{
    assert(first >= 0 && n >= 0 && first <= s->count && n <= s->count - first);
    if (s->memory) {
        widen((const char *)s->memory + first * s->width, s->width, n, out);
        return OK;
    }
    uint32_t chunk[CHUNK_TOKENS];       /* 32 bits for its alignment */
    for (int64_t at = 0; at < n; at += CHUNK_TOKENS) {
        const int64_t take = n - at < CHUNK_TOKENS ? n - at : CHUNK_TOKENS;
        const enum status st = map_read(&s->map, s->offset + (size_t)((first + at) * s->width), chunk,
                                        (size_t)(take * s->width), err);
        if (st != OK)
            return st;
        widen(chunk, s->width, take, out + at);
    }
    return OK;
}

static uint32_t max_of(const int32_t *ids, int64_t n)
{
    uint32_t max = 0;
    for (int64_t i = 0; i < n; i++)
        max = (uint32_t)ids[i] > max ? (uint32_t)ids[i] : max;
    return max;
}

enum status store_max(const struct store *s, uint32_t *max, int64_t *at, struct error *err)
{
    int32_t ids[CHUNK_TOKENS];
    *max = 0;
    *at = -1;
    for (int64_t first = 0; first < s->count; first += CHUNK_TOKENS) {
        const int64_t n = s->count - first < CHUNK_TOKENS ? s->count - first : CHUNK_TOKENS;
        const enum status st = store_read(s, first, n, ids, err);
        if (st != OK)
            return st;
        const uint32_t here = max_of(ids, n);
        if (*at >= 0 && here <= *max)
            continue;
        *max = here;
        for (*at = first; (uint32_t)ids[*at - first] != here;)
            ++*at;
    }
    return OK;
}
