/* Random numbers: Philox gives the published numbers, draws stay in range, distributions have their moments. */
#include "support/check.h"

#include "core/rng.h"

/* The known answers of the Random123 distribution for philox4x32-10. */
static void test_philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t *c = cases[i].counter, *k = cases[i].key;
        const struct rng_block b = rng_block((uint64_t)k[1] << 32 | k[0], (uint64_t)c[3] << 32 | c[2],
                                             (uint64_t)c[1] << 32 | c[0]);
        for (int j = 0; j < 4; j++)
            assert_int_equal(b.x[j], cases[i].answer[j]);
    }
}

static void test_units_stay_below_one(void **state)
{
    (void)state;
    assert_true(rng_unit(0) == 0.0f);
    assert_true(rng_unit(UINT32_MAX) < 1.0f);
    assert_true(rng_unit(0x80000000u) == 0.5f);
    double sum = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const double x = rng_double(7, 1, i);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_near(sum / 10000, 0.5, 0.015, "the mean of uniform numbers");     /* 5 standard errors */
}

static void test_below_is_uniform(void **state)
{
    (void)state;
    int seen[7] = {0};
    for (uint64_t i = 0; i < 70000; i++) {
        const uint64_t x = rng_below(42, 3, i, 7);
        assert_true(x < 7);
        seen[x]++;
    }
    for (int i = 0; i < 7; i++)
        assert_near(seen[i], 10000, 500, "how often a number is drawn");
    assert_int_equal(rng_below(1, 2, 3, 1), 0);
    assert_true(rng_below(1, 2, 3, UINT64_MAX) < UINT64_MAX);
}

static void test_draws_differ_by_key_stream_and_index(void **state)
{
    (void)state;
    const uint64_t x = rng_u64(1, 2, 3);
    assert_true(x == rng_u64(1, 2, 3));
    assert_true(x != rng_u64(0, 2, 3) && x != rng_u64(1, 1, 3) && x != rng_u64(1, 2, 4));
    assert_true(x != rng_u64(1ull << 32 | 1, 2, 3) && x != rng_u64(1, 1ull << 32 | 2, 3));
}

static void test_normal_numbers(void **state)
{
    (void)state;
    enum { N = 100001 };
    static float x[N + 1];
    x[N] = 42;
    rng_fill_normal(x, N, 0.5f, 11, 5);
    assert_true(x[N] == 42);
    double sum = 0, squares = 0, fourth = 0, neighbours = 0;
    for (int i = 0; i < N; i++) {
        const double z = x[i] / 0.5;
        assert_true(isfinite(z));
        sum += z;
        squares += z * z;
        fourth += z * z * z * z;
        neighbours += i ? z * x[i - 1] / 0.5 : 0;
    }
    assert_near(sum / N, 0, 0.016, "the mean");
    assert_near(squares / N, 1, 0.025, "the variance");
    assert_near(fourth / N, 3, 0.2, "the fourth moment");
    assert_near(neighbours / N, 0, 0.016, "the correlation of neighbours");
}

/* A longer fill starts with a shorter one: what a parameter gets does not depend on its size. */
static void test_normal_prefix(void **state)
{
    (void)state;
    float a[9], b[4];
    rng_fill_normal(a, 9, 1, 1, 2);
    rng_fill_normal(b, 4, 1, 1, 2);
    assert_memory_equal(a, b, sizeof b);
}

/* Published values of FNV-1a. */
static void test_stream_of_name(void **state)
{
    (void)state;
    assert_true(rng_stream_of("") == 0xcbf29ce484222325u);
    assert_true(rng_stream_of("a") == 0xaf63dc4c8601ec8cu);
    assert_true(rng_stream_of("foobar") == 0x85944171f73967e8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_known_answers), cmocka_unit_test(test_units_stay_below_one),
        cmocka_unit_test(test_below_is_uniform),     cmocka_unit_test(test_draws_differ_by_key_stream_and_index),
        cmocka_unit_test(test_normal_numbers),       cmocka_unit_test(test_normal_prefix),
        cmocka_unit_test(test_stream_of_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
