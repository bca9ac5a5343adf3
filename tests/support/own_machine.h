/* A machine of a test's own: a folder that stands before /proc and /sys. Test set-up and tear-down. */
#ifndef HONE_TESTS_OWN_MACHINE_H
#define HONE_TESTS_OWN_MACHINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "ops/cpu/cpu_int.h"
#include "support/check.h"

static char own_machine[64];

/* The file, below the folder, says this. */
static inline void machine_says(const char *path, const char *text)
{
    char full[512];
    struct error err;
    snprintf(full, sizeof full, "%s%s", own_machine, path);
    char *slash = strrchr(full, '/');
    *slash = '\0';
    assert_ok(fs_make_dirs(full, &err), err);
    *slash = '/';
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* So much memory is free from now on, for backends too. */
static inline void machine_has_free(size_t bytes)
{
    char text[96];
    snprintf(text, sizeof text, "MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: %zu kB\n", bytes / 1024);
    machine_says("/proc/meminfo", text);
}

static inline int make_own_machine(void **state)
{
    (void)state;
    strcpy(own_machine, "/tmp/hone-machine-XXXXXX");
    if (!mkdtemp(own_machine))
        return -1;
    cpu_memory_root(own_machine);
    return 0;
}

static inline int remove_own_machine(void **state)
{
    (void)state;
    cpu_memory_root(NULL);
    return fs_remove_tree(own_machine, NULL) == OK ? 0 : -1;
}

#define TEST_WITH_MACHINE(name) cmocka_unit_test_setup_teardown(name, make_own_machine, remove_own_machine)

#endif
