/* What tests on data files share: a folder of their own, files in it, a config by hand, opening and being refused. */
#ifndef HONE_TESTS_DATA_FILES_H
#define HONE_TESTS_DATA_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/data_int.h"

static char folder[64];

static inline int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hone-test-data-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The path of a file in the test's folder; valid until the fourth call after this. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline const char *file_write(const char *name, const void *data, size_t bytes)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline struct config config_of(enum data_source source, const char *path, int64_t seq)
{
    struct config c = {.model = {.seq = seq}, .data = {.source = source}, .train = {.seed = 42}};
    if (path)
        snprintf(c.data.path, sizeof c.data.path, "%s", path);
    return c;
}

static inline struct dataset *open_good(const struct config *c)
{
    struct dataset *d = NULL;
    struct error err = {.text = ""};
    if (dataset_open(&d, c, &err) != OK)
        fail_msg("%s", err.text);
    return d;
}

/* Opening fails with BAD_INPUT and the message holds all of the words (up to a NULL). */
static inline void assert_refused(const struct config *c, ...)
{
    struct dataset *d = NULL;
    struct error err = {.text = ""};
    assert_int_equal(dataset_open(&d, c, &err), BAD_INPUT);
    assert_null(d);
    va_list words;
    va_start(words, c);
    for (const char *word; (word = va_arg(words, const char *));)
        if (!strstr(err.text, word))
            fail_msg("'%s' is not in: %s", word, err.text);
    va_end(words);
}

#endif
