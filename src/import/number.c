/* Numbers as text: decimal digits with point and exponent, exactly, whatever the type they were written in. */
#include <math.h>
#include <stdlib.h>

#include "import/import_int.h"

/* Sums and differences of two times stay inside of int64. */
static const int64_t latest_ns = INT64_MAX / 2, earliest_ns = -(INT64_MAX / 4);

enum { DIGITS = 19 };           /* that are kept; they fit uint64 */

struct decimal { uint64_t digits; int exponent; bool negative; };      /* digits * 10^exponent */

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *read_exponent(const char *p, const char *end, int *exponent)
{
    const bool negative = p < end && *p == '-';
    int value = 0;
    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && is_digit(*p); p++)
        value = value < 10000 ? 10 * value + (*p - '0') : value;
    *exponent += negative ? -value : value;
    return p;
}

/* Digits with a point; those past the 19th only count for the size. */
static inline const char *read_digits(const char *p, const char *end, struct decimal *d)
{
    bool fraction = false;
    for (int kept = 0; p < end; p++) {
        if (*p == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!is_digit(*p))
            break;
        const bool fits = kept < DIGITS;
        if (fits)
            d->digits = 10 * d->digits + (uint64_t)(*p - '0');
        kept += d->digits != 0;
        d->exponent += (fits ? 0 : 1) - (fraction ? 1 : 0);
    }
    return p;
}

static bool read_decimal(const struct span *s, struct decimal *d)
{
    const char *p = s->at, *end = p + s->size;
    *d = (struct decimal){0};
    if (s->type != SPAN_SCALAR && s->type != SPAN_STRING)
        return false;
    while (p < end && (*p == ' ' || *p == '+'))
        p++;
    d->negative = p < end && *p == '-';
    p += d->negative;
    if (p == end || !(is_digit(*p) || (*p == '.' && p + 1 < end && is_digit(p[1]))))
        return false;
    p = read_digits(p, end, d);
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p + 1, end, &d->exponent);
    return p == end;
}

static int64_t scale(struct decimal d, int shift, int64_t low, int64_t high)
{
    uint64_t digits = d.digits;
    int e = d.exponent + shift;
    for (; e < 0 && digits; e++)
        digits /= 10;
    for (; e > 0 && digits && digits <= INT64_MAX / 10; e--)
        digits *= 10;
    if ((e > 0 && digits) || digits > INT64_MAX)
        return d.negative ? low : high;
    const int64_t v = d.negative ? -(int64_t)digits : (int64_t)digits;
    return v < low ? low : v > high ? high : v;
}

/* The common case of a time: 1790857026000123.456 with up to 16 digits in front and 3 behind the point. */
static inline bool read_time(const struct span *s, int64_t *ns)
{
    static const unsigned power[] = {1000, 100, 10, 1};
    const char *p = s->at, *end = p + s->size;
    uint64_t v = 0;
    if (s->size > 20)
        return false;
    for (; p < end && is_digit(*p); p++)
        v = 10 * v + (uint64_t)(*p - '0');
    const char *point = p;
    if (point == s->at || point - s->at > 16)
        return false;
    if (p < end && *p == '.')
        for (p++; p < end && is_digit(*p); p++)
            v = 10 * v + (uint64_t)(*p - '0');
    const ptrdiff_t decimals = p == point ? 0 : p - point - 1;
    if (p < end || decimals > 3)
        return false;
    v *= power[decimals];
    *ns = v > (uint64_t)latest_ns ? latest_ns : (int64_t)v;
    return true;
}

bool number_ns_fits(int64_t ns) { return ns > earliest_ns && ns < latest_ns; }

bool number_ns(const struct span *s, int64_t *ns)
{
    struct decimal d;
    if (read_time(s, ns))
        return true;
    if (!read_decimal(s, &d))
        return false;
    *ns = scale(d, 3, earliest_ns, latest_ns);
    return true;
}

static bool read_hex(const struct span *s, int64_t *value)
{
    uint64_t v = 0;
    if (s->size < 3 || s->at[0] != '0' || (s->at[1] | 0x20) != 'x')
        return false;
    for (uint32_t i = 2; i < s->size; i++) {
        const char c = s->at[i], low = (char)(c | 0x20);
        if (!is_digit(c) && !(low >= 'a' && low <= 'f'))
            return false;
        v = v >> 59 ? INT64_MAX : 16 * v + (uint64_t)(is_digit(c) ? c - '0' : low - 'a' + 10);
    }
    *value = (int64_t)v;
    return true;
}

/* The common case: a few digits and nothing else. */
static inline bool read_plain(const struct span *s, int64_t *value)
{
    int64_t v = 0;
    if (s->size == 0 || s->size >= DIGITS)
        return false;
    for (uint32_t i = 0; i < s->size; i++) {
        if (!is_digit(s->at[i]))
            return false;
        v = 10 * v + (s->at[i] - '0');
    }
    *value = v;
    return true;
}

bool number_int(const struct span *s, int64_t *value)
{
    struct decimal d;
    if (s->type != SPAN_SCALAR && s->type != SPAN_STRING)
        return false;
    if (read_plain(s, value) || read_hex(s, value))
        return true;
    if (!read_decimal(s, &d))
        return false;
    *value = scale(d, 0, INT64_MIN, INT64_MAX);
    return true;
}

bool number_real(const struct span *s, double *value)
{
    struct decimal d;
    if (!read_decimal(s, &d))
        return false;
    const double v = (double)d.digits * pow(10, d.exponent);
    *value = d.negative ? -v : v;
    return isfinite(v);
}

int32_t number_int32(const struct span *s, int32_t otherwise)
{
    int64_t v;
    if (!number_int(s, &v))
        return otherwise;
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

int number_triple(const struct span *array, int32_t values[3])
{
    const char *p = array->at, *end = p + array->size;
    int n = 0;
    while (array->type == SPAN_ARRAY && p < end && n < 3) {
        const char *from = p;
        while (p < end && (scan_word[(uint8_t)*p]))
            p++;
        const struct span part = {from, (uint32_t)(p - from), SPAN_SCALAR, false};
        if (part.size)
            values[n++] = number_int32(&part, 0);
        p += part.size == 0;
    }
    return n;
}
