/* Steps, epochs and intervals that no 64 bits hold. */
#include "support/check.h"
#include "train/train_int.h"

static void test_intervals(void **state)
{
    (void)state;
    assert_int_equal(interval_steps((struct interval){0, false}, 100), 0);
    assert_int_equal(interval_steps((struct interval){7, false}, 100), 7);
    assert_int_equal(interval_steps((struct interval){7, true}, 100), 700);
    /* 1e12 epochs of 2^52 steps: the product of the lower 64 bits would be every 0th step */
    assert_true(interval_steps((struct interval){1000000000000, true}, (int64_t)1 << 52) == INT64_MAX);
    assert_true(interval_steps((struct interval){1000000000000, true}, 9223373) == INT64_MAX);
}

static void test_counts(void **state)
{
    (void)state;
    struct config_train t = {.batch_size = 4, .accumulate = 2, .steps = 30};
    struct step_counts n;
    struct error err;
    assert_ok(train_count_steps(&n, &t, 81, &err), err);
    assert_int_equal(n.per_epoch, 11);
    assert_int_equal(n.total, 30);
    t.epochs = 3;
    assert_ok(train_count_steps(&n, &t, 81, &err), err);
    assert_int_equal(n.total, 33);
    t.epochs = 1000000000;
    assert_int_equal(train_count_steps(&n, &t, 81, &err), BAD_INPUT);
    assert_string_equal(err.text, "train.epochs is 1000000000, and one epoch has 11 steps; at most 2147483647 steps can be counted");
    assert_int_equal(train_count_steps(&n, &t, INT64_MAX / 2, &err), BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_intervals), cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
