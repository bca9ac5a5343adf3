/* The text of the peaks' cache file. It is whatever lies there: nothing in it is believed before it is checked. */
#ifndef HONE_CORE_PEAKS_INT_H
#define HONE_CORE_PEAKS_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/peaks.h"

/* True when the text is a cache with a sound entry for the machine and thread count; else *out is untouched. */
bool peaks_parse(struct peaks *out, const char *text, size_t size, const char *machine, int threads);
/* The text of a cache, for free(), with p, raised to the entry of its machine and threads in `text` where there is one, and the sound
 * entries for others; `text` may be damaged or empty. NULL when p itself is not sound: numbers that are not finite, no peak, a machine's name that is not UTF-8. */
char *peaks_print(const struct peaks *p, const char *text, size_t size);
/* The text without the entries of one machine. */
char *peaks_print_without(const char *machine, const char *text, size_t size);

#endif
