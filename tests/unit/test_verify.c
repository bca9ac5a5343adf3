/* Verdicts: equal configs pass, what was broken on purpose is caught by the right gate, what cannot be compared is refused. */
#include <stdio.h>
#include <stdlib.h>

#include "program/rewrite.h"
#include "prove/prove_int.h"
#include "support/check.h"
#include "verdict_check.h"

static const char TINY[] =
    "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 4, steps: 50, lr: 1.0e-2, warmup: 0}\n"
    "eval: {every: 0, batches: 2}\n"
    "optimize: {passes: none}\n"
    "verify: {steps: 6, seconds: 0.02, min_gain: -1}\n"
    "threads: 2\n";

/* The tiny config with up to three overrides; NULL: fewer. */
static struct config tiny(const char *one, const char *two, const char *three)
{
    const char *sets[] = {one, two, three};
    const int n = !one ? 0 : !two ? 1 : !three ? 2 : 3;
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", TINY, sizeof TINY - 1, sets, n, &err), err);
    return c;
}

static struct verdict verdict_on(struct config a, struct config b, trial_change_fn *change, void *context)
{
    struct verdict v;
    struct error err;
    assert_ok(verify_configs(&v, &a, &b, &(struct verify_options){.change = change, .change_context = context}, &err), err);
    return v;
}

/* --- configs that are equal, or compute the same ------------------------------------------------------------------- */

static void test_equal_configs(void **state)
{
    (void)state;
    /* One thread: two that share a core with other work take steps of a time slice, or of none. What the clock says is not asked. */
    const struct config c = tiny("verify.min_gain=-1", "verify.seconds=0.3", "threads=1");
    const struct verdict v = verdict_on(c, c, NULL, NULL);
    static const char *const order[] = {"gradients", "loss-curve", "validation", "determinism", "memory", "throughput"};
    assert_failed(&v, NULL);
    assert_int_equal(v.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(v.gates[i].name, order[i]);
        assert_true(v.gates[i].words[0] && v.gates[i].value_text[0] && v.gates[i].limit_text[0]);
        assert_true(v.gates[i].judged || (i == 5 && strstr(v.gates[i].words, "groups well apart")));
    }
    assert_near(verdict_gate(&v, "gradients")->value, 0, 0, "the error of equal gradients");
    assert_near(verdict_gate(&v, "loss-curve")->value, 0, 0, "the difference of equal curves");
    assert_near(verdict_gate(&v, "memory")->value, 1, 0, "memory");
    const struct gate *g = verdict_gate(&v, "throughput");
    assert_true(g->low <= g->value && g->value <= g->high && g->a > 0 && g->b > 0);
    assert_true(g->openings >= 3 && g->turns >= g->openings * TURNS_FEWEST && strstr(g->words, " openings"));
    assert_true(!verdict_gate(&v, "memory")->openings && !verdict_gate(&v, "memory")->turns);
    assert_null(verdict_gate(&v, "no such gate"));
}

/* No config is 1.3 times as fast as itself; and the limits are those of the first. */
static void test_gain_is_asked_for(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.min_gain=3", "threads=1", NULL), tiny("threads=1", NULL, NULL), NULL, NULL);
    assert_failed(&v, "throughput", NULL);
    assert_near(verdict_gate(&v, "throughput")->limit, 4, 1e-12, "the limit");
}

static void test_other_kernels_and_threads(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.memory=10", NULL, NULL),
                                        tiny("backend.kernels=reference", "threads=1", "data.workers=1"), NULL, NULL);
    assert_failed(&v, NULL);
    assert_true(verdict_gate(&v, "gradients")->value < 1e-5 && verdict_gate(&v, "gradients")->value > 0);
}

/* Two batches of two are one of four. */
static void test_accumulated_batches(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.memory=10", NULL, NULL),
                                        tiny("train.batch_size=2", "train.accumulate=2", NULL), NULL, NULL);
    assert_failed(&v, NULL);
    assert_true(v.of_b.ops > v.of_a.ops);
}

static void test_no_validation_data(void **state)
{
    (void)state;
    const struct config c = tiny("data.val_fraction=0", NULL, NULL);
    const struct verdict v = verdict_on(c, c, NULL, NULL);
    assert_failed(&v, NULL);
    assert_false(verdict_gate(&v, "validation")->judged);
}

/* --- what is broken on purpose ------------------------------------------------------------------------------------- */

static int find_op(const struct program *p, enum op_kind kind, enum phase phase)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind && p->ops[i].phase == phase)
            return i;
    fail_msg("there is no op %s in phase %s", op_info(kind)->name, phase_name(phase));
    return -1;
}

/* A factor that is wrong by 1 % in the gradient of the values of attention. */
static void scale_gradient(struct program *p, void *context)
{
    (void)context;
    p->ops[find_op(p, OP_ATTN_MIX_T, PHASE_BACKWARD)].attrs.scale *= 1.01f;
}

static void test_wrong_gradient(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.loss=1", NULL, NULL), tiny(NULL, NULL, NULL), scale_gradient, NULL);
    assert_failed(&v, "gradients", NULL);
    assert_near(verdict_gate(&v, "gradients")->value, 0.01, 1e-3, "the error");
    assert_non_null(strstr(verdict_gate(&v, "gradients")->words, "the first gradient of blocks.0."));
}

/* One of two paths of the residual stream is left out of the backward. */
static void drop_path(struct program *p, void *context)
{
    (void)context;
    const int at = find_op(p, OP_ADD, PHASE_BACKWARD);
    const value_id sum = p->ops[at].out[0], one = p->ops[at].in[0];
    program_remove_op(p, at);
    program_replace_value(p, sum, one);
}

static void test_dropped_backward(void **state)
{
    (void)state;
    struct config c = tiny("verify.validation=1", "verify.memory=10", NULL);
    struct verdict v = verdict_on(c, c, drop_path, NULL);
    assert_failed(&v, "gradients", "loss-curve", NULL);
    assert_true(verdict_gate(&v, "gradients")->value > 0.05);
}

/* Right gradients, and an optimizer that goes another way. */
static void raise_rate(struct program *p, void *context)
{
    struct op_attrs *attrs = &p->ops[find_op(p, OP_LR, PHASE_OPTIMIZE)].attrs;
    attrs->lr *= *(const float *)context;
}

static void test_wrong_update(void **state)
{
    (void)state;
    float factor = 1.3f;
    struct config c = tiny("verify.validation=1", NULL, NULL);
    struct verdict v = verdict_on(c, c, raise_rate, &factor);
    assert_failed(&v, "loss-curve", NULL);
    factor = -1;                            /* uphill */
    c = tiny("verify.loss=1", NULL, NULL);
    v = verdict_on(c, c, raise_rate, &factor);
    assert_failed(&v, "validation", NULL);
    assert_true(verdict_gate(&v, "validation")->b > verdict_gate(&v, "validation")->a);
}

/* Dropout whose seed comes from outside: in the first run it is the config's by luck, in the next it is another. */
static void seed_from_outside(struct program *p, void *context)
{
    const int run = (*(int *)context)++;
    find_op(p, OP_DROPOUT, PHASE_FORWARD);
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_DROPOUT)
            p->ops[i].attrs.seed += (uint64_t)run;
}

static void test_nondeterminism(void **state)
{
    (void)state;
    int runs = 0;
    const struct config c = tiny("model.dropout=0.2", NULL, NULL);
    const struct verdict v = verdict_on(c, c, seed_from_outside, &runs);
    assert_true(runs >= 1 + OPENINGS_FEWEST);       /* one that is compared, the openings behind it, and once more */
    assert_failed(&v, "determinism", NULL);
    assert_non_null(strstr(verdict_gate(&v, "determinism")->words, "part at step 1"));
    const struct verdict same = verdict_on(c, c, NULL, NULL);
    assert_failed(&same, NULL);
}

/* A difference in the last update alone: no loss has seen it. */
static void nudge_last_update(struct program *p, void *context)
{
    struct op_attrs *attrs = &p->ops[find_op(p, OP_LR, PHASE_OPTIMIZE)].attrs;
    attrs->lr *= (*(int *)context)++ ? 1.5f : 1;
}

static void test_weights_are_compared_too(void **state)
{
    (void)state;
    int runs = 0;
    const struct config c = tiny("verify.steps=1", NULL, NULL);
    const struct verdict v = verdict_on(c, c, nudge_last_update, &runs);
    assert_failed(&v, "determinism", NULL);
    assert_non_null(strstr(verdict_gate(&v, "determinism")->words, "different weights"));
}

/* Values that nobody needs, and work on them. */
static void add_ballast(struct program *p, void *context)
{
    const int ops = *(const int *)context;
    const value_id v = program_add_value(p, "ballast", VALUE_STATE, F32, shape_of(1, (int64_t)1 << 20));
    p->phase = PHASE_OPTIMIZE;
    for (int i = 0; i < ops; i++)
        program_emit(p, OP_ZERO, (struct op_attrs){0}, "ballast", 1, v);
}

static void test_more_memory(void **state)
{
    (void)state;
    int ops = 1;
    const struct config c = tiny("verify.memory=1.5", NULL, NULL);
    const struct verdict v = verdict_on(c, c, add_ballast, &ops);
    assert_failed(&v, "memory", NULL);
    const struct gate *g = verdict_gate(&v, "memory");
    assert_near(g->b - g->a, 4 << 20, 0, "the bytes of the ballast");
}

static void test_slower(void **state)
{
    (void)state;
    int ops = 400;                          /* 1.6 GB are zeroed in every step, which takes a few milliseconds without */
    const struct config c = tiny("verify.memory=1000", "verify.min_gain=-0.5", "threads=1");
    const struct verdict v = verdict_on(c, c, add_ballast, &ops);
    assert_failed(&v, "throughput", NULL);
    assert_true(verdict_gate(&v, "throughput")->value < 0.5);
}

/* Not a number anywhere: nothing that depends on it passes. */
static void poison(struct program *p, void *context)
{
    (void)context;
    p->ops[find_op(p, OP_ATTN_MIX_T, PHASE_BACKWARD)].attrs.scale = NAN;
}

static void test_not_a_number(void **state)
{
    (void)state;
    const struct config c = tiny("verify.loss=1", "verify.validation=1", NULL);
    const struct verdict v = verdict_on(c, c, poison, NULL);
    assert_failed(&v, "gradients", NULL);               /* no update reaches the weights, so the losses stay finite */
    assert_true(isnan(verdict_gate(&v, "gradients")->value));
    json_t *j = verdict_json(&v);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(j, "gates"), 0), "value")));
    assert_true(json_is_false(json_object_get(j, "pass")));
    json_decref(j);
}

static void poison_forward(struct program *p, void *context)
{
    (void)context;
    p->ops[find_op(p, OP_ATTN_SCORES, PHASE_FORWARD)].attrs.scale = NAN;
}

static void test_loss_that_is_no_number(void **state)
{
    (void)state;
    const struct config c = tiny("verify.loss=1", "verify.validation=1", NULL);
    const struct verdict v = verdict_on(c, c, poison_forward, NULL);
    assert_failed(&v, "gradients", "loss-curve", "determinism", NULL);
}

/* --- what cannot be compared --------------------------------------------------------------------------------------- */

static void refuse(struct config a, struct config b, const char *one, const char *two)
{
    struct verdict v;
    struct error err;
    assert_int_equal(verify_configs(&v, &a, &b, &(struct verify_options){0}, &err), BAD_INPUT);
    assert_says(&err, one, two, NULL);
}

static void test_refusals(void **state)
{
    (void)state;
    const struct config c = tiny(NULL, NULL, NULL);
    refuse(c, tiny("model.dim=64", NULL, NULL), "different models", "model.dim is 32 and 64");
    refuse(c, tiny("model.arch=llama", NULL, NULL), "different models", "model.arch is gpt and llama");
    refuse(c, tiny("data.chars=30000", NULL, NULL), "different data", "data.chars is 20000 and 30000");
    refuse(c, tiny("data.source=text", "data.path=x y: z", NULL), "different data", "data.source is corpus and text");
    refuse(tiny("data.source=text", "data.path=a", NULL), tiny("data.source=text", "data.path=x y: z", NULL), "different data",
           "data.path is \"a\" and \"x y: z\"");
    refuse(tiny("data.source=text", "data.path=a", "data.chars=30"), tiny("data.source=text", "data.path=a", NULL), "cannot open", "data.path");    /* not the corpus' length */
    refuse(c, tiny("train.seed=1", NULL, NULL), "different seeds", "train.seed is 42 and 1");
    refuse(c, tiny("train.lr=0.1", NULL, NULL), "different ways", "train.lr");
    refuse(c, tiny("train.batch_size=8", NULL, NULL), "4 × 1", "8 × 1");
    refuse(tiny("model.dropout=0.1", NULL, NULL), tiny("train.batch_size=2", "train.accumulate=2", "model.dropout=0.1"),
           "train.batch_size is 4 and 2", "model.dropout=0");
    refuse(c, tiny("model.vocab=200", NULL, NULL), "different models", "parameter");
}

static void test_stop(void **state)
{
    (void)state;
    static const volatile sig_atomic_t stop = 1;
    const struct config c = tiny(NULL, NULL, NULL);
    struct verdict v;
    struct error err;
    assert_int_equal(verify_configs(&v, &c, &c, &(struct verify_options){.stop = &stop}, &err), BAD_INPUT);
    assert_says(&err, "stopped", NULL);
}

/* --- trials -------------------------------------------------------------------------------------------------------- */

static void test_trial_restarts(void **state)
{
    (void)state;
    const struct config c = tiny("train.accumulate=2", "model.dropout=0.1", NULL);
    struct trial *t;
    struct trial_step first, second, again;
    struct error err;
    assert_ok(trial_open(&t, &c, NULL, NULL, &err), err);
    const uint64_t start = trial_fingerprint(t);
    assert_ok(trial_step(t, &first, &err), err);
    assert_ok(trial_step(t, &second, &err), err);
    assert_true(trial_fingerprint(t) != start && first.us > 0 && first.norm > 0 && first.loss != second.loss);
    assert_ok(trial_restart(t, &err), err);
    assert_true(trial_fingerprint(t) == start);
    assert_ok(trial_backward(t, &err), err);
    assert_true(trial_fingerprint(t) == start);             /* no update */
    assert_ok(trial_restart(t, &err), err);
    assert_ok(trial_step(t, &again, &err), err);
    assert_true(again.loss == first.loss && again.norm == first.norm);
    assert_true(trial_tokens_per_step(t) == 4 * 2 * 16);
    trial_free(t);
}

/* Any step beats such a peak: it is wrong, and no side is above 100 % of what it is raised to, which is the same for both. */
static void test_peaks_that_are_beaten(void **state)
{
    (void)state;
    const struct config c = tiny(NULL, NULL, NULL);
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 1e-6, .copy_gb_per_s = {[CACHE_LEVELS - 1] = 1}, .machine = "slow"};
    struct verdict v;
    struct error err;
    assert_ok(verify_configs(&v, &c, &c, &(struct verify_options){.peaks = &peaks}, &err), err);
    const double a = products_peak_percent(v.of_a.peak, v.of_a.model_flops, v.of_a.step_us);
    const double b = products_peak_percent(v.of_b.peak, v.of_b.model_flops, v.of_b.step_us);
    assert_true(a > 0 && b > 0 && v.of_a.peak.gflops == v.of_b.peak.gflops);
    assert_near(a > b ? a : b, 100, 1e-9, "the faster one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_configs),
        cmocka_unit_test(test_gain_is_asked_for),
        cmocka_unit_test(test_other_kernels_and_threads),
        cmocka_unit_test(test_accumulated_batches),
        cmocka_unit_test(test_no_validation_data),
        cmocka_unit_test(test_wrong_gradient),
        cmocka_unit_test(test_dropped_backward),
        cmocka_unit_test(test_wrong_update),
        cmocka_unit_test(test_nondeterminism),
        cmocka_unit_test(test_weights_are_compared_too),
        cmocka_unit_test(test_more_memory),
        cmocka_unit_test(test_slower),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_loss_that_is_no_number),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_peaks_that_are_beaten),
        cmocka_unit_test(test_trial_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
