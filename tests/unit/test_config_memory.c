/* A config that is read while there is no memory: exit code 3 and the right words, whatever allocation of libyaml fails. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "core/arena.h"
#include "support/check.h"

/* libyaml's own allocation functions: these stand in front of them. */
void *yaml_malloc(size_t size);
void *yaml_realloc(void *old, size_t size);
char *yaml_strdup(const char *text);

static int calls, fail_at;          /* counted from 1; 0: none */

static bool fails(void) { return ++calls == fail_at; }

void *yaml_malloc(size_t size) { return fails() ? NULL : malloc(size ? size : 1); }
void *yaml_realloc(void *old, size_t size) { return fails() ? NULL : realloc(old, size ? size : 1); }
char *yaml_strdup(const char *text) { return !text || fails() ? NULL : strdup(text); }

/* libyaml itself forgets some bytes when one of its allocations fails. It has no frame pointers on x86-64: its callers are found the slow way. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "fast_unwind_on_malloc=0"; }
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:yaml_parser_load\n"; }

static const char text[] = "%YAML 1.1\n---\nname: &a \"m\\n\"\nmodel: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
                           "# words\ntrain:\n  steps: 20\noptimize: {passes: [fuse-qkv, flash-attention]}\n";

static void read_all(const char *yaml, enum status whole)
{
    struct config c;
    struct error err;
    int failed = 0;
    fail_at = calls = 0;
    assert_int_equal(config_parse(&c, "t.yaml", yaml, strlen(yaml), NULL, 0, &err), whole);
    const int most = calls;
    assert_true(most > 20);                     /* the calls are really counted */
    for (int n = 1; n <= most; n++) {
        calls = 0;
        fail_at = n;
        const enum status st = config_parse(&c, "t.yaml", yaml, strlen(yaml), NULL, 0, &err);
        fail_at = 0;
        if (st == whole && st == OK)
            continue;                           /* it could do without */
        if (st != CANNOT)
            fail_msg("allocation %d of %d: status %d: %s", n, most, st, err.text);
        assert_says(&err, "out of memory", "t.yaml", NULL);
        failed++;
    }
    assert_true(failed > most / 2);
}

static void test_every_allocation(void **state)
{
    (void)state;
    read_all(text, BAD_INPUT);                  /* name is no key: that is said where there is memory */
    read_all(strstr(text, "model"), OK);
}

/* ---- two configs side by side ---- */

enum { TOLD = 77 };

static void end(void) { _exit(TOLD); }

/* Stands in front of libc's. */
static int streams, no_stream;      /* counted from 1; 0: none fails */

FILE *fmemopen(void *out, size_t size, const char *mode)
{
    typedef FILE *open_fn(void *out, size_t size, const char *mode);
    if (++streams != no_stream)
        return ((open_fn *)dlsym(RTLD_NEXT, "fmemopen"))(out, size, mode);
    errno = ENOMEM;
    return NULL;
}

/* A value that cannot be printed is not taken for another one: who ends the process is told. */
static void test_no_difference_is_made_up(void **state)
{
    (void)state;
    struct config c;
    struct config_difference d;
    struct error err;
    int at = 0;
    fail_at = 0;
    const char *yaml = strstr(text, "model");
    assert_ok(config_parse(&c, "t.yaml", yaml, strlen(yaml), NULL, 0, &err), err);
    no_stream = streams = 0;
    assert_false(config_differ(&d, &c, &c, &at));
    assert_true(streams > 20);
    for (int n = 1; n <= 8; n++) {
        int status;
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            arena_on_exhausted(end);
            streams = at = 0;
            no_stream = n;
            _exit(config_differ(&d, &c, &c, &at) ? 1 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), TOLD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_no_difference_is_made_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
