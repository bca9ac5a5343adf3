/* Reading and diagnosing a trace while there is no memory: whatever allocation fails, it is done without, or the error says so, or who
 * ends the process is told. Nothing aborts or crashes. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/diagnosis.h"
#include "core/arena.h"
#include "core/fs.h"
#include "import/import.h"
#include "support/check.h"

/* A sanitizer's allocations are its own. */
#ifdef HONE_SANITIZED
#define PLACED 0
#else
#define PLACED 1
#endif

static int calls, fail_at;          /* allocations, counted from 1; 0: none fails */

#if PLACED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool fails(void) { return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == fail_at; }

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
#endif

enum { TOLD = 77, REFUSED = 78 };

static void end(void) { _exit(TOLD); }

static enum status read_and_diagnose(const void *text, size_t size, struct error *err)
{
    struct trace *t;
    struct diagnosis d;
    enum status st = import_read_memory(&t, "trace", text, size, err);
    if (st != OK)
        return st;
    st = diagnose(&d, &t, 1, &(struct diagnose_options){0}, err);
    if (st == OK)
        diagnosis_release(&d);
    trace_free(t);
    return st;
}

/* In a process of its own, with the nth allocation failing. */
static int status_at(const void *text, size_t size, int n)
{
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error err = {.text = ""};
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL);                   /* cmocka's own would say that a test failed */
        signal(SIGSEGV, SIG_DFL);
        arena_on_exhausted(end);
        calls = 0;
        fail_at = n;
        const enum status st = read_and_diagnose(text, size, &err);
        _exit(st == OK ? 0 : st == CANNOT && strstr(err.text, "memory") ? REFUSED : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_every_allocation(void **state)
{
    (void)state;
    char *text;
    size_t size;
    struct error err;
    assert_ok(fs_read(HONE_CONFIGS "/../tests/fuzz/seeds/diagnose/short.json", &text, &size, 0, &err), err);
    calls = 0;
    assert_ok(read_and_diagnose(text, size, &err), err);
    const int all = calls;
    int told = 0;
    for (int n = 1; n <= all; n++) {
        const int status = status_at(text, size, n);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code != 0 && code != TOLD && code != REFUSED)
            fail_msg("allocation %d of %d fails: signal %d, exit code %d", n, all, WIFSIGNALED(status) ? WTERMSIG(status) : 0, code);
        told += code != 0;
    }
    assert_true(!PLACED || (all > 50 && told > 50));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
