/* Delay by other work: what is known, what is said, and who does not count. */
#include "core/delay.h"

#include <pthread.h>
#include <string.h>

#include "core/process.h"
#include "support/check.h"

static void test_share(void **state)
{
    (void)state;
    struct delay d = delay_begin();
    if (d.delayed_s >= 0)
        assert_true(delay_share(&d, 1) >= 0);
    if (d.delayed_s >= 0) {                 /* as if it were long ago, and threads had waited for all that they ever have */
        d.start_s -= 100;
        const double ever_s = d.delayed_s;
        d.delayed_s = 0;
        assert_near(delay_share(&d, 2), ever_s / 200, 0.02, "of the time of two threads");
    }
    d.delayed_s = -1;
    assert_true(delay_share(&d, 1) < 0);
    assert_true(delay_is_of_others(1));
    assert_false(delay_is_of_others(1 << 20));
}

static void test_words(void **state)
{
    (void)state;
    char words[DELAY_WORDS];
    assert_false(delay_warning(-1, words));
    assert_false(delay_warning(0.04, words));
    assert_string_equal(words, "");
    assert_true(delay_warning(0.48, words));
    assert_string_equal(words, "other work took the cores for 48 % of the time while this was measured; measure again when the machine is quiet");
}

static void *beside(void *name)
{
    process_work_beside("loader");
    pthread_getname_np(pthread_self(), name, 16);
    return NULL;
}

static void test_threads_beside_have_a_name(void **state)
{
    (void)state;
    char name[16] = "";
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, beside, name), 0);
    pthread_join(thread, NULL);
    assert_string_equal(name, "beside loader");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_share), cmocka_unit_test(test_words), cmocka_unit_test(test_threads_beside_have_a_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
