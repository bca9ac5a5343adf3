/* The slower walks: over nested values, and over strings whose quotes are not to be trusted; see scan.h. */
#include "import/scan.h"

enum { LONGEST_KEY = 128 };

const uint8_t scan_word[256] = {
    ['0' ... '9'] = 1, ['a' ... 'z'] = 1, ['A' ... 'Z'] = 1, ['-'] = 1, ['+'] = 1, ['.'] = 1, ['_'] = 1, ['#'] = 1,
};

enum answer { NO, YES, UNSURE };        /* UNSURE: the text ends too early to tell */

static enum answer at_end(const struct scan *s, const char *p)
{
    return p < s->end ? NO : s->last ? YES : UNSURE;
}

/* Is this `"key":`? */
static enum answer starts_key(const struct scan *s, const char *p)
{
    const char *from = ++p;
    while (*p != '"' && *p != '\0' && p - from < LONGEST_KEY)
        p++;
    if (*p == '"')
        p = scan_space(p + 1);
    return *p == ':' ? YES : at_end(s, p);
}

/* Behind a bracket that closes: further ones, then the next member, the next event or the end. */
static enum answer closes(const struct scan *s, const char *p)
{
    while (*p == '}' || *p == ']')
        p = scan_space(p + 1);
    if (*p == '{')
        return YES;
    if (*p != ',')
        return at_end(s, p);
    p = scan_space(p + 1);
    return *p == '{' || *p == '}' || *p == ']' ? YES : *p == '"' ? starts_key(s, p) : at_end(s, p);
}

static enum answer ends_member(const struct scan *s, const char *p)
{
    if (*p == '}')
        return closes(s, p);
    if (*p != ',')
        return at_end(s, p);
    p = scan_space(p + 1);
    return *p == '}' ? closes(s, p) : *p == '"' ? starts_key(s, p) : at_end(s, p);
}

/* Can a string end here? p is behind its quote. */
static enum answer ends_string(const struct scan *s, const char *p, enum scan_place place)
{
    p = scan_space(p);
    if (place == SCAN_IN_OBJECT)
        return ends_member(s, p);
    if (place == SCAN_IN_KEY)
        return *p == ':' ? YES : at_end(s, p);
    return *p == ',' || *p == ']' || *p == '}' || *p == ':' ? YES : at_end(s, p);
}

bool scan_is_key(const char *p, const char *const *keys, int n)
{
    if (*p++ != '"')
        return false;
    for (int i = 0; i < n; i++) {
        const size_t size = strlen(keys[i]);
        if (!strncmp(p, keys[i], size) && p[size] == '"')
            return *scan_space(p + size + 1) == ':';
    }
    return false;
}

bool scan_starts_event(const char *brace, char before)
{
    static const char *const keys[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "s", "bp"};
    return *brace == '{' && before != ':' && scan_is_key(scan_space(brace + 1), keys, sizeof keys / sizeof *keys);
}

/* The quote of the first key of an event? Then the string from `from` on has lost its end. */
static bool begins_event(const char *from, const char *quote)
{
    const char *p = quote;
    while (p > from && (uint8_t)p[-1] <= ' ')
        p--;
    if (p == from || *--p != '{')
        return false;
    const char *brace = p;
    while (p > from && (uint8_t)p[-1] <= ' ')
        p--;
    return p > from && p[-1] == ',' && scan_starts_event(brace, ',');
}

/* Keys are short and have no braces. */
static bool is_odd_key(const char *from, const char *end)
{
    const size_t size = (size_t)(end - from);
    return size > LONGEST_KEY || memchr(from, '{', size) || memchr(from, '}', size);
}

enum scan_result scan_string_careful(struct scan *s, struct span *out, enum scan_place place)
{
    bool messy = false;
    for (const char *p = scan_special(s->p + 1);; p = scan_special(p)) {
        if (p >= s->end)
            return SCAN_MORE;
        const bool escaped = *p == '\\' && p[1] == '"';
        const char *quote = p + escaped;
        /* a backslash before a quote escapes it, unless only this quote can end the string */
        const bool can_end = *quote == '"' && (!escaped || place == SCAN_IN_OBJECT);
        const enum answer ends = can_end ? ends_string(s, quote + 1, place) : NO;
        if (ends == UNSURE)
            return SCAN_MORE;
        messy |= *p != '"' || ends == NO;
        if (*p == '"' && ends == NO && begins_event(s->p + 1, p))
            return SCAN_BAD;
        if (ends == YES && place == SCAN_IN_KEY && is_odd_key(s->p + 1, quote))
            return SCAN_BAD;
        if (ends == YES) {
            *out = (struct span){s->p + 1, (uint32_t)(quote - s->p - 1), SPAN_STRING, messy};
            s->p = quote + 1;
            return SCAN_DONE;
        }
        p += *p == '\\' && (p[1] == '\\' || escaped) ? 2 : 1;
    }
}

/* The first bracket, quote or NUL. */
static const char *next_bracket(const char *p)
{
    while (*p != '"' && *p != '\0' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}

/* One bracket or string after the other. */
static enum scan_result close_slowly(struct scan *s, int64_t depth, size_t limit)
{
    const char *from = s->p;
    while (depth > 0) {
        const char *p = next_bracket(s->p);
        struct span inner;
        if (p >= s->end)
            return SCAN_MORE;
        if (!s->careful && (size_t)(p - from) > limit)
            return SCAN_BAD;
        s->p = p;
        if (*p == '"') {
            const enum scan_result r = scan_string(s, &inner, SCAN_IN_ARRAY);
            if (r != SCAN_DONE)
                return r;
            continue;
        }
        s->p++;
        depth += *p == '\0' ? 0 : (*p | 0x20) == '{' ? 1 : -1;
    }
    return SCAN_DONE;
}

/* Bit i of each mask is byte i of a chunk. */
struct masks { uint64_t quote, open, close, other; };   /* other: a backslash or NUL is there */

enum { CHUNK = 64 };

#if defined(__aarch64__)
#define HAVE_MASKS 1
static inline uint64_t to_bits(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t m = vld1q_u8(bit);
    const uint8x16_t low = vpaddq_u8(vandq_u8(a, m), vandq_u8(b, m)), high = vpaddq_u8(vandq_u8(c, m), vandq_u8(d, m));
    const uint8x16_t both = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(both, both)), 0);
}

static inline struct masks find_masks(const char *p)
{
    uint8x16_t quote[4], open[4], close[4], other = vdupq_n_u8(0);
    for (int i = 0; i < 4; i++) {
        const uint8x16_t v = vld1q_u8((const uint8_t *)p + 16 * i), low = vorrq_u8(v, vdupq_n_u8(0x20));
        quote[i] = vceqq_u8(v, vdupq_n_u8('"'));
        open[i] = vceqq_u8(low, vdupq_n_u8('{'));
        close[i] = vceqq_u8(low, vdupq_n_u8('}'));
        other = vorrq_u8(other, vorrq_u8(vceqq_u8(v, vdupq_n_u8('\\')), vceqzq_u8(v)));
    }
    return (struct masks){to_bits(quote[0], quote[1], quote[2], quote[3]), to_bits(open[0], open[1], open[2], open[3]),
                          to_bits(close[0], close[1], close[2], close[3]), vmaxvq_u8(other)};
}
#elif defined(__SSE2__)
#define HAVE_MASKS 1
static inline struct masks find_masks(const char *p)
{
    struct masks m = {0};
    for (int i = 0; i < 4; i++) {
        const __m128i v = _mm_loadu_si128((const __m128i *)p + i), low = _mm_or_si128(v, _mm_set1_epi8(0x20));
        const __m128i other = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')),
                                           _mm_cmpeq_epi8(v, _mm_setzero_si128()));
        m.quote |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('"'))) << 16 * i;
        m.open |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(low, _mm_set1_epi8('{'))) << 16 * i;
        m.close |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(low, _mm_set1_epi8('}'))) << 16 * i;
        m.other |= (uint64_t)_mm_movemask_epi8(other);
    }
    return m;
}
#else
#define HAVE_MASKS 0
#endif

#if HAVE_MASKS
/* Bit i: the number of bits up to i is odd. From the bits of the quotes: what is inside of strings. */
static inline uint64_t odd_before(uint64_t x)
{
    for (int shift = 1; shift < 64; shift *= 2)
        x ^= x << shift;
    return x;
}

/* Whole chunks as long as they have no escapes and the text does not end; *depth and s->p are where this stopped, which
 * is never inside of a string. */
static void close_fast(struct scan *s, int64_t *depth, size_t limit)
{
    const char *const from = s->p, *outside = from;
    int64_t level = *depth;
    uint64_t inside = 0;                /* all ones when a string started in the chunk before */
    for (const char *p = from; (size_t)(p - from) <= limit; p += CHUNK) {
        const struct masks m = find_masks(p);
        if (m.other)
            break;
        const uint64_t strings = odd_before(m.quote) ^ inside;
        uint64_t open = m.open & ~strings, close = m.close & ~strings;
        if (__builtin_popcountll(close) >= level) {
            for (uint64_t both = open | close; both; both &= both - 1) {
                level += both & -both & open ? 1 : -1;
                if (level == 0) {
                    s->p = p + __builtin_ctzll(both) + 1;
                    *depth = 0;
                    return;
                }
            }
        } else {
            level += __builtin_popcountll(open) - __builtin_popcountll(close);
        }
        inside = (uint64_t)((int64_t)strings >> 63);
        if (!inside) {
            outside = p + CHUNK;
            *depth = level;
        }
    }
    s->p = outside;
}
#endif

enum scan_result scan_close(struct scan *s, int64_t depth, size_t limit)
{
#if HAVE_MASKS
    if (!s->careful)
        close_fast(s, &depth, limit);
#endif
    return depth ? close_slowly(s, depth, limit) : SCAN_DONE;
}

enum scan_result scan_container(struct scan *s, struct span *out)
{
    enum { LONGEST_IN_A_HURRY = 1 << 18 };
    const char *from = s->p++;
    const enum scan_result r = scan_close(s, 1, LONGEST_IN_A_HURRY);
    if (r == SCAN_DONE)
        *out = (struct span){from, (uint32_t)(s->p - from), *from == '[' ? SPAN_ARRAY : SPAN_OBJECT,
                             (uint8_t)from[1] <= ' '};
    return r;
}
