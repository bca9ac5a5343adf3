/* The models against PyTorch: logits, loss, every gradient, and 50 steps of training. scripts/make-fixtures.py made the
 * numbers, in double precision. */
#include "support/kernels.h"
#include "support/optimized.h"
#include "support/torch.h"

static void check_all_kernels(int model)
{
    for (int i = 0; i < KERNELS; i++)
        check_model(&small_models[model], kernels[i]);
}

static void test_gpt(void **state) { (void)state, check_all_kernels(SMALL_GPT); }
static void test_llama(void **state) { (void)state, check_all_kernels(SMALL_LLAMA); }
static void test_postln(void **state) { (void)state, check_all_kernels(SMALL_POSTLN); }
static void test_k1(void **state) { (void)state, check_all_kernels(SMALL_K1); }
static void test_untied(void **state) { (void)state, check_all_kernels(SMALL_UNTIED); }

/* --- training ---------------------------------------------------------------------------------------------------- */

static void test_training_gpt(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        check_training(&small_models[SMALL_GPT], kernels[i]);
}

static void test_training_llama(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        check_training(&small_models[SMALL_LLAMA], kernels[i]);
}

/* Values of bf16, on the reference, beside PyTorch under autocast to bf16, which rounds in other places. */
static void test_training_in_bf16(void **state)
{
    (void)state;
    const struct optimizer_settings settings = small_settings();
    for (int m = SMALL_GPT; m <= SMALL_LLAMA; m++) {
        struct safetensors s = read_fixture("train", small_models[m].name), curve = read_fixture("curve", small_models[m].name);
        struct program *p = training_towards(small_models[m], &settings, one_pass("mixed-precision"), NULL, NULL,
                                             (struct precision_goal){.narrow = BF16});
        exec_free(check_curve_of(p, &s, &curve, kernels[0], AUTOCAST_CURVE));
        safetensors_release(&s);
        safetensors_release(&curve);
    }
}

/* --- building ---------------------------------------------------------------------------------------------------- */

static void test_parameters_and_inputs(void **state)
{
    (void)state;
    static const struct { int model; const char *has, *has_not; } cases[] = {
        {SMALL_GPT, "pos.weight", "head.weight"},       {SMALL_GPT, "blocks.1.attn.k.bias", "blocks.0.g.weight"},
        {SMALL_LLAMA, "blocks.1.g.weight", "pos.weight"}, {SMALL_LLAMA, "norm.weight", "norm.bias"},
        {SMALL_POSTLN, "head.weight", "head.bias"},     {SMALL_POSTLN, "seg.weight", "tick"},
        {SMALL_K1, "blocks.9.n2.bias", "blocks.10.n2.bias"}, {SMALL_K1, "head.weight", "head.bias"},
        {SMALL_UNTIED, "head.weight", "pos.weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program *p = small_forward(small_models[cases[i].model], 1);
        assert_true(program_find(p, cases[i].has) != NO_VALUE);
        assert_true(program_find(p, cases[i].has_not) == NO_VALUE);
        program_free(p);
    }
}

/* An evaluation follows the parameters as they are trained: its loss is that of the training program, bit for bit. */
static void test_shared_evaluation(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_POSTLN];
    const struct optimizer_settings settings = small_settings();
    struct exec *train = new_exec(small_training(*m, &settings), kernels[1]), *eval = NULL;
    struct program *p = NULL;
    struct error err;
    assert_ok(model_build(&p, &m->config, (struct model_options){.batch = m->batch, .loss = true}, &err), err);
    assert_ok(exec_new(&eval, p, kernels[1], train, &err), err);
    assert_int_equal(exec_memory(eval).parameters, 0);
    assert_evaluation_follows(train, eval, m);
    exec_free(eval);
    exec_free(train);
}

/* By hand for the sizes of gpt above: matrices 2 x (4 x 24 x 24 + 2 x 24 x 56), their biases 2 x (4 x 24 + 56 + 24),
 * norms 5 x 48, the tied head 37 x 24; 30 tokens. */
static void test_step_flops(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_GPT];
    struct program *p = small_forward(*m, 1);
    const double weights = 2 * (4 * 24 * 24 + 2 * 24 * 56) + 2 * (4 * 24 + 56 + 24) + 5 * 48 + 37 * 24;
    const double flops = 30 * (6 * weights + 6 * 2 * 24 * 10);
    assert_near(model_step_flops(p, &m->config, m->batch), flops, 0.5, "FLOPs of a step");
    assert_int_equal(program_parameters(p), (int64_t)weights + 10 * 24);
    program_free(p);
}

/* Parameters come from seed and name alone: different ones for every name, the same for any number of layers. */
static void test_initial_parameters(void **state)
{
    (void)state;
    struct small_model m = small_models[SMALL_GPT];
    struct exec *a = new_exec(small_forward(m, 1), kernels[1]);
    m.config.layers = 3;
    m.batch = 1;
    struct exec *b = new_exec(small_forward(m, 1), kernels[1]);
    static const char *const names[] = {"emb.weight", "blocks.1.attn.q.weight", "blocks.0.n1.weight",
                                        "blocks.0.u.bias"};
    static const double stds[] = {0.02, 0.02, -1, 0};           /* -1: all ones */
    for (int i = 0; i < 4; i++) {
        const value_id v = program_find(exec_program(a), names[i]), w = program_find(exec_program(b), names[i]);
        const int64_t n = shape_count(exec_program(a)->values[v].shape);
        float *x = read_value(a, v), *y = read_value(b, w);
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
        double sum = 0, squares = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += x[j];
            squares += x[j] * x[j];
        }
        assert_near(sum / (double)n, stds[i] < 0 ? 1 : 0, 0.003, names[i]);
        assert_near(sqrt(squares / (double)n), fabs(stds[i]), 0.002, names[i]);
        free(x);
        free(y);
    }
    float *q = read_value(a, program_find(exec_program(a), "blocks.0.attn.q.weight"));
    float *k = read_value(a, program_find(exec_program(a), "blocks.0.attn.k.weight"));
    assert_memory_not_equal(q, k, 24 * 24 * sizeof *q);
    free(q);
    free(k);
    exec_free(a);
    exec_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_postln),
        cmocka_unit_test(test_k1), cmocka_unit_test(test_untied),
        cmocka_unit_test(test_training_gpt),
        cmocka_unit_test(test_training_llama),
        cmocka_unit_test(test_training_in_bf16),
        cmocka_unit_test(test_parameters_and_inputs),
        cmocka_unit_test(test_shared_evaluation),
        cmocka_unit_test(test_step_flops),
        cmocka_unit_test(test_initial_parameters),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
