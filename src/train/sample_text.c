/* The text of a sample: stop texts may begin in one token and end in another, and so may characters. */
#include "train/sample_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

static void append(struct sample_text *t, const char *piece, size_t size)
{
    if (t->size + size + 1 > t->room) {
        t->room = 2 * (t->size + size) + 64;
        t->bytes = xrealloc(t->bytes, t->room);
    }
    memcpy(t->bytes + t->size, piece, size);
    t->size += size;
    t->bytes[t->size] = '\0';
}

/* The first place from `from` on where one of the texts begins; t->size: there is none. */
static size_t find(const struct sample_text *t, size_t from, const struct stop_texts *stops)
{
    size_t first = t->size;
    for (int i = 0; i < stops->n; i++) {
        const char *at = memmem(t->bytes + from, t->size - from, stops->text[i], strlen(stops->text[i]));
        first = at && (size_t)(at - t->bytes) < first ? (size_t)(at - t->bytes) : first;
    }
    return first;
}

static size_t longest(const struct stop_texts *stops)
{
    size_t most = 0;
    for (int i = 0; i < stops->n; i++)
        most = strlen(stops->text[i]) > most ? strlen(stops->text[i]) : most;
    return most;
}

bool sample_text_add(struct sample_text *t, const char *piece, size_t size, const struct stop_texts *stops)
{
    const size_t most = longest(stops), from = t->size + 1 > most ? t->size + 1 - most : 0;
    append(t, piece, size);
    t->length = find(t, from, stops);
    return t->length < t->size;
}

/* Bytes at the end that begin a character of more bytes. */
static size_t part_of_character(const char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        const unsigned char c = (unsigned char)text[size - back];
        const size_t bytes = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        if ((c & 0xC0) != 0x80)
            return bytes > back ? back : 0;
    }
    return 0;
}

size_t sample_text_sure(const struct sample_text *t, const struct stop_texts *stops)
{
    size_t held = part_of_character(t->bytes, t->size);
    for (int i = 0; i < stops->n; i++)
        for (size_t n = strlen(stops->text[i]) - 1; n > held; n--)
            if (n <= t->size && !memcmp(t->bytes + t->size - n, stops->text[i], n))
                held = n;
    return t->size - held;
}

void sample_text_release(struct sample_text *t)
{
    free(t->bytes);
    *t = (struct sample_text){.bytes = NULL};
}
