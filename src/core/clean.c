/* What may reach a terminal; see clean.h. */
#include "core/clean.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* The length that the first byte of a character promises; 0: no character begins with it. */
static size_t promised(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xC2 || first > 0xF4 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
}

/* The second byte is narrower than the others after some first ones: overlong forms, surrogates, beyond U+10FFFF. */
static bool may_follow(unsigned char first, unsigned char second)
{
    return (second & 0xC0) == 0x80 && !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F) &&
           !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F);
}

/* How many of the first n bytes at s can be the beginning of a character, or a whole one; 0: none. */
static size_t begins(const unsigned char *s, size_t n)
{
    const size_t whole = promised(s[0]);
    size_t good = whole ? 1 : 0;
    while (good && good < whole && good < n && (good == 1 ? may_follow(s[0], s[1]) : (s[good] & 0xC0) == 0x80))
        good++;
    return good;
}

/* The length of the character at s, of which n bytes are there; 0: it is not UTF-8. */
static size_t sequence(const unsigned char *s, size_t n)
{
    const size_t whole = promised(s[0]);
    return whole && whole <= n && begins(s, n) == whole ? whole : 0;
}

static uint32_t code_point(const unsigned char *s, size_t n)
{
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3Fu);
    return c;
}

static bool steers(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

static void clean_to(char *to, size_t size, const char *text, bool keep_steering)
{
    const unsigned char *s = (const unsigned char *)text;
    char *const end = to + size - 1;
    for (size_t left = strlen(text), n; left; s += n, left -= n) {
        const size_t whole = sequence(s, left);
        const bool space = whole == 1 && strchr("\t\n\v\f\r", *s) && !keep_steering;
        const bool good = whole && (keep_steering || !steers(code_point(s, whole)));
        const void *shown = space ? " " : good ? (const void *)s : REPLACEMENT;
        const size_t bytes = space ? 1 : good ? whole : sizeof REPLACEMENT - 1;
        if ((size_t)(end - to) < bytes)
            break;
        to = mempcpy(to, shown, bytes);
        n = whole ? whole : 1;
    }
    *to = '\0';
}

static char *clean(const char *text, bool keep_steering)
{
    const size_t size = text ? strlen(text) * (sizeof REPLACEMENT - 1) + 1 : 1;
    char *out = xcalloc(size, 1);
    clean_to(out, size, text ? text : "", keep_steering);
    return out;
}

char *text_clean(const char *text) { return clean(text, false); }
char *text_utf8(const char *text) { return clean(text, true); }
void text_clean_to(char *to, size_t size, const char *text) { clean_to(to, size, text, false); }

bool text_is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = 1;
    for (size_t left = strlen(text); left && n; s += n, left -= n)
        n = sequence(s, left);
    return n != 0;
}

void text_put(FILE *to, const char *text)
{
    char *t = text_clean(text);
    fputs(t, to);
    free(t);
}

/* Outside of strings JSON has no other of them than line feeds and spaces, so the text can be looked at as it comes. */
static int put_json_piece(const char *piece, size_t size, void *context)
{
    const unsigned char *s = (const unsigned char *)piece;
    FILE *to = context;
    if (ferror(to))
        return -1;                      /* jansson goes on after some failures, and would leave a part out */
    for (size_t n; size; s += n, size -= n) {
        n = sequence(s, size);
        n = n ? n : 1;
        const uint32_t c = code_point(s, n);
        if (steers(c) && c != '\n')
            fprintf(to, "\\u%04X", c);
        else
            fwrite(s, 1, n, to);
    }
    return ferror(to) ? -1 : 0;
}

int text_put_json(FILE *to, const json_t *document, size_t flags)
{
    return json_dump_callback(document, put_json_piece, to, flags);
}

/* One character of a stream, or one byte that is none. */
static void put_character(struct text_stream *s, const unsigned char *at, size_t n)
{
    if (n && (!steers(code_point(at, n)) || *at == '\n' || *at == '\t'))
        fwrite(at, 1, n, s->to);
    else
        fputs(REPLACEMENT, s->to);
}

void text_stream_put(struct text_stream *s, const char *piece, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        s->held[s->n++] = piece[i];
        const unsigned char *held = (const unsigned char *)s->held;
        size_t good = begins(held, s->n);
        while (s->n && good < s->n) {                   /* the newest byte does not go on with it: no character */
            put_character(s, held, 0);
            memmove(s->held, s->held + 1, --s->n);
            good = s->n ? begins(held, s->n) : 0;
        }
        if (s->n && good == promised(held[0])) {
            put_character(s, held, s->n);
            s->n = 0;
        }
    }
}

void text_stream_end(struct text_stream *s)
{
    for (; s->n; s->n--)
        put_character(s, (const unsigned char *)s->held, 0);
}
