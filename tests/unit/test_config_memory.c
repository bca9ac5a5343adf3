/* A config that is read while there is no memory: exit code 3 and the right words, whatever allocation of libyaml fails. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
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

/* libyaml itself forgets some bytes when one of its allocations fails. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
