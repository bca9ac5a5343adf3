/* What turns say: made-up times of pairs with one mode and with two, noisy, drifting, and the gate's word on them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "prove/prove_int.h"
#include "support/check.h"

enum { MOST = 400 };
static double turns_a[MOST], turns_b[MOST], delays_a[MOST], delays_b[MOST];
static int openings[MOST];
static int lanes;                           /* 0: delays are not known */

static double uniform(uint64_t stream, int i) { return rng_double(11, stream, (uint64_t)i); }
/* About normal, of standard deviation 1. */
static double normal(uint64_t stream, int i)
{
    double sum = -6;
    for (uint64_t k = 0; k < 12; k++)
        sum += rng_double(13, 12 * stream + k, (uint64_t)i);
    return sum;
}

/* The first n turns, in eight openings, or fewer where they would have less than they must. */
static struct pairs pairs_of(int n)
{
    const int many = n < OPENINGS_USUAL * TURNS_FEWEST ? n / TURNS_FEWEST : OPENINGS_USUAL;
    for (int i = 0; i < n; i++)
        openings[i] = i * many / n;
    return (struct pairs){turns_a, turns_b, openings, n};
}

static struct modes modes_in(int n)
{
    const struct pairs p = pairs_of(n);
    return modes_find(&p);
}

/* The gate of throughput on the first n turns. */
static struct gate judge(int n, double min_gain)
{
    static const char yaml[] = "model: {arch: gpt}\n";
    static double loss[] = {1};
    struct config limits;
    struct error err;
    struct verdict v = {.pass = true};
    assert_ok(config_parse(&limits, "t", yaml, sizeof yaml - 1, NULL, 0, &err), err);
    limits.verify.min_gain = min_gain;
    const struct evidence_side side = {.losses = loss, .planned_bytes = 1, .tokens_per_step = 1};
    struct evidence e = {.limits = &limits, .steps = 1, .turns = n, .opening = pairs_of(n).opening, .a = side, .b = side, .again = loss};
    e.a.turn_us = turns_a;
    e.b.turn_us = turns_b;
    if (lanes) {
        e.a.turn_delay = delays_a;
        e.b.turn_delay = delays_b;
        e.a.lanes = e.b.lanes = lanes;
    }
    gates_judge(&e, &v);
    const struct gate g = *verdict_gate(&v, "throughput");
    assert_int_equal(v.pass, g.pass);               /* the others hold */
    return g;
}

/* b wins nothing, but that a is twice as slow in some of its turns. */
static void fill_bimodal(int n, double share)
{
    for (int i = 0; i < n; i++) {
        turns_a[i] = (1000 + 10 * normal(1, i)) * (uniform(2, i) < share ? 2 : 1);
        turns_b[i] = 1000 + 10 * normal(3, i);
    }
}

static void test_two_modes_give_no_verdict(void **state)
{
    (void)state;
    static const double shares[] = {0.3, 0.5, 0.7};
    static const int counts[] = {24, 60, 400};
    for (int k = 0; k < 9; k++) {
        fill_bimodal(counts[k / 3], shares[k % 3]);
        const struct modes m = modes_in(counts[k / 3]);
        assert_true(m.two && fabs(m.low - 1) < 0.02 && fabs(m.high - 2) < 0.04);
        const struct gate g = judge(counts[k / 3], 0);
        if (g.pass || g.judged || strcmp(gate_outcome(&g), "no verdict") || !strstr(g.words, "groups well apart"))
            fail_msg("%d turns, %g slow: %s: %s", counts[k / 3], shares[k % 3], gate_outcome(&g), g.words);
    }
    /* also where the sides change modes on their own */
    for (int i = 0; i < 200; i++) {
        turns_a[i] = 1000 * (uniform(5, i) < 0.6 ? 2 : 1) + 5 * normal(6, i);
        turns_b[i] = 1000 * (uniform(7, i) < 0.4 ? 2 : 1) + 5 * normal(8, i);
    }
    const struct gate g = judge(200, 0);
    assert_string_equal(gate_outcome(&g), "no verdict");
}

/* Also where both modes are on the same side of the limit, but nearer to it than to each other: whether it is b that wins nobody knows. */
static void test_two_modes_that_agree_give_no_verdict(void **state)
{
    (void)state;
    static const double limits[] = {1.5, 0, -0.3};          /* 2.6 times as fast it is in no mode, 0.7 times in both */
    fill_bimodal(200, 0.5);
    for (int i = 0; i < 200; i++)
        turns_b[i] *= 0.8;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const struct gate g = judge(200, limits[i]);
        if (g.pass || g.judged || !(g.low < 1.26 && g.high > 2.4))
            fail_msg("above %g: %s: %s", 1 + limits[i], gate_outcome(&g), g.words);
    }
    const struct gate g = judge(200, -1);           /* nothing is asked for */
    assert_string_equal(gate_outcome(&g), "not judged");
    assert_true(g.pass);
}

/* Three and four times as fast, as a program that the host starts kernel by kernel and one that is replayed: whatever decides which, b wins, and the
 * interval holds both. */
static void test_two_modes_far_from_the_limit_are_judged(void **state)
{
    (void)state;
    static const struct { double gain; bool pass; } cases[] = {{3, true}, {1 / 3.0, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (int i = 0; i < 200; i++) {
            turns_a[i] = 1000 * cases[k].gain * (i % 3 ? 1 : 4 / 3.0) + normal(9, i);
            turns_b[i] = 1000 + normal(10, i);
        }
        const struct gate g = judge(200, 0);
        assert_true(g.judged && g.pass == cases[k].pass && strstr(g.words, "groups well apart"));
        assert_true(g.value > 0.99 * cases[k].gain && g.low < cases[k].gain && g.high > 1.3 * cases[k].gain);
    }
}

/* What was seen, and what to do. */
static void test_what_is_said_of_two_modes(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        turns_a[i] = i % 5 < 2 ? 2000 + i % 3 : 1000 + i % 3;
        turns_b[i] = 1000;
    }
    struct gate g = judge(50, 0);
    assert_string_equal(g.words, "the 50 turns of each in 8 openings fall into two groups well apart: b is about 1.001 times as fast in 60 % of them and "
                        "2.001 times in 40 %. Something else on this machine decides which, so the gain is not known; measure again when it "
                        "is quiet");
    for (int i = 0; i < 50; i++)
        turns_b[i] = i % 2 ? 2000 : 1000;
    g = judge(50, 0);
    assert_string_equal(gate_outcome(&g), "no verdict");
    assert_non_null(strstr(g.words, "fall into groups well apart, each side for itself: b is from 0.500 to 2.001 times as fast"));
}

static void test_one_mode_is_judged(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++) {                /* long tails, as of a scheduler */
        turns_a[i] = 1200 * (1 - 0.15 * log(1 - uniform(20, i)));
        turns_b[i] = 1000 * (1 - 0.15 * log(1 - uniform(21, i)));
    }
    assert_false(modes_in(MOST).two);
    struct gate g = judge(MOST, 0);
    assert_true(g.judged && g.pass && g.low > 1.1 && g.high < 1.3);
    for (int i = 0; i < MOST; i++)
        turns_b[i] = 1200 * (1 - 0.15 * log(1 - uniform(22, i)));
    g = judge(MOST, 0);
    assert_false(g.pass);
    /* few turns, and a few of them far out, are no mode */
    for (int i = 0; i < 12; i++) {
        turns_a[i] = i == 5 ? 3000 : 1300 + 10 * normal(23, i);
        turns_b[i] = 1000 + 10 * normal(24, i);
    }
    g = judge(12, 0);
    assert_true(g.judged && g.pass);
    /* modes that are as near as noise */
    for (int i = 0; i < 100; i++) {
        turns_a[i] = 1000 * (i % 2 ? 1.02 : 1);
        turns_b[i] = 1000;
    }
    assert_false(modes_in(100).two);
}

/* What disturbs both alike, slowly or at once, is in no ratio. */
static void test_drift_is_judged(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++) {
        const double drift = 1 + 1.0 * i / MOST, other_load = i < MOST / 2 ? 1 : 3;
        turns_a[i] = 1250 * drift * other_load * (1 + 0.01 * normal(30, i));
        turns_b[i] = 1000 * drift * other_load * (1 + 0.01 * normal(31, i));
    }
    assert_false(modes_in(MOST).two);
    const struct gate g = judge(MOST, 0);
    assert_true(g.judged && fabs(g.value - 1.25) < 0.05);
}

/* A wide interval around the limit says nothing; a narrow one says that nothing was won. */
static void test_a_wide_interval_gives_no_verdict(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        turns_a[i] = 1000 * (1 + 0.4 * uniform(50, i));
        turns_b[i] = 1000 * (1 + 0.4 * uniform(51, i));
    }
    struct gate g = judge(20, 0);
    assert_string_equal(gate_outcome(&g), "no verdict");
    assert_non_null(strstr(g.words, "too wide"));
    for (int i = 0; i < 20; i++) {
        turns_a[i] = 1000 * (1 + 0.01 * uniform(52, i));
        turns_b[i] = 1000 * (1 + 0.01 * uniform(53, i));
    }
    g = judge(20, 0);
    assert_string_equal(gate_outcome(&g), "FAIL");
}

/* What stays as it is through an opening is no group that comes and goes: the interval holds it. */
static void test_openings_are_no_modes(void **state)
{
    (void)state;
    for (int i = 0; i < 80; i++) {
        turns_a[i] = (1000 + normal(40, i)) * (i / 10 % 4 == 0 ? 1.2 : 1);
        turns_b[i] = 1000 + normal(41, i);
    }
    assert_false(modes_in(80).two);
    struct gate g = judge(80, 0);
    assert_string_equal(gate_outcome(&g), "no verdict");
    assert_true(g.low < 1 && g.high > 1.09 && g.openings == 8 && g.turns == 80 && strstr(g.words, "from 80 turns of each in 8 openings, which is too wide"));
    for (int i = 0; i < 80; i++)            /* each side for itself */
        turns_b[i] *= i / 10 % 2 ? 1.15 : 1;
    assert_false(modes_in(80).two);
    for (int i = 0; i < 80; i++)            /* the same within openings comes and goes */
        turns_a[i] = 1000 * (i % 3 == 0 ? 1.2 : 1);
    assert_true(modes_in(80).two);
}

/* ---- other work ---- */

/* Of n pairs those for which i % 3 is 0 are undisturbed, and b wins nothing there; in the others `delay` of the time is gone, and a is twice as slow. */
static void fill_disturbed(int n, double delay, double gain)
{
    lanes = 2;
    for (int i = 0; i < n; i++) {
        const bool quiet = i % 3 == 0;
        delays_a[i] = delays_b[i] = quiet ? 0.01 : delay;
        turns_a[i] = gain * (1000 + normal(60, i)) * (quiet ? 1 : 2);
        turns_b[i] = 1000 + normal(61, i);
    }
}

static void test_disturbed_turns_are_left_out(void **state)
{
    (void)state;
    fill_disturbed(120, 0.25, 1);
    struct gate g = judge(120, 0);
    assert_string_equal(gate_outcome(&g), "FAIL");
    assert_true(g.value > 0.99 && g.value < 1.01 && g.high < 1.01);
    assert_non_null(strstr(g.words, "from 40 turns of each in 8 openings; other work took the cores in 80 others"));
    fill_disturbed(120, 0.25, 1.1);
    g = judge(120, 0);
    assert_string_equal(gate_outcome(&g), "pass");
    lanes = 0;                              /* who does not know of the delay sees turns of two kinds */
    g = judge(120, 0);
    assert_string_equal(gate_outcome(&g), "no verdict");
}

static void test_too_few_undisturbed_turns_give_no_verdict(void **state)
{
    (void)state;
    for (int i = 0; i < 24; i++) {
        turns_a[i] = 1300 + normal(62, i);
        turns_b[i] = 1000 + normal(63, i);
        delays_a[i] = delays_b[i] = i % 8 < 3 ? 0 : 0.4;       /* too few in most openings */
    }
    lanes = 2;
    struct gate g = judge(24, 0);           /* half of the time of a step may be the delay: 1.3 is nothing */
    assert_string_equal(gate_outcome(&g), "no verdict");
    assert_true(g.low > 0.64 && g.low < 0.66 && g.high > 2.59 && g.high < 2.62);
    assert_string_equal(g.words, "other work took the cores for 25 % of the time: a step took 1.3 ms in a and 1 ms in b in 24 turns of each in 8 "
                        "openings; without that b would be from 0.649 to 2.602 times as fast; measure again when the machine is quiet");
    g = judge(24, -1);
    assert_true(g.pass);                    /* nothing is asked for */
    for (int i = 0; i < 24; i++)
        turns_a[i] *= 10;
    g = judge(24, 0);                       /* no delay of that length makes 13 times of it */
    assert_string_equal(gate_outcome(&g), "pass");
    for (int i = 0; i < 24; i++)
        delays_a[i] = delays_b[i] = 0.7;    /* of two threads: nothing is left that is known to be the program's own */
    g = judge(24, 0);
    assert_string_equal(gate_outcome(&g), "no verdict");
    for (int i = 0; i < 24; i++)
        delays_a[i] = delays_b[i] = i % 4 ? 0.01 : 0.03;      /* few are without it, and all of it is next to nothing */
    g = judge(12, 0);
    assert_string_equal(gate_outcome(&g), "pass");
    lanes = 0;
}

/* A config against itself, where delay falls on either side by chance, for as long as other work likes: by turns alone it would be faster or slower in every other case. */
static void test_no_gain_over_itself_beside_other_work(void **state)
{
    (void)state;
    int outside = 0;
    lanes = 2;
    for (uint64_t k = 0; k < 100; k++) {
        const double luck_a = 1 + uniform(100 + k, 0), luck_b = 1 + uniform(300 + k, 0);      /* where threads happen to be, for all of the measurement */
        for (int i = 0; i < 40; i++) {
            const double wait_a = luck_a * exp(0.3 * normal(500 + k, i)), wait_b = luck_b * exp(0.3 * normal(700 + k, i));
            turns_a[i] = 1000 * (1 + wait_a);
            turns_b[i] = 1000 * (1 + wait_b);
            delays_a[i] = wait_a / (1 + wait_a) / 2;
            delays_b[i] = wait_b / (1 + wait_b) / 2;
        }
        const struct gate g = judge(40, 0);
        outside += g.low > 1 || g.high < 1;
    }
    lanes = 0;
    if (outside > 5)
        fail_msg("%d of 100 intervals are without 1", outside);
}

/* ---- one mode is not taken for two by chance, and two are found ---- */

static double by_normal(uint64_t stream, int i) { return 1 + 0.1 * normal(stream, i); }
static double by_lognormal(uint64_t stream, int i) { return exp(0.3 * normal(stream, i)); }
static double by_exponential(uint64_t stream, int i) { return 1 - 0.15 * log(1 - uniform(stream, i)); }
static double by_uniform(uint64_t stream, int i) { return 1 + 0.4 * uniform(stream, i); }
/* One turn in twenty is twice as long. */
static double with_outliers(uint64_t stream, int i)
{
    return (1 + 0.02 * normal(stream, i)) * (uniform(stream + (1 << 20), i) < 0.05 ? 2 : 1);
}

/* Of `cases` measurements of n turns, in how many two modes are seen; b has two where share is above 0. */
static int count_two(double (*noise)(uint64_t stream, int i), int n, double share, int cases)
{
    int two = 0;
    for (int k = 0; k < cases; k++) {
        for (int i = 0; i < n; i++) {
            turns_a[i] = 1000 * noise((uint64_t)(1000 + 2 * k), i) * (uniform((uint64_t)(9000 + k), i) < share ? 2.5 : 1);
            turns_b[i] = 1000 * noise((uint64_t)(1001 + 2 * k), i);
        }
        two += modes_in(n).two;
    }
    return two;
}

static void test_how_often(void **state)
{
    (void)state;
    static const struct { const char *name; double (*of)(uint64_t stream, int i); } noises[] = {
        {"normal", by_normal}, {"lognormal", by_lognormal}, {"exponential", by_exponential}, {"uniform", by_uniform},
        {"with outliers", with_outliers}};
    static const int counts[] = {10, 12, 15, 20, 40, 100};
    enum { CASES = 1000 };
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            const int wrong = count_two(noises[i].of, counts[k], 0, CASES);
            if (wrong >= CASES / 50)
                fail_msg("%s, %d turns: two modes in %d of %d", noises[i].name, counts[k], wrong, CASES);
        }
    const int found = count_two(by_normal, 40, 0.4, CASES / 10);
    if (found < CASES / 10 * 9 / 10)
        fail_msg("two modes are found in %d of %d", found, CASES / 10);
}

static void test_what_is_settled(void **state)
{
    (void)state;
    const struct { double low, value, high, limit; bool settled; } cases[] = {
        {0.9, 1.1, 1.3, 1, false}, {1.05, 1.1, 1.3, 1, true}, {0.7, 0.8, 0.99, 1, true}, {0.995, 1.0, 1.01, 1, true},
        {1.2, 1.25, 1.4, 1.3, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct speed s = {.ratio = {.value = cases[i].value, .low = cases[i].low, .high = cases[i].high}};
        assert_int_equal(speed_is_settled(&s, cases[i].limit), cases[i].settled);
        s.modes = (struct modes){.two = true, .low = 0.9, .high = 1.5, .below = 0.9, .above = 1.5};
        assert_false(speed_is_settled(&s, cases[i].limit));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_modes_give_no_verdict), cmocka_unit_test(test_two_modes_that_agree_give_no_verdict),
        cmocka_unit_test(test_two_modes_far_from_the_limit_are_judged),
        cmocka_unit_test(test_what_is_said_of_two_modes), cmocka_unit_test(test_one_mode_is_judged),
        cmocka_unit_test(test_drift_is_judged),           cmocka_unit_test(test_a_wide_interval_gives_no_verdict),
        cmocka_unit_test(test_openings_are_no_modes),    cmocka_unit_test(test_disturbed_turns_are_left_out), cmocka_unit_test(test_too_few_undisturbed_turns_give_no_verdict),
        cmocka_unit_test(test_no_gain_over_itself_beside_other_work),
        cmocka_unit_test(test_how_often),                 cmocka_unit_test(test_what_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
