/* Kinds of characters, as regular expressions of tokenizers ask for them: \p{L}, \p{N}, \s. */
#ifndef HONE_DATA_UNICODE_H
#define HONE_DATA_UNICODE_H

#include <stdint.h>

enum unicode_kind { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE };

extern const uint8_t unicode_blocks[], unicode_kinds[];         /* unicode_table.c */

/* Of a code point below 0x110000. */
static inline enum unicode_kind unicode_kind_of(uint32_t c)
{
    const uint32_t at = (uint32_t)unicode_blocks[c >> 8] * 64 + (c & 255) / 4;
    return (enum unicode_kind)(unicode_kinds[at] >> 2 * (c & 3) & 3);
}

#endif
