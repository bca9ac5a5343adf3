/* fuse-residual-norm and fuse-bias-gelu: where they apply, and that loss and every gradient stay what they were. */
#include "passes/optimize.h"
#include "program/rewrite.h"
#include "support/backends.h"
#include "support/models.h"
#include "support/plain.h"
#include "support/table.h"

/* Runs the named passes in this order, up to NULL; returns the places changed. */
static int fuse(struct program *p, const char *first, const char *second)
{
    int order[3] = {first ? pass_find(first) : -1, first && second ? pass_find(second) : -1, -1};
    int places[PASSES_MAX] = {0}, n = 0;
    struct error err;
    assert_ok(pass_optimize(p, STAGE_FORWARD, PASS_SET_ALL, order, places, &err), err);
    for (int i = 0; i < PASSES_MAX; i++)
        n += places[i];
    return n;
}

#define RESIDUAL "fuse-residual-norm"
#define GELU "fuse-bias-gelu"

/* --- where they apply -------------------------------------------------------------------------------------------- */

static int count_all(const struct program *p, enum op_kind kind)
{
    return count_ops(p, kind, PHASE_FORWARD) + count_ops(p, kind, PHASE_BACKWARD);
}

/* Gradients of norms that take the residual's gradient along. */
static int count_more(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += (p->ops[i].kind == OP_LAYERNORM_GRAD && p->ops[i].n_in == 6) ||
             (p->ops[i].kind == OP_RMSNORM_GRAD && p->ops[i].n_in == 5);
    return n;
}

/* Two residual sums per layer. Before the first norm there is none; behind the last of pre-norm models, and behind every
 * one of the post-norm model, the sum has no other reader. */
static void test_residuals_of_models(void **state)
{
    (void)state;
    static const int more[SMALL_MODELS] = {3, 3, 0, 0};
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct error err;
        struct program *plain = small_forward(small_models[m], 7), *p = small_forward(small_models[m], 7);
        const bool rms = m == SMALL_LLAMA;
        const int sums = 2 * (int)small_models[m].config.layers;
        assert_int_equal(fuse(p, RESIDUAL, NULL), sums);
        assert_int_equal(count_all(p, rms ? OP_ADD_RMSNORM : OP_ADD_LAYERNORM), sums);
        assert_int_equal(count_all(p, rms ? OP_RMSNORM : OP_LAYERNORM), 1);
        assert_int_equal(p->n_ops, plain->n_ops - sums);
        assert_int_equal(fuse(p, RESIDUAL, NULL), 0);
        assert_int_equal(p->n_ops, plain->n_ops - sums);
        assert_ok(pass_autodiff(p, &err), err);
        assert_ok(pass_autodiff(plain, &err), err);
        assert_int_equal(count_more(p), more[m]);
        assert_int_equal(count_ops(p, OP_ADD, PHASE_BACKWARD), count_ops(plain, OP_ADD, PHASE_BACKWARD) - more[m]);
        program_free(p);
        program_free(plain);
    }
}

/* The slope is kept where there are gradients, and only there; the backward multiplies by it. */
static void check_slopes(struct program *p)
{
    const struct optimizer_settings s = small_settings();
    struct error err;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_LINEAR_GELU)
            assert_int_equal(p->ops[i].n_out, 1);
    assert_ok(pass_training_step(p, &s, &err), err);
    assert_int_equal(count_all(p, OP_GELU_GRAD), 0);
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_LINEAR_GELU) {
            int reader;
            assert_int_equal(p->ops[i].n_out, 2);
            assert_int_equal(program_readers(p, p->ops[i].out[1], &reader), 1);
            assert_int_equal(p->ops[reader].kind, OP_MUL);
        }
}

static void test_gelus_of_models(void **state)
{
    (void)state;
    static const int places[SMALL_MODELS] = {2, 0, 2, 10};
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct program *p = small_forward(small_models[m], 7);
        const int ops = p->n_ops;
        assert_int_equal(fuse(p, GELU, NULL), places[m]);
        assert_int_equal(count_all(p, OP_LINEAR_GELU), places[m]);
        assert_int_equal(count_all(p, OP_GELU), 0);
        assert_int_equal(p->n_ops, ops - places[m]);
        assert_int_equal(fuse(p, GELU, NULL), 0);
        assert_int_equal(p->n_ops, ops - places[m]);
        check_slopes(p);
        program_free(p);
    }
}

/* --- equal loss and gradients ------------------------------------------------------------------------------------ */

static const double LIMIT = 2e-5;       /* largest difference of a gradient, as a share of its largest number */

static double largest(const float *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}

/* Key biases have no gradient but rounding: there the limit is absolute. */
static void assert_same_gradient(const char *name, const float *is, const float *should, int64_t n)
{
    const double scale = strstr(name, ".k.bias") ? 1e-3 : largest(should, n);
    assert_true(largest(should, n) > 0);
    for (int64_t i = 0; i < n; i++)
        assert_near(is[i], should[i], LIMIT * scale, name);
}

static void assert_same_step(struct exec *a, struct exec *b)
{
    const struct program *p = exec_program(a), *q = exec_program(b);
    const double loss = read_named(b, "host.loss"), norm = read_named(b, "host.norm");
    assert_near(read_named(a, "host.loss"), loss, LIMIT * loss, "the loss");
    assert_near(read_named(a, "host.norm"), norm, LIMIT * norm, "the norm");
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].kind != VALUE_PARAMETER)
            continue;
        const value_id other = program_find(q, p->values[i].name);
        float *x = read_value(a, p->values[i].grad), *y = read_value(b, q->values[other].grad);
        assert_same_gradient(p->values[i].name, x, y, shape_count(p->values[i].shape));
        free(x);
        free(y);
    }
}

/* One step over some micro-batches, each with data of its own. */
static struct exec *one_step(struct small_model m, int micro, const char *first, const char *second, struct backend *b)
{
    struct error err;
    struct optimizer_settings s = small_settings();
    s.accumulate = micro;
    struct program *p = small_forward(m, 7);
    fuse(p, first, second);
    assert_ok(pass_training_step(p, &s, &err), err);
    struct exec *e = new_exec(p, b);
    for (int i = 0; i < micro; i++) {
        const struct small_batch batch = random_batch(&m, (uint64_t)i);
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    }
    exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
    return e;
}

static void check_model(struct small_model m, int micro, struct backend *b)
{
    static const char *const orders[][2] = {{RESIDUAL, NULL}, {GELU, NULL}, {RESIDUAL, GELU}, {GELU, RESIDUAL}};
    struct exec *naive = one_step(m, micro, NULL, NULL, b);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct exec *e = one_step(m, micro, orders[i][0], orders[i][1], b);
        assert_same_step(e, naive);
        exec_free(e);
    }
    exec_free(naive);
}

static void test_models_stay_the_same(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        check_model(small_models[m], 1, reference);
        check_model(small_models[m], 1, tuned);
    }
}

/* The residual is then x + dropout(y), and the first norm of a gpt reads a dropped embedding. */
static void test_models_with_dropout_stay_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        struct small_model m = small_models[i];
        m.config.dropout = 0.2;
        struct program *p = small_forward(m, 7);
        assert_int_equal(fuse(p, RESIDUAL, NULL), 2 * m.config.layers);
        program_free(p);
        check_model(m, 1, tuned);
    }
}

static void test_accumulation_stays_the_same(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++)
        check_model(small_models[m], 3, tuned);
}

/* A gpt with segments begins with the sum of two embeddings: the first norm is fused too. */
static void test_sum_of_embeddings(void **state)
{
    (void)state;
    struct small_model m = small_models[SMALL_GPT];
    m.config.segments = 2;
    struct program *p = small_forward(m, 7);
    assert_int_equal(fuse(p, RESIDUAL, NULL), 5);
    program_free(p);
    check_model(m, 1, tuned);
}

/* --- small programs ---------------------------------------------------------------------------------------------- */

enum shape_of_use { SUM_READ_AFTER, SUM_READ_BEFORE, TWO_NORMS, TWICE_THE_SAME, SUM_IS_A_ROOT, REPEATED, USES };

static value_id gain_of(struct program *p, const char *name, enum param_init init)
{
    return program_add_parameter(p, name, shape_of(1, (int64_t)WIDTH), ROLE_NORM, init, 1);
}

static value_id norm_of(struct program *p, value_id x, const char *name)
{
    const value_id gain = gain_of(p, arena_printf(&p->arena, "%s.gain", name), INIT_NORMAL);
    const value_id shift = gain_of(p, arena_printf(&p->arena, "%s.shift", name), INIT_NORMAL);
    return program_emit(p, OP_LAYERNORM, (struct op_attrs){.eps = 1e-5f}, name, 3, x, gain, shift);
}

/* A residual sum and a norm of it, used in one of the ways above. */
static struct program *use_of_sum(enum shape_of_use use)
{
    struct program *p = program_new("use");
    const value_id x = add_table(p, "x", ROLE_MATRIX);
    const value_id r = use == TWICE_THE_SAME ? x : use == REPEATED ? gain_of(p, "r", INIT_NORMAL)
                                                                   : add_table(p, "r", ROLE_MATRIX);
    const value_id sum = program_emit(p, OP_ADD, NONE, "sum", 2, x, r);
    value_id other = use == SUM_READ_BEFORE ? program_emit(p, OP_SILU, NONE, "other", 1, sum) : sum;
    value_id y = norm_of(p, sum, "n");
    if (use == TWO_NORMS)
        other = norm_of(p, sum, "m");
    if (use == SUM_READ_AFTER)
        other = program_emit(p, OP_SILU, NONE, "other", 1, sum);
    if (use == SUM_IS_A_ROOT)
        p->logits = sum;
    else
        y = program_emit(p, OP_ADD, NONE, "both", 2, y, other);
    add_loss(p, y);
    return p;
}

static struct plain run_table(struct program *p, struct backend *b)
{
    struct error err;
    assert_ok(pass_autodiff(p, &err), err);
    assert_ok(program_validate(p, &err), err);
    struct plain run = plain_new(p, b);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            rng_fill_normal(run.memory[i], shape_count(p->values[i].shape), 1, 11, (uint64_t)i);
    plain_write(&run, p->targets, TARGETS_OF_TABLE);
    plain_run(&run, PHASE_FORWARD, PHASE_BACKWARD);
    return run;
}

static void assert_same_run(const struct plain *a, const struct plain *b)
{
    const struct program *p = a->program, *q = b->program;
    assert_near(*(float *)a->memory[p->loss], *(float *)b->memory[q->loss], 1e-6, "the loss");
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            assert_same_gradient(p->values[i].name, a->memory[p->values[i].grad], b->memory[q->values[i].grad],
                                 shape_count(p->values[i].shape));
    if (p->logits != NO_VALUE)
        assert_memory_equal(a->memory[p->logits], b->memory[q->logits], value_bytes(&p->values[p->logits]));
}

static void test_uses_of_a_sum(void **state)
{
    (void)state;
    static const int places[USES] = {[SUM_READ_AFTER] = 1, [SUM_READ_BEFORE] = 0, [TWO_NORMS] = 1, [TWICE_THE_SAME] = 1,
                                     [SUM_IS_A_ROOT] = 1, [REPEATED] = 0};
    for (int use = 0; use < USES; use++) {
        struct program *p = use_of_sum(use), *plain = use_of_sum(use);
        assert_int_equal(fuse(p, RESIDUAL, NULL), places[use]);
        struct plain a = run_table(p, tuned), b = run_table(plain, tuned);
        assert_same_run(&a, &b);
        plain_release(&a);
        plain_release(&b);
        program_free(p);
        program_free(plain);
    }
}

static double loss_with(struct plain *run, float *x, float value)
{
    const float was = *x;
    *x = value;
    plain_run(run, PHASE_FORWARD, PHASE_FORWARD);
    *x = was;
    return *(float *)run->memory[run->program->loss];
}

/* Every number of every parameter, where the norm's gradient takes the gradient of the sum along. */
static void test_gradient_of_the_sum_by_differences(void **state)
{
    (void)state;
    struct program *p = use_of_sum(SUM_READ_AFTER);
    assert_int_equal(fuse(p, RESIDUAL, NULL), 1);
    struct plain run = run_table(p, reference);
    assert_int_equal(count_more(p), 1);
    const float h = 0.01f;
    for (int v = 0; v < p->n_values; v++)
        for (int64_t i = 0; p->values[v].kind == VALUE_PARAMETER && i < shape_count(p->values[v].shape); i++) {
            float *x = (float *)run.memory[v] + i;
            const double slope = (loss_with(&run, x, *x + h) - loss_with(&run, x, *x - h)) / (2 * h);
            assert_near(((float *)run.memory[p->values[v].grad])[i], slope, 2e-4, p->values[v].name);
        }
    plain_release(&run);
    program_free(p);
}

enum { IN = 3 };

/* x w^T (+ bias) -> gelu -> loss; `twice`: what goes into the GELU is read again; `root`: it is the logits. */
static struct program *use_of_gelu(bool bias, bool twice, bool root)
{
    struct program *p = program_new("gelu");
    const value_id x = program_add_parameter(p, "x", shape_of(2, (int64_t)ROWS, (int64_t)IN), ROLE_MATRIX, INIT_NORMAL, 1);
    const value_id w = program_add_parameter(p, "w", shape_of(2, (int64_t)WIDTH, (int64_t)IN), ROLE_MATRIX, INIT_NORMAL, 1);
    const value_id c = bias ? gain_of(p, "bias", INIT_NORMAL) : NO_VALUE;
    const value_id u = program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "u", bias ? 3 : 2, x, w, c);
    value_id y = program_emit(p, OP_GELU, NONE, "y", 1, u);
    if (twice)
        y = program_emit(p, OP_MUL, NONE, "gated", 2, y, u);
    if (root)
        p->logits = u;
    add_loss(p, y);
    return p;
}

static void test_uses_of_a_gelu(void **state)
{
    (void)state;
    static const struct { bool bias, twice, root; int places; } cases[] = {
        {true, false, false, 1}, {false, false, false, 0}, {true, true, false, 0}, {true, false, true, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program *p = use_of_gelu(cases[i].bias, cases[i].twice, cases[i].root);
        struct program *plain = use_of_gelu(cases[i].bias, cases[i].twice, cases[i].root);
        assert_int_equal(fuse(p, GELU, NULL), cases[i].places);
        struct plain a = run_table(p, tuned), b = run_table(plain, tuned);
        assert_same_run(&a, &b);
        plain_release(&a);
        plain_release(&b);
        program_free(p);
        program_free(plain);
    }
}

/* A norm's gradient refuses to add what has another shape. */
static void test_more_of_another_shape(void **state)
{
    (void)state;
    for (int rms = 0; rms < 2; rms++) {
        struct program *p = program_new("more");
        const value_id x = add_table(p, "x", ROLE_MATRIX), gain = gain_of(p, "gain", INIT_ONES);
        const value_id stat = program_add_value(p, "stat", VALUE_INPUT, F32, shape_of(1, (int64_t)ROWS));
        const value_id in[] = {x, x, gain, stat, rms ? gain : stat, gain};
        assert_int_equal(program_add_op(p, rms ? OP_RMSNORM_GRAD : OP_LAYERNORM_GRAD, NONE, "dx", rms ? 5 : 6, in), -1);
        assert_says(&p->error, "added to dx", NULL);
        program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residuals_of_models),
        cmocka_unit_test(test_gelus_of_models),
        cmocka_unit_test(test_models_stay_the_same),
        cmocka_unit_test(test_models_with_dropout_stay_the_same),
        cmocka_unit_test(test_accumulation_stays_the_same),
        cmocka_unit_test(test_sum_of_embeddings),
        cmocka_unit_test(test_uses_of_a_sum),
        cmocka_unit_test(test_gradient_of_the_sum_by_differences),
        cmocka_unit_test(test_uses_of_a_gelu),
        cmocka_unit_test(test_more_of_another_shape),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
