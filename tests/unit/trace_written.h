/* What a report of an imported trace says, as text and as parsed JSON. */
#ifndef HONE_TESTS_TRACE_WRITTEN_H
#define HONE_TESTS_TRACE_WRITTEN_H

#include "report_check.h"

typedef enum status trace_writer(const struct diagnosis *d, FILE *to, struct error *err);

static __attribute__((noinline, unused)) char *trace_written(trace_writer *write, const struct diagnosis *d)
{
    char *text = NULL;
    size_t size = 0;
    struct error err;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_ok(write(d, to, &err), err);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(strlen(text), size);
    return text;
}

static inline json_t *trace_json(const struct diagnosis *d)
{
    char *text = trace_written(report_trace_write_json, d);
    assert_int_equal(text[strlen(text) - 1], '\n');
    json_t *j = parsed(text);
    free(text);
    return j;
}

#endif
