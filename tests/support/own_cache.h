/* A cache folder of its own for every test, and a process that knows nothing yet. Test set-up and tear-down. */
#ifndef HONE_TESTS_OWN_CACHE_H
#define HONE_TESTS_OWN_CACHE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/choices_int.h"
#include "core/fs.h"
#include "support/check.h"

static char own_cache[64];          /* $XDG_CACHE_HOME */

static inline int make_own_cache(void **state)
{
    (void)state;
    strcpy(own_cache, "/tmp/hone-cache-XXXXXX");
    if (!mkdtemp(own_cache))
        return -1;
    unsetenv("HOME");
    choices_forget();
    return setenv("XDG_CACHE_HOME", own_cache, 1);
}

static inline int remove_own_cache(void **state)
{
    (void)state;
    choices_forget();
    return fs_remove_tree(own_cache, NULL) == OK ? 0 : -1;
}

static inline const char *choices_path(void)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/hone/choices.json", own_cache);
    return path;
}

#define TEST_WITH_CACHE(name) cmocka_unit_test_setup_teardown(name, make_own_cache, remove_own_cache)

#endif
