/* What cores have now: small products of the numbers that a step multiplies, of all threads together, and their clock. */
#include "support/check.h"

#include <math.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/gemm.h"

/* The best of some: other work may take the cores meanwhile. */
static struct pace best_pace(int threads, enum numbers numbers)
{
    struct backend *b;
    struct error err;
    struct pace best = {0};
    assert_ok(cpu_backend_new(&b, threads, false, &err), err);
    for (int i = 0; i < 30; i++) {
        const struct pace now = b->pace(b, numbers);
        best = (struct pace){fmax(best.gflops, now.gflops), fmax(best.clock, now.clock)};
    }
    b->free(b);
    return best;
}

/* What compares two moments is tried again where other work came between them. */
enum { TRIES = 8 };
static bool is_between(double x, double low, double high) { return x > low && x < high; }

static void test_threads_add_up(void **state)
{
    (void)state;
    bool right = false;
    for (int i = 0; i < TRIES && !right; i++) {
        const struct pace one = best_pace(1, NUMBERS_F32), two = best_pace(2, NUMBERS_F32);
        assert_true(isfinite(one.gflops) && one.gflops > 0 && isfinite(one.clock) && one.clock > 0);
        right = is_between(two.gflops, 0.9 * one.gflops, 2.5 * one.gflops)                  /* twice as much where there are two cores */
             && is_between(two.clock, 0.4 * one.clock, 2.5 * one.clock);                    /* of one thread, however many there are */
    }
    assert_true(right);
}

/* A multiplication takes some cycles, and an addition one. */
static void test_clock_is_that_of_a_machine(void **state)
{
    (void)state;
    const double clock = best_pace(1, NUMBERS_F32).clock;
    assert_true(clock > 0.001 && clock < 6);
}

static void test_narrow_numbers_are_faster_where_there_are_any(void **state)
{
    (void)state;
    bool right = false;
    for (int i = 0; i < TRIES && !right; i++) {
        const double f32 = best_pace(1, NUMBERS_F32).gflops, bf16 = best_pace(1, NUMBERS_BF16).gflops;
        const bool narrow = cpu_registers_bf16() != NULL;
        assert_true(bf16 > 0);
        cpu_bf16_limit(BF16_ROUNDED);
        assert_null(cpu_registers_bf16());
        const double rounded = best_pace(1, NUMBERS_BF16).gflops;      /* goes to the f32 product: so does its pace */
        cpu_bf16_limit(BF16_AMX);
        right = (!narrow || bf16 > f32) && is_between(rounded, 0.4 * f32, 2.5 * f32);
    }
    assert_true(right);
}

static void test_reference_kernels_have_none(void **state)
{
    (void)state;
    struct backend *b;
    struct error err;
    assert_ok(cpu_backend_new(&b, 1, true, &err), err);
    assert_null(b->pace);
    b->free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_add_up), cmocka_unit_test(test_clock_is_that_of_a_machine),
        cmocka_unit_test(test_narrow_numbers_are_faster_where_there_are_any), cmocka_unit_test(test_reference_kernels_have_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
