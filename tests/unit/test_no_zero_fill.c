/* The pass no-zero-fill: sums of gradients are written by the first micro-batch, not zeroed, and training has the same bits,
 * whatever the sums held before. */
#include "program/rewrite.h"
#include "support/backends.h"
#include "support/optimized.h"
#include "support/table.h"

static const int STEPS = 4;

static struct optimizer_settings settings_of(int accumulate)
{
    struct optimizer_settings s = small_settings();
    s.accumulate = accumulate;
    return s;
}

static struct program *training(int model, int accumulate, pass_set set, int *places)
{
    const struct optimizer_settings s = settings_of(accumulate);
    struct small_model m = small_models[model];
    m.config.dropout = model == SMALL_GPT ? 0.2 : 0;
    return optimized_training(m, &s, set, NULL, places);
}

/* ---- what it does ---- */

static int count_parameters(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        n += p->values[i].kind == VALUE_PARAMETER;
    return n;
}

static void test_zeros_are_gone(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++) {
        int places[PASSES_MAX] = {0};
        struct program *p = training(model, 2, one_pass("no-zero-fill"), places), *was = training(model, 2, 0, NULL);
        const int sums = count_parameters(p) + 1;           /* the loss has one too */
        assert_int_equal(places[pass_find("no-zero-fill")], sums);
        assert_int_equal(count_ops(was, OP_ZERO, PHASE_OPTIMIZE), sums + 1);
        assert_int_equal(count_ops(p, OP_ZERO, PHASE_OPTIMIZE), 2);         /* the counts of targets and of batches */
        for (int i = 0; i < p->n_ops; i++)
            if (p->ops[i].kind == OP_ZERO)
                assert_int_equal(shape_count(p->values[p->ops[i].in[0]].shape), 1);
        assert_int_equal(count_saved(p), count_saved(was));
        assert_int_equal(pass_no_zero_fill(p), 0);          /* nothing is left to do */
        program_free(p);
        program_free(was);
    }
}

static void test_one_batch_has_no_sums(void **state)
{
    (void)state;
    int places[PASSES_MAX] = {0};
    program_free(training(SMALL_LLAMA, 1, one_pass("no-zero-fill"), places));
    assert_int_equal(places[pass_find("no-zero-fill")], 0);
}

/* A sum that is read before it is whole, or after its zero, keeps the zero. */
static void test_sums_with_other_readers(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        int places[PASSES_MAX] = {0};
        struct program *p = training(SMALL_LLAMA, 2, 0, NULL);
        struct error err;
        const value_id sum = program_find(p, "accumulate.loss");
        int at = late ? p->n_ops : 0;
        while (!late && p->ops[at].phase < PHASE_BACKWARD)
            at++;
        p->phase = PHASE_OPTIMIZE;
        assert_true(program_insert_op(p, at, OP_FILL, NONE, "reader", 1, &sum) >= 0);
        assert_ok(pass_optimize(p, STAGE_STEP, one_pass("no-zero-fill"), NULL, places, &err), err);
        assert_int_equal(places[pass_find("no-zero-fill")], count_parameters(p));
        const int writer = program_writer(p, sum);
        assert_true(p->ops[writer].kind == OP_ACCUMULATE && p->ops[writer].n_in == 3);
        program_free(p);
    }
}

/* ---- the same training ---- */

enum trouble { NO_TROUBLE, EMPTY_FIRST, EMPTY_ALL, BAD_NUMBERS, TROUBLES };

static const char *const names[TROUBLES] = {"padding", "a first batch of padding only", "a step of padding only",
                                            "a step that is not finite"};

/* Batch i of a step. Trouble comes in the second step. */
static struct small_batch batch_of(const struct small_model *m, enum trouble trouble, int step, int i)
{
    struct small_batch b = random_batch(m, (uint64_t)(step * 8 + i));
    const bool empty = step == 2 && (trouble == EMPTY_ALL || (trouble == EMPTY_FIRST && i == 0));
    for (int k = 0; k < 512 && empty; k++)
        b.targets[k] = -1;
    for (int k = 0; k < 512; k++)
        b.tokens[k] = b.tokens[k] ? b.tokens[k] : 1;
    if (trouble == BAD_NUMBERS && step == 2 && i == 0)
        b.tokens[0] = 0;
    return b;
}

/* In a model whose head is not tied to the embedding, so that only batches with this token are bad. */
static void spoil_first_token(struct exec *e)
{
    const value_id table = program_find(exec_program(e), "emb.weight");
    float *rows = read_value(e, table);
    for (int64_t i = 0; i < shape_last(exec_program(e)->values[table].shape); i++)
        rows[i] = INFINITY;
    exec_write(e, table, rows);
    free(rows);
}

static struct trained train(int model, int accumulate, pass_set set, enum trouble trouble, struct backend *b)
{
    const struct small_model *m = &small_models[model];
    struct trained t = {.exec = new_exec(training(model, accumulate, set, NULL), b)};
    if (trouble == BAD_NUMBERS)
        spoil_first_token(t.exec);
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < accumulate; i++) {
            const struct small_batch batch = batch_of(m, trouble, step, i);
            write_batch(t.exec, &batch);
            exec_run(t.exec, PHASE_DATA, PHASE_BACKWARD);
        }
        exec_run(t.exec, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
        read_metrics(t.exec, step, t.metrics[step - 1]);
    }
    return t;
}

static void check_training(int model, int accumulate, pass_set with, enum trouble trouble, struct backend *b)
{
    char what[128];
    snprintf(what, sizeof what, "%s, accumulate %d, %s", small_models[model].name, accumulate, names[trouble]);
    struct trained was = train(model, accumulate, with, trouble, b);
    struct trained is = train(model, accumulate, with | one_pass("no-zero-fill"), trouble, b);
    if (memcmp(is.metrics, was.metrics, sizeof was.metrics))
        fail_msg("%s: the metrics are not the same to the last bit", what);
    assert_true(isfinite(was.metrics[1][METRIC_NORM]) == (trouble != BAD_NUMBERS && trouble != EMPTY_ALL));
    assert_true(isfinite(was.metrics[3][METRIC_NORM]));
    assert_same_weights(was.exec, is.exec, 0, what);
    exec_free(was.exec);
    exec_free(is.exec);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int accumulate = 2; accumulate <= 3; accumulate++)
            for (enum trouble trouble = 0; trouble < (model == SMALL_POSTLN ? TROUBLES : BAD_NUMBERS); trouble++)
                check_training(model, accumulate, 0, trouble, accumulate == 2 ? tuned : reference);
}

static void test_same_bits_with_other_passes(void **state)
{
    (void)state;
    const pass_set with = one_pass("fused-optimizer") | one_pass("async-metrics") | one_pass("fuse-loss");
    for (enum trouble trouble = 0; trouble < TROUBLES; trouble++)
        check_training(SMALL_POSTLN, 3, with, trouble, tuned);
}

/* What a checkpoint, an aborted step or another run left in the sums does not count. */
static void test_what_sums_held_before(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_LLAMA];
    struct exec *e[2];
    for (int k = 0; k < 2; k++) {
        e[k] = new_exec(training(SMALL_LLAMA, 2, one_pass("no-zero-fill"), NULL), tuned);
        const struct program *p = exec_program(e[k]);
        for (int i = 0; i < p->n_ops; i++)
            if (k && p->ops[i].kind == OP_ACCUMULATE && p->ops[i].n_in == 4) {
                float *x = read_value(e[k], p->ops[i].in[0]);
                for (int64_t n = 0; n < shape_count(p->values[p->ops[i].in[0]].shape); n++)
                    x[n] = NAN;
                exec_write(e[k], p->ops[i].in[0], x);
                free(x);
            }
        for (int i = 0; i < 2; i++) {
            const struct small_batch batch = random_batch(m, (uint64_t)i);
            write_batch(e[k], &batch);
            exec_run(e[k], PHASE_DATA, PHASE_BACKWARD);
        }
        exec_run(e[k], PHASE_OPTIMIZE, PHASE_OPTIMIZE);
    }
    assert_same_weights(e[0], e[1], 0, "sums that held NaN");
    exec_free(e[0]);
    exec_free(e[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros_are_gone),
        cmocka_unit_test(test_one_batch_has_no_sums),
        cmocka_unit_test(test_sums_with_other_readers),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_same_bits_with_other_passes),
        cmocka_unit_test(test_what_sums_held_before),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
