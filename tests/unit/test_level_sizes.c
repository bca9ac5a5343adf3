/* Which trees have the nodes of a level in one call, by their size and the device. */
#include <string.h>

#include "passes/passes.h"
#include "support/check.h"
#include "train/train_int.h"

/* Rows of a step of k1-tree with other sizes. */
static int rows_of(const char *more, int batch)
{
    struct config c;
    struct error err;
    struct program *p;
    int places[PASSES_MAX] = {0};
    char text[512];
    snprintf(text, sizeof text, "model: {arch: k1, tree: [3, 3], vocab: 100, dim: 128, heads: 4, ffn: 256, seq: 64}\n"
             "train: {batch_size: %d}\n%s", batch, more);
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    assert_ok(train_step_program(&p, &c, 10, places, &err), err);
    program_free(p);
    return places[pass_find("group-levels")];
}

/* A GPU does small nodes together, and a CPU tiny ones of several threads; who names the pass has it everywhere. */
static void test_sizes_of_devices(void **state)
{
    (void)state;
    assert_true(rows_of("device: cuda\n", 32) > 0);
    assert_int_equal(rows_of("device: cuda\n", 256), 0);
    assert_true(rows_of("device: cuda\noptimize: {group-levels: on}\n", 256) > 0);
    assert_int_equal(rows_of("threads: 2\n", 32), 0);
    assert_int_equal(rows_of("threads: 8\n", 32), 0);
    assert_true(rows_of("threads: 8\n", 1) > 0);
    assert_int_equal(rows_of("threads: 1\n", 1), 0);
    assert_true(rows_of("threads: 1\noptimize: {group-levels: on}\n", 1) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes_of_devices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
