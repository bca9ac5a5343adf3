/* Text from elsewhere (names of files, values of a config, tensors' names, what a model writes) made safe for a terminal.
 *
 * What could steer a terminal or lie about the order of what is shown is never passed on: C0 and DEL, C1 (U+009B is an
 * escape sequence's start), line and paragraph separators, marks that turn the direction around (U+202A to U+202E, U+2066
 * to U+2069), and bytes that are not UTF-8. This is the only place that knows which these are. */
#ifndef HONE_CORE_CLEAN_H
#define HONE_CORE_CLEAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Each of those as U+FFFD, white space as a space: one line. NULL is "". Owned by the caller. */
char *text_clean(const char *text);
/* The same into a buffer, without memory of its own; what has no room is left out, by whole characters. */
void text_clean_to(char *to, size_t size, const char *text);
/* Valid UTF-8, but what steers stays: for JSON, where it is escaped when it is written. Owned by the caller. */
char *text_utf8(const char *text);
bool text_is_utf8(const char *text);
void text_put(FILE *to, const char *text);              /* cleaned */

/* Writes a document so that a terminal shows it as it is: what steers becomes \uXXXX. Returns 0, or -1 without memory or on
 * a stream that fails. */
int text_put_json(FILE *to, const json_t *document, size_t flags);

/* Text that comes in pieces, which may end in the middle of a character. Line feeds and tabs stay. */
struct text_stream {
    FILE *to;
    char held[8];           /* the beginning of a character */
    size_t n;
};
void text_stream_put(struct text_stream *s, const char *piece, size_t length);
void text_stream_end(struct text_stream *s);            /* what is held was no character */

#endif
