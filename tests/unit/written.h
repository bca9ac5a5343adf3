/* Writers of documents, as tests see them. */
#ifndef HONE_TESTS_WRITTEN_H
#define HONE_TESTS_WRITTEN_H

#include <jansson.h>
#include <stdio.h>

#include "support/check.h"

typedef enum status document_writer(const json_t *document, FILE *to, struct error *err);

/* What a writer makes of a document; the caller frees it. */
static __attribute__((noinline, unused)) char *text_of(document_writer *write, const json_t *document)
{
    char *text = NULL;
    size_t size = 0;
    struct error err;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_ok(write(document, to, &err), err);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(strlen(text), size);
    return text;
}

#endif
