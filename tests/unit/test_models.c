/* The models against PyTorch: logits, loss, every gradient, and 50 steps of training. scripts/make-fixtures.py made the
 * numbers, in double precision. */
#include "support/models.h"

#include "core/safetensors.h"

/* The largest difference, as a share of the largest number of the tensor, or of FLOOR where all are smaller: some
 * gradients are zero but for rounding. */
static const double LOGITS = 2e-6, LOSS = 5e-7, GRADIENT = 1e-5, FLOOR = 0.01;
/* After training: rounding has been amplified by the optimizer, which divides by the gradient's size. */
static const double CURVE = 2e-5, FINAL = 2e-3;

/* As in scripts/make-fixtures.py; sizes and rates are in support/models.h. */
enum { STEPS = 50, BATCHES = 5 };

enum { KERNELS = 3 };
static struct backend *kernels[KERNELS];        /* reference, tuned on one thread, tuned on two */

static int make_backends(void **state)
{
    (void)state;
    kernels[0] = new_backend(1, true);
    kernels[1] = new_backend(1, false);
    kernels[2] = new_backend(2, false);
    return 0;
}

static int free_backends(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        kernels[i]->free(kernels[i]);
    return 0;
}

static struct safetensors read_fixture(const char *kind, const char *name)
{
    char path[4096];
    struct safetensors s;
    struct error err;
    snprintf(path, sizeof path, "%s/%s_%s.safetensors", HONE_FIXTURES, kind, name);
    assert_ok(safetensors_read(&s, path, &err), err);
    return s;
}

static const struct tensor *tensor(const struct safetensors *s, const char *prefix, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const struct tensor *t = safetensors_find(s, full);
    if (!t)
        fail_msg("the fixture has no tensor '%s'", full);
    return t;
}

static void assert_fits(const struct value *v, const struct tensor *t)
{
    if (tensor_bytes(t) != value_bytes(v) || t->rank != v->shape.rank ||
        memcmp(t->dim, v->shape.dim, (size_t)t->rank * sizeof *t->dim))
        fail_msg("value %s and tensor %s differ in shape", v->name, t->name);
}

static void write_tensor(struct exec *e, value_id v, const struct tensor *t)
{
    assert_fits(&exec_program(e)->values[v], t);
    exec_write(e, v, t->data);
}

static void compare(struct exec *e, value_id v, const struct tensor *t, double tolerance)
{
    assert_fits(&exec_program(e)->values[v], t);
    const float *should = t->data;
    float *is = read_value(e, v);
    double largest = FLOOR;
    const int64_t n = (int64_t)(tensor_bytes(t) / sizeof *is);
    for (int64_t i = 0; i < n; i++)
        largest = fabs(should[i]) > largest ? fabs(should[i]) : largest;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)is[i] - should[i]) <= tolerance * largest))
            fail_msg("%s[%lld] is %.9g; PyTorch has %.9g (largest %.3g)", t->name, (long long)i, is[i], should[i],
                     largest);
    free(is);
}

static int write_parameters(struct exec *e, const struct safetensors *s)
{
    const struct program *p = exec_program(e);
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            write_tensor(e, i, tensor(s, "param.", p->values[i].name));
            n++;
        }
    return n;
}

static int count_prefix(const struct safetensors *s, const char *prefix)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += !strncmp(s->tensors[i].name, prefix, strlen(prefix));
    return n;
}

/* --- one step ---------------------------------------------------------------------------------------------------- */

/* Without targets a model ends at its logits; an executor shares the parameters of another by name. */
static void check_logits(const struct small_model *m, struct backend *b, struct exec *trained, const struct safetensors *s)
{
    struct program *p = NULL;
    struct exec *e = NULL;
    struct error err;
    assert_ok(model_build(&p, &m->config, (struct model_options){.batch = m->batch}, &err), err);
    assert_true(p->loss == NO_VALUE && p->targets == NO_VALUE && p->logits != NO_VALUE);
    assert_ok(exec_new(&e, p, b, trained, &err), err);
    assert_int_equal(exec_memory(e).parameters, 0);
    write_tensor(e, p->tokens, tensor(s, "", "tokens"));
    if (m->config.segments)
        write_tensor(e, p->segments, tensor(s, "", "segments"));
    exec_run(e, PHASE_DATA, PHASE_FORWARD);
    compare(e, p->logits, tensor(s, "", "logits"), LOGITS);
    exec_free(e);
}

static void check_model(const struct small_model *m, struct backend *b)
{
    struct safetensors s = read_fixture("model", m->name);
    const struct optimizer_settings settings = small_settings();
    struct exec *e = new_exec(small_training(*m, &settings), b);
    const struct program *p = exec_program(e);
    assert_int_equal(write_parameters(e, &s), count_prefix(&s, "param."));
    write_tensor(e, p->tokens, tensor(&s, "", "tokens"));
    write_tensor(e, p->targets, tensor(&s, "", "targets"));
    if (m->config.segments)
        write_tensor(e, p->segments, tensor(&s, "", "segments"));
    check_logits(m, b, e, &s);
    exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    const double loss = *(const float *)tensor(&s, "", "loss")->data;
    assert_near(exec_scalar(e, p->loss), loss, LOSS * loss, "the loss");
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            compare(e, p->values[i].grad, tensor(&s, "grad.", p->values[i].name), GRADIENT);
    exec_free(e);
    safetensors_release(&s);
}

static void check_all_kernels(int model)
{
    for (int i = 0; i < KERNELS; i++)
        check_model(&small_models[model], kernels[i]);
}

static void test_gpt(void **state) { (void)state, check_all_kernels(SMALL_GPT); }
static void test_llama(void **state) { (void)state, check_all_kernels(SMALL_LLAMA); }
static void test_postln(void **state) { (void)state, check_all_kernels(SMALL_POSTLN); }

/* --- training ---------------------------------------------------------------------------------------------------- */

static const int32_t *batch_of(const struct tensor *t, int step)
{
    assert_int_equal(t->dim[0], BATCHES);
    return (const int32_t *)t->data + (step - 1) % BATCHES * t->dim[1] * t->dim[2];
}

/* Adding a constant to every key changes no attention weight, so the gradient of a key's bias is nothing but rounding,
 * which Adam turns into steps of any direction. */
static bool is_key_bias(const char *name)
{
    const size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, "k.bias");
}

static void check_final(struct exec *e, const struct safetensors *s)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && !is_key_bias(p->values[i].name))
            compare(e, i, tensor(s, "final.", p->values[i].name), FINAL);
}

static void check_training(const struct small_model *m, struct backend *b)
{
    struct safetensors s = read_fixture("train", m->name);
    const struct tensor *tokens = tensor(&s, "", "tokens"), *targets = tensor(&s, "", "targets");
    const float *losses = tensor(&s, "", "losses")->data;
    const struct optimizer_settings settings = small_settings();
    assert_int_equal(tensor(&s, "", "losses")->dim[0], STEPS);
    assert_int_equal(settings.total_steps, STEPS);
    struct exec *e = new_exec(small_training(*m, &settings), b);
    write_parameters(e, &s);
    for (int step = 1; step <= STEPS; step++) {
        exec_write(e, exec_program(e)->tokens, batch_of(tokens, step));
        exec_write(e, exec_program(e)->targets, batch_of(targets, step));
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        char what[64];
        snprintf(what, sizeof what, "the loss of step %d", step);
        assert_near(read_named(e, "host.loss"), losses[step - 1], CURVE * losses[0], what);
    }
    check_final(e, &s);
    exec_free(e);
    safetensors_release(&s);
}

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

/* --- building ---------------------------------------------------------------------------------------------------- */

static void test_parameters_and_inputs(void **state)
{
    (void)state;
    static const struct { int model; const char *has, *has_not; } cases[] = {
        {SMALL_GPT, "pos.weight", "head.weight"},       {SMALL_GPT, "blocks.1.attn.k.bias", "blocks.0.g.weight"},
        {SMALL_LLAMA, "blocks.1.g.weight", "pos.weight"}, {SMALL_LLAMA, "norm.weight", "norm.bias"},
        {SMALL_POSTLN, "head.weight", "head.bias"},     {SMALL_POSTLN, "seg.weight", "tick"},
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
        cmocka_unit_test(test_training_gpt),
        cmocka_unit_test(test_training_llama),
        cmocka_unit_test(test_parameters_and_inputs),
        cmocka_unit_test(test_shared_evaluation),
        cmocka_unit_test(test_step_flops),
        cmocka_unit_test(test_initial_parameters),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
