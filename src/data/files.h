/* Files of text: which ones a path names, and their bytes, inflated where they are gzip. */
#ifndef HONE_DATA_FILES_H
#define HONE_DATA_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct file_list {
    char **paths;
    int n;
};

/* A file; a folder: all files below it but hidden ones; a pattern: all that it matches. In the order of their names. None is an error.
 * `key` is what asks for it, for messages. */
enum status file_list_init(struct file_list *l, const char *path, const char *key, struct error *err);
void file_list_release(struct file_list *l);

struct text_input;
enum status text_input_open(struct text_input **out, const char *path, struct error *err);
/* The next bytes, up to `room`; *n 0: the end. gzip that is damaged or cut off is an error. */
enum status text_input_read(struct text_input *in, char *to, size_t room, size_t *n, struct error *err);
size_t text_input_size(const struct text_input *in);        /* of the file as it lies */
size_t text_input_at(const struct text_input *in);          /* what of it was read */
bool text_input_is_gzip(const struct text_input *in);
void text_input_free(struct text_input *in);

#endif
