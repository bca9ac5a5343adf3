/* fuse-loss: where it applies, and that loss and every gradient stay what they were: whole models with padding, tied heads
 * and accumulation, evaluation, heads of many chunks, and the memory that it saves. */
#include "passes/optimize.h"
#include "program/rewrite.h"
#include "support/all_backends.h"
#include "support/models.h"
#include "support/table.h"

/* Share of a gradient's length, and of the loss. */
static const double GRADIENTS = 2e-5, LOSS = 2e-6;

static int fuse(struct program *p)
{
    const int only = pass_find("fuse-loss"), order[] = {only, -1};
    int places[PASSES_MAX] = {0};
    struct error err;
    assert_ok(pass_optimize(p, STAGE_FORWARD, PASS_SET_ALL, order, places, &err), err);
    return places[only];
}

static void assert_close(const char *what, const float *is, const float *should, int64_t n)
{
    double apart = 0, length = 0;
    for (int64_t i = 0; i < n; i++) {
        apart += pow((double)is[i] - should[i], 2);
        length += pow(should[i], 2);
    }
    if (!(sqrt(apart) <= GRADIENTS * sqrt(length)))
        fail_msg("the gradient of '%s' is %.3g of its length off", what, sqrt(apart / length));
}

static void assert_same_gradients(struct exec *is, struct exec *should)
{
    const struct program *p = exec_program(should), *q = exec_program(is);
    for (value_id v = 0; v < p->n_values; v++) {
        if (p->values[v].kind != VALUE_PARAMETER || strstr(p->values[v].name, ".k.bias"))   /* theirs is rounding alone */
            continue;
        const value_id other = program_find(q, p->values[v].name);
        float *a = read_value(is, q->values[other].grad), *b = read_value(should, p->values[v].grad);
        assert_close(p->values[v].name, a, b, shape_count(p->values[v].shape));
        free(a);
        free(b);
    }
}

static void assert_same_loss(struct exec *is, struct exec *should)
{
    const double loss = exec_scalar(should, exec_program(should)->loss);
    assert_true(isfinite(loss) && loss > 0);
    assert_near(exec_scalar(is, exec_program(is)->loss), loss, LOSS * loss, "the loss");
}

/* --- whole models ------------------------------------------------------------------------------------------------- */

static struct exec *run_step(int model, int micro, bool fused, struct backend *b)
{
    struct optimizer_settings s = small_settings();
    struct error err;
    s.accumulate = micro;
    struct program *p = small_forward(small_models[model], 7);
    if (fused)
        assert_int_equal(fuse(p), 1);
    assert_ok(pass_training_step(p, &s, &err), err);
    struct exec *e = new_exec(p, b);
    for (int i = 0; i < micro; i++) {
        struct small_batch batch = random_batch(&small_models[model], (uint64_t)i);
        for (int64_t k = 0; i == 1 && k < 512; k++)
            batch.targets[k] = -1;              /* the second micro-batch has no target at all */
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    }
    exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
    return e;
}

static void test_steps_are_equal(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++)
        for (int b = 0; b < BACKENDS; b++)
            for (int micro = 1; micro <= 3; micro += 2) {
                struct exec *is = run_step(m, micro, true, backends[b]), *should = run_step(m, micro, false, backends[b]);
                assert_same_loss(is, should);
                assert_same_gradients(is, should);
                exec_free(is);
                exec_free(should);
            }
}

static void test_evaluation_is_equal(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++)
        for (int b = 0; b < BACKENDS; b++) {
            struct program *p = small_forward(small_models[m], 7);
            assert_int_equal(fuse(p), 1);
            assert_int_equal(p->logits, NO_VALUE);
            assert_int_equal(p->ops[program_writer(p, p->loss)].n_out, 2);      /* no gradients */
            struct exec *is = new_exec(p, backends[b]), *should = new_exec(small_forward(small_models[m], 7), backends[b]);
            const struct small_batch batch = random_batch(&small_models[m], 5);
            write_batch(is, &batch);
            write_batch(should, &batch);
            exec_run(is, PHASE_DATA, PHASE_FORWARD);
            exec_run(should, PHASE_DATA, PHASE_FORWARD);
            assert_same_loss(is, should);
            assert_true(exec_scalar(is, p->count) == exec_scalar(should, exec_program(should)->count));
            exec_free(is);
            exec_free(should);
        }
}

/* --- heads of all sizes ------------------------------------------------------------------------------------------- */

struct head { int64_t rows, width, vocab; };

/* x, w -> logits -> log-softmax -> loss. */
static struct program *head_program(struct head h)
{
    struct program *p = program_new("head");
    const value_id x = program_add_parameter(p, "x", shape_of(2, h.rows, h.width), ROLE_MATRIX, INIT_NORMAL, 1);
    const value_id w = program_add_parameter(p, "w", shape_of(2, h.vocab, h.width), ROLE_MATRIX, INIT_NORMAL, 0.5f);
    p->targets = program_add_value(p, "targets", VALUE_INPUT, I32, shape_of(1, h.rows));
    p->logits = program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "logits", 2, x, w);
    const value_id logp = program_emit(p, OP_LOG_SOFTMAX, NONE, "logp", 1, p->logits);
    const int at = program_add_op(p, OP_NLL, NONE, "loss", 2, (value_id[]){logp, p->targets});
    assert_true(at >= 0);
    p->loss = p->ops[at].out[0];
    p->count = p->ops[at].out[1];
    return p;
}

static struct exec *run_head(struct head h, bool fused, bool padding, struct backend *b)
{
    struct program *p = head_program(h);
    struct error err;
    assert_int_equal(fused ? fuse(p) : 0, fused);
    assert_ok(pass_autodiff(p, &err), err);
    assert_ok(program_validate(p, &err), err);
    struct exec *e = new_exec(p, b);
    int32_t targets[256];
    assert_true(h.rows <= 256);
    random_ids(targets, h.rows, h.vocab, padding, 4);
    exec_write(e, p->targets, targets);
    exec_run(e, PHASE_FORWARD, PHASE_BACKWARD);
    return e;
}

static void assert_same_bits(struct exec *a, struct exec *b)
{
    const struct program *p = exec_program(a);
    for (value_id v = 0; v < 2; v++) {
        void *x = read_value(a, p->values[v].grad), *y = read_value(b, p->values[v].grad);
        assert_memory_equal(x, y, value_bytes(&p->values[v]));
        free(x);
        free(y);
    }
    assert_true(exec_scalar(a, p->loss) == exec_scalar(b, p->loss));
}

/* Two words are the fewest there can be; the last head takes two chunks. */
static void test_heads_are_equal(void **state)
{
    (void)state;
    static const struct head heads[] = {{5, 3, 2}, {1, 7, 2}, {16, 64, 65}, {33, 9, 7}, {41, 17, 320}, {130, 20, 999}, {140, 2, 99991}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (int b = 1; b < BACKENDS; b++)
            for (int padding = 0; padding < 2; padding++) {
                if (heads[i].rows == 1 && padding)
                    continue;
                struct exec *is = run_head(heads[i], true, padding, backends[b]);
                struct exec *again = run_head(heads[i], true, padding, backends[b]);
                struct exec *should = run_head(heads[i], false, padding, backends[b]);
                assert_same_loss(is, should);
                assert_same_gradients(is, should);
                assert_same_bits(is, again);
                exec_free(is);
                exec_free(again);
                exec_free(should);
            }
}

/* Multiplies x from a row on, and runs again. */
static void run_scaled(struct exec *e, struct head h, int64_t row, float factor)
{
    const struct program *p = exec_program(e);
    float *x = read_value(e, program_find(p, "x"));
    for (int64_t i = row * h.width; i < h.rows * h.width; i++)
        x[i] *= factor;
    exec_write(e, program_find(p, "x"), x);
    free(x);
    exec_run(e, PHASE_FORWARD, PHASE_BACKWARD);
}

/* Losses from those that are usual to those that leave the range of powers relative to the target: in all rows, in the last
 * row alone, and from the second chunk on. */
static void test_losses_of_all_sizes(void **state)
{
    (void)state;
    static const struct { struct head h; int64_t row; } cases[] = {
        {{33, 20, 131}, 0}, {{33, 20, 131}, 32}, {{16, 64, 65}, 0}, {{16, 20, 2}, 0}, {{140, 2, 99991}, 100}};
    static const float factors[] = {1e-3f, 3, 6, 9, 12, 30, 200};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int b = 1; b < BACKENDS; b++) {
            const struct head h = cases[i].h;
            const size_t n = h.vocab > 1000 ? 1 : sizeof factors / sizeof *factors;
            for (size_t k = 0; k < n; k++) {
                struct exec *is = run_head(h, true, false, backends[b]), *should = run_head(h, false, false, backends[b]);
                run_scaled(is, h, cases[i].row, n > 1 ? factors[k] : 100);
                run_scaled(should, h, cases[i].row, n > 1 ? factors[k] : 100);
                assert_same_loss(is, should);
                assert_same_gradients(is, should);
                exec_free(is);
                exec_free(should);
            }
        }
}

/* A number that is not finite makes the loss NaN, and the gradient of its own row, but no other's. */
static void test_what_is_not_finite(void **state)
{
    (void)state;
    const struct head h = {33, 20, 131};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int b = 0; b < BACKENDS; b++)
        for (int i = 0; i < 3; i++) {
            struct exec *e = run_head(h, true, false, backends[b]);
            const value_id x = program_find(exec_program(e), "x");
            float *numbers = read_value(e, x);
            numbers[17 * h.width + 3] = bad[i];
            exec_write(e, x, numbers);
            exec_run(e, PHASE_FORWARD, PHASE_BACKWARD);
            free(numbers);
            assert_true(isnan(exec_scalar(e, exec_program(e)->loss)));
            float *dx = read_value(e, exec_program(e)->values[x].grad);
            for (int64_t k = 0; k < h.rows * h.width; k++)
                assert_true(isfinite(dx[k]) == (k / h.width != 17));
            free(dx);
            exec_free(e);
        }
}

/* Large logits: no exponential overflows, and probabilities of 0 and 1 give a loss and gradients that are finite. */
static void test_large_logits(void **state)
{
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct exec *e = run_head((struct head){9, 4, 21}, true, false, backends[b]);
        const struct program *p = exec_program(e);
        float *x = read_value(e, program_find(p, "x"));
        for (int i = 0; i < 9 * 4; i++)
            x[i] *= 1e3f;
        exec_write(e, program_find(p, "x"), x);
        exec_run(e, PHASE_FORWARD, PHASE_BACKWARD);
        float *dx = read_value(e, p->values[program_find(p, "x")].grad);
        assert_true(isfinite(exec_scalar(e, p->loss)) && exec_scalar(e, p->loss) > 100);
        for (int i = 0; i < 9 * 4; i++)
            assert_true(isfinite(dx[i]));
        free(x);
        free(dx);
        exec_free(e);
    }
}

/* --- where it applies --------------------------------------------------------------------------------------------- */

static void check_left_alone(struct program *p)
{
    const int n = p->n_ops;
    const value_id logits = p->logits;
    assert_int_equal(fuse(p), 0);
    assert_int_equal(p->n_ops, n);
    assert_int_equal(p->logits, logits);
    program_free(p);
}

static const struct head SMALL = {4, 3, 5};

static void test_what_is_left_alone(void **state)
{
    (void)state;
    struct program *p = head_program(SMALL);
    program_emit(p, OP_GELU, NONE, "other", 1, p->logits);              /* the logits have another reader */
    check_left_alone(p);

    p = head_program(SMALL);
    program_emit(p, OP_GELU, NONE, "other", 1, p->ops[1].out[0]);       /* the log-probabilities have one */
    check_left_alone(p);

    p = head_program(SMALL);
    p->logits = p->ops[1].out[0];                                       /* the log-probabilities are asked for */
    check_left_alone(p);

    p = head_program(SMALL);
    p->loss = program_emit(p, OP_ADD, NONE, "sum", 2, p->loss, p->loss);        /* the loss is part of another */
    check_left_alone(p);

    p = table_program(ROLE_MATRIX);                                     /* no product */
    check_left_alone(p);

    p = head_program(SMALL);
    const value_id bias = program_add_parameter(p, "bias", shape_of(1, SMALL.vocab), ROLE_BIAS, INIT_ZEROS, 0);
    p->ops[0].in = arena_copy(&p->arena, (value_id[]){p->ops[0].in[0], p->ops[0].in[1], bias}, 3 * sizeof(value_id));
    p->ops[0].n_in = 3;
    check_left_alone(p);
}

static void test_a_second_run_changes_nothing(void **state)
{
    (void)state;
    struct program *p = head_program(SMALL);
    assert_int_equal(fuse(p), 1);
    assert_int_equal(p->n_ops, 1);
    assert_int_equal(fuse(p), 0);
    program_free(p);
}

/* Differentiation adds outputs to the op, and no op but what w's other uses need. */
static void test_what_autodiff_makes_of_it(void **state)
{
    (void)state;
    struct program *p = head_program(SMALL);
    struct error err;
    assert_int_equal(fuse(p), 1);
    assert_ok(pass_autodiff(p, &err), err);
    assert_ok(program_validate(p, &err), err);
    assert_int_equal(p->n_ops, 1);
    assert_int_equal(p->ops[0].n_out, 4);
    assert_int_equal(p->values[0].grad, p->ops[0].out[2]);
    assert_int_equal(p->values[1].grad, p->ops[0].out[3]);
    program_free(p);
}

/* Its gradients are those of its own loss: as a part of another one they would be wrong. */
static void test_a_loss_of_a_loss_is_refused(void **state)
{
    (void)state;
    struct program *p = head_program(SMALL);
    struct error err;
    assert_int_equal(fuse(p), 1);
    p->loss = program_emit(p, OP_ADD, NONE, "sum", 2, p->loss, p->loss);
    assert_int_equal(pass_autodiff(p, &err), BAD_INPUT);
    assert_says(&err, "linear_loss", "not the loss of the program", NULL);
    program_free(p);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static const struct small_model WIDE = {"wide", 32, {.arch = ARCH_POSTLN, .vocab = 10000, .dim = 128, .layers = 4, .heads = 4,
                                        .kv_heads = 4, .ffn = 256, .seq = 64, .rope_base = 10000, .norm_eps = 1e-5}};

static size_t workspace_of(bool fused)
{
    struct optimizer_settings s = small_settings();
    struct error err;
    struct memory_plan plan;
    struct program *p = small_forward(WIDE, 7);
    if (fused)
        assert_int_equal(fuse(p), 1);
    assert_ok(pass_training_step(p, &s, &err), err);
    pass_memory_plan(p, &plan);
    const size_t bytes = plan.workspace_bytes;
    for (int v = 0; fused && v < p->n_values; v++)
        if (shape_count(p->values[v].shape) >= WIDE.batch * WIDE.config.seq * WIDE.config.vocab)
            assert_true(plan.offset[v] == SIZE_MAX);
    memory_plan_release(&plan);
    program_free(p);
    return bytes;
}

/* Two matrices of logits and more were alive at once. */
static void test_no_logits_in_memory(void **state)
{
    (void)state;
    const size_t logits = (size_t)(WIDE.batch * WIDE.config.seq * WIDE.config.vocab) * sizeof(float);
    const size_t naive = workspace_of(false), fused = workspace_of(true);
    assert_true(naive > fused + logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_equal),
        cmocka_unit_test(test_evaluation_is_equal),
        cmocka_unit_test(test_heads_are_equal),
        cmocka_unit_test(test_losses_of_all_sizes),
        cmocka_unit_test(test_what_is_not_finite),
        cmocka_unit_test(test_large_logits),
        cmocka_unit_test(test_what_is_left_alone),
        cmocka_unit_test(test_a_second_run_changes_nothing),
        cmocka_unit_test(test_what_autodiff_makes_of_it),
        cmocka_unit_test(test_a_loss_of_a_loss_is_refused),
        cmocka_unit_test(test_no_logits_in_memory),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
