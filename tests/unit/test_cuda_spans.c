/* Times of ops from times of kernels: beside each other, in several kernels, in none. */
#include "ops/cuda/spans.h"
#include "support/check.h"

#define FROM_TO(from, to) {.start_ns = (from), .end_ns = (to)}

static void check(const struct kernel_span *s, int n, int first, int end, const struct lane_time *wanted)
{
    double part[8] = {0};
    struct lane_time times[8];
    spans_lay_out(s, n, first, end, times, 100, part);
    for (int i = 0; i < end - first; i++) {
        assert_int_equal(times[i].start_ns, wanted[i].start_ns);
        assert_int_equal(times[i].end_ns, wanted[i].end_ns);
    }
}

static void test_one_after_the_other(void **state)
{
    (void)state;
    const struct kernel_span s[] = {{.op = 3, .start_ns = 110, .end_ns = 120}, {.op = 3, .start_ns = 125, .end_ns = 130},
                                    {.op = 5, .start_ns = 140, .end_ns = 160}, {.op = -1, .start_ns = 170, .end_ns = 180}};
    check(s, 4, 3, 6, (struct lane_time[]){FROM_TO(110, 125), FROM_TO(125, 125), FROM_TO(140, 160)});       /* the idle 5 between two kernels are no work */
}

/* 0 runs alone for 10, with 1 for 10, with 1 and 2 for 6, 1 and 2 for 4, 2 alone for 10: each moment is counted once. */
static void test_beside_each_other(void **state)
{
    (void)state;
    const struct kernel_span s[] = {{.op = 0, .start_ns = 100, .end_ns = 126}, {.op = 1, .start_ns = 110, .end_ns = 130},
                                    {.op = 2, .start_ns = 120, .end_ns = 140}};
    check(s, 3, 0, 3, (struct lane_time[]){FROM_TO(100, 117), FROM_TO(110, 119), FROM_TO(120, 134)});
}

/* A long one over two short ones that do not touch. */
static void test_inside(void **state)
{
    (void)state;
    const struct kernel_span s[] = {{.op = 0, .start_ns = 100, .end_ns = 200}, {.op = 1, .start_ns = 110, .end_ns = 120},
                                    {.op = 1, .start_ns = 150, .end_ns = 170}, {.op = 2, .start_ns = 200, .end_ns = 210}};
    check(s, 4, 0, 3, (struct lane_time[]){FROM_TO(100, 185), FROM_TO(110, 125), FROM_TO(200, 210)});
}

static void test_spread(void **state)
{
    (void)state;
    struct lane_time t[3];
    spans_spread(t, 3, 10, 40);
    assert_true(t[0].start_ns == 10 && t[0].end_ns == 20 && t[2].start_ns == 30 && t[2].end_ns == 40);
    check(NULL, 0, 0, 2, (struct lane_time[]){FROM_TO(100, 100), FROM_TO(100, 100)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_after_the_other), cmocka_unit_test(test_beside_each_other),
                                       cmocka_unit_test(test_inside), cmocka_unit_test(test_spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
