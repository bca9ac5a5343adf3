/* Many ranks from one: what a sum takes, the slowest of several, and a step walked through, each against numbers worked out by hand. */
#include <math.h>
#include <string.h>

#include "prove/simulate.h"
#include "support/check.h"

static void test_a_ring_of_one_machine(void **state)
{
    const struct sim_net net = {.ring = true, .per_machine = 8, .within = {3, 100}, .between = {7, 10}};
    (void)state;
    assert_true(sim_sum_us(&net, 1, 1e6) == 0);
    assert_near(sim_sum_us(&net, 2, 1e6), 2 * (3 + 5e5 / 1e5), 1e-9, "two");
    assert_near(sim_sum_us(&net, 8, 1e6), 14 * (3 + 1.25e5 / 1e5), 1e-9, "eight");
}

static void test_rings_of_several_machines(void **state)
{
    const struct sim_net net = {.ring = true, .per_machine = 8, .within = {3, 100}, .between = {7, 10}}, flat = {.ring = true, .per_machine = 1, .between = {7, 10}};
    (void)state;
    assert_near(sim_sum_us(&net, 32, 1e6), 14 * (3 + 1.25e5 / 1e5) + 6 * (7 + 2.5e5 / 1e4), 1e-9, "four machines of eight");
    assert_near(sim_sum_us(&flat, 32, 1e6), 62 * (7 + 1e6 / 32 / 1e4), 1e-9, "a rank a machine");
}

static void test_the_tree(void **state)
{
    const struct sim_net flat = {.per_machine = 1, .between = {7, 10}}, net = {.per_machine = 4, .within = {3, 100}, .between = {7, 10}};
    (void)state;
    for (int w = 2, log = 1; w <= 1024; w *= 2, log++)
        assert_near(sim_sum_us(&flat, w, 1e6), 2 * 7 * log + 2 * 1e6 * (w - 1) / w / 1e4, 1e-6, "2 a log2 W + 2 n (W - 1) / (W b)");
    assert_near(sim_sum_us(&flat, 8, 400), 3 * (7 + 400 / 1e4), 1e-9, "few numbers are not cut up");
    assert_near(sim_sum_us(&flat, 3, 1e6), 4 * (7 + 1e6 / 1e4), 1e-9, "three go through rank 0");
    /* of each machine of four one rank crosses: two levels within, two between, and back */
    assert_near(sim_sum_us(&net, 12, 1e6), 4 * (3 + 1e6 / 1e5) + 4 * (7 + 1e6 / 1e4), 1e-9, "three machines of four go through rank 0");
    /* halves and quarters within machines; an eighth of each of four ranks at once between them */
    assert_near(sim_sum_us(&net, 8, 1e6), 2 * (3 + 5) + 2 * (3 + 2.5) + 2 * (7 + 4 * 1.25e5 / 1e4), 1e-9, "two machines of four");
}

static void test_the_slowest_of_many(void **state)
{
    const double steps[] = {4, 1, 2, 3};
    (void)state;
    assert_near(sim_slowest_us(steps, 4, 1), 2.5, 1e-12, "the median");
    assert_near(sim_slowest_us(steps, 4, 2), 1 + 3 * sqrt(0.5), 1e-12, "of two");       /* both are in the lower 0.71 in half of all draws */
    assert_near(sim_slowest_us((double[]){1, 1, 1, 1, 9}, 5, 1), 1, 1e-12, "one that was held up");
    assert_near(sim_slowest_us((double[]){1, 1, 1, 1, 9}, 5, 2), 1, 1e-12, "and two");
    assert_true(sim_slowest_us((double[]){1, 1, 1, 1, 9}, 5, 16) > 5);
    assert_near(sim_slowest_us(steps, 4, 100000), 4, 1e-4, "of very many");
    assert_near(sim_slowest_us((double[]){5}, 1, 64), 5, 1e-12, "of one kind");
}

/* ---- a step ---- */

static struct sim_source fixture(void)
{
    struct sim_source s;
    struct error err;
    assert_ok(sim_source_read(&s, HONE_CONFIGS "/../tests/fixtures/simulate/report.json", NULL, 0, &err), err);
    return s;
}

static struct sim_step step_of(const struct sim_source *s, const struct sim_net *net, int ranks, int64_t mb)
{
    struct sim_step out;
    struct error err;
    assert_ok(sim_one_step(&out, s, net, ranks, mb, &err), err);
    return out;
}

static void test_one_rank_is_what_was_measured(void **state)
{
    const struct sim_net net = {.per_machine = 1, .between = {1, 1}};
    struct sim_source s = fixture();
    (void)state;
    const struct sim_step one = step_of(&s, &net, 1, 25);
    assert_near(one.step_us, 18500, 1e-6, "step");
    assert_true(one.packing_us == 0 && one.sums_us == 0 && one.exposed_us == 0 && one.buckets == 0);
    sim_source_release(&s);
}

/* Communication that costs nothing leaves the step and the packing; one that takes ever so long shows in full but for what backward hides. */
static void test_exposed_between_nothing_and_all(void **state)
{
    struct sim_net net = {.per_machine = 1, .between = {0, 1e12}};
    struct sim_source s = fixture();
    (void)state;
    const struct sim_step free_of_cost = step_of(&s, &net, 2, 1);
    assert_near(free_of_cost.step_us, 18500 + free_of_cost.packing_us, 1e-3, "step");
    assert_true(free_of_cost.packing_us > 0 && free_of_cost.exposed_us < 1e-3);
    double exposed = 0, memory = free_of_cost.memory_bytes;
    for (net.between.gb_per_s = 10; net.between.gb_per_s > 1e-3; net.between.gb_per_s /= 10) {
        const struct sim_step p = step_of(&s, &net, 2, 1);
        assert_true(p.exposed_us >= exposed && p.exposed_us < p.sums_us && p.memory_bytes == memory);
        assert_near(p.step_us, 18500 + p.packing_us + p.exposed_us, 1e-3, "step");
        assert_near(p.sums_us, p.bytes / net.between.gb_per_s / 1e3, 1e-3 * p.sums_us, "sums");
        exposed = p.exposed_us;
    }
    assert_true(exposed > 5e5);             /* 6 MB at 10 MB/s */
    sim_source_release(&s);
}

/* With a latency that weighs more than all bytes, fewer buckets are better. */
static void test_the_best_bucket(void **state)
{
    struct sim_net net = {.per_machine = 1, .between = {20000, 1e9}};
    struct sim_source s = fixture();
    struct simulation *made = xcalloc(1, sizeof *made);
    struct error err;
    (void)state;
    s.config.dist.bucket_mb = 1;
    assert_ok(simulate(made, &s, &net, (int[]){1, 4}, 2, &err), err);
    assert_int_equal(made->n, 2);           /* one rank is there anyway */
    assert_int_equal(made->points[1].best_mb, 10);
    assert_true(made->points[1].best_step_us < made->points[1].step_us);
    net.between.us = 0;                     /* nothing costs anything: the config's own stays */
    assert_ok(simulate(made, &s, &net, (int[]){4}, 1, &err), err);
    assert_int_equal(made->points[1].best_mb, 1);
    free(made);
    sim_source_release(&s);
}

/* Ranks that divide the optimizer's state send as much, half of it for the gradients and half for the weights, and need less memory. */
static void test_slices(void **state)
{
    const struct sim_net net = {.per_machine = 1, .between = {0, 1}};
    struct sim_source s = fixture();
    (void)state;
    const struct sim_step whole = step_of(&s, &net, 8, 25);
    s.config.dist.shard = SHARD_OPTIMIZER;
    const struct sim_step slices = step_of(&s, &net, 8, 25), more = step_of(&s, &net, 16, 25);
    assert_near(slices.sums_us, whole.sums_us, 0.02 * whole.sums_us, "sums");
    assert_true(slices.memory_bytes < whole.memory_bytes && more.memory_bytes < slices.memory_bytes);
    sim_source_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_of_one_machine), cmocka_unit_test(test_rings_of_several_machines), cmocka_unit_test(test_the_tree),
        cmocka_unit_test(test_the_slowest_of_many), cmocka_unit_test(test_one_rank_is_what_was_measured),
        cmocka_unit_test(test_exposed_between_nothing_and_all), cmocka_unit_test(test_the_best_bucket), cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
