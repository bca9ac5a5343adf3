/* Without memory for bookkeeping the library neither prints nor exits: it calls who said that it would. And what errors say of
 * memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"
#include "support/check.h"

/* Under a sanitizer: let absurd sizes fail as they do without. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

enum { TOLD = 77 };

static void end(void) { _exit(TOLD); }

static void by_calloc(void) { xcalloc(SIZE_MAX / 4, 2); }
static void by_realloc(void) { xrealloc(NULL, SIZE_MAX / 2); }
static void by_arena(void)
{
    struct arena a = {0};
    arena_alloc(&a, SIZE_MAX / 2);
}

/* Runs it in a child whose output goes to a pipe; returns the child's status. Sanitizers may have something to say; hone has not. */
static int run(void (*ask)(void), void (*told)(void))
{
    char text[4096];
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        arena_on_exhausted(told);
        ask();
        _exit(0);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[n > 0 ? n : 0] = '\0';
    assert_null(strstr(text, "hone:"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_who_is_told(void **state)
{
    (void)state;
    void (*const ways[])(void) = {by_calloc, by_realloc, by_arena};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const int status = run(ways[i], end);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TOLD);
    }
}

/* Nobody said what to do, or who did returns all the same. */
static void returns(void) {}

static void test_nobody_is_told(void **state)
{
    (void)state;
    void (*const told[])(void) = {NULL, returns};
    for (int i = 0; i < 2; i++) {
        const int status = run(by_calloc, told[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* Advice comes from who knows what was too large: buffers of a trace have no batch size. */
static void test_what_errors_say(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_no_memory(&err, "reading a trace", 12345678), CANNOT);
    assert_string_equal(err.text, "out of memory: reading a trace needs 12.3 MB");
    assert_true(err.no_memory);
    assert_int_equal(error_add(&err, "; try %s", "a shorter one"), CANNOT);
    assert_string_equal(err.text, "out of memory: reading a trace needs 12.3 MB; try a shorter one");
    error_no_memory(&err, "the list of shards", 0);
    assert_string_equal(err.text, "out of memory for the list of shards");
    error_set(&err, BAD_INPUT, "something else");
    assert_false(err.no_memory);
    assert_int_equal(error_no_memory(NULL, "nobody", 1), CANNOT);
    for (int i = 0; i < 2000; i++)
        error_add(&err, "%d", i);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_told),
        cmocka_unit_test(test_nobody_is_told),
        cmocka_unit_test(test_what_errors_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
