/* UTF-8 both ways; see utf8.h. */
#include "data/utf8.h"

bool utf8_valid(uint32_t code_point)
{
    return code_point < UTF8_CODE_POINTS && (code_point < 0xD800 || code_point > 0xDFFF);
}

/* The length that a first byte announces; 0 for a byte that cannot come first. */
static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

size_t utf8_decode(const char *text, size_t length, uint32_t *code_point)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    const size_t n = length ? length_of(s[0]) : 0;
    if (n == 0 || n > length)
        return 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    if (c < smallest[n] || !utf8_valid(c))
        return 0;
    *code_point = c;
    return n;
}

size_t utf8_encode(uint32_t code_point, char out[5])
{
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    const size_t n = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code_point >>= 6)
        out[i] = (char)(0x80 | (code_point & 0x3F));
    out[0] = (char)(lead[n] | code_point);
    out[n] = '\0';
    return n;
}
