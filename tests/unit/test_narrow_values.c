/* mixed-precision with values of 16 bits, on the reference: what becomes narrow and what does not, copies of weights that follow them,
 * models that learn as in f32, and the loss scale of f16. */
#include "core/bf16.h"
#include "core/f16.h"
#include "program/rewrite.h"
#include "support/all_backends.h"
#include "support/optimized.h"
#include "train/trial.h"

static const struct precision_goal goals[] = {{.narrow = BF16}, {.narrow = F16}};

/* Shares of a length, and of a loss: layers of bf16 add their roundings up; f16 has eight times the precision. */
static const double GRADIENTS[] = {0.06, 0.01}, LOSS[] = {4e-3, 1e-3};

static struct program *narrow_training(int model, pass_set others, const int *order, struct precision_goal goal)
{
    const struct optimizer_settings s = small_settings();
    return training_towards(small_models[model], &s, others | one_pass("mixed-precision"), order, NULL, goal);
}

static pass_set all_but_precision(void) { return PASS_SET_ALL & ~one_pass("mixed-precision"); }

/* ---- the pass ---- */

/* An output that an op gives in f32 whatever its inputs are, or one that nobody writes any more. */
static bool is_statistic(const struct program *p, value_id v)
{
    const int at = program_writer(p, v);
    int k = 0;
    while (at >= 0 && p->ops[at].out[k] != v)
        k++;
    return at < 0 || op_out_type(&p->ops[at], k) == TYPE_F32;
}

static void check_types(const struct program *p, enum dtype narrow)
{
    const char *last = "none";
    int wide = 0, thin = 0;
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->kind == VALUE_PARAMETER || v->kind == VALUE_STATE)
            assert_true(v->dtype == F32 || v->dtype == I32);
        if (v->kind == VALUE_PARAMETER)
            assert_int_equal(p->values[v->grad].dtype, F32);
        if (v->kind == VALUE_ACTIVATION && v->shape.rank == 3 && !is_statistic(p, i)) {
            *(v->dtype == narrow ? &thin : &wide) += 1;
            last = v->dtype == narrow ? last : v->name;
        }
    }
    if (thin <= 8 || wide)
        fail_msg("%d activations are narrow and %d are not: %s", thin, wide, last);
}

/* Of every product all operands are narrow, and weights are read from copies. */
static void check_operands(const struct program *p, enum dtype narrow)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_in; k++) {
            const struct value *v = &p->values[p->ops[i].in[k]];
            if (op_in_type(&p->ops[i], k) == TYPE_OPERAND)
                assert_true(v->dtype == narrow && v->kind != VALUE_PARAMETER);
        }
}

static void test_programs(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int g = 0; g < 2; g++)
            for (int all = 0; all < 2; all++) {
                struct program *p = narrow_training(model, all ? all_but_precision() : 0, NULL, goals[g]);
                const int ops = p->n_ops;
                if (all)
                    check_types(p, goals[g].narrow);
                check_operands(p, goals[g].narrow);
                assert_int_equal(pass_mixed_precision(p), 0);           /* nothing is left to do */
                assert_int_equal(p->n_ops, ops);
                program_free(p);
            }
}

/* The order of passes does not matter: the optimizer is fused before or after it got copies to write. */
static void test_fused_afterwards(void **state)
{
    (void)state;
    const int order[] = {pass_find("mixed-precision"), pass_find("fused-optimizer"), -1};
    struct program *p = narrow_training(SMALL_GPT, one_pass("fused-optimizer"), order, goals[0]);
    struct program *q = narrow_training(SMALL_GPT, one_pass("fused-optimizer"), NULL, goals[0]);
    struct trained a = train_small(p, &small_models[SMALL_GPT], backends[0], 5), b = train_small(q, &small_models[SMALL_GPT], backends[0], 5);
    assert_memory_equal(a.metrics, b.metrics, sizeof *a.metrics * 5);
    assert_same_weights(a.exec, b.exec, 0, "fused before and after");
    exec_free(a.exec);
    exec_free(b.exec);
}

/* ---- copies ---- */

static bool is_copy_of(const struct program *p, value_id copy, value_id *parameter)
{
    const int writer = program_writer(p, copy);
    *parameter = writer >= 0 && p->ops[writer].kind == OP_CAST ? p->ops[writer].in[0] : NO_VALUE;
    return p->values[copy].kind == VALUE_TABLE && *parameter != NO_VALUE && p->values[*parameter].kind == VALUE_PARAMETER;
}

static int assert_copies_follow(struct exec *e, const char *when)
{
    const struct program *p = exec_program(e);
    int n = 0;
    for (int i = 0; i < p->n_values; i++) {
        value_id parameter;
        if (!is_copy_of(p, i, &parameter))
            continue;
        const int64_t count = shape_count(p->values[i].shape);
        uint16_t *copy = xcalloc((size_t)count, sizeof *copy);
        float *from = read_value(e, parameter);
        exec_read(e, i, copy);
        for (int64_t k = 0; k < count; k++)
            if (copy[k] != (p->values[i].dtype == BF16 ? bf16_bits(from[k]) : f16_bits(from[k])))
                fail_msg("%s: %s[%lld] is not %.9g, rounded", when, p->values[i].name, (long long)k, from[k]);
        free(copy);
        free(from);
        n++;
    }
    return n;
}

static void test_copies_follow_weights(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        struct program *p = narrow_training(SMALL_LLAMA, all ? all_but_precision() : 0, NULL, goals[0]);
        struct trained t = train_small(p, &small_models[SMALL_LLAMA], backends[0], 3);
        assert_true(assert_copies_follow(t.exec, "after training") > 8);
        value_id weight = NO_VALUE;
        for (int i = 0; i < p->n_values && weight == NO_VALUE; i++)
            is_copy_of(p, i, &weight);
        float *other = read_value(t.exec, weight);
        other[0] = 3.14159f;
        exec_write(t.exec, weight, other);              /* as a checkpoint does */
        const struct small_batch batch = random_batch(&small_models[SMALL_LLAMA], 4);
        write_batch(t.exec, &batch);
        exec_run(t.exec, PHASE_DATA, PHASE_FORWARD);
        assert_copies_follow(t.exec, "after a weight was written");
        free(other);
        exec_free(t.exec);
    }
}

/* ---- whole models ---- */

static struct exec *run_step(struct program *p, int model)
{
    struct exec *e = new_exec(p, backends[0]);
    const struct small_batch batch = random_batch(&small_models[model], 4);
    write_batch(e, &batch);
    exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    return e;
}

static void check_gradients(struct exec *is, struct exec *should, double most, const char *model)
{
    const struct program *p = exec_program(should), *q = exec_program(is);
    const double scale = q->loss_scale == NO_VALUE ? 1 : exec_scalar(is, q->loss_scale);
    for (value_id v = 0; v < p->n_values; v++) {
        if (p->values[v].kind != VALUE_PARAMETER || strstr(p->values[v].name, ".k.bias"))   /* theirs is rounding alone */
            continue;
        float *x = read_value(is, q->values[program_find(q, p->values[v].name)].grad), *y = read_value(should, p->values[v].grad);
        double apart = 0, length = 0;
        for (int64_t i = 0; i < shape_count(p->values[v].shape); i++) {
            apart += pow((double)x[i] / scale - y[i], 2);
            length += (double)y[i] * y[i];
        }
        free(x);
        free(y);
        if (!(sqrt(apart / length) <= most))
            fail_msg("%s, %s: the gradient of %s is off by %.3g", model, dtype_name(q->precision.narrow), p->values[v].name,
                     sqrt(apart / length));
    }
}

static void test_losses_and_gradients(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int all = 0; all < 2; all++) {
            const pass_set others = all ? all_but_precision() : 0;
            struct exec *should = run_step(optimized_training(small_models[model], &s, others, NULL, NULL), model);
            const double loss = exec_scalar(should, exec_program(should)->loss);
            for (int g = 0; g < 2; g++) {
                struct exec *is = run_step(narrow_training(model, others, NULL, goals[g]), model);
                assert_near(exec_scalar(is, exec_program(is)->loss), loss, LOSS[g] * loss, small_models[model].name);
                check_gradients(is, should, GRADIENTS[g], small_models[model].name);
                exec_free(is);
            }
            exec_free(should);
        }
}

static void test_training(void **state)
{
    (void)state;
    enum { STEPS = 30 };
    const struct optimizer_settings s = small_settings();
    for (int model = 0; model < SMALL_MODELS; model++) {
        const struct small_model *m = &small_models[model];
        struct trained f32 = train_small(optimized_training(*m, &s, 0, NULL, NULL), m, backends[2], STEPS);
        const float end = f32.metrics[STEPS - 1][METRIC_LOSS];
        assert_true(end < 0.95f * f32.metrics[0][METRIC_LOSS]);
        for (int g = 0; g < 2; g++) {
            struct trained t = train_small(narrow_training(model, all_but_precision(), NULL, goals[g]), m, backends[0], STEPS);
            assert_near(t.metrics[STEPS - 1][METRIC_LOSS], end, 0.02 * end, m->name);
            assert_near(t.metrics[0][METRIC_NORM], f32.metrics[0][METRIC_NORM], 0.03 * f32.metrics[0][METRIC_NORM], "the true norm");
            exec_free(t.exec);
        }
        exec_free(f32.exec);
    }
}

/* ---- the loss scale ---- */

static void test_scale_finds_its_size(void **state)
{
    (void)state;
    struct program *p = narrow_training(SMALL_GPT, all_but_precision(), NULL, goals[1]);
    struct exec *e = new_exec(p, backends[0]);
    assert_near(exec_scalar(e, p->loss_scale), 65536, 0, "the first scale");
    const float much = 0x1p24f;
    exec_write(e, p->loss_scale, &much);
    value_id weight = 0;
    while (p->values[weight].kind != VALUE_PARAMETER)
        weight++;
    float before[METRICS], *weights = read_value(e, weight), *after;
    int skipped = 0;
    for (int step = 1; step <= 12; step++) {
        const struct small_batch batch = random_batch(&small_models[SMALL_GPT], 4);
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        read_metrics(e, step, before);
        skipped += !isfinite(before[METRIC_NORM]);
        assert_true(isfinite(before[METRIC_LOSS]));
        if (step == 1) {                                /* nothing was changed */
            assert_false(isfinite(before[METRIC_NORM]));
            after = read_value(e, weight);
            assert_memory_equal(weights, after, value_bytes(&p->values[weight]));
            free(after);
        }
    }
    assert_true(skipped >= 1 && skipped < 12 && isfinite(before[METRIC_NORM]));
    assert_near(exec_scalar(e, p->loss_scale), (double)much / (1 << skipped), 0, "the scale");
    free(weights);
    exec_free(e);
}

/* ---- evaluation ---- */

static double validation_of(struct trial *t)
{
    bool has_data;
    double loss;
    struct error err;
    assert_ok(trial_validate(t, NULL, &has_data, &loss, &err), err);
    assert_true(has_data && isfinite(loss));
    return loss;
}

/* Losses before and behind a few steps, and again before them: what it reads is always made of the weights that there are. */
static void evaluate_around_steps(const char *precision, double out[2])
{
    static const char TEXT[] = "model: {arch: gpt, dim: 16, layers: 2, heads: 2, seq: 16}\n"
                               "data: {source: corpus, domain: prose, chars: 20000}\n"
                               "train: {batch_size: 4, steps: 50, lr: 3.0e-2, warmup: 0}\n"
                               "eval: {every: 0, batches: 3}\nbackend: {kernels: reference}\nthreads: 1\n";
    struct config c;
    struct trial *t;
    struct trial_step step;
    struct error err;
    assert_ok(config_parse(&c, "t.yaml", TEXT, sizeof TEXT - 1, &precision, 1, &err), err);
    assert_ok(trial_open(&t, &c, NULL, NULL, &err), err);
    out[0] = validation_of(t);
    for (int i = 0; i < 4; i++)
        assert_ok(trial_step(t, &step, &err), err);
    out[1] = validation_of(t);
    assert_ok(trial_restart(t, &err), err);
    assert_near(validation_of(t), out[0], 0, precision);
    trial_free(t);
}

static void test_evaluates_as_it_trains(void **state)
{
    (void)state;
    static const char *const precisions[] = {"optimize.precision=bf16", "optimize.precision=f16"};
    double f32[2], narrow[2];
    evaluate_around_steps("optimize.precision=f32", f32);
    assert_true(f32[1] < 0.95 * f32[0]);
    for (int g = 0; g < 2; g++) {
        evaluate_around_steps(precisions[g], narrow);
        assert_true(narrow[0] != f32[0]);               /* its numbers are of 16 bits */
        assert_near(narrow[0], f32[0], LOSS[g] * f32[0], precisions[g]);
        assert_near(narrow[1], f32[1], 0.02 * f32[1], precisions[g]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluates_as_it_trains),
        cmocka_unit_test(test_programs),             cmocka_unit_test(test_fused_afterwards), cmocka_unit_test(test_copies_follow_weights),
        cmocka_unit_test(test_losses_and_gradients), cmocka_unit_test(test_training),         cmocka_unit_test(test_scale_finds_its_size),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
