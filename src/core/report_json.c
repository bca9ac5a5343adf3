/* Reads report.json; see report_json.h. */
#include "core/report_json.h"

#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/json_memory.h"

enum { BYTES_MOST = 1 << 28 };

static bool is_word(const json_t *j, const char *key, const char *word)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text && !strcmp(text, word);
}

static enum status load(json_t **out, const char *path, struct error *err)
{
    char *text;
    size_t size;
    json_error_t why;
    bool no_memory;
    const enum status st = fs_read(path, &text, &size, BYTES_MOST, err);
    if (st != OK)
        return st;
    *out = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory);
    free(text);
    if (no_memory)
        return error_set(err, CANNOT, "out of memory for reading '%.300s'", path);
    return *out ? OK : error_set(err, BAD_INPUT, "'%.300s' line %d: not JSON: %s", path, why.line, why.text);
}

enum status report_json_read(json_t **out, const char *path, const char *kind, const char *command, struct error *err)
{
    json_t *j = NULL;
    const enum status st = load(&j, path, err);
    if (st != OK)
        return st;
    if (!is_word(j, "schema", "hone-report") || !is_word(j, "kind", kind)) {
        json_decref(j);
        return error_set(err, BAD_INPUT, "'%.300s' is no report of `hone %s`; expected the report.json that its --out writes", path, command);
    }
    *out = j;
    return OK;
}
