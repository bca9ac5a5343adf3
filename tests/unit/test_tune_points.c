/* Points around the stages of tune: memory is planned without running anything, also where the machine has not enough of it, and MFU is
 * relative to the peak of the numbers that each of the two programs multiplies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "ops/cpu/cpu.h"
#include "prove/tune_int.h"
#include "support/check.h"
#include "train/train.h"
#include "train/trial.h"
#include "tune_consistent.h"

static struct config config_of(const char *model, const char *optimize)
{
    char text[512];
    struct config c;
    struct error err;
    snprintf(text, sizeof text, "model: {%s, vocab: 128}\ndata: {chars: 20000, workers: 0}\n"
             "train: {batch_size: 3, steps: 10}\noptimize: {%s}\nthreads: 2\n", model, optimize);
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    return c;
}

/* ---- plans ---- */

static void check_plan(const struct config *c)
{
    struct step_plan plan;
    struct trial *t;
    struct error err;
    assert_ok(train_plan_step(&plan, c, &err), err);
    assert_ok(trial_open(&t, c, NULL, NULL, &err), err);
    assert_true(plan.bytes == trial_planned_bytes(t) && plan.ops == trial_ops_per_step(t));
    assert_true(plan.bytes > 0 && plan.ops > 0 && plan.fits);
    trial_free(t);
}

static void test_a_plan_is_what_a_run_takes(void **state)
{
    (void)state;
    static const char *const models[] = {"arch: gpt, dim: 32, layers: 2, heads: 2, seq: 48",
                                         "arch: llama, dim: 32, layers: 1, heads: 4, kv_heads: 2, seq: 70"};
    static const char *const optimize[] = {"passes: none", "passes: all", "passes: all, precision: bf16"};
    for (int m = 0; m < 2; m++)
        for (int o = 0; o < 3; o++) {
            struct config c = config_of(models[m], optimize[o]);
            check_plan(&c);
            c.train.accumulate = 4;
            c.backend.kernels = KERNELS_REFERENCE;
            check_plan(&c);
        }
}

static void test_a_plan_without_data_or_device(void **state)
{
    (void)state;
    struct config c = config_of("arch: gpt, dim: 32, layers: 1, heads: 2, seq: 100000", "passes: all");     /* longer than its data */
    struct step_plan plan;
    struct error err;
    c.train.batch_size = 1;
    assert_ok(train_plan_step(&plan, &c, &err), err);
    c.device = DEVICE_CUDA;
    assert_int_equal(train_plan_step(&plan, &c, &err), CANNOT);
    assert_says(&err, "device is cuda, and ", "; try device: cpu", NULL);
}

/* ---- evaluation ---- */

/* A stage was measured with a step of its own; the result has another. What stays of it is what was measured of evaluation. */
static void test_evaluation_with_the_steps_of_the_result(void **state)
{
    (void)state;
    static struct tune_result r;
    const struct tune_stage evaluation = {.pass = "eval-schedule", .around = true, .outcome = TUNE_KEPT, .measured = 1.0236, .low = 1.02, .high = 1.03,
                                          .evaluation = {.us = 80, .low_us = 70, .high_us = 90, .left = 0.25}};
    r = (struct tune_result){.base = config_of("arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16", ""), .given = "the given config", .n_stages = 1,
                             .speedup = 1, .speedup_low = 1, .speedup_high = 1, .run = {.steps = 3000, .evaluation_before_us = 95, .evaluation_after_us = 21}};
    r.tuned = r.base;
    r.tuned.eval.every.n = 4 * r.base.eval.every.n;
    r.stages[0] = evaluation;
    r.before = r.after = (struct tune_point){.step_us = 1800, .samples_per_s = 1, .tokens_per_s = 16, .planned_bytes = 1e6, .ops = 9};
    tune_settle_evaluation(&r);
    assert_near(r.stages[0].measured, 1880.0 / 1820, 1e-12, "the gain");
    assert_near(r.stages[0].low, 1870.0 / 1817.5, 1e-12, "its low end");
    assert_near(r.stages[0].high, 1890.0 / 1822.5, 1e-12, "its high end");
    assert_consistent_result(&r);
    r.stages[1] = evaluation;                               /* behind a stage that made the step twice as fast */
    r.stages[0] = (struct tune_stage){.pass = "fuse-qkv", .outcome = TUNE_KEPT, .measured = 2, .low = 1.9, .high = 2.1};
    r.n_stages = 2;
    r.run.evaluation_before_us = 95;
    tune_settle_evaluation(&r);
    assert_near(r.stages[1].measured, 980.0 / 920, 1e-12, "the gain behind another");
    assert_true(r.stages[0].measured == 2 && r.run.evaluation_before_us == 95);
    r.before = r.after = (struct tune_point){0};            /* steps that were not measured */
    r.stages[1] = evaluation;
    tune_settle_evaluation(&r);
    assert_true(r.stages[1].measured == 1.0236);
}

/* Rows of several lengths: a profile knows the mean step of the run, a point the usual one. Both say the same of the whole run. */
static void test_the_run_of_a_profile(void **state)
{
    (void)state;
    static struct tune_result r;
    const struct measured m = {.evaluation_us = 3000, .evaluation_scale = 0.25, .evaluations = {.steps = 1000, .every = 10}, .total_steps = 1000};
    struct profile p = {.run = {.steps = 1000, .seconds = 5.075, .evaluation_s = 0.075, .rows_scale = 0.5, .evaluation_scale = 0.25}};
    r = (struct tune_result){.base = config_of("arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16", ""), .given = "the given config", .n_stages = 1,
                             .speedup = 2, .speedup_low = 1.9, .speedup_high = 2.1};
    r.tuned = r.base;
    r.stages[0] = (struct tune_stage){.pass = "fuse-qkv", .outcome = TUNE_KEPT, .measured = 2, .low = 1.9, .high = 2.1};
    r.before = (struct tune_point){.step_us = 2000};
    r.after = (struct tune_point){.step_us = 1000};
    tune_know_run(&r, &m, &p);
    json_t *j = tune_json(&r), *run = json_object_get(j, "run");
    assert_near(tune_number(run, "before_s"), p.run.seconds, 1e-9, "the run before");
    assert_near(tune_number(run, "evaluation_before_s"), p.run.evaluation_s, 1e-9, "evaluation");
    assert_near(tune_number(run, "after_s"), 2.5 + 0.075, 1e-9, "the run after");
    assert_near(tune_number(json_array_get(json_object_get(j, "stages"), 0), "saved_s"), 2.5, 1e-9, "what is saved");
    json_decref(j);
    r.run.steps = 0;
    p.run.rows_scale = 1;                                   /* all of one length: steps are those of the points */
    tune_know_run(&r, &m, &p);
    assert_true(r.run.step_us == 0 && tune_run_step_us(&r, 2000) == 2000);
    const struct measured stopped = {.evaluation_us = NAN, .evaluation_scale = 1, .evaluations = {.steps = 1000, .every = 10}, .total_steps = 1000};
    tune_know_run(&r, &stopped, &p);                        /* stopped after a move was kept: what it was before is known */
    j = tune_json(&r);
    run = json_object_get(j, "run");
    assert_true(tune_number(run, "before_s") > 0 && json_is_null(json_object_get(run, "after_s")) && json_is_null(json_object_get(run, "evaluation_after_s")));
    json_decref(j);
    r.run.steps = 0;
    tune_know_run(&r, &stopped, &p);                        /* stopped in the first look: nothing of the whole run is */
    j = tune_json(&r);
    assert_true(json_is_null(json_object_get(j, "run")));
    json_decref(j);
}

/* ---- sizes ---- */

static struct tune_result result;

static void measure_sizes(const struct config *base, const struct config *now, const struct peaks *peaks, double budget_s)
{
    const struct tune_options o = {.budget_s = budget_s, .peaks = peaks};
    struct tuner t = {.r = &result, .o = &o, .now = *now, .start_s = clock_s()};
    result = (struct tune_result){.base = *base};
    tune_measure_sizes(&t);
}

/* One matrix of scores of the longest sequence is one and a half times the memory that is free; of the config's own it is 1/64. */
static void test_a_length_that_does_not_fit_is_planned(void **state)
{
    (void)state;
    const int64_t seq = 512, longest = 8 * seq;
    const struct peaks peaks = {.threads = 2, .gflops[NUMBERS_F32] = 50};
    struct config base = config_of("arch: gpt, dim: 8, layers: 1, heads: 1, seq: 512", "passes: none");
    struct config now = config_of("arch: gpt, dim: 8, layers: 1, heads: 1, seq: 512", "passes: [flash-attention, fuse-loss]");
    if (cpu_available_bytes() == SIZE_MAX)
        skip();
    base.train.batch_size = now.train.batch_size = (int64_t)(1.5 * (double)cpu_available_bytes()) / (longest * longest * 4) + 1;
    base.model.vocab = 0;                           /* as it is written; the tuner knows it by now */
    measure_sizes(&base, &now, &peaks, 0);
    assert_int_equal(result.n_sizes, 6);
    for (int i = 2; i < 6; i++) {
        const struct tune_size *s = &result.sizes[i];
        assert_true(s->batch == base.train.batch_size && s->seq == seq << (i - 2));
        assert_true(isnan(s->before.step_us) && isnan(s->after.step_us) && s->before.ops > 0);
        assert_true(s->after.planned_bytes < s->before.planned_bytes && !s->after.too_large);
    }
    assert_false(result.sizes[2].before.too_large);
    assert_true(result.sizes[5].before.too_large);
    assert_true(result.sizes[5].before.planned_bytes > (double)(base.train.batch_size * longest * longest * 4));

    /* a size that would be timed if it could be run */
    base.model.dim = now.model.dim = 1 << 20;
    base.model.ffn = now.model.ffn = 4 << 20;
    measure_sizes(&base, &now, &peaks, 100);
    assert_true(result.n_sizes > 0 && result.sizes[0].seq == 128 && isnan(result.sizes[0].before.step_us));
    assert_true(result.sizes[0].before.too_large && result.sizes[0].after.too_large);
}

/* 8 x 128 is judged in any case; where it is the config's own it is not planned once more. */
static void test_a_size_is_there_once(void **state)
{
    (void)state;
    const struct peaks peaks = {.threads = 2, .gflops[NUMBERS_F32] = 50};
    struct config base = config_of("arch: gpt, dim: 8, layers: 1, heads: 1, seq: 128", "passes: none");
    base.train.batch_size = 8;
    measure_sizes(&base, &base, &peaks, 0);
    assert_int_equal(result.n_sizes, 5);
    for (int i = 0; i < result.n_sizes; i++)
        for (int k = 0; k < i; k++)
            assert_false(result.sizes[i].batch == result.sizes[k].batch && result.sizes[i].seq == result.sizes[k].seq);
}

static void test_what_mfu_is_relative_to(void **state)
{
    (void)state;
    const struct peaks peaks = {.threads = 2, .gflops[NUMBERS_F32] = 1e3, .gflops[NUMBERS_BF16] = 4e3};
    const struct config base = config_of("arch: gpt, dim: 16, layers: 1, heads: 2, seq: 16", "passes: none");
    struct config now = base;
    now.optimize.precision = PRECISION_BF16;
    measure_sizes(&base, &now, &peaks, 100);
    const struct tune_point *a = &result.sizes[0].before, *b = &result.sizes[0].after;
    assert_true(result.sizes[0].batch == 8 && a->step_us > 0 && b->step_us > 0);
    assert_true(a->mfu_peak.numbers == NUMBERS_F32 && a->mfu_peak.gflops == 1e3 && b->mfu_peak.numbers == NUMBERS_BF16 && b->mfu_peak.gflops == 4e3);
    /* the same FLOPs of the model in both */
    assert_near(b->mfu_percent * 4 * b->step_us, a->mfu_percent * a->step_us, 1e-6 * a->mfu_percent * a->step_us, "FLOPs over the peak");
    assert_true(!a->too_large && !b->too_large);
}

int main(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);          /* without a GPU, also where there is one */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_is_what_a_run_takes),
        cmocka_unit_test(test_a_plan_without_data_or_device),
        cmocka_unit_test(test_evaluation_with_the_steps_of_the_result),
        cmocka_unit_test(test_the_run_of_a_profile),
        cmocka_unit_test(test_a_length_that_does_not_fit_is_planned),
        cmocka_unit_test(test_a_size_is_there_once), cmocka_unit_test(test_what_mfu_is_relative_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
