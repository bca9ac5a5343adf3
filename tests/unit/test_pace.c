/* What cores have now: multiply-adds of the numbers that they have instructions for, of all threads together. */
#include "support/check.h"

#include <math.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/gemm.h"

/* The best of some: other work may take the cores meanwhile. */
static double best_pace(int threads, enum numbers numbers)
{
    struct backend *b;
    struct error err;
    double best = 0;
    assert_ok(cpu_backend_new(&b, threads, false, &err), err);
    for (int i = 0; i < 30; i++)
        best = fmax(best, b->pace(b, numbers));
    b->free(b);
    return best;
}

static void test_threads_add_up(void **state)
{
    (void)state;
    const double one = best_pace(1, NUMBERS_F32), two = best_pace(2, NUMBERS_F32);
    assert_true(isfinite(one) && one > 0);
    assert_true(two > 0.9 * one && two < 2.5 * one);            /* twice as much where there are two cores */
}

static void test_narrow_numbers_are_faster_where_there_are_any(void **state)
{
    (void)state;
    const double f32 = best_pace(1, NUMBERS_F32), bf16 = best_pace(1, NUMBERS_BF16);
    if (cpu_registers_bf16())
        assert_true(bf16 > f32);
    else
        assert_true(bf16 == 0);
    cpu_bf16_limit(BF16_ROUNDED);
    assert_null(cpu_registers_bf16());
    assert_true(best_pace(1, NUMBERS_BF16) == 0);
    cpu_bf16_limit(BF16_AMX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_add_up), cmocka_unit_test(test_narrow_numbers_are_faster_where_there_are_any)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
