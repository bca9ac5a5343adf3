/* What the system lets a process have: cores on machines of any size, memory below the limits of containers. */
#include <errno.h>

#include "core/system.h"
#include "support/own_machine.h"

/* ---- cores ---- */

static int cpus_of_kernel, cpus_allowed;

/* As Linux: a set that is smaller than the kernel's own is refused. */
static int affinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    (void)pid;
    if (bytes * 8 < (size_t)cpus_of_kernel) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < cpus_allowed; i++)
        CPU_SET_S((size_t)i, bytes, set);
    return 0;
}

static int no_affinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    (void)pid, (void)bytes, (void)set;
    errno = EPERM;
    return -1;
}

static void test_cores(void **state)
{
    (void)state;
    static const int sizes[][2] = {{8, 3}, {1024, 1024}, {1025, 1025}, {4096, 3000}, {8192, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cpus_of_kernel = sizes[i][0];
        cpus_allowed = sizes[i][1];
        assert_int_equal(system_cores(affinity), cpus_allowed);
    }
    assert_int_equal(system_cores(no_affinity), 1);
    cpus_of_kernel = 1 << 30;
    assert_int_equal(system_cores(affinity), 1);
}

static void test_running(void **state)
{
    (void)state;
    static const struct { const char *says; int running; } cases[] = {
        {"0.50 0.40 0.30 3/100 12345\n", 3}, {"12.00 9.50 7.25 1024/2000 7\n", 1024}, {"0.00 0.00 0.00 0/0 0\n", 0}, {"", 0}, {"0.50 0.40 0.30\n", 0}, {"a b c d\n", 0},
        {"0.50 0.40 0.30 99999999999999999999/1 1\n", 0}, {"0.50 0.40 0.30 -1/1 1\n", 0},
    };
    assert_int_equal(system_running("/nowhere"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine_says("/proc/loadavg", cases[i].says);
        assert_int_equal(system_running(own_machine), cases[i].running);
    }
    assert_true(system_running("") >= 0);
}

/* Of this group or of one above it, in both generations. */
static void test_quota(void **state)
{
    (void)state;
    assert_false(system_has_quota(own_machine));
    machine_says("/proc/self/cgroup", "0::/a/b\n4:cpu,cpuacct:/c\n");
    machine_says("/sys/fs/cgroup/cpu.max", "max 100000\n");
    machine_says("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    machine_says("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
    assert_false(system_has_quota(own_machine));
    machine_says("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    assert_true(system_has_quota(own_machine));
    machine_says("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    machine_says("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    assert_true(system_has_quota(own_machine));
}

/* ---- memory ---- */

enum { MB = 1 << 20 };

static size_t free_bytes(void) { return system_free_bytes(own_machine); }

static void says_bytes(const char *path, size_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%zu\n", bytes);
    machine_says(path, text);
}

static void test_no_limits(void **state)
{
    (void)state;
    assert_true(free_bytes() == SIZE_MAX);
    machine_has_free(700 * MB);
    assert_true(free_bytes() == 700 * MB);
    machine_says("/proc/self/cgroup", "0::/\n");
    machine_says("/sys/fs/cgroup/memory.max", "max\n");
    assert_true(free_bytes() == 700 * MB);
    machine_says("/proc/meminfo", "MemTotal: 5 kB\n");
    assert_true(free_bytes() == SIZE_MAX);
}

/* A container sees its own group at the mount. */
static void test_limit_less_what_is_used(void **state)
{
    (void)state;
    machine_has_free(900 * (size_t)MB);
    machine_says("/proc/self/cgroup", "0::/\n");
    says_bytes("/sys/fs/cgroup/memory.max", 500 * MB);
    assert_true(free_bytes() == 500 * MB);
    says_bytes("/sys/fs/cgroup/memory.current", 180 * MB);
    assert_true(free_bytes() == 320 * MB);
    machine_says("/sys/fs/cgroup/memory.stat", "anon 1\nactive_file 41943040\ninactive_file 83886080\nslab 7\n");
    assert_true(free_bytes() == 440 * MB);
    says_bytes("/sys/fs/cgroup/memory.current", 700 * MB);
    assert_true(free_bytes() == 0);
    says_bytes("/sys/fs/cgroup/memory.current", 10 * MB);            /* fewer than the files: all of it can go */
    assert_true(free_bytes() == 500 * MB);
    machine_has_free(40 * MB);
    assert_true(free_bytes() == 40 * MB);
}

static void test_limits_of_groups_above(void **state)
{
    (void)state;
    machine_has_free(900 * (size_t)MB);
    machine_says("/proc/self/cgroup", "12:cpu:/elsewhere\n0::/outer/inner/leaf\n");
    says_bytes("/sys/fs/cgroup/outer/inner/leaf/memory.current", 10 * MB);
    machine_says("/sys/fs/cgroup/outer/inner/leaf/memory.max", "max\n");
    says_bytes("/sys/fs/cgroup/outer/memory.max", 300 * MB);
    says_bytes("/sys/fs/cgroup/outer/memory.current", 50 * MB);
    assert_true(free_bytes() == 250 * MB);
    says_bytes("/sys/fs/cgroup/outer/inner/memory.max", 200 * MB);
    says_bytes("/sys/fs/cgroup/outer/inner/memory.current", 20 * MB);
    assert_true(free_bytes() == 180 * MB);
    says_bytes("/sys/fs/cgroup/outer/inner/leaf/memory.high", 100 * MB);
    assert_true(free_bytes() == 90 * MB);
    says_bytes("/sys/fs/cgroup/elsewhere/memory.max", MB);
    assert_true(free_bytes() == 90 * MB);
}

/* The older hierarchy, and groups that the process sees by the host's names. */
static void test_first_generation(void **state)
{
    (void)state;
    machine_has_free(900 * (size_t)MB);
    machine_says("/proc/self/cgroup", "5:cpuset:/\n4:hugetlb,memory:/docker/4711\n0::/\n");
    says_bytes("/sys/fs/cgroup/memory/memory.limit_in_bytes", 600 * MB);
    says_bytes("/sys/fs/cgroup/memory/memory.usage_in_bytes", 100 * MB);
    machine_says("/sys/fs/cgroup/memory/memory.stat", "inactive_file 5\nactive_file 9\ntotal_inactive_file 31457280\ntotal_active_file 20971520\n");
    assert_true(free_bytes() == 550 * MB);
    says_bytes("/sys/fs/cgroup/memory/docker/4711/memory.limit_in_bytes", 80 * MB);
    assert_true(free_bytes() == 80 * MB);
    machine_says("/sys/fs/cgroup/memory/docker/4711/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(free_bytes() == 550 * MB);
}

static void test_odd_files(void **state)
{
    (void)state;
    machine_has_free(900 * (size_t)MB);
    says_bytes("/sys/fs/cgroup/memory.max", 500 * MB);
    static const char *const groups[] = {"", "rubbish\n", "0::\n", "0::/../../escape\n", "0::/a//b/\n", ":::::\n"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        machine_says("/proc/self/cgroup", groups[i]);
        assert_true(free_bytes() == 500 * MB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores),
        TEST_WITH_MACHINE(test_running),
        TEST_WITH_MACHINE(test_quota),
        TEST_WITH_MACHINE(test_no_limits),
        TEST_WITH_MACHINE(test_limit_less_what_is_used),
        TEST_WITH_MACHINE(test_limits_of_groups_above),
        TEST_WITH_MACHINE(test_first_generation),
        TEST_WITH_MACHINE(test_odd_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
