/* Findings as a whole: severity, texts, programs that hold nothing, what the host costs, ranking, bounds. */
#include <stdio.h>

#include "core/fs.h"
#include "unit/rule_programs.h"

/* ---- severity, names, texts ---- */

static void test_severity_edges(void **state)
{
    (void)state;
    assert_int_equal(severity_of(2), SEVERITY_CRITICAL);
    assert_int_equal(severity_of(1.9999), SEVERITY_HIGH);
    assert_int_equal(severity_of(1.25), SEVERITY_HIGH);             /* 20 % of the step */
    assert_int_equal(severity_of(1.2499), SEVERITY_MEDIUM);
    assert_int_equal(severity_of(1 / 0.95), SEVERITY_MEDIUM);       /* 5 % */
    assert_int_equal(severity_of(1.0525), SEVERITY_LOW);
    assert_int_equal(severity_of(1), SEVERITY_LOW);
    assert_int_equal(severity_of(0.5), SEVERITY_LOW);
    assert_int_equal(severity_of(0), SEVERITY_LOW);
    assert_int_equal(severity_of(NAN), SEVERITY_LOW);
    assert_int_equal(severity_of(INFINITY), SEVERITY_CRITICAL);
    assert_string_equal(severity_name(SEVERITY_LOW), "low");
    assert_string_equal(severity_name(SEVERITY_CRITICAL), "critical");
    assert_string_equal(effort_name(EFFORT_MEDIUM), "medium");
}

static void test_every_rule_has_a_text(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "host-sync", "constant-rebuilt", "unfused-optimizer", "no-mixed-precision", "no-flash-attention",
        "pageable-copies", "tiny-host-tensors", "data-stall", "eval-share", "small-batch", "launch-bound", "host-bound",
        "per-head-attention", "unfused-projections", "zero-grad-fills", "allocator-churn", "device-to-host-copy",
        "misaligned-dims", "recompute", "exposed-comm", "straggler", "memory-limit", "low-occupancy", "no-clipping",
        "cpu-oversubscribed", "threads-unused", "small-collectives", "layout-copies", "unfused-loss", "unfused-norms", "unfused-activation", "untimed-kernels",
        "ungrouped-nodes", "padding-waste", "anomaly-mode", "unused-gradients", "sample-loop", "emulated-precision"};
    const int n = (int)(sizeof ids / sizeof *ids);
    for (int i = 0; i < n; i++) {
        const struct rule_text *t = &rule_texts[i];
        assert_string_equal(t->id, ids[i]);
        assert_true(strlen(t->summary) > 20 && strlen(t->recognised) > 20 && strlen(t->costs) > 20);
        assert_true(strlen(t->fix_hone) > 20 && strlen(t->fix_pytorch) > 20);
        assert_ptr_equal(rule_text_find(ids[i]), t);
    }
    assert_null(rule_texts[n].id);
    assert_null(rule_text_find("no-such-rule"));
    for (const struct rule *r = rule_table; r->id; r++)
        assert_non_null(rule_text_find(r->id));
}

static void test_docs_are_the_table(void **state)
{
    (void)state;
    char *text, *page = NULL;
    size_t length, page_length = 0;
    FILE *f = open_memstream(&text, &length);
    rule_texts_print(f);
    fclose(f);
    assert_int_equal(fs_read(HONE_CONFIGS "/../docs/rules.md", &page, &page_length, 0, NULL), OK);
    assert_string_equal(page, text);                /* docs/rules.md is what the table says today */
    free(page);
    free(text);
}

/* ---- programs that hold nothing ---- */

static void test_empty_program(void **state)
{
    (void)state;
    struct profiled x = profiled_new(program_new("empty"));
    run_detect(&x);
    assert_int_equal(x.profile.n_findings, 0);
    assert_string_equal(x.profile.bound_by, "overhead");
    assert_non_null(x.profile.headline);
    assert_non_null(x.profile.largest);
    assert_string_equal(x.profile.first_action, "Nothing above 2 % is left");
    assert_text(x.profile.realistic_gain, "Less than 2 %: 1.00×");
    assert_string_equal(x.profile.mfu_band, "< 20 %");
    profiled_release(&x);
}

static void test_one_op(void **state)
{
    (void)state;
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    x.profile.ops[0].self_us = 10;
    add_up(&x);
    run_detect(&x);
    assert_int_equal(x.profile.n_findings, 0);
    profiled_release(&x);
}

/* A whole step of one constant: the gain is large, not infinite. */
static void test_step_of_nothing_but_the_fault(void **state)
{
    (void)state;
    struct program *p = program_new("mask");
    program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 4}, "mask", 0);
    struct profiled x = profiled_new(p);
    x.profile.ops[0].self_us = 10;
    add_up(&x);
    run_detect(&x);
    assert_finding(&x, "constant-rebuilt", 1, 1000, 1000, 1000);
    profiled_release(&x);
}

static void test_other_program_is_refused(void **state)
{
    (void)state;
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    x.profile.n_ops = 0;
    struct error err;
    assert_int_equal(detect(&x.profile, p, &x.facts, &err), BAD_INPUT);
    assert_says(&err, "0 ops", "one has 1", NULL);
    profiled_release(&x);
}

/* Products at their roofline and little else: nothing of medium severity or above. */
static void test_clean_program(void **state)
{
    (void)state;
    struct program *p = program_new("clean");
    value_id y = embedded(p);
    for (int i = 0; i < 4; i++)
        y = product(p, "linear", y, matrix(p, (const char *[]){"w0", "w1", "w2", "w3"}[i], 4, 4));
    with_loss(p, y);
    backward(p);
    struct profiled x = profiled_new(p);
    for (int i = 0; i < p->n_ops; i++)
        x.profile.ops[i] = (struct profile_op){.name = "", .self_us = 1, .floor_us = 0.9, .memory_bound = true};
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_MATMUL)
            x.profile.ops[i] = (struct profile_op){.name = "", .self_us = 200, .floor_us = 190};
    add_gap(&x, "dispatch", 10);
    add_gap(&x, "loader wait", 1);
    x.facts = (struct run_facts){.batch = 2, .threads = 2, .usable_cores = 2, .workers = 2, .clip = 1,
                                 .available_bytes = 1e9, .eval_us_per_step = 10, .eval_every_steps = 100};
    x.profile.peak_bytes = 1e8;
    add_up(&x);
    run_detect(&x);
    for (int i = 0; i < x.profile.n_findings; i++)
        assert_int_equal(x.profile.findings[i].severity, SEVERITY_LOW);
    assert_string_equal(x.profile.bound_by, "compute");
    profiled_release(&x);
}

/* ---- host ---- */

/* Ten ops of 8 µs, two of them host reads; dispatch 20 µs: 2 per op. Step 100. */
static void test_host_sync(void **state)
{
    (void)state;
    struct program *p = program_new("reads");
    with_loss(p, product(p, "y", embedded(p), matrix(p, "w", 4, 4)));       /* 4 ops */
    value_id y = p->loss;
    for (int i = 0; i < 4; i++)
        y = program_emit(p, OP_ADD, NONE, "sum", 2, y, p->loss);
    program_emit(p, OP_HOST_READ, NONE, "host.loss", 1, y);
    program_emit(p, OP_HOST_READ, NONE, "host.first", 1, p->loss);
    struct profiled x = profiled_new(p);
    assert_int_equal(p->n_ops, 10);
    for (int i = 0; i < 10; i++)
        x.profile.ops[i].self_us = 8;
    add_gap(&x, "dispatch", 20);
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "host-sync", 0.20, 100 / 84.0, 100 / 80.0, 100 / 80.0);
    assert_string_equal(f->where, "host.loss and 1 more op");
    assert_text(f->evidence, "2 host_read ops take 20 µs of the 100 µs step");
    /* dispatch is 20 %: half of it is expected to go */
    assert_finding(&x, "host-bound", 0.20, 1, 100 / 90.0, 100 / 80.0);
    profiled_release(&x);
}

static void test_little_dispatch_is_not_host_bound(void **state)
{
    (void)state;
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    x.profile.ops[0].self_us = 96;
    add_gap(&x, "dispatch", 2);
    add_gap(&x, "host", 2);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "host-bound"));            /* 4 % */
    x.profile.gaps[1].us = 14;
    x.profile.ops[0].self_us = 84;
    run_detect(&x);
    assert_finding(&x, "host-bound", 0.16, 1, 100 / 92.0, 100 / 84.0);
    profiled_release(&x);
}

/* ---- all of them together ---- */

static void check_bounds(const struct profiled *x)
{
    for (int i = 0; i < x->profile.n_findings; i++) {
        const struct finding *f = &x->profile.findings[i];
        assert_true(f->share >= 0 && f->share <= 1);
        assert_true(f->speedup_low >= 1 && f->speedup_low <= f->speedup && f->speedup <= f->speedup_high);
        assert_true(1 - 1 / f->speedup_high <= f->share + 1e-9);        /* no more than the time involved */
        assert_true(f->where[0] && f->cause[0] && f->fix[0] && f->evidence[0]);
        assert_int_equal(f->severity, severity_of(f->speedup));
        assert_int_equal(f->effort, rule_text_find(f->rule)->effort);
        if (i)
            assert_true(f[-1].speedup >= f->speedup);
    }
}

/* Any times, any gaps: bounds and ranking hold. Every third number is absurd when `absurd` is set. */
static void check_random(struct profiled *x, uint64_t stream, bool absurd)
{
    static const double odd[] = {NAN, INFINITY, -1e9, 1e300, 0};
    uint64_t at = 0;
    for (int i = 0; i < x->profile.n_ops; i++) {
        struct profile_op *op = &x->profile.ops[i];
        double *const numbers[] = {&op->self_us, &op->imbalance_us, &op->floor_us};
        for (int k = 0; k < 3; k++, at++)
            *numbers[k] = absurd && at % 3 == 0 ? odd[at / 3 % 5] : (double)rng_below(5, stream, at, 1000) / (k + 1);
        op->memory_bound = rng_below(5, stream, at++, 2);
    }
    x->profile.n_gaps = 0;
    for (int k = 0; k < 5; k++, at++)
        add_gap(x, (const char *[]){"loader wait", "upload", "thread imbalance", "dispatch", "host"}[k],
                absurd && k % 2 ? odd[k] : (double)rng_below(5, stream, at, 5000));
    add_up(x);
    run_detect(x);
    check_bounds(x);
    assert_true(x->profile.headline && x->profile.largest && x->profile.first_action && x->profile.realistic_gain);
    assert_null(strstr(x->profile.realistic_gain, "nan"));
    assert_null(strstr(x->profile.realistic_gain, "inf"));
}

static void test_bounds_hold_for_any_times(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct small_model model = small_models[m];
        struct optimizer_settings s = small_settings();
        model.config.dropout = 0.1;
        s.accumulate = m + 1;
        struct profiled x = profiled_new(small_training(model, &s));
        x.facts = (struct run_facts){.batch = 2, .threads = 3, .usable_cores = 2, .eval_us_per_step = 900,
                                     .eval_every_steps = 10, .available_bytes = 1};
        for (uint64_t stream = 0; stream < 10; stream++) {
            check_random(&x, stream, false);
            check_random(&x, stream, true);
        }
        profiled_release(&x);
    }
}

/* The program that people write first shows what people do first; its parts are where they should be. */
static void test_naive_model(void **state)
{
    (void)state;
    struct optimizer_settings s = small_settings();
    struct program *p = small_training(small_models[SMALL_LLAMA], &s);
    struct profiled x = profiled_new(p);
    for (int i = 0; i < p->n_ops; i++)
        x.profile.ops[i].self_us = 1;
    add_up(&x);
    run_detect(&x);
    check_bounds(&x);
    static const char *const expected[] = {"host-sync", "constant-rebuilt", "unfused-optimizer", "unfused-projections",
                                           "no-flash-attention"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_non_null(find(&x, expected[i]));
    static const char *const absent[] = {"recompute", "layout-copies", "no-clipping", "zero-grad-fills", "memory-limit",
                                         "data-stall", "eval-share", "host-bound", "cpu-oversubscribed"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_null(find(&x, absent[i]));
    const double step = p->n_ops;
    assert_near(find(&x, "host-sync")->share, 3 / step, 1e-9, "host reads");
    assert_near(find(&x, "constant-rebuilt")->share, 3 / step, 1e-9, "two masks, one table");
    assert_near(find(&x, "unfused-projections")->share, 2 * (15 + 3) / step, 1e-9, "QKV, gate and up, sums");
    assert_near(find(&x, "no-flash-attention")->share, 2 * 9 / step, 1e-9, "4 forward and 5 backward ops per layer");
    profiled_release(&x);
}

static void test_ranking(void **state)
{
    (void)state;
    struct claim c[4] = {{.finding = {.rule = "a", .speedup = 1.1, .speedup_high = 1.1}},
                         {.finding = {.rule = "b", .speedup = 1.5, .speedup_high = 1.5}},
                         {.finding = {.rule = "c", .speedup = 1.1, .speedup_high = 1.3}},
                         {.finding = {.rule = "d", .speedup = 1.1, .speedup_high = 1.1}}};
    claims_rank(c, 4);
    assert_string_equal(c[0].finding.rule, "b");
    assert_string_equal(c[1].finding.rule, "c");
    assert_string_equal(c[2].finding.rule, "a");    /* equal to d, and before it in the table */
    assert_string_equal(c[3].finding.rule, "d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_severity_edges),
        cmocka_unit_test(test_every_rule_has_a_text),
        cmocka_unit_test(test_docs_are_the_table),
        cmocka_unit_test(test_empty_program),
        cmocka_unit_test(test_one_op),
        cmocka_unit_test(test_step_of_nothing_but_the_fault),
        cmocka_unit_test(test_other_program_is_refused),
        cmocka_unit_test(test_clean_program),
        cmocka_unit_test(test_host_sync),
        cmocka_unit_test(test_little_dispatch_is_not_host_bound),
        cmocka_unit_test(test_bounds_hold_for_any_times),
        cmocka_unit_test(test_naive_model),
        cmocka_unit_test(test_ranking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
