/* How many columns of a terminal text takes: letters of East Asia and pictures have two. wcwidth would ask the locale, which may know no UTF-8. */
#include <stdint.h>

#include "report/report_int.h"

static const struct { uint32_t first, last; } wide[] = {        /* the blocks of Unicode that are, as a whole or nearly */
    {0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA000, 0xA4CF}, {0xA960, 0xA97F},
    {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

static bool is_wide(uint32_t c)
{
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (c >= wide[i].first && c <= wide[i].last)
            return true;
    return false;
}

static bool goes_on(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

size_t report_next_columns(const char **clean)
{
    const char *c = *clean;
    const unsigned char first = (unsigned char)*c++;
    uint32_t code = first < 0x80 ? first : first < 0xE0 ? first & 0x1Fu : first < 0xF0 ? first & 0x0Fu : first & 0x07u;
    for (; goes_on(*c); c++)
        code = code << 6 | ((unsigned char)*c & 0x3Fu);
    *clean = c;
    return is_wide(code) ? 2 : 1;
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
