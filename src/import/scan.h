/* Walking over JSON text as other programs write it. The text lies in a buffer with SCAN_PAD zero bytes after its end,
 * so that every search stops there. Nothing is copied: what is found are spans of the text. */
#ifndef HONE_IMPORT_SCAN_H
#define HONE_IMPORT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { SCAN_PAD = 128 };

enum span_type { SPAN_NONE, SPAN_STRING, SPAN_SCALAR, SPAN_ARRAY, SPAN_OBJECT };

struct span {                   /* a value as written; of a string what is between its quotes */
    const char *at;
    uint32_t size;
    uint8_t type;
    bool messy;                 /* a string with a backslash or a NUL; a list that is written over several lines */
};

enum scan_result {
    SCAN_DONE,
    SCAN_CLOSED,                /* no further member */
    SCAN_MORE,                  /* the text ends before the value does */
    SCAN_BAD,                   /* not JSON from here on */
};

/* Careful walking asks of every quote whether what follows it makes sense after a string, and so gets over quotes and
 * backslashes that should have been escaped. It is slow, and for values in which the fast way failed. */
struct scan {
    const char *p, *end;
    bool careful, last;         /* last: nothing comes after end */
};

enum scan_place { SCAN_IN_KEY, SCAN_IN_OBJECT, SCAN_IN_ARRAY };

enum scan_result scan_string_careful(struct scan *s, struct span *out, enum scan_place place);
/* From inside of `depth` brackets to behind the last one that closes. In a hurry it gives up after `limit` bytes. */
enum scan_result scan_close(struct scan *s, int64_t depth, size_t limit);
enum scan_result scan_container(struct scan *s, struct span *out);

/* Is this `"key":` with one of the keys? */
bool scan_is_key(const char *p, const char *const *keys, int n);
/* An event is an object whose first key is one of an event's, and which is not itself a member ("args": {"name": ...);
 * `before` is the last byte ahead of the brace that is no space. */
bool scan_starts_event(const char *brace, char before);

/* 1 for the bytes that may stand in a number or a word: NaN, -Infinity, 1e-5, null. */
extern const uint8_t scan_word[256];

static inline const char *scan_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    return p;
}

/* Over space and commas to the next value or key. */
static inline const char *scan_next(const char *p)
{
    p = scan_space(p);
    while (*p == ',')
        p = scan_space(p + 1);
    return p;
}

/* The first quote, backslash or NUL. */
static inline const char *scan_special(const char *p)
{
#if defined(__aarch64__)
    for (;; p += 16) {
        const uint8x16_t v = vld1q_u8((const uint8_t *)p);
        const uint8x16_t quote = vceqq_u8(v, vdupq_n_u8('"')), slash = vceqq_u8(v, vdupq_n_u8('\\'));
        const uint8x16_t hit = vorrq_u8(vorrq_u8(quote, slash), vceqzq_u8(v));
        const uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hit), 4)), 0);
        if (bits)
            return p + (__builtin_ctzll(bits) >> 2);
    }
#elif defined(__SSE2__)
    for (;; p += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)p);
        const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"')), slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
        const __m128i hit = _mm_or_si128(_mm_or_si128(quote, slash), _mm_cmpeq_epi8(v, _mm_setzero_si128()));
        const unsigned bits = (unsigned)_mm_movemask_epi8(hit);
        if (bits)
            return p + __builtin_ctz(bits);
    }
#else
    while (*p != '"' && *p != '\\' && *p != '\0')
        p++;
    return p;
#endif
}

/* s->p is at the quote that opens; afterwards behind the one that closes. */
static inline enum scan_result scan_string(struct scan *s, struct span *out, enum scan_place place)
{
    if (s->careful)
        return scan_string_careful(s, out, place);
    const char *p = s->p + 1;
    bool messy = false;
    for (;;) {
        p = scan_special(p);
        if (*p == '"')
            break;
        if (p >= s->end)
            return SCAN_MORE;
        p += *p == '\\' ? 2 : 1;
        messy = true;
    }
    if (p >= s->end)
        return SCAN_MORE;
    *out = (struct span){s->p + 1, (uint32_t)(p - s->p - 1), SPAN_STRING, messy};
    s->p = p + 1;
    return SCAN_DONE;
}

static inline enum scan_result scan_scalar(struct scan *s, struct span *out)
{
    const char *p = s->p;
    while (scan_word[(uint8_t)*p])
        p++;
    if (p >= s->end)
        return SCAN_MORE;
    if (p == s->p)
        return SCAN_BAD;
    *out = (struct span){s->p, (uint32_t)(p - s->p), SPAN_SCALAR, false};
    s->p = p;
    return SCAN_DONE;
}

/* Any value; s->p is at its first byte or the space before it. */
static inline enum scan_result scan_value(struct scan *s, struct span *out, enum scan_place place)
{
    s->p = scan_space(s->p);
    if (*s->p == '"')
        return scan_string(s, out, place);
    if (*s->p == '[' || *s->p == '{')
        return scan_container(s, out);
    return scan_scalar(s, out);
}

/* The next key of an object, with s->p inside of it; afterwards s->p is behind the colon and space. */
static inline enum scan_result scan_key(struct scan *s, struct span *key)
{
    const char *p = scan_next(s->p);
    s->p = p;
    if (*p != '"') {
        s->p += *p == '}';
        return *p == '}' ? SCAN_CLOSED : p >= s->end ? SCAN_MORE : SCAN_BAD;
    }
    const enum scan_result r = scan_string(s, key, SCAN_IN_KEY);
    if (r != SCAN_DONE)
        return r;
    p = scan_space(s->p);
    if (*p != ':')
        return p >= s->end ? SCAN_MORE : SCAN_BAD;
    s->p = scan_space(p + 1);
    return SCAN_DONE;
}

static inline bool span_is(const struct span *s, const char *text, size_t size)
{
    return s->size == size && !memcmp(s->at, text, size);
}

#endif
