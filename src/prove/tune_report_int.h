/* Inside what reports on tune: text as JSON, and the difference of two configs. */
#ifndef HONE_PROVE_TUNE_REPORT_INT_H
#define HONE_PROVE_TUNE_REPORT_INT_H

#include <jansson.h>

#include "config/config.h"

/* A string; bytes that are not ASCII become question marks where they are not UTF-8, and NULL is null. */
json_t *tune_text(const char *text);

/* A list of {key, before, after}; NULL: no memory. */
json_t *tune_changes(const struct config *before, const struct config *after);

#endif
