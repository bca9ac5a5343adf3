/* Inside libhone (include/hone.h): how results of the rooms become those of the library. */
#ifndef HONE_LIB_HONE_INT_H
#define HONE_LIB_HONE_INT_H

#include <hone.h>
#include <stdio.h>

#include "config/config.h"
#include "core/error.h"

struct hone_config {
    struct config c;
};

/* Keeps the error of this thread where there is one, and returns it as the library's status. */
hone_status hone_end(enum status st, const struct error *err);
/* Of an argument that must be given. */
hone_status hone_missing(const char *what);

/* A text that `write` writes of `what`, for the caller of the library. */
typedef enum status hone_write_fn(const void *what, FILE *to, struct error *err);
hone_status hone_text(char **out, hone_write_fn *write, const void *what);

/* Calls that compute come one after the other; a callback may make them, too. */
void hone_compute_begin(void);
void hone_compute_end(void);

#endif
