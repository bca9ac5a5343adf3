/* How many columns of a terminal text takes: letters of East Asia and pictures have two, marks on letters none (columns_table.c). wcwidth would ask
 * the locale, which may know no UTF-8. */
#include <stdint.h>

#include "report/report_int.h"

/* The first range that does not end before the character. */
static const struct columns_range *range_at(uint32_t c)
{
    size_t first = 0, n = columns_ranges_n;
    while (n > 0) {
        const size_t half = n / 2;
        const bool before = columns_ranges[first + half].last < c;
        first += before ? half + 1 : 0;
        n = before ? n - half - 1 : half;
    }
    return first < columns_ranges_n ? &columns_ranges[first] : NULL;
}

static size_t columns_of(uint32_t c)
{
    const struct columns_range *r = c < 0x80 ? NULL : range_at(c);
    return r && r->first <= c ? r->columns : 1;
}

static bool goes_on(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

static uint32_t next_code(const char **clean)
{
    const char *c = *clean;
    const unsigned char first = (unsigned char)*c++;
    uint32_t code = first < 0x80 ? first : first < 0xE0 ? first & 0x1Fu : first < 0xF0 ? first & 0x0Fu : first & 0x07u;
    for (; goes_on(*c); c++)
        code = code << 6 | ((unsigned char)*c & 0x3Fu);
    *clean = c;
    return code;
}

size_t report_next_columns(const char **clean)
{
    const size_t n = columns_of(next_code(clean));
    for (const char *next = *clean; *next && columns_of(next_code(&next)) == 0;)
        *clean = next;
    return n;
}

size_t report_columns(const char *clean)
{
    size_t n = 0;
    while (*clean)
        n += report_next_columns(&clean);
    return n;
}

const char *report_within(const char *clean, size_t columns)
{
    for (const char *next = clean; *clean; clean = next) {
        const size_t n = report_next_columns(&next);
        if (n > columns)
            break;
        columns -= n;
    }
    return clean;
}
