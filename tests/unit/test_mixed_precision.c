/* mixed-precision: what the pass marks and leaves alone, and that models still learn the same: loss, gradients, training, and
 * what verify says of it. */
#include <stdio.h>

#include "ops/cpu/bf16.h"
#include "prove/prove.h"
#include "support/all_backends.h"
#include "support/optimized.h"

/* Shares of a length: a product of n rounded numbers is off by about 2^-9 of its length, and layers add up. */
static const double GRADIENTS = 0.03, LOSS = 2e-3;

/* ---- the pass ---- */

static bool is_product(enum op_kind kind)
{
    return kind == OP_MATMUL || kind == OP_PROJECT || kind == OP_PROJECT_GRAD || kind == OP_LINEAR_GELU || kind == OP_LINEAR_LOSS || kind == OP_ATTENTION ||
           kind == OP_ATTENTION_GRAD;
}

static int count_marked(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++) {
        n += p->ops[i].attrs.round == ROUND_BF16;
        assert_true(p->ops[i].attrs.round == ROUND_NO || is_product(p->ops[i].kind));
    }
    return n;
}

static int count_products(const struct program *p, enum phase phase)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += is_product(p->ops[i].kind) && p->ops[i].phase == phase;
    return n;
}

static void test_marks_products_of_a_step(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int all = 0; all < 2; all++) {
            int places[PASSES_MAX] = {0};
            const pass_set set = all ? PASS_SET_ALL : one_pass("mixed-precision");
            struct program *p = optimized_training(small_models[model], &s, set, NULL, places);
            const int forward = count_products(p, PHASE_FORWARD), backward = count_products(p, PHASE_BACKWARD);
            assert_true(forward > 4 && backward > forward);
            assert_int_equal(places[pass_find("mixed-precision")], forward + backward);
            assert_int_equal(count_marked(p), forward + backward);
            assert_int_equal(pass_mixed_precision(p), 0);               /* nothing is left to do */
            program_free(p);
        }
}

/* Those of attention are marked where the goal says so. */
static void test_attention_is_asked_for(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    for (int asked = 0; asked < 2; asked++) {
        struct program *p = training_towards(small_models[SMALL_GPT], &s, PASS_SET_ALL, NULL, NULL,
                                             (struct precision_goal){.round = ROUND_BF16, .attention = asked});
        int seen = 0;
        for (int i = 0; i < p->n_ops; i++)
            if (p->ops[i].kind == OP_ATTENTION || p->ops[i].kind == OP_ATTENTION_GRAD) {
                assert_int_equal(p->ops[i].attrs.round, asked ? ROUND_BF16 : ROUND_NO);
                seen++;
            }
        assert_true(seen >= 2);
        program_free(p);
    }
}

/* Programs that evaluate or generate keep f32, also in a run whose operands are rounded to bf16. */
static void test_leaves_evaluation_alone(void **state)
{
    (void)state;
    struct error err;
    struct program *p = small_forward(small_models[SMALL_GPT], 7);
    assert_ok(pass_optimize(p, STAGE_FORWARD, PASS_SET_ALL, NULL, NULL, &err), err);
    assert_int_equal(count_marked(p), 0);
    assert_int_equal(pass_mixed_precision(p), 0);
    assert_int_equal(count_marked(p), 0);
    program_free(p);
}

static void test_is_shown(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    struct program *p = optimized_training(small_models[SMALL_LLAMA], &s, one_pass("mixed-precision"), NULL, NULL);
    char *text = NULL;
    size_t size = 0;
    int lines = 0;
    FILE *to = open_memstream(&text, &size);
    program_print(p, to);
    fclose(to);
    for (const char *at = text; (at = strstr(at, " bf16 ")); at++)
        lines += at[6] != '(';                                          /* else it is the type of a value */
    assert_int_equal(lines, count_marked(p));
    free(text);
    program_free(p);
}

/* The floor of a product is that of its numbers; without a peak of their own, that of f32. */
static void test_floor(void **state)
{
    (void)state;
    struct program *p = program_new("floor");
    const value_id a = program_add_value(p, "a", VALUE_INPUT, F32, shape_of(2, (int64_t)64, (int64_t)64));
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, a, a);
    struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 2, .gflops[NUMBERS_BF16] = 8, .copy_gb_per_s = {[CACHE_LEVELS - 1] = 1e6}};
    bool memory;
    const double f32 = op_floor_us(p, &p->ops[0], &peaks, &memory);
    assert_near(f32, 2.0 * 64 * 64 * 64 / 2e3, 1e-9, "the floor in f32");
    assert_true(program_peak(p, &peaks).gflops == 2 && program_peak(p, &peaks).numbers == NUMBERS_F32);
    p->ops[0].attrs.round = ROUND_BF16;
    assert_true(program_peak(p, &peaks).gflops == 8 && program_peak(p, &peaks).numbers == NUMBERS_BF16);
    assert_near(op_floor_us(p, &p->ops[0], &peaks, &memory), f32 / 4, 1e-9, "the floor in bf16");
    peaks.gflops[NUMBERS_BF16] = 0;
    assert_true(program_peak(p, &peaks).gflops == 2 && program_peak(p, &peaks).numbers == NUMBERS_F32);
    assert_near(op_floor_us(p, &p->ops[0], &peaks, &memory), f32, 1e-9, "the floor without bf16 products");
    assert_false(memory);
    program_free(p);
}

/* ---- whole models ---- */

static struct exec *run_step(int model, struct backend *b, pass_set set)
{
    const struct optimizer_settings s = small_settings();
    struct exec *e = new_exec(optimized_training(small_models[model], &s, set, NULL, NULL), b);
    const struct small_batch batch = random_batch(&small_models[model], 4);
    write_batch(e, &batch);
    exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    return e;
}

/* The largest error of a gradient as a share of its length. */
static double gradient_error(struct exec *is, struct exec *should, const char **worst)
{
    const struct program *p = exec_program(should), *q = exec_program(is);
    double most = 0;
    for (value_id v = 0; v < p->n_values; v++) {
        if (p->values[v].kind != VALUE_PARAMETER || strstr(p->values[v].name, ".k.bias"))   /* theirs is rounding alone */
            continue;
        float *x = read_value(is, q->values[program_find(q, p->values[v].name)].grad), *y = read_value(should, p->values[v].grad);
        double apart = 0, length = 0;
        for (int64_t i = 0; i < shape_count(p->values[v].shape); i++) {
            apart += pow((double)x[i] - y[i], 2);
            length += (double)y[i] * y[i];
        }
        free(x);
        free(y);
        if (sqrt(apart / length) <= most)
            continue;
        most = sqrt(apart / length);
        *worst = p->values[v].name;
    }
    return most;
}

static void check_step(int model, struct backend *b, pass_set others)
{
    const char *worst = "none";
    struct exec *is = run_step(model, b, others | one_pass("mixed-precision")), *should = run_step(model, b, others);
    const double loss = exec_scalar(should, exec_program(should)->loss), now = exec_scalar(is, exec_program(is)->loss);
    assert_near(now, loss, LOSS * loss, small_models[model].name);
    assert_true(now != loss);                                           /* something was rounded */
    const double error = gradient_error(is, should, &worst);
    if (!(error <= GRADIENTS && error > 1e-4))
        fail_msg("%s: the gradient of %s is off by %.3g", small_models[model].name, worst, error);
    exec_free(is);
    exec_free(should);
}

static void test_losses_and_gradients(void **state)
{
    (void)state;
    const pass_set all = PASS_SET_ALL & ~one_pass("mixed-precision");
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int b = 0; b < BACKENDS; b += 2) {
            check_step(model, backends[b], 0);
            check_step(model, backends[b], all);
        }
}

/* A share of the parameters that are not bf16 numbers. */
static double share_of_f32(struct exec *e)
{
    const struct program *p = exec_program(e);
    double all = 0, n = 0;
    for (value_id v = 0; v < p->n_values; v++) {
        if (p->values[v].kind != VALUE_PARAMETER)
            continue;
        float *x = read_value(e, v);
        for (int64_t i = 0; i < shape_count(p->values[v].shape); i++, all++)
            n += x[i] != bf16_round(x[i]);
        free(x);
    }
    return n / all;
}

/* It learns as much; two runs are equal; weights are kept in f32. */
static void test_training(void **state)
{
    (void)state;
    enum { STEPS = 30 };
    const struct optimizer_settings s = small_settings();
    for (int model = 0; model < SMALL_MODELS; model++) {
        const struct small_model *m = &small_models[model];
        struct trained f32 = train_small(optimized_training(*m, &s, 0, NULL, NULL), m, backends[2], STEPS);
        struct trained bf16[2];
        for (int i = 0; i < 2; i++)
            bf16[i] = train_small(optimized_training(*m, &s, one_pass("mixed-precision"), NULL, NULL), m, backends[2], STEPS);
        const float *end = f32.metrics[STEPS - 1], *is = bf16[0].metrics[STEPS - 1];
        assert_true(end[METRIC_LOSS] < 0.95f * f32.metrics[0][METRIC_LOSS]);
        assert_near(is[METRIC_LOSS], end[METRIC_LOSS], 0.02 * end[METRIC_LOSS], m->name);
        assert_memory_equal(bf16[0].metrics, bf16[1].metrics, sizeof *bf16[0].metrics * STEPS);
        assert_same_weights(bf16[0].exec, bf16[1].exec, 0, m->name);
        assert_true(share_of_f32(bf16[0].exec) > 0.9);
        exec_free(f32.exec);
        exec_free(bf16[0].exec);
        exec_free(bf16[1].exec);
    }
}

/* ---- the proof ---- */

static const char TINY[] =
    "model: {arch: gpt, dim: 32, layers: 2, heads: 2, seq: 16}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 4, steps: 50, lr: 1.0e-2, warmup: 0}\n"
    "eval: {every: 0, batches: 2}\n"
    "optimize: {passes: none}\n"
    "verify: {steps: 6, seconds: 0.02, min_gain: -1}\n"
    "threads: 2\n";

static struct config tiny(const char *set)
{
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", TINY, sizeof TINY - 1, &set, set != NULL, &err), err);
    return c;
}

static struct verdict verdict_on(const char *set_a, trial_change_fn *change)
{
    const struct config a = tiny(set_a), b = tiny("optimize.precision=bf16");
    struct verdict v;
    struct error err;
    assert_ok(verify_configs(&v, &a, &b, &(struct verify_options){.change = change}, &err), err);
    return v;
}

/* A factor that is wrong by 10 % in the gradient of the values of attention. */
static void scale_gradient(struct program *p, void *context)
{
    (void)context;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ATTN_MIX_T && p->ops[i].phase == PHASE_BACKWARD) {
            p->ops[i].attrs.scale *= 1.1f;
            return;
        }
    fail_msg("there is no such gradient");
}

static void test_verify_has_limits_for_bf16(void **state)
{
    (void)state;
    struct verdict v = verdict_on(NULL, NULL);
    const struct gate *g = verdict_gate(&v, "gradients");
    if (!v.pass)
        fail_msg("%s; %s", g->words, verdict_gate(&v, "loss-curve")->words);
    const struct config c = tiny(NULL);
    assert_true(g->value > c.verify.gradients && g->limit == c.verify.gradients_bf16);      /* more than f32 may be off */

    v = verdict_on(NULL, scale_gradient);
    g = verdict_gate(&v, "gradients");
    assert_true(!v.pass && !g->pass && g->value > 0.05);

    v = verdict_on("verify.gradients_bf16=1e-4", NULL);                /* the limits are those of the first */
    assert_false(verdict_gate(&v, "gradients")->pass);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_products_of_a_step),
        cmocka_unit_test(test_attention_is_asked_for),
        cmocka_unit_test(test_leaves_evaluation_alone),
        cmocka_unit_test(test_is_shown),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_losses_and_gradients),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_verify_has_limits_for_bf16),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
