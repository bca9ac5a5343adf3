/* JSON that is always valid: no NaN, no broken UTF-8, nothing missing because memory ran out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clean.h"
#include "report/report_int.h"

enum { NAME_BYTES = 4096 };

json_t *report_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *report_words(const char *text)
{
    if (!text)
        return json_null();
    char *t = report_utf8(text);
    json_t *j = json_string(t);
    free(t);
    return j;
}

json_t *report_name(const char *text)
{
    if (!text || strlen(text) <= NAME_BYTES)
        return report_words(text);
    char *cut = xcalloc(NAME_BYTES + sizeof "…", 1);
    memcpy(cut, text, NAME_BYTES);
    size_t n = NAME_BYTES;
    while (n > NAME_BYTES - 3 && ((unsigned char)text[n] & 0xC0) == 0x80)      /* not in the middle of a character */
        n--;
    memcpy(cut + n, "…", sizeof "…");
    json_t *j = report_words(cut);
    free(cut);
    return j;
}

json_t *report_merge(json_t *object, json_t *more)
{
    if (!object || !more || json_object_update(object, more) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(more);
    return object;
}

enum status report_put_json(json_t *document, size_t flags, FILE *to, struct error *err)
{
    if (!document)
        return error_set(err, CANNOT, "out of memory for the report's JSON");
    const int rc = text_put_json(to, document, flags | JSON_REAL_PRECISION(12));
    json_decref(document);
    if (rc != 0 && !ferror(to))
        return error_set(err, CANNOT, "out of memory for the report's JSON");
    return OK; /* a stream error is the caller's to see */
}

json_t *report_array(json_t *array, json_t *item)
{
    if (!array || !item || json_array_append_new(array, item) != 0) {
        if (!array)
            json_decref(item);
        json_decref(array);
        return NULL;
    }
    return array;
}
