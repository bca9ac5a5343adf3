/* Interned texts, with a bound for files whose names are all different; and the hash table that this room uses. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>

#include "import/import_int.h"

enum { FIRST_SLOTS = 256, FREE_BYTES = 32 << 20, SHARE = 16 };

void table_grow(struct table *t)
{
    const uint32_t cap = t->cap ? 2 * t->cap : FIRST_SLOTS;
    struct slot *slots = xcalloc(cap, sizeof *slots);
    for (uint32_t i = 0; i < t->cap; i++) {
        if (!t->slots[i].index)
            continue;
        uint32_t at = t->slots[i].hash & (cap - 1);
        while (slots[at].index)
            at = (at + 1) & (cap - 1);
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
}

void texts_release(struct texts *x)
{
    free(x->table.slots);
    free(x->sizes);
}

struct wanted { const struct texts *texts; const char *text; size_t size; };

static bool is_wanted(const void *context, int32_t index)
{
    const struct wanted *w = context;
    return w->texts->sizes[index] == w->size && !memcmp(w->texts->trace->names[index], w->text, w->size);
}

static struct slot *find(struct texts *x, const char *text, size_t size, uint32_t *hash)
{
    const struct wanted w = {x, text, size};
    *hash = (uint32_t)XXH3_64bits(text, size);
    return table_find(&x->table, *hash, is_wanted, &w);
}

static int32_t add(struct texts *x, struct slot *slot, uint32_t hash, const char *text, size_t size)
{
    const int32_t name = trace_name_n(x->trace, text, size);
    if (name >= x->cap_sizes) {
        x->cap_sizes = name + 64 + name / 2;
        x->sizes = xrealloc(x->sizes, (size_t)x->cap_sizes * sizeof *x->sizes);
    }
    x->sizes[name] = (uint32_t)size;
    *slot = (struct slot){hash, name + 1};
    x->table.n++;
    x->bytes += (int64_t)size + 64;     /* and what the tables take */
    return name;
}

int32_t texts_literal(struct texts *x, const char *text)
{
    uint32_t hash;
    struct slot *slot = find(x, text, strlen(text), &hash);
    return slot->index ? slot->index - 1 : add(x, slot, hash, text, strlen(text));
}

static int hex_digit(char c)
{
    const char low = (char)(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* The code unit of \uXXXX; -1 when it is none. */
static int32_t code_unit(const char *p, const char *end)
{
    int32_t v = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        v = 16 * v + digit;
    }
    return v;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c == 0)
        return out;
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* Takes one escape that starts at p; returns behind it. What is no escape stays as it is. */
static const char *unescape(const char *p, const char *end, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known = end - p >= 2 && p[1] ? strchr(from, p[1]) : NULL;
    int32_t unit = code_unit(p, end);
    if (known) {
        *(*out)++ = to[known - from];
        return p + 2;
    }
    if (unit < 0) {
        *(*out)++ = *p;
        return p + 1;
    }
    const int32_t next = (unit & 0xfc00) == 0xd800 ? code_unit(p + 6, end) : -1;
    if (next >= 0 && (next & 0xfc00) == 0xdc00) {
        *out = put_utf8(*out, 0x10000u + ((uint32_t)(unit & 0x3ff) << 10) + (uint32_t)(next & 0x3ff));
        return p + 12;
    }
    *out = put_utf8(*out, (unit & 0xf800) == 0xd800 ? 0xfffd : (uint32_t)unit);
    return p + 6;
}

/* Cuts in front of a character, not inside of it, and says so with three dots. */
static size_t shorten(char *text, size_t longest)
{
    size_t n = longest - 3;
    for (int i = 0; i < 3 && n > 0 && ((uint8_t)text[n] & 0xc0) == 0x80; i++)
        n--;
    memcpy(text + n, "...", 3);
    return n + 3;
}

/* A text without its NULs and, where there are any, its escapes. */
static char *clean_text(const char *p, const char *end, bool escapes, char *out, const char *full)
{
    while (p < end && out <= full) {
        if (*p == '\\' && escapes)
            p = unescape(p, end, &out);
        else if (*p)
            *out++ = *p++;
        else
            p++;
    }
    return out;
}

/* A list in one line, with the space that most writers put after a comma. */
static char *clean_list(const char *p, const char *end, char *out, const char *full)
{
    for (bool quoted = false; p < end && out <= full; p++) {
        if (*p == '\0' || (!quoted && (uint8_t)*p <= ' '))
            continue;
        quoted ^= *p == '"';
        *out++ = *p;
        if (quoted && *p == '\\' && p + 1 < end && p[1])
            *out++ = *++p;
        else if (!quoted && (*p == ',' || *p == ':'))
            *out++ = ' ';
    }
    return out;
}

/* A clean copy in scratch; returns its size. */
static size_t clean(struct texts *x, const struct span *s, size_t longest)
{
    const char *p = s->at, *stop = p + s->size, *full = x->scratch + longest;
    const bool string = s->type == SPAN_STRING;
    const char *end = s->messy && !string ? clean_list(p, stop, x->scratch, full)
                                          : clean_text(p, stop, string, x->scratch, full);
    return end > full ? shorten(x->scratch, longest) : (size_t)(end - x->scratch);
}

int32_t texts_name(struct texts *x, const struct span *s, size_t longest, int64_t read_bytes)
{
    uint32_t hash;
    struct slot *slot = NULL;
    if (!s->messy && s->size <= longest) {
        slot = find(x, s->at, s->size, &hash);
        if (slot->index)
            return slot->index - 1;
    }
    const size_t size = clean(x, s, longest);
    slot = find(x, x->scratch, size, &hash);
    if (slot->index)
        return slot->index - 1;
    if (x->bytes > FREE_BYTES + read_bytes / SHARE)
        return x->other >= 0 ? x->other : (x->other = texts_literal(x, "(other)"));
    return add(x, slot, hash, x->scratch, size);
}
