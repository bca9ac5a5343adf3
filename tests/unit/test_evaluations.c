/* How often a run evaluates: counted as the loop of a run does it, step by step. */
#include "core/evaluations.h"
#include "support/check.h"

/* After a step where it is due, at the end of a stage, and at the end: each step once. */
static int64_t counted(struct evaluations e)
{
    int64_t n = 0;
    for (int64_t step = 1; step <= e.steps; step++)
        n += (e.every && step % e.every == 0) || (e.stage && step % e.stage == 0) || step == e.steps;
    return n;
}

static void test_as_the_loop(void **state)
{
    (void)state;
    const int64_t numbers[] = {0, 1, 2, 3, 7, 10, 12, 50, 99, 100, 101, 1000};
    enum { N = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int stages = 0; stages < 4; stages++) {
                const struct evaluations e = {.steps = numbers[i] * (stages ? stages : 1), .every = numbers[k], .stage = stages ? numbers[i] : 0};
                if (e.steps)
                    assert_near(evaluations_per_step(e) * (double)e.steps, (double)counted(e), 1e-9, "evaluations");
            }
    assert_near(evaluations_per_step((struct evaluations){.steps = 100, .every = INT64_MAX, .stage = 25}), 0.04, 1e-12, "later than any run ends");
    assert_near(evaluations_per_step((struct evaluations){.every = 50}), 0.02, 1e-12, "a run of unknown length");
    assert_near(evaluations_per_step((struct evaluations){.every = 0}), 0, 0, "never");
}

static void test_interval(void **state)
{
    (void)state;
    const struct evaluations e = {.steps = 100, .every = 1};
    for (int i = 1; i <= 150; i++) {
        const double rate = 1.5 / i;
        const int64_t every = evaluations_interval(e, rate), n = counted(evaluations_at(e, every));
        assert_true(every >= 1 && every <= 100);
        assert_true(n == 1 || (double)n <= 100 * rate + 1e-9);
        assert_true(every == 1 || rate < 0.01 || counted(evaluations_at(e, every - 1)) > (int64_t)(100 * rate));
    }
    assert_int_equal(evaluations_interval((struct evaluations){.every = 100}, 1 / 1224.5), 1225);
    assert_near(evaluations_left((struct evaluations){.steps = 100, .every = 50}, 100), 0.5, 1e-12, "one of two");
    assert_near(evaluations_left((struct evaluations){.steps = 40, .every = 200}, 851), 1, 0, "one is one");
    assert_near(evaluations_left((struct evaluations){.steps = 90, .stage = 30}, 90), 1, 0, "ends of stages stay");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_the_loop), cmocka_unit_test(test_interval)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
