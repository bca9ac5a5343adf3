/* fuse-qkv and fuse-gate-up: a step with them equals the step without, on every architecture, with dropout and
 * accumulation, and with attention fused before or after. What they find is in test_find_projections.c. */
#include "passes/optimize.h"
#include "support/all_backends.h"
#include "support/models.h"

/* Per parameter: length of the gradients' difference over the gradient's length. */
static const double GRADIENTS = 2e-5, LOSS = 2e-6;

/* Runs the named passes in their order. */
static void run_passes(struct program *p, const char *const *names)
{
    int order[8], n = 0;
    struct error err;
    for (; names[n]; n++) {
        order[n] = pass_find(names[n]);
        assert_true(order[n] >= 0);
    }
    order[n] = -1;
    assert_ok(pass_optimize(p, STAGE_FORWARD, PASS_SET_ALL, order, NULL, &err), err);
}

#define PASSES(...) (const char *const[]){__VA_ARGS__, NULL}
static const char *const NO_PASSES[] = {NULL};

/* --- equal steps -------------------------------------------------------------------------------------------------- */

struct step {
    int model;
    double dropout;
    int micro;
};

static struct program *training_program(struct step s, const char *const *passes)
{
    struct small_model m = small_models[s.model];
    struct optimizer_settings settings = small_settings();
    struct error err;
    m.config.dropout = s.dropout;
    settings.accumulate = s.micro;
    struct program *p = small_forward(m, 7);
    run_passes(p, passes);
    assert_ok(pass_training_step(p, &settings, &err), err);
    return p;
}

static struct exec *run_step(struct step s, const char *const *passes, struct backend *b)
{
    struct exec *e = new_exec(training_program(s, passes), b);
    for (int i = 0; i < s.micro; i++) {
        const struct small_batch batch = random_batch(&small_models[s.model], (uint64_t)i);
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    }
    exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
    return e;
}

static double length_of(const float *x, const float *minus, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += pow((double)x[i] - (minus ? minus[i] : 0), 2);
    return sqrt(sum);
}

/* Key biases shift all scores of a row alike: their gradient is rounding and nothing else. */
static bool is_key_bias(const char *name) { return strstr(name, ".k.bias") != NULL; }

static void assert_same_gradient(struct exec *is, struct exec *should, value_id parameter)
{
    const struct value *v = &exec_program(should)->values[parameter];
    const value_id other = program_find(exec_program(is), v->name);
    assert_true(other != NO_VALUE);
    float *a = read_value(is, exec_program(is)->values[other].grad), *b = read_value(should, v->grad);
    const int64_t n = shape_count(v->shape);
    const double length = length_of(b, NULL, n), apart = length_of(a, b, n);
    if (is_key_bias(v->name))
        assert_true(apart < 1e-6);
    else if (!(length > 0 && apart <= GRADIENTS * length))
        fail_msg("the gradient of '%s' is %.3g of its length off", v->name, apart / length);
    free(a);
    free(b);
}

static void check_step(struct step s, const char *const *passes, struct backend *b)
{
    struct exec *is = run_step(s, passes, b), *should = run_step(s, NO_PASSES, b);
    assert_near(read_named(is, "host.loss"), read_named(should, "host.loss"), LOSS * read_named(should, "host.loss"), "loss");
    for (value_id v = 0; v < exec_program(should)->n_values; v++)
        if (exec_program(should)->values[v].kind == VALUE_PARAMETER)
            assert_same_gradient(is, should, v);
    exec_free(is);
    exec_free(should);
}

static void check_steps(const char *const *passes)
{
    for (int m = 0; m < SMALL_MODELS; m++)
        for (int b = 0; b < BACKENDS; b++) {
            check_step((struct step){m, 0, 1}, passes, backends[b]);
            check_step((struct step){m, 0.2, 3}, passes, backends[b]);
        }
}

static void test_steps_are_equal(void **state)
{
    (void)state;
    check_steps(PASSES("fuse-qkv"));
    check_steps(PASSES("fuse-gate-up"));
    check_steps(PASSES("fuse-qkv", "fuse-gate-up"));
}

/* Whoever makes attention one op finds the projections joined, or leaves them to be found. */
static void test_steps_are_equal_around_flash_attention(void **state)
{
    (void)state;
    check_steps(PASSES("flash-attention", "fuse-qkv", "fuse-gate-up"));
    check_steps(PASSES("fuse-gate-up", "fuse-qkv", "flash-attention"));
}

/* A program without a loss: evaluation of logits, as generation does. */
static void test_logits_are_equal(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        float *logits[2];
        int64_t n = 0;
        for (int k = 0; k < 2; k++) {
            struct program *p = NULL;
            struct error err;
            const struct model_options options = {.batch = small_models[m].batch};
            assert_ok(model_build(&p, &small_models[m].config, options, &err), err);
            run_passes(p, k ? PASSES("fuse-qkv", "fuse-gate-up") : NO_PASSES);
            struct exec *e = new_exec(p, backends[3]);
            const struct small_batch batch = random_batch(&small_models[m], 4);
            exec_write(e, p->tokens, batch.tokens);
            if (p->segments != NO_VALUE)
                exec_write(e, p->segments, batch.segments);
            exec_run(e, PHASE_DATA, PHASE_FORWARD);
            logits[k] = read_value(e, p->logits);
            n = shape_count(p->values[p->logits].shape);
            exec_free(e);
        }
        assert_true(length_of(logits[0], NULL, n) > 0);
        assert_true(length_of(logits[1], logits[0], n) <= 2e-6 * length_of(logits[0], NULL, n));
        free(logits[0]);
        free(logits[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_equal),
        cmocka_unit_test(test_steps_are_equal_around_flash_attention),
        cmocka_unit_test(test_logits_are_equal),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
