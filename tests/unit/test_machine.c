/* What this machine is stays the same while a process runs, also when no file can be opened any more; and asking loads no libraries. */
#include <dlfcn.h>
#include <sys/resource.h>

#include "ops/cpu/cpu.h"
#include "support/check.h"

static int plugins;

void *dlopen(const char *path, int flags)
{
    void *(*const real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    plugins += path && strstr(path, "/hwloc_") != NULL;
    return real(path, flags);
}

static void test_same_without_files(void **state)
{
    (void)state;
    struct cpu_machine first, second;
    struct rlimit before, none;
    cpu_machine_read(&first);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    cpu_machine_read(&second);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(*first.model);
    assert_string_equal(first.fingerprint, second.fingerprint);
    assert_memory_equal(first.cache_bytes, second.cache_bytes, sizeof first.cache_bytes);
}

/* Where hwloc's plugins are installed it would have asked for them by now. */
static void test_no_plugins(void **state)
{
    (void)state;
    struct cpu_machine m;
    cpu_machine_read(&m);
    assert_int_equal(plugins, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_without_files), cmocka_unit_test(test_no_plugins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
