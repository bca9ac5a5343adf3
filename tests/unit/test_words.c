/* The answers in words: what bounds the step, the largest bottleneck, what to do first, what gain is realistic. */
#include "analyze/rules.h"
#include "core/show.h"
#include "unit/profiled.h"

/* An embedding, a mask and two host reads, with gaps: enough to be bound by anything. */
enum { EMBED, MASK, SQUARES, READ, OPS };

static struct profiled mixed(double embed_us, double mask_us, double read_us)
{
    struct program *p = program_new("mixed");
    const value_id table = program_add_parameter(p, "table", shape_of(2, (int64_t)5, (int64_t)4), ROLE_EMBEDDING,
                                                 INIT_NORMAL, 0.02f);
    p->tokens = program_add_value(p, "tokens", VALUE_INPUT, I32, shape_of(2, (int64_t)2, (int64_t)3));
    const value_id e = program_emit(p, OP_EMBED, NONE, "emb", 2, table, p->tokens);
    program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 3}, "mask", 0);
    program_emit(p, OP_HOST_READ, NONE, "host.sum", 1, program_emit(p, OP_SUM_SQUARES, NONE, "sum", 1, e));
    struct profiled x = profiled_new(p);
    assert_int_equal(p->n_ops, OPS);
    x.facts.batch = 0;                              /* unknown: no word about the batch */
    x.profile.ops[EMBED].self_us = embed_us;
    x.profile.ops[MASK].self_us = mask_us;
    x.profile.ops[READ].self_us = read_us;
    return x;
}

static void answer(struct profiled *x)
{
    add_up(x);
    run_detect(x);
}

/* ---- bound by ---- */

static void test_bound_by_compute_and_memory(void **state)
{
    (void)state;
    struct profiled x = mixed(80, 20, 0);
    x.profile.ops[EMBED].floor_us = 60;
    answer(&x);
    assert_string_equal(x.profile.bound_by, "compute");
    assert_string_equal(x.profile.headline, "This step is bound by compute: 100 % of its 100 µs is in ops that "
                                            "arithmetic limits, which run at 60 % of their roofline");
    x.profile.ops[EMBED].memory_bound = true;
    answer(&x);
    assert_string_equal(x.profile.bound_by, "memory");
    assert_string_equal(x.profile.headline, "This step is bound by memory: 80 % of its 100 µs is in ops that memory "
                                            "traffic limits, which run at 75 % of their roofline");
    profiled_release(&x);
}

static void test_bound_by_overhead(void **state)
{
    (void)state;
    struct profiled x = mixed(40, 0, 0);
    add_gap(&x, "dispatch", 20);
    add_gap(&x, "thread imbalance", 25);
    add_gap(&x, "host", 10);
    add_gap(&x, "upload", 5);
    answer(&x);
    assert_string_equal(x.profile.bound_by, "overhead");
    assert_string_equal(x.profile.headline, "This step is bound by overhead: of its 100 µs, dispatch takes 20 %, "
                                            "thread imbalance 25 %, host and upload 15 %, around 4 ops");
    profiled_release(&x);
}

static void test_bound_by_data(void **state)
{
    (void)state;
    struct profiled x = mixed(40, 0, 0);
    add_gap(&x, "loader wait", 60);
    answer(&x);
    assert_string_equal(x.profile.bound_by, "data");
    assert_string_equal(x.profile.headline,
                        "This step is bound by data: 60 % of its 100 µs is spent waiting for batches");
    assert_text(x.profile.largest,
                "waiting for data: 60 µs, 60.0 % of the step; the largest kind of op, embed, takes 40.0 %");
    profiled_release(&x);
}

/* Where a run waits longer for data than the step in the middle did, sentences name the time that their shares are of, and say what is in it. */
static void test_step_with_the_mean_wait(void **state)
{
    (void)state;
    struct profiled x = mixed(80, 20, 0);
    x.facts.data_wait_us = 100;                     /* of 200 in the mean */
    answer(&x);
    assert_text(x.profile.headline, "50 % of its 200 µs with the mean wait for data");
    assert_text(x.profile.largest, "100 µs, 50.0 % of the step with the mean wait for data");
    assert_text(find(&x, "data-stall")->evidence, "waits 100 µs of the 200 µs step with the mean wait for data");
    assert_text(find(&x, "constant-rebuilt")->evidence, "1 constant (1 distinct) takes 20 µs of the 200 µs step with the mean wait for data");
    assert_text(x.profile.realistic_gain, "the step from 200 µs with the mean wait for data to 130 µs, by ");    /* without masks and half of the wait */
    for (int i = 0; i < x.profile.n_findings; i++)
        assert_null(strstr(x.profile.findings[i].evidence, "100 µs step"));
    x.facts.data_wait_us = 0.4;                     /* does not show */
    answer(&x);
    assert_text(x.profile.headline, "of its 100 µs is in ops");
    assert_true(fabs(find(&x, "constant-rebuilt")->share - 0.2) < 1e-9);       /* of the step that is named */
    profiled_release(&x);
}

/* Sentences and tables have the same digits of a number. */
static void test_digits_of_sentences(void **state)
{
    (void)state;
    static const double numbers[] = {0, 0.004, 4, 12.34, 999.4, 999.6, 99960, 1.2345e6, 12.345e6, 123.45e6, 1.2345e10};
    struct arena a = {0};
    number_text n;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_string_equal(text_us(&a, numbers[i]), show_us(numbers[i], n));
        assert_string_equal(text_bytes(&a, numbers[i]), show_bytes(numbers[i], n));
    }
    assert_string_equal(text_us(&a, 999.6), "1.00 ms");
    assert_string_equal(text_us(&a, 12.345e6), "12.3 s");
    assert_string_equal(text_bytes(&a, 123.45e6), "123 MB");
    arena_release(&a);
}

/* ---- a machine that is not ours alone ---- */

/* Threads lose 30 of 100 to each other, 40 is arithmetic: what to do first is in the headline, too. */
static void test_headline_and_advice_agree(void **state)
{
    (void)state;
    struct profiled x = mixed(70, 0, 0);
    x.facts.threads = x.facts.usable_cores = 2;
    add_gap(&x, "thread imbalance", 30);
    answer(&x);
    assert_string_equal(x.profile.findings[0].rule, "cpu-oversubscribed");
    assert_string_equal(x.profile.bound_by, "threads");
    assert_string_equal(x.profile.headline, "This step is held back by threads that wait for each other: they lose 30 % of its 100 µs; what is "
                                            "left is bound by compute");
    assert_text(x.profile.first_action, "cpu-oversubscribed");
    x.profile.ops[MASK].self_us = 40;               /* now masks are worth more */
    answer(&x);
    assert_string_equal(x.profile.findings[0].rule, "constant-rebuilt");
    assert_string_equal(x.profile.bound_by, "compute");
    profiled_release(&x);
}

static void warns(struct profiled *x, const char *words)
{
    answer(x);
    if (words)
        assert_text(x->profile.warning, words);
    else
        assert_null(x->profile.warning);
    profiled_release(x);
}

static void check_warning(double delayed, double preemptions, int threads, const char *words)
{
    struct profiled x = mixed(100, 0, 0);
    x.profile.delayed_share = delayed;
    x.profile.preemptions_per_s = preemptions;
    x.facts.threads = threads;
    x.facts.usable_cores = 2;
    warns(&x, words);
}

static void test_warning(void **state)
{
    (void)state;
    check_warning(0.04, 20000, 2, NULL);            /* the scheduler's own word counts more */
    check_warning(0.25, 100, 2, "Other work took the cores away for 25 % of the time while this was measured");
    check_warning(-1, 100, 2, NULL);
    check_warning(-1, 20000, 2, "Other work took the cores away 20000 times a second");
    check_warning(0.5, 20000, 4, NULL);             /* four threads on two cores: that is a finding */
}

/* Cores that other systems share: no program here took them, and yet they have less than they can. */
static void check_pace(double pace, double clock, double delayed, const char *words)
{
    struct profiled x = mixed(100, 0, 0);
    x.profile.delayed_share = delayed;
    x.profile.pace_share = pace;
    x.profile.clock_share = clock;
    x.profile.mfu_percent = 24;
    warns(&x, words);
}

static void test_pace(void **state)
{
    (void)state;
    check_pace(0, 0, 0, NULL);                      /* not known */
    check_pace(0.5, 0, 0.01, NULL);
    check_pace(0.85, 0.9, 0, NULL);
    check_pace(0.2, 1, 0, NULL);                    /* less than the step had */
    check_pace(0.5, 1, 0.01, "The cores did small products of f32 at 50 % of their best");
    check_pace(0.5, 1, 0.01, "their clock is as high as ever, so other threads run on the same cores (hyperthreads");
    check_pace(0.5, 0.52, 0.01, "heat or power holds their clock down, at 52 % of its best");
    check_pace(0.5, 0.88, 0.01, "their clock is at 88 % of its best, and other threads run on the same cores");
    check_pace(0.5, 1, 0.01, "MFU is 48 %");
    check_pace(0.5, 1, 0.3, "Other work took the cores away for 30 % of the time");
}

/* ---- bands ---- */

static void check_band(double mfu, const char *band)
{
    struct profiled x = mixed(1, 0, 0);
    x.profile.mfu_percent = mfu;
    answer(&x);
    assert_string_equal(x.profile.mfu_band, band);
    profiled_release(&x);
}

static void test_mfu_bands(void **state)
{
    (void)state;
    check_band(0, "< 20 %");
    check_band(19.99, "< 20 %");
    check_band(20, "20-40 %");
    check_band(39.99, "20-40 %");
    check_band(40, "40-60 %");
    check_band(60, "40-60 %");
    check_band(60.01, "> 60 %");
    check_band(NAN, "< 20 %");
}

/* ---- the largest bottleneck ---- */

static void test_largest_and_most_lost(void **state)
{
    (void)state;
    struct profiled x = mixed(70, 30, 0);
    x.profile.ops[EMBED].floor_us = 63;             /* 7 beyond its roofline; the mask is 30 beyond */
    answer(&x);
    assert_string_equal(x.profile.largest, "embed: 70 µs in 1 op, 70.0 % of the step, at 90 % of its roofline; most "
                                           "time beyond the roofline is in causal_mask: 30 µs");
    profiled_release(&x);
}

/* ---- what to do first ---- */

static void test_first_action_is_the_best_finding(void **state)
{
    (void)state;
    struct profiled x = mixed(70, 20, 10);
    answer(&x);
    assert_string_equal(x.profile.findings[0].rule, "constant-rebuilt");
    assert_string_equal(x.profile.first_action, "constant-rebuilt (mask): --set optimize.hoist-constants=on: each mask and "
                        "table is built once and kept. Expected 1.25×, 1.25× to 1.25×");
    profiled_release(&x);
}

static void test_nothing_is_left(void **state)
{
    (void)state;
    struct profiled x = mixed(99, 1, 0);
    answer(&x);
    assert_string_equal(x.profile.first_action, "Nothing above 2 % is left; the most is constant-rebuilt with 1.0 %");
    assert_text(x.profile.realistic_gain, "Less than 2 %: 1.01×");
    profiled_release(&x);
}

/* ---- what gain is realistic ---- */

static void test_gains_that_do_not_overlap_add_up(void **state)
{
    (void)state;
    struct profiled x = mixed(50, 20, 10);          /* without mask, read and half of the wait: 100 to 60 */
    add_gap(&x, "loader wait", 20);
    answer(&x);
    assert_string_equal(x.profile.realistic_gain,
                        "1.67× (1.43× to 2.00×), the step from 100 µs to 60 µs, by constant-rebuilt, data-stall, host-sync");
    profiled_release(&x);
}

/* Dispatch is counted once: host-bound wins half of it, or the findings win that of their ops. */
static void test_overlapping_gains_are_counted_once(void **state)
{
    (void)state;
    struct profiled x = mixed(40, 0, 0);
    add_gap(&x, "dispatch", 60);                    /* 15 per op: mask and read 30; host-bound 30 too, and 60 at best */
    answer(&x);
    assert_non_null(find(&x, "host-bound"));
    assert_text(x.profile.realistic_gain, "1.43× (1.00× to 1.43×), the step from 100 µs to 70 µs, by ");     /* the interval is theirs, too */
    assert_null(strstr(x.profile.realistic_gain, "host-bound"));
    x.profile.gaps[0].us = 20;
    add_gap(&x, "host", 40);                        /* of 60, 30 by host-bound; the two ops have 10 */
    answer(&x);
    assert_text(x.profile.realistic_gain, "1.43× (1.00× to 2.50×), the step from 100 µs to 70 µs, by host-bound");
    assert_null(strstr(x.profile.realistic_gain, "constant-rebuilt"));
    profiled_release(&x);
}

/* Half of the step seems to be waiting, but the ops that stay need 90 of 100 by their roofline. */
static void test_gain_is_capped_by_the_roofline(void **state)
{
    (void)state;
    struct profiled x = mixed(90, 0, 0);
    x.profile.ops[EMBED].floor_us = 90;
    x.facts.threads = 1;
    x.facts.usable_cores = 2;
    add_gap(&x, "loader wait", 50);
    add_up(&x);
    x.profile.step_us = 100;                    /* less than its parts, as medians may be */
    run_detect(&x);
    assert_near(find(&x, "data-stall")->speedup, 2, 1e-9, "speedup of the finding alone");
    assert_text(x.profile.realistic_gain, "1.11× (1.11× to 1.11×)");
    assert_text(x.profile.realistic_gain, "roofline of the program as it stands is 90 µs");
    profiled_release(&x);
}

/* Evaluation is no part of the step: the gain is then of both together. */
static void test_gain_with_evaluation(void **state)
{
    (void)state;
    struct profiled x = mixed(80, 20, 0);
    x.facts.eval_us_per_step = 100;
    x.facts.eval_every_steps = 10;
    answer(&x);                                     /* 200 without 20 of masks and all evaluation but 2.04 */
    assert_text(x.profile.realistic_gain, "2.44× (1.54× to 2.50×) of steps with their evaluation, the step from 100 µs to 80 µs, by "
                "eval-share, constant-rebuilt");
    profiled_release(&x);
}

/* ---- the roadmap ---- */

/* Mask and read take little effort, the wait of the host more, the batch gives something for it. */
static void test_phases_add_up_to_the_realistic_gain(void **state)
{
    (void)state;
    struct profiled x = mixed(40, 10, 10);
    add_gap(&x, "host", 40);
    answer(&x);
    const struct profile *p = &x.profile;
    assert_true(p->n_phases >= 2);
    assert_string_equal(p->phases[0].title, "Quick wins");
    double before = 1;
    for (int i = 0; i < p->n_phases; i++) {
        const struct plan_phase *f = &p->phases[i];
        assert_true(f->n > 0 && f->speedup >= before && f->low <= f->speedup && f->speedup <= f->high);
        for (int k = 0; k < f->n; k++)
            assert_true(i > 0 || p->findings[f->findings[k]].effort == EFFORT_LOW);
        before = f->speedup;
    }
    char all[32];
    snprintf(all, sizeof all, "%.2f× (", before);
    assert_memory_equal(p->realistic_gain, all, strlen(all));
    profiled_release(&x);
}

static void test_trades_come_last(void **state)
{
    (void)state;
    struct profiled x = mixed(80, 20, 0);
    x.facts.eval_us_per_step = 100;
    x.facts.eval_every_steps = 10;
    answer(&x);
    const struct plan_phase *last = &x.profile.phases[x.profile.n_phases - 1];
    assert_int_equal(x.profile.n_phases, 2);
    assert_string_equal(last->title, "Trades");
    assert_string_equal(x.profile.findings[last->findings[0]].rule, "eval-share");
    assert_near(x.profile.phases[0].speedup, 200 / 180.0, 1e-9, "masks alone, of steps with their evaluation");
    assert_near(last->speedup, 200 / (80 + 100 * 0.02 / 0.98), 1e-9, "both");
    for (int i = 0; i < 2; i++) {                   /* no phase wins more of the step than masks are */
        assert_near(x.profile.phases[i].step_us, 80, 1e-9, "the step");
        assert_true(x.profile.phases[i].with_evaluation);
    }
    profiled_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_by_compute_and_memory),
        cmocka_unit_test(test_bound_by_overhead),
        cmocka_unit_test(test_bound_by_data),
        cmocka_unit_test(test_step_with_the_mean_wait),
        cmocka_unit_test(test_digits_of_sentences),
        cmocka_unit_test(test_headline_and_advice_agree),
        cmocka_unit_test(test_warning),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_mfu_bands),
        cmocka_unit_test(test_largest_and_most_lost),
        cmocka_unit_test(test_first_action_is_the_best_finding),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_gains_that_do_not_overlap_add_up),
        cmocka_unit_test(test_overlapping_gains_are_counted_once),
        cmocka_unit_test(test_gain_is_capped_by_the_roofline),
        cmocka_unit_test(test_gain_with_evaluation),
        cmocka_unit_test(test_phases_add_up_to_the_realistic_gain),
        cmocka_unit_test(test_trades_come_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
