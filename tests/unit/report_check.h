/* Shared by the report's tests: what a writer writes, as text and as parsed JSON, and values found by their path. */
#ifndef HONE_TESTS_REPORT_CHECK_H
#define HONE_TESTS_REPORT_CHECK_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report.h"
#include "support/check.h"

typedef enum status writer(const struct profile *p, FILE *to, struct error *err);

/* What a writer writes, with a NUL after it; the caller frees it. (Inlined, GCC takes what the stream puts into `text` for a
 * pointer to `text`.) */
static __attribute__((noinline)) char *written(writer *write, const struct profile *p)
{
    char *text = NULL;
    size_t size = 0;
    struct error err;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_ok(write(p, to, &err), err);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(strlen(text), size);
    return text;
}

static inline json_t *parsed(const char *text)
{
    json_error_t err;
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &err);
    if (!j)
        fail_msg("not JSON: %s at line %d", err.text, err.line);
    return j;
}

static inline json_t *document(writer *write, const struct profile *p)
{
    char *text = written(write, p);
    assert_int_equal(text[strlen(text) - 1], '\n');
    json_t *j = parsed(text);
    free(text);
    return j;
}

/* The value at a path like "step.median_us" or "ops.3.name". */
static inline json_t *at(json_t *j, const char *path)
{
    char copy[128], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (const char *key; j && (key = strsep(&rest, "."));)
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(key)) : json_object_get(j, key);
    if (!j)
        fail_msg("there is no '%s'", path);
    return j;
}

static inline double number(json_t *j, const char *path)
{
    if (!json_is_number(at(j, path)))
        fail_msg("'%s' is no number", path);
    return json_number_value(at(j, path));
}

static inline const char *words(json_t *j, const char *path)
{
    if (!json_is_string(at(j, path)))
        fail_msg("'%s' is no string", path);
    return json_string_value(at(j, path));
}

static inline void assert_number(json_t *j, const char *path, double should)
{
    assert_near(number(j, path), should, fabs(should) * 1e-9 + 1e-12, path);
}

static inline double sum(json_t *list, const char *key)
{
    double s = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        s += number(json_array_get(list, i), key);
    return s;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %.3000s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
    const char *found = strstr(text, part);
    if (found)
        fail_msg("'%s' is in the text: %.300s", part, found);
}

static inline size_t occurrences(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

#endif
