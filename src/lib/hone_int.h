/* Inside libhone (include/hone.h): how results of the rooms become those of the library. */
#ifndef HONE_LIB_HONE_INT_H
#define HONE_LIB_HONE_INT_H

#include <hone.h>
#include <locale.h>
#include <stdio.h>

#include "config/config.h"
#include "core/error.h"

struct hone_config {
    struct config c;
};

/* Keeps the error of this thread where there is one, and returns it as the library's status. */
hone_status hone_end(enum status st, const struct error *err);
/* Of an argument that must be given; and of n that must be, of which each is a `what`: HONE_OK where none lacks. */
hone_status hone_missing(const char *what);
hone_status hone_missing_in(const char *what, const char *const *list, int n);

/* Numbers are read and written with a point, whatever the locale of the program is. Every function of hone.h that reads or writes one, or calls what does, goes
 * into the C locale and comes back; a callback of the program runs in the program's own. Threads of ours write no fractions. */
locale_t hone_enter(void);              /* what hone_leave wants */
void hone_leave(locale_t theirs);
locale_t hone_call_out(void);           /* before a callback; behind it hone_leave of what it gave */

/* A text that `write` writes of `what`, for the caller of the library. */
typedef enum status hone_write_fn(const void *what, FILE *to, struct error *err);
hone_status hone_text(char **out, hone_write_fn *write, const void *what);

/* Calls that compute come one after the other; a callback may make them, too. They enter and leave by that. */
locale_t hone_compute_begin(void);
void hone_compute_end(locale_t theirs);

#endif
