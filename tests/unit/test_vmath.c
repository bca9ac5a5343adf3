/* Exponentials of the tuned kernels against the exact ones, over the whole range of floats. */
#include "support/check.h"

#include <float.h>

#define HONE_ISA baseline
#include "ops/cpu/tuned/vec.h"

/* The limits that tuned.h promises. */
static const double ULP = 2;
static const float LARGEST_X = 87.3f, SMALLEST_X = -87.3f;

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The distance of `is` to the exact value in units of the last place of a normal float. */
static double ulps(float is, double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)is - exact) / ldexp(1, exponent - 24);
}

static void check(float x)
{
    const float is = fast_exp(x);
    if (x > LARGEST_X) {
        if (!isinf(is) || is < 0)
            fail_msg("fast_exp(%.9g) is %.9g, not infinite", x, is);
    } else if (x < SMALLEST_X) {
        if (is != 0)
            fail_msg("fast_exp(%.9g) is %.9g, not 0", x, is);
    } else if (!(ulps(is, exp(x)) <= ULP)) {
        fail_msg("fast_exp(%.9g) is %.9g; expf gives %.9g: %.2f ulp", x, is, expf(x), ulps(is, exp(x)));
    }
}

/* Every 1009th bit pattern of either sign, from zero over the denormal numbers to infinity. */
static void test_whole_range(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0x7f800000u; bits += 1009) {
        check(from_bits(bits));
        check(from_bits(bits | 0x80000000u));
    }
}

/* The numbers that softmax and sigmoids meet, densely. */
static void test_common_range(void **state)
{
    (void)state;
    for (float x = -90; x < 90; x += 3.1e-4f)
        check(x);
}

/* Next to the places where the exponent changes and where the range ends. */
static void test_edges(void **state)
{
    (void)state;
    for (int n = -126; n <= 128; n++)
        for (int half = 0; half < 2; half++) {
            float x = (float)((n + 0.5 * half) * 0.69314718055994531), y = x;
            for (int i = 0; i < 50; i++) {
                check(x);
                check(y);
                x = nextafterf(x, 1000);
                y = nextafterf(y, -1000);
            }
        }
    check(LARGEST_X);
    check(SMALLEST_X);
    assert_true(fast_exp(LARGEST_X) > 0.2f * FLT_MAX && fast_exp(LARGEST_X) <= FLT_MAX);
    assert_true(fast_exp(SMALLEST_X) >= FLT_MIN);
}

static void test_special_values(void **state)
{
    (void)state;
    assert_true(fast_exp(0.0f) == 1.0f && fast_exp(-0.0f) == 1.0f);
    assert_true(isinf(fast_exp(INFINITY)) && fast_exp(INFINITY) > 0 && fast_exp(-INFINITY) == 0.0f);
    assert_true(isnan(fast_exp(NAN)) && isnan(fast_exp(-NAN)));
    assert_true(isnan(fast_exp(from_bits(0x7fffffff))) && isnan(fast_exp(from_bits(0xffffffff))));
    assert_true(fast_exp(from_bits(1)) == 1.0f && fast_exp(-from_bits(0x007fffff)) == 1.0f);
    assert_true(isinf(fast_exp(FLT_MAX)) && fast_exp(-FLT_MAX) == 0.0f);
}

static void test_sigmoid(void **state)
{
    (void)state;
    for (float x = -87; x < 87; x += 1.7e-3f)
        assert_near(fast_sigmoid(x), 1 / (1 + exp(-(double)x)), 2.4e-7, "fast_sigmoid");
    assert_true(fast_sigmoid(INFINITY) == 1.0f && fast_sigmoid(-INFINITY) < 1e-38f && isnan(fast_sigmoid(NAN)));
    assert_true(fast_sigmoid(FLT_MAX) == 1.0f && fast_sigmoid(-FLT_MAX) < 1e-38f);
}

/* Every lane is computed alike: one is looked at. */
static void test_vectors(void **state)
{
    (void)state;
    for (float x = -87; x < 88; x += 1.7e-3f)
        assert_near(exp_low(all(x))[LANES - 1] / exp(x), 1, 4e-7 + 1e-7 * fabsf(x), "exp_low");
    for (float x = -126; x <= 127; x += 1.7e-3f)
        assert_near(exp2_near(all(x))[0] / exp2(x), 1, 4e-7, "exp2_near");
    assert_true(exp_low(all(0))[0] == 1 && exp_low(all(-88.4f))[0] == 0 && exp_low(all(-INFINITY))[0] == 0);
    assert_true(isnan(exp_low(all(NAN))[0]) && isnan(exp2_near(all(NAN))[0]) && exp2_near(all(-127))[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_range),   cmocka_unit_test(test_common_range), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_sigmoid),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
