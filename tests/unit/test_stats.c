/* Times that recording made longer, and what they were without it. */
#include "core/stats.h"
#include "support/check.h"

/* 10 µs at its floor, 30 far above, 10 between: of 50 µs recording took 10, none of which was the first one's. */
static void what_ran_at_its_floor_was_not_held_up(void **state)
{
    (void)state;
    const struct timed list[] = {{10, 10}, {30, 3}};
    bool alike;
    const double f = timed_factor(list, 2, 10, 40, &alike);
    assert_false(alike);
    assert_near(f, 0.75, 1e-9, "the factor");
    assert_near(timed_scaled(list[0], f), 10, 1e-9, "at its floor");
    assert_near(timed_scaled(list[1], f), 22.5, 1e-9, "above it");
}

static void floors_that_the_whole_disproves_are_scaled(void **state)
{
    (void)state;
    const struct timed list[] = {{10, 10}, {30, 3}};
    bool alike;
    assert_near(timed_factor(list, 2, 10, 12, &alike), 12.0 / 50, 1e-9, "less than both floors");
    assert_true(alike);
    assert_near(timed_factor(list, 2, 10, 60, &alike), 1.2, 1e-9, "longer than recorded");
    assert_true(alike);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_at_its_floor_was_not_held_up),
        cmocka_unit_test(floors_that_the_whole_disproves_are_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
