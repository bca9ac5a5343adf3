/* Streams of gzip; see gunzip.c. */
#ifndef HONE_CORE_GUNZIP_H
#define HONE_CORE_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

struct gunzip;
struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g);
/* Inflates from in to out until one of them is used up; returns the bytes written. *taken is what was read of in.
 * After damage or the end nothing more is written. */
size_t gunzip_write(struct gunzip *g, const void *in, size_t size, size_t *taken, void *out, size_t room);
bool gunzip_whole(const struct gunzip *g);      /* at the end of a member */
const char *gunzip_damage(const struct gunzip *g);      /* or NULL */

#endif
