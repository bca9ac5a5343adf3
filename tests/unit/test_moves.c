/* What tune can do: predictions, and proposals of passes and settings. */
#include <math.h>
#include <string.h>

#include "passes/passes.h"
#include "prove/moves.h"
#include "support/check.h"

static const char TINY[] =
    "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 2, accumulate: 4, steps: 50, lr: 1.0e-2, warmup: 0}\n"
    "eval: {every: 1, batches: 8}\n"
    "optimize: {passes: none}\n"
    "verify: {steps: 4, seconds: 0.02}\n"
    "threads: 2\n";

static struct config tiny(const char *set)
{
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", TINY, sizeof TINY - 1, &set, set ? 1 : 0, &err), err);
    return c;
}

static struct peaks some_peaks(void)
{
    return (struct peaks){.threads = 2, .gflops[NUMBERS_F32] = 50, .copy_gb_per_s = {80, 60, 40, 10},
                          .cache_bytes = {65536, 1 << 20, 32 << 20, 8e9}};
}

static struct situation measured(const struct config *c)
{
    struct situation s;
    struct error err;
    const struct peaks peaks = some_peaks();
    assert_ok(situation_measure(&s, c, &(struct situation_options){.steps = 4, .peaks = &peaks}, &err), err);
    return s;
}

static struct move move_named(const char *name)
{
    struct move m;
    for (int i = 0; move_get(i, &m); i++)
        if (!strcmp(m.name, name))
            return m;
    fail_msg("no move %s", name);
    return m;
}

static struct proposal proposed(const struct situation *s, const char *name)
{
    const struct move m = move_named(name);
    struct proposal p;
    struct error err;
    assert_ok(m.propose(&p, s, m.pass, &err), err);
    return p;
}

/* The same when these are all the findings. */
static struct proposal proposed_on(struct situation *s, struct finding *findings, int n, const char *name)
{
    struct finding *const found = s->p.findings;
    const int n_found = s->p.n_findings;
    s->p.findings = findings;
    s->p.n_findings = n;
    const struct proposal p = proposed(s, name);
    s->p.findings = found;
    s->p.n_findings = n_found;
    return p;
}

static void test_every_pass_is_a_move(void **state)
{
    (void)state;
    struct move m, other;
    int passes = 0, all = 0;
    for (; pass_table[passes].name; passes++) {
        assert_true(move_get(passes, &m));
        assert_string_equal(m.name, pass_table[passes].name);
        assert_int_equal(m.pass, passes);
    }
    for (; move_get(all, &m); all++) {
        assert_true(m.what && m.propose && (m.off ? !m.answers : rule_text_find(m.answers) != NULL));
        assert_int_equal(m.off, !strncmp(m.name, "without ", 8));
        for (int i = 0; i < all && move_get(i, &other); i++)
            assert_string_not_equal(m.name, other.name);
    }
    assert_true(all > passes && all <= 64 && all <= TUNE_IDEAS);
    assert_int_equal(move_phase(&(struct move){.effort = PASS_LOW}), PHASE_QUICK);
    assert_int_equal(move_phase(&(struct move){.effort = PASS_MEDIUM}), PHASE_REWRITE);
    assert_int_equal(move_phase(&(struct move){.trade = true}), PHASE_TRADE);
}

/* A program is predicted to take what it took; without some of its ops, as much less as they took. */
static void test_prediction(void **state)
{
    (void)state;
    const struct config c = tiny(NULL);
    struct situation s = measured(&c);
    for (int i = 0; i < s.p.n_ops; i++) {   /* in place of what was measured, so that other work on the machine does not matter */
        s.p.ops[i].self_us = op_runs_per_step(s.m.program, &s.m.program->ops[i]);
        s.p.ops[i].imbalance_us = 0;
    }
    s.p.step_us = 1000;
    const double same = predict_step_us(&s.p, s.m.program, s.m.program);
    assert_near(same, 1000, 1e-6, "the program itself");

    struct config next = s.m.config;
    struct program *then;
    struct error err;
    next.train.accumulate = 2;              /* half of the micro-batches */
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    const double half = predict_step_us(&s.p, s.m.program, then);
    assert_true(half < 0.75 * same && half > 0.4 * same);
    program_free(then);

    next = s.m.config;                      /* smaller micro-batches, of which the cache could hold all: ops read what was just written, and win nothing by it */
    next.train.batch_size = 1;
    next.train.accumulate = 8;
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    const struct peaks usual = s.p.peaks;
    s.p.peaks.cache_bytes[0] = s.p.peaks.cache_bytes[1] = 16;
    s.p.peaks.cache_bytes[2] = (pass_planned_bytes(then) + pass_planned_bytes(s.m.program)) / 2;
    s.p.peaks.copy_gb_per_s[3] = 0.1;
    s.p.step_us = 0;                        /* nothing lies between ops */
    assert_true(predict_step_us(&s.p, s.m.program, then) > 0.95 * predict_step_us(&s.p, s.m.program, s.m.program));
    s.p.peaks = usual;
    /* Some of the pieces fit in a cache that is a hundred times as fast, and weights are read more often: ops that take much longer than all traffic win nothing by the former. */
    for (int i = 0; i < 3; i++) {
        s.p.peaks.cache_bytes[i] = 4096;
        s.p.peaks.copy_gb_per_s[i] = 1e4;
    }
    s.p.peaks.copy_gb_per_s[3] = 100;
    for (int i = 0; i < NUMBERS; i++)
        s.p.peaks.gflops[i] = 1e9;
    const double pieces = predict_step_us(&s.p, s.m.program, then), whole = predict_step_us(&s.p, s.m.program, s.m.program);
    if (!(pieces > 1.1 * whole))
        fail_msg("smaller pieces are predicted to take %.4g of %.4g us", pieces, whole);
    s.p.peaks = usual;
    s.p.step_us = 1000;
    program_free(then);

    next = s.m.config;                      /* fewer bits; less is won where a kernel alone costs more than its work */
    next.device = DEVICE_CUDA;
    next.optimize.precision = PRECISION_BF16;
    s.p.peaks.gflops[NUMBERS_BF16] = 100 * s.p.peaks.gflops[NUMBERS_F32];
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    const double narrow = predict_step_us(&s.p, s.m.program, then);
    s.p.peaks.gpu.replayed_us = 1e6;
    const double launches = predict_step_us(&s.p, s.m.program, then);
    assert_true(narrow < 0.9 * same && launches > narrow);
    s.p.peaks.gpu.replayed_us = 0;
    program_free(then);

    next = s.m.config;                      /* captured: what lies between kernels shrinks as starting them does, and nothing else */
    next.device = DEVICE_CUDA;
    struct program *launched;
    assert_ok(train_step_program(&launched, &next, 50, NULL, &err), err);
    next = config_with_passes(&next, (pass_set)1 << pass_find("capture"));
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    assert_true(launched->launched && !launched->captured && then->captured && then->n_ops == launched->n_ops);
    s.p.peaks.gpu.replayed_us = 0.5;
    s.p.peaks.gpu.launched_us = 5;
    double between = 1000;
    for (int i = 0; i < s.p.n_ops; i++)
        between -= s.p.ops[i].self_us;
    assert_near(predict_step_us(&s.p, launched, then), 1000 - 0.9 * between, 1e-6, "captured");
    assert_near(predict_step_us(&s.p, launched, launched), 1000, 1e-6, "launched");
    s.p.peaks.gpu.replayed_us = s.p.peaks.gpu.launched_us = 0;
    program_free(launched);
    program_free(then);

    double work = 0;                        /* with fewer meetings it takes that and some of the rest: its threads meet less often */
    for (int i = 0; i < s.p.n_ops; i++)
        work += s.p.ops[i].self_us;
    next = config_with_passes(&s.m.config, (pass_set)1 << pass_find("fewer-meetings"));
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    const double rest = predict_step_us(&s.p, s.m.program, then) - work;
    assert_true(work < same && rest < 0.8 * (same - work) && rest > 0.2 * (same - work));
    program_free(then);
    situation_release(&s);
}

static void test_batch_size(void **state)
{
    (void)state;
    const struct config c = tiny(NULL), dropping = tiny("model.dropout=0.1");
    struct situation s = measured(&c);
    const struct proposal p = proposed(&s, "batch-size");
    assert_int_equal(p.places, 1);          /* eight micro-batches of this size cost more dispatch than one */
    assert_true(p.predicted > 1 && p.next.train.batch_size > 2);
    assert_int_equal(p.next.train.batch_size * p.next.train.accumulate, 8);
    assert_int_equal(p.next.eval.batch_size, 2);
    assert_non_null(strstr(p.change, "train.batch_size: "));
    situation_release(&s);
    s = measured(&dropping);
    assert_int_equal(proposed(&s, "batch-size").places, 0);
    situation_release(&s);
}

static void test_evaluation(void **state)
{
    (void)state;
    const struct config c = tiny(NULL);
    struct situation s = measured(&c);
    struct finding share = {.rule = "eval-share", .speedup = 1.4};
    assert_true(s.m.evaluation_us > 0 && s.m.evaluations.every == 1 && s.m.evaluations.steps == s.m.total_steps);
    s.p.step_us = 1000;
    s.m.evaluation_us = 500;
    s.m.evaluations.steps = 1000;
    const struct proposal p = proposed_on(&s, &share, 1, "eval-schedule");
    assert_true(p.places == 1 && p.next.eval.every.n == 25 && !p.next.eval.every.epochs);       /* 500 / 25 is 2 % of 1020 */
    assert_near(p.predicted, 1.4, 0, "what the finding expects");
    assert_int_equal(proposed_on(&s, &share, 0, "eval-schedule").places, 0);
    s.m.evaluation_us = 1e9;
    assert_int_equal(proposed_on(&s, &share, 1, "eval-schedule").next.eval.every.n, 1000);      /* once, at the end, and not beyond it */
    s.m.evaluations.every = 2000;                           /* once, as it is */
    assert_int_equal(proposed_on(&s, &share, 1, "eval-schedule").places, 0);
    situation_release(&s);
}

static void test_loader(void **state)
{
    (void)state;
    const struct config c = tiny("data.workers=1");
    struct situation s = measured(&c);
    struct finding stall = {.rule = "data-stall", .speedup = 1.25};
    const struct proposal p = proposed_on(&s, &stall, 1, "loader");
    assert_true(p.places == 1 && p.next.data.workers == 2 && p.next.data.prefetch > c.data.prefetch);
    assert_near(p.predicted, 1.25, 0, "what the finding expects");
    assert_int_equal(proposed_on(&s, &stall, 0, "loader").places, 0);
    situation_release(&s);
}

static bool is_proposed(const struct situation *s, const char *name) { return proposed(s, name).places > 0; }

/* Only what is on, does something and has no key of its own in the config is switched off to see; recompute is there for need alone. */
static void test_without(void **state)
{
    (void)state;
    struct config c = tiny("optimize.passes=all");
    c.optimize.pass[pass_find("fuse-qkv")] = PASS_ON;
    struct situation s = measured(&c);
    const struct proposal p = proposed(&s, "without flash-attention");
    assert_true(p.places > 0 && !config_pass_is_on(&p.next, pass_find("flash-attention")) && p.predicted > 0);
    assert_int_equal(config_pass_set(&p.next), config_pass_set(&c) & ~((pass_set)1 << pass_find("flash-attention")));
    assert_string_equal(p.change, "optimize.flash-attention: off");
    assert_false(is_proposed(&s, "without fuse-qkv") || is_proposed(&s, "without recompute") || is_proposed(&s, "without fuse-gate-up") ||
                 is_proposed(&s, "without mixed-precision") || is_proposed(&s, "flash-attention"));
    situation_release(&s);

    c = tiny("optimize.passes=[fuse-loss]");
    c.optimize.precision = PRECISION_BF16;
    s = measured(&c);
    const struct proposal list = proposed(&s, "without fuse-loss"), exact = proposed(&s, "without mixed-precision");
    assert_true(list.places > 0 && list.next.optimize.passes.choice == PASSES_NONE && exact.places > 0);
    assert_string_equal(list.change, "optimize.passes: - fuse-loss");
    assert_string_equal(exact.change, "optimize.precision: f32");
    assert_int_equal(exact.next.optimize.precision, PRECISION_F32);
    assert_true(is_proposed(&s, "fuse-qkv") && !is_proposed(&s, "without fuse-qkv"));
    situation_release(&s);
}

/* Sizes that were timed before are taken at their word: the sweet spot is proposed, with the gain that was measured, and nothing else. */
static void test_batch_of_a_sweep(void **state)
{
    (void)state;
    const struct config c = tiny(NULL);
    struct situation s = measured(&c);
    struct batch_sweep sweep = {.n = 3, .end = BATCHES_LEVEL, .given = 2,
                                .points = {{.batch = 2, .fits = true, .samples_per_s = 100}, {.batch = 4, .fits = true, .samples_per_s = 170},
                                           {.batch = 8, .fits = true, .samples_per_s = 171}}};
    batch_sweep_judge(&sweep);
    s.sweep = &sweep;
    struct proposal p = proposed(&s, "batch-size");
    assert_int_equal(p.places, 1);
    assert_true(fabs(p.predicted - 1.7) < 1e-12);
    assert_string_equal(p.change, "train.batch_size: 4, train.accumulate: 2");
    sweep.points[0].samples_per_s = 180;            /* the given size is the spot: nothing to do */
    batch_sweep_judge(&sweep);
    p = proposed(&s, "batch-size");
    assert_int_equal(p.places, 0);
    situation_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_of_a_sweep),
        cmocka_unit_test(test_every_pass_is_a_move), cmocka_unit_test(test_prediction), cmocka_unit_test(test_batch_size),
        cmocka_unit_test(test_evaluation),           cmocka_unit_test(test_loader),     cmocka_unit_test(test_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
