/* Autodiff and accumulation: gradients of values used twice, what cannot be differentiated, and micro-batches that
 * equal one batch. */
#include "support/backends.h"
#include "support/models.h"
#include "support/plain.h"
#include "support/table.h"

/* --- autodiff ---------------------------------------------------------------------------------------------------- */

/* w used `times` times in a sum: its gradient is so many times that of one use. */
static void check_uses(int times)
{
    struct program *p = program_new("uses");
    struct error err;
    const value_id w = add_table(p, "w", ROLE_MATRIX);
    value_id x = w;
    for (int i = 1; i < times; i++)
        x = program_emit(p, OP_ADD, NONE, "sum", 2, x, w);
    add_loss(p, x);
    assert_ok(pass_autodiff(p, &err), err);
    assert_ok(program_validate(p, &err), err);
    assert_int_equal(count_ops(p, OP_ADD, PHASE_BACKWARD), times - 1);
    struct plain run = plain_new(p, reference);
    plain_write(&run, p->targets, TARGETS_OF_TABLE);
    plain_run(&run, PHASE_FORWARD, PHASE_BACKWARD);         /* w is all zeros: every probability is 1 / WIDTH */
    const float *grad = run.memory[p->values[w].grad];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < WIDTH; c++)
            assert_near(grad[r * WIDTH + c], times * (1.0 / WIDTH - (c == TARGETS_OF_TABLE[r])) / ROWS, 1e-6, "d w");
    plain_release(&run);
    program_free(p);
}

static void test_gradients_of_several_uses_are_added(void **state)
{
    (void)state;
    check_uses(1);
    check_uses(2);
    check_uses(3);
}

static void test_parameter_that_does_not_reach_the_loss(void **state)
{
    (void)state;
    struct program *p = program_new("lost");
    struct error err;
    add_table(p, "lost", ROLE_MATRIX);
    add_loss(p, add_table(p, "w", ROLE_MATRIX));
    assert_int_equal(pass_autodiff(p, &err), BAD_INPUT);
    assert_says(&err, "parameter 'lost'", "does not reach the loss", NULL);
    program_free(p);
}

static void test_op_without_a_rule(void **state)
{
    (void)state;
    struct program *p = program_new("rule");
    struct error err;
    program_scope(p, 6, "blocks.6");
    const value_id w = add_table(p, "w", ROLE_MATRIX);
    const value_id one = program_add_value(p, "one", VALUE_INPUT, F32, shape_of(0));
    add_loss(p, program_emit(p, OP_DIVIDE, NONE, "y", 2, w, one));
    assert_int_equal(pass_autodiff(p, &err), BAD_INPUT);
    assert_says(&err, "op 0 divide", "layer 6", "no gradient rule", NULL);
    program_free(p);
}

/* A rule knows the first output of its op; a loss that hangs on another one is refused, not wrong. */
static void test_loss_of_a_second_output(void **state)
{
    (void)state;
    struct program *p = program_new("second");
    struct error err;
    const value_id w = add_table(p, "w", ROLE_MATRIX);
    const value_id gain = program_add_parameter(p, "gain", shape_of(1, (int64_t)WIDTH), ROLE_NORM, INIT_ONES, 0);
    const int at = program_add_op(p, OP_RMSNORM, NONE, "n", 2, (value_id[]){w, gain});
    const value_id rstd = p->ops[at].out[1];
    const value_id targets = program_add_value(p, "targets", VALUE_INPUT, I32, shape_of(0));
    p->loss = program_emit(p, OP_NLL, NONE, "loss", 2, program_emit(p, OP_LOG_SOFTMAX, NONE, "logp", 1, rstd), targets);
    assert_int_equal(pass_autodiff(p, &err), BAD_INPUT);
    assert_says(&err, "rmsnorm", "no gradient rule for 'n.1'", NULL);
    program_free(p);
}

static void test_program_without_a_loss(void **state)
{
    (void)state;
    struct program *p = program_new("no-loss");
    struct error err;
    assert_int_equal(pass_autodiff(p, &err), BAD_INPUT);
    assert_says(&err, "no-loss", "no loss", NULL);
    program_free(p);
}

/* Inputs get no gradient: nothing is computed that no parameter needs. */
static void test_no_gradient_of_inputs(void **state)
{
    (void)state;
    struct program *p = program_new("inputs");
    struct error err;
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)ROWS, (int64_t)3));
    const struct shape weights = shape_of(2, (int64_t)WIDTH, (int64_t)3);
    const value_id w = program_add_parameter(p, "w", weights, ROLE_MATRIX, INIT_NORMAL, 1);
    add_loss(p, program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, x, w));
    assert_ok(pass_autodiff(p, &err), err);
    assert_int_equal(count_ops(p, OP_MATMUL, PHASE_BACKWARD), 1);
    program_free(p);
}

/* --- accumulation ------------------------------------------------------------------------------------------------ */

/* One step over `micro` batches of `rows` samples each, which together are the same samples for every split. */
static struct exec *step_in_parts(int model, int64_t rows, int micro, const struct small_batch *all, struct backend *b)
{
    struct small_model m = small_models[model];
    struct optimizer_settings s = small_settings();
    s.accumulate = micro;
    m.batch = rows;
    struct exec *e = new_exec(small_training(m, &s), b);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < micro; i++) {
            const int64_t at = i * rows * m.config.seq;
            exec_write(e, exec_program(e)->tokens, all->tokens + at);
            exec_write(e, exec_program(e)->targets, all->targets + at);
            if (exec_program(e)->segments != NO_VALUE)
                exec_write(e, exec_program(e)->segments, all->segments + at);
            exec_run(e, PHASE_DATA, PHASE_BACKWARD);
        }
        exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
    }
    return e;
}

static bool is_key_bias(const char *name) { return strstr(name, ".k.bias") != NULL; }

/* A parameter and the sum of its gradients after two steps. The sums agree as f32 does. Adam makes as large a step of a gradient that is small beside
 * the others, and of its rounding: there parameters agree to a hundredth of a step. */
static void assert_same_parameter(struct exec *a, struct exec *b, const char *name)
{
    char moment[128];
    snprintf(moment, sizeof moment, "adam.m.%s", name);
    const struct program *p = exec_program(a), *q = exec_program(b);
    const value_id w = program_find(p, name), m = program_find(p, moment);
    assert_int_not_equal(m, NO_VALUE);
    float *x = read_value(a, w), *y = read_value(b, program_find(q, name));
    float *dx = read_value(a, m), *dy = read_value(b, program_find(q, moment));
    const int64_t n = shape_count(p->values[w].shape);
    double largest = 0;
    for (int64_t j = 0; j < n; j++)
        largest = fmax(largest, fabs(dy[j]));
    for (int64_t j = 0; j < n; j++) {
        assert_near(dx[j], dy[j], 1e-5 * largest, moment);
        assert_near(x[j], y[j], fabs(dy[j]) < 1e-2 * largest ? 1e-5 : 2e-6, name);
    }
    free(x);
    free(y);
    free(dx);
    free(dy);
}

/* Key biases have no gradient but rounding, of which Adam makes steps. */
static void assert_same_step(struct exec *a, struct exec *b)
{
    assert_near(read_named(a, "host.loss"), read_named(b, "host.loss"), 2e-6, "the loss");
    assert_near(read_named(a, "host.norm"), read_named(b, "host.norm"), 5e-6 * read_named(b, "host.norm"), "the norm");
    const struct program *p = exec_program(a);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && !is_key_bias(p->values[i].name))
            assert_same_parameter(a, b, p->values[i].name);
}

static void check_accumulation(int model, const struct small_batch *all, struct backend *b)
{
    struct exec *whole = step_in_parts(model, 6, 1, all, b);
    struct exec *threes = step_in_parts(model, 2, 3, all, b), *twos = step_in_parts(model, 3, 2, all, b);
    assert_int_equal(exec_program(whole)->micro_batches, 1);
    assert_int_equal(exec_program(threes)->micro_batches, 3);
    assert_same_step(threes, whole);
    assert_same_step(twos, whole);
    exec_free(whole);
    exec_free(threes);
    exec_free(twos);
}

static struct small_batch six_samples(int model)
{
    struct small_model m = small_models[model];
    m.batch = 6;
    return random_batch(&m, 1);
}

static void test_micro_batches_equal_one_batch(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct small_batch all = six_samples(m);
        for (int i = 0; i < 512; i++)
            all.targets[i] = all.targets[i] < 0 ? 0 : all.targets[i];
        check_accumulation(m, &all, tuned);
        check_accumulation(m, &all, reference);
    }
}

/* Padding of very different counts: the first sample has one target, the last two have none at all. */
static void test_micro_batches_with_uneven_padding(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct small_batch all = six_samples(m);
        const int64_t seq = small_models[m].config.seq;
        for (int64_t i = 1; i < seq; i++)
            all.targets[i] = -1;
        for (int64_t i = 4 * seq; i < 6 * seq; i++)
            all.targets[i] = -1;
        all.targets[0] = 1;
        check_accumulation(m, &all, tuned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_of_several_uses_are_added),
        cmocka_unit_test(test_parameter_that_does_not_reach_the_loss),
        cmocka_unit_test(test_op_without_a_rule),
        cmocka_unit_test(test_loss_of_a_second_output),
        cmocka_unit_test(test_program_without_a_loss),
        cmocka_unit_test(test_no_gradient_of_inputs),
        cmocka_unit_test(test_micro_batches_equal_one_batch),
        cmocka_unit_test(test_micro_batches_with_uneven_padding),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
