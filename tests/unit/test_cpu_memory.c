/* The account of memory that all CPU backends share: what one was promised is not there for another. */
#include "ops/cpu/cpu.h"
#include "support/models.h"
#include "support/own_machine.h"

enum { MB = 1 << 20 };

/* Two runs of `hone verify` are two backends. */
static void test_promised_once(void **state)
{
    (void)state;
    machine_has_free(100 * MB);
    struct backend *a = new_backend(1, false), *b = new_backend(1, false);
    char *mine = a->alloc(a, 60 * MB);
    assert_non_null(mine);
    assert_true(cpu_available_bytes() == 40 * MB);
    assert_null(b->alloc(b, 60 * MB));
    void *small = b->alloc(b, 40 * MB);
    assert_non_null(small);
    assert_true(cpu_available_bytes() == 0);
    assert_null(a->alloc(a, 1));
    b->free_memory(b, small, 40 * MB);
    a->free_memory(a, mine, 60 * MB);
    assert_true(cpu_available_bytes() == 100 * MB);
    b->free(b);
    a->free(a);
}

/* What is touched has left the system's count of what is free, and is not taken off a second time. */
static void test_touched_memory_counts_once(void **state)
{
    (void)state;
    machine_has_free(100 * MB);
    struct backend *a = new_backend(1, false);
    char *mine = a->alloc(a, 64 * MB);
    assert_non_null(mine);
    memset(mine, 1, 32 * MB);
    machine_has_free(68 * MB);
    assert_true(cpu_available_bytes() == 36 * MB);
    memset(mine, 1, 64 * MB);
    machine_has_free(36 * MB);
    assert_true(cpu_available_bytes() == 36 * MB);
    a->free_memory(a, mine, 64 * MB);
    a->free(a);
}

/* Asked when memory is asked for, not when the backend was made. */
static void test_free_memory_changes(void **state)
{
    (void)state;
    machine_has_free(10 * MB);
    struct backend *a = new_backend(1, false);
    assert_null(a->alloc(a, 20 * MB));
    machine_has_free(30 * MB);
    void *mine = a->alloc(a, 20 * MB);
    assert_non_null(mine);
    a->free_memory(a, mine, 20 * MB);
    machine_has_free(5 * MB);
    assert_null(a->alloc(a, 20 * MB));
    a->free(a);
}

static void test_nothing(void **state)
{
    (void)state;
    machine_has_free(MB);
    struct backend *a = new_backend(1, false);
    void *none = a->alloc(a, 0);
    assert_non_null(none);
    a->free_memory(a, none, 0);
    a->free_memory(a, NULL, 5);
    assert_true(cpu_available_bytes() == MB);
    a->free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_MACHINE(test_promised_once),
        TEST_WITH_MACHINE(test_touched_memory_counts_once),
        TEST_WITH_MACHINE(test_free_memory_changes),
        TEST_WITH_MACHINE(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
