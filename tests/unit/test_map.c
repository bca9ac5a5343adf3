/* Mapped files: reading them, and living on when they are cut while they are mapped. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/map.h"
#include "data_files.h"

/* Under a sanitizer: let SIGBUS end the process as it does without. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "handle_sigbus=0"; }

static void test_map(void **state)
{
    (void)state;
    struct map m = {.path = NULL};
    struct error err;
    char to[4] = "";
    const char *path = file_write("map", "abcdef", 6);
    assert_int_equal(map_init(&m, path, &err), OK);
    assert_int_equal(m.size, 6);
    assert_int_equal(map_read(&m, 2, to, 3, &err), OK);
    assert_string_equal(to, "cde");
    map_release(&m);
    assert_int_equal(map_init(&m, file_write("map-empty", "", 0), &err), OK);
    assert_int_equal(m.size, 0);
    assert_int_equal(map_read(&m, 0, to, 0, &err), OK);
    map_release(&m);
    assert_int_equal(map_init(&m, folder, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "is a folder"));
    assert_int_equal(map_init(&m, in_folder("nothing"), &err), BAD_INPUT);
    assert_non_null(strstr(err.text, strerror(ENOENT)));
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(map_init(&m, in_folder("pipe"), &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "not a regular file"));
}

static void test_map_truncated(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 4 * page;
    char *data = calloc(1, size), *to = malloc(size);
    const char *path = file_write("shrinks", data, size);
    struct map m;
    struct error err;
    assert_int_equal(map_init(&m, path, &err), OK);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(truncate(path, (off_t)page), 0);
        assert_int_equal(map_read(&m, 0, to, page, &err), OK);
        assert_int_equal(map_read(&m, 2 * page, to, page, &err), BAD_INPUT);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, "has been cut since"));
        assert_int_equal(truncate(path, (off_t)size), 0);
        assert_int_equal(map_read(&m, 2 * page, to, page, &err), OK);
    }
    map_release(&m);
    free(data);
    free(to);
}

static volatile sig_atomic_t faults_seen;
static sigjmp_buf after_fault;

static void count_fault(int number)
{
    (void)number;
    faults_seen++;
    siglongjmp(after_fault, 1);
}

static void touch(const unsigned char *p)
{
    if (*(const volatile unsigned char *)p == 1)
        abort();
}

/* In a child whose earlier handler is `earlier`: a fault that map_read has no part in. */
static int fault_elsewhere(void (*earlier)(int))
{
    struct map m;
    const char *path = in_folder("elsewhere");
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    signal(SIGBUS, earlier);
    if (map_init(&m, path, NULL) != OK || truncate(path, 0) != 0)
        return 10;
    if (sigsetjmp(after_fault, 1) == 0)
        touch(m.data + page);
    return faults_seen == 1 ? 0 : 11;
}

/* The handler is installed once in a process, so these run this program again: see main. */
static void test_map_hands_faults_on(void **state)
{
    (void)state;
    char zeros[65536] = "";
    static const char *const cases[] = {"handler", "default"};
    for (int i = 0; i < 2; i++) {
        const char *path = file_write("elsewhere", zeros, sizeof zeros);
        int status;
        const pid_t child = fork();
        if (child == 0) {
            setenv("HONE_TEST_FAULT", cases[i], 1);
            setenv("HONE_TEST_FOLDER", folder, 1);
            execl("/proc/self/exe", "test_map", (char *)NULL);
            _exit(12);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (i == 0)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
        unlink(path);
    }
}

int main(void)
{
    const char *fault = getenv("HONE_TEST_FAULT");
    if (fault) {
        snprintf(folder, sizeof folder, "%s", getenv("HONE_TEST_FOLDER"));
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        _exit(fault_elsewhere(strcmp(fault, "handler") == 0 ? count_fault : SIG_DFL));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_map_truncated),
        cmocka_unit_test(test_map_hands_faults_on),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
