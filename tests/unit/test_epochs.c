/* The verdict on an epoch's speed, case by case. */
#include <math.h>
#include <string.h>

#include "support/check.h"
#include "train/train.h"

static struct train_epoch epoch(double speed, double first, double waits, double mfu)
{
    struct train_epoch e = {.samples_per_s = speed, .first_samples_per_s = first, .data_wait_share = waits, .mfu_percent = mfu};
    epoch_judge(&e);
    return e;
}

static void check(double speed, double first, double waits, double mfu, const char *verdict, const char *words)
{
    const struct train_epoch e = epoch(speed, first, waits, mfu);
    assert_string_equal(e.verdict, verdict);
    assert_string_equal(e.words, words);
}

static void first_is_held_against_the_peak(void **state)
{
    (void)state;
    check(100, NAN, 0, 0.4, "low", "MFU 0.4 % of the measured peak");
    check(100, NAN, 0, 19.96, "low", "MFU 20.0 % of the measured peak");
    check(100, NAN, 0, 20, "fair", "MFU 20.0 % of the measured peak");
    check(100, NAN, 0, 40, "good", "MFU 40.0 % of the measured peak");
    check(100, NAN, 0.1, 60, "high", "MFU 60.0 % of the measured peak");
    check(100, NAN, 0, NAN, "first", "later epochs are held against it; hone doctor measures the peak");
}

static void later_ones_against_the_first(void **state)
{
    (void)state;
    check(100, 100, 0, NAN, "steady", "1.00 times the speed of the first epoch");
    check(91, 100, 0, 30, "steady", "0.91 times the speed of the first epoch");
    check(89, 100, 0, 30, "slower", "0.89 times the speed of the first epoch");
    check(109, 100, 0, 30, "steady", "1.09 times the speed of the first epoch");
    check(111, 100, 0, 30, "faster", "1.11 times the speed of the first epoch");
}

static void waiting_for_data_goes_before_all(void **state)
{
    static const char words[] = "25 % of the time went by without a batch; try more data.workers or data.prefetch";
    (void)state;
    check(100, NAN, 0.25, 50, "waits for data", words);
    check(300, 100, 0.25, 50, "waits for data", words);
    check(100, 100, 0.1, 50, "steady", "1.00 times the speed of the first epoch");
}

/* A clock that stood still is no crash and no verdict. */
static void without_a_speed(void **state)
{
    (void)state;
    check(INFINITY, NAN, NAN, NAN, "first", "later epochs are held against it; hone doctor measures the peak");
    check(INFINITY, INFINITY, 0, NAN, "first", "later epochs are held against it; hone doctor measures the peak");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_is_held_against_the_peak), cmocka_unit_test(later_ones_against_the_first),
        cmocka_unit_test(waiting_for_data_goes_before_all), cmocka_unit_test(without_a_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
