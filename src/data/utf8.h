/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef HONE_DATA_UTF8_H
#define HONE_DATA_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_CODE_POINTS = 0x110000 };

/* Reads one code point from text[0..length). Returns how many bytes it took, or 0 if they are not valid UTF-8. */
size_t utf8_decode(const char *text, size_t length, uint32_t *code_point);
/* Writes a valid code point with a NUL after it and returns its length, 1 to 4. */
size_t utf8_encode(uint32_t code_point, char out[5]);
bool utf8_valid(uint32_t code_point);

#endif
