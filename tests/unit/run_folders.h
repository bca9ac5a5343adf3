/* Folders of runs, made by hand. */
#ifndef HONE_TESTS_RUN_FOLDERS_H
#define HONE_TESTS_RUN_FOLDERS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "runs/runs.h"
#include "support/check.h"

/* A folder of its own for each test. */
static char root[] = "/tmp/hone-test-runs-XXXXXX";

static inline int make_root(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

/* root/NAME; valid until the fourth call after this. */
static inline const char *in_root(const char *name)
{
    static char paths[4][256];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static inline void put_text(const char *name, const char *file, const char *text, size_t size)
{
    char path[512];
    struct error err;
    assert_ok(fs_make_dirs(in_root(name), &err), err);
    snprintf(path, sizeof path, "%s/%s", in_root(name), file);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    assert_int_equal(fwrite(text, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

static inline void put_file(const char *name, const char *file, const char *text) { put_text(name, file, text, strlen(text)); }

static inline void put_config(const char *name, const char *text)
{
    struct config *c = calloc(1, sizeof *c);
    struct error err;
    assert_non_null(c);
    assert_ok(config_parse(c, "c.yaml", text, strlen(text), NULL, 0, &err), err);
    char *whole = config_text(c);
    put_file(name, "config.yaml", whole);
    free(whole);
    free(c);
}

#endif
