/* The file that remembers how fast ranks talk: what is kept of earlier measurements, and what is not believed. */
#include <stdio.h>
#include <string.h>

#include "core/cache.h"
#include "core/links.h"
#include "support/check.h"
#include "support/own_cache.h"

static struct links links_of(const char *machine, struct rank_link within, struct rank_link between)
{
    struct links l = {.ranks = 4, .machines = 2, .within = within, .between = between};
    snprintf(l.machine, sizeof l.machine, "%s", machine);
    return l;
}

static void test_the_newest_of_each_kind_is_kept(void **state)
{
    struct error err;
    struct links l, a = links_of("a", (struct rank_link){2, 10}, (struct rank_link){30, 5}), b = links_of("b", (struct rank_link){1, 1}, (struct rank_link){0}),
                    again = links_of("a", (struct rank_link){3, 8}, (struct rank_link){0});
    (void)state;
    assert_false(links_recall(&l, "a"));
    assert_int_equal(links_remember(&a, &err), OK);
    assert_int_equal(links_remember(&b, &err), OK);
    assert_int_equal(links_remember(&again, &err), OK);
    assert_true(links_recall(&l, "a"));
    assert_true(l.within.us == 3 && l.within.gb_per_s == 8);
    assert_true(l.between.us == 30 && l.between.gb_per_s == 5);     /* not measured the second time */
    assert_true(links_recall(&l, "b"));
    assert_true(l.ranks == 4 && l.machines == 2 && l.between.gb_per_s == 0);
    assert_false(links_recall(&l, "c"));
}

static void test_what_is_not_sound_is_not_believed(void **state)
{
    static const char *const bad[] = {
        "", "{}", "[1]", "{\"version\": 2, \"entries\": []}",
        "{\"version\": 1, \"entries\": [{\"machine\": \"a\", \"ranks\": 1, \"machines\": 1, \"within\": null, \"between\": null}]}",
        "{\"version\": 1, \"entries\": [{\"machine\": \"a\", \"ranks\": 2, \"machines\": 3, \"within\": null, \"between\": null}]}",
        "{\"version\": 1, \"entries\": [{\"machine\": \"a\", \"ranks\": 2, \"machines\": 1, \"within\": {\"us\": -1, \"gb_per_s\": 1}, \"between\": null}]}",
        "{\"version\": 1, \"entries\": [{\"machine\": \"a\", \"ranks\": 2, \"machines\": 1, \"within\": {\"us\": 1, \"gb_per_s\": 0}, \"between\": null}]}",
        "{\"version\": 1, \"entries\": [{\"machine\": 7, \"ranks\": 2, \"machines\": 1, \"within\": null, \"between\": null}, 3]}"};
    struct error err;
    struct links l;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(cache_replace("links.json", bad[i], &err), OK);
        assert_false(links_recall(&l, "a"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST_WITH_CACHE(test_the_newest_of_each_kind_is_kept), TEST_WITH_CACHE(test_what_is_not_sound_is_not_believed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
