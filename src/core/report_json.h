/* The report.json that an earlier command wrote, read again. */
#ifndef HONE_CORE_REPORT_JSON_H
#define HONE_CORE_REPORT_JSON_H

#include <jansson.h>

#include "core/error.h"

/* Reads the report.json at `path`, which must be of the kind ("profile") that `hone COMMAND` writes. What *out is then is the caller's:
 * json_decref. */
enum status report_json_read(json_t **out, const char *path, const char *kind, const char *command, struct error *err);

#endif
