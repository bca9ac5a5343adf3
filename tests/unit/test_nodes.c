/* NUMA nodes, from trees of files that look like /sys: which CPUs are whose, what is made of nonsense, and where a team's threads then run. */
#include "support/check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nodes.h"
#include "core/system.h"
#include "core/team.h"
#include "ops/cpu/cpu.h"

static char root[64];

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/sys/devices/system/node/%s", root, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_root(void **state)
{
    (void)state;
    static const char *const folders[] = {"sys", "sys/devices", "sys/devices/system", "sys/devices/system/node", "sys/devices/system/node/node0",
                                          "sys/devices/system/node/node1", "sys/devices/system/node/node7"};
    char path[256];
    snprintf(root, sizeof root, "/tmp/hone-nodes-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

/* The usable CPUs, the first and those behind it. */
static int usable(char *first, char *others)
{
    cpu_set_t set;
    int n = 0;
    *others = '\0';
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && n++ == 0)
            sprintf(first, "%d\n", i);
        else if (CPU_ISSET(i, &set))
            sprintf(others + strlen(others), "%s%d", *others ? "," : "", i);
    return n;
}

static void test_lists(void **state)
{
    (void)state;
    struct cpus c;
    assert_true(cpus_parse(&c, "0-3,8,4094-4095\n"));
    for (int i = 0; i < NODES_CPUS; i++)
        assert_int_equal(cpus_has(&c, i), i <= 3 || i == 8 || i >= 4094);
    assert_true(cpus_parse(&c, ""));
    assert_true(cpus_parse(&c, "\n"));                  /* a node without CPUs */
    static const char *const wrong[] = {"x", "3-1", "-", "1-", "0-4096", "99999999999999999999", "1 2", ",1", "1,,2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (cpus_parse(&c, wrong[i]))
            fail_msg("'%s' is no list", wrong[i]);
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    struct nodes *n = calloc(1, sizeof *n);
    nodes_read(n, "/nowhere");
    assert_int_equal(n->n, 1);
    assert_int_equal(n->cpus, system_cores(sched_getaffinity));
    write_file("online", "0-1\n");
    write_file("node0/cpulist", "0\n");                 /* and none of node 1 */
    write_file("node1/cpulist", "what?\n");
    nodes_read(n, root);
    assert_true(n->n == 1 && n->cpus == system_cores(sched_getaffinity));
    free(n);
}

struct seen { cpu_set_t sets[1024]; };

static void look(void *argument, int member)
{
    struct seen *s = argument;
    sched_getaffinity(0, sizeof s->sets[member], &s->sets[member]);
}

/* The first CPU is node 0, the others are node 7; node 1 has memory alone. */
static void test_threads_stay_on_their_node(void **state)
{
    (void)state;
    char first[32], others[8192];
    const int cores = usable(first, others);
    if (cores < 2 || cores > 1024)
        skip();
    write_file("online", "0-1,7\n");
    write_file("node0/cpulist", first);
    write_file("node1/cpulist", "\n");
    write_file("node7/cpulist", others);
    struct nodes *n = calloc(1, sizeof *n);
    nodes_read(n, root);
    assert_int_equal(n->n, 2);
    assert_int_equal(n->cpus, cores);
    assert_int_equal(nodes_of_thread(n, 0), 0);
    for (int i = 1; i < cores; i++)
        assert_int_equal(nodes_of_thread(n, i), 1);
    free(n);

    struct seen *s = calloc(1, sizeof *s);
    struct error err;
    struct team *t;
    team_root(root);
    for (int members = cores; members <= cores + 1; members++) {        /* one more than cores: nobody is bound */
        assert_ok(team_new(&t, members, &err), err);
        assert_int_equal(team_nodes(t), members == cores ? 2 : 1);
        team_run(t, look, s);
        for (int i = 0; i < members && i < 1024; i++) {
            const bool bound = members == cores && i > 0;
            assert_int_equal(CPU_COUNT(&s->sets[i]), bound ? cores - 1 : cores);
            assert_true(!bound || !CPU_ISSET(atoi(first), &s->sets[i]));
        }
        team_free(t);
    }
    /* What all threads read is touched by all of them: it comes from the memory of both nodes. */
    enum { BYTES = 9 << 20 };
    struct backend *b;
    assert_ok(cpu_backend_new(&b, cores, true, &err), err);
    char *memory = b->alloc(b, BYTES);
    assert_non_null(memory);
    b->spread(b, memory, BYTES);
    for (size_t i = 0; i < BYTES; i += 4096) {
        unsigned char present = 0;
        assert_int_equal(mincore(memory + i, 1, &present), 0);
        assert_true(present & 1);
        assert_int_equal(memory[i], 0);
    }
    b->free_memory(b, memory, BYTES);
    b->free(b);

    team_root(NULL);
    assert_ok(team_new(&t, cores, &err), err);
    team_run(t, look, s);
    free(s);
    team_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_nothing_is_known),
        cmocka_unit_test(test_threads_stay_on_their_node),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
