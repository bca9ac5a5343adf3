/* Files of tokens, little-endian, told apart by their first four bytes:
 *
 *   llm.c, GPT-2:   256 int32 of header {20240520, 1, count, ...}, then count uint16
 *   llm.c, Llama 3: 256 int32 of header {20240801, 7, count, ...}, then count uint32
 *   nanoGPT:        anything else; uint16 from the first byte on */
#include <string.h>

#include "core/arena.h"
#include "data/data_int.h"

enum { HEADER_BYTES = 256 * 4 };

static const struct format {
    int32_t magic, version;
    int width;
} formats[] = {
    {20240520, 1, 2},
    {20240801, 7, 4},
};

static const struct format *format_of(int32_t magic)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].magic == magic)
            return &formats[i];
    return NULL;
}

static enum status take_raw(struct store *s, struct error *err)
{
    if (s->map.size % 2)
        return error_set(err, BAD_INPUT, "'%s' has %zu bytes, an odd number; a file of uint16 tokens has 2 bytes for "
                         "each: it is cut off, or not a token file", s->map.path, s->map.size);
    s->width = 2;
    s->count = (int64_t)(s->map.size / 2);
    return OK;
}

static enum status take_header(struct store *s, const struct format *f, struct error *err)
{
    int32_t head[3];
    if (s->map.size < HEADER_BYTES)
        return error_set(err, BAD_INPUT,
                         "'%s' starts like an llm.c shard but has %zu bytes; its header alone is %d: it is "
                         "cut off", s->map.path, s->map.size, HEADER_BYTES);
    const enum status st = map_read(&s->map, 0, head, sizeof head, err);
    if (st != OK)
        return st;
    if (head[1] != f->version)
        return error_set(err, BAD_INPUT,
                         "'%s' is an llm.c shard of version %d; with the magic number %d only version %d "
                         "can be read", s->map.path, head[1], f->magic, f->version);
    const uint64_t need = HEADER_BYTES + (uint64_t)(head[2] < 0 ? 0 : head[2]) * (uint64_t)f->width;
    if (head[2] < 0 || need != s->map.size)
        return error_set(err, BAD_INPUT,
                         "'%s' says in its header that it holds %d tokens of %d bytes, which would be %llu "
                         "bytes in all; it has %zu: it is cut off or corrupt", s->map.path, head[2], f->width,
                         (unsigned long long)need, s->map.size);
    s->width = f->width;
    s->count = head[2];
    s->offset = HEADER_BYTES;
    return OK;
}

static enum status take(struct store *s, struct error *err)
{
    int32_t magic = 0;
    if (s->map.size == 0)
        return error_set(err, BAD_INPUT, "'%s' is empty; it should hold tokens", s->map.path);
    const enum status st = s->map.size >= 4 ? map_read(&s->map, 0, &magic, 4, err) : OK;
    const struct format *f = format_of(magic);
    return st != OK ? st : f ? take_header(s, f, err) : take_raw(s, err);
}

enum status shard_open(struct store *out, const char *path, struct error *err)
{
    struct store s = {.name = NULL};
    enum status st = map_init(&s.map, path, err);
    if (st == OK)
        st = take(&s, err);
    if (st != OK) {
        store_release(&s);
        return st;
    }
    s.name = xstrdup(path);
    *out = s;
    return OK;
}
