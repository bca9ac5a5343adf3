/* The pass fused-optimizer: one op for the norm, one per setting of AdamW, and the same training. */
#include "support/optimized.h"
#include "support/table.h"

static struct backend *backends[4];     /* reference, then tuned on one to three threads */

static int make_backends(void **state)
{
    (void)state;
    backends[0] = new_backend(1, true);
    for (int i = 1; i < 4; i++)
        backends[i] = new_backend(i, false);
    return 0;
}

static int free_backends(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        backends[i]->free(backends[i]);
    return 0;
}

static int count_parameters(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        n += p->values[i].kind == VALUE_PARAMETER;
    return n;
}

/* ---- what it makes ---- */

static const struct op *find_op(const struct program *p, enum op_kind kind)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind)
            return &p->ops[i];
    fail_msg("there is no %s", op_info(kind)->name);
    return NULL;
}

static void check_ops(int model, bool decay_all, int accumulate)
{
    struct optimizer_settings s = small_settings();
    s.decay_all = decay_all;
    s.accumulate = accumulate;
    int places[PASSES_MAX] = {0};
    struct program *p = optimized_training(small_models[model], &s, one_pass("fused-optimizer"), NULL, places);
    const int n = count_parameters(p), groups = decay_all ? 1 : 2;
    assert_int_equal(places[pass_find("fused-optimizer")], 1 + groups);
    assert_int_equal(count_ops(p, OP_SUM_SQUARES, PHASE_OPTIMIZE), 1);
    assert_int_equal(find_op(p, OP_SUM_SQUARES)->n_in, n);
    assert_int_equal(find_op(p, OP_CLIP)->n_in, 2);
    assert_int_equal(find_op(p, OP_CLIP)->in[0], p->loss);
    assert_int_equal(count_ops(p, OP_ADAMW, PHASE_OPTIMIZE), 0);
    assert_int_equal(count_ops(p, OP_ADAMW_ALL, PHASE_OPTIMIZE), groups);
    int updated = 0;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ADAMW_ALL) {
            assert_string_equal(p->ops[i].made_by, "fused-optimizer");
            updated += p->ops[i].attrs.parts;
            for (int k = 0; k < p->ops[i].attrs.parts; k++) {
                const struct value *v = &p->values[p->ops[i].in[k]];
                assert_true(decay_all || (v->role == ROLE_MATRIX) == (p->ops[i].attrs.weight_decay > 0));
                assert_int_equal(v->grad, p->ops[i].in[3 * p->ops[i].attrs.parts + k]);
            }
        }
    assert_int_equal(updated, n);
    assert_int_equal(pass_fused_optimizer(p), 0);       /* nothing is left to do */
    program_free(p);
}

static void test_ops(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++) {
        check_ops(model, false, 1);
        check_ops(model, true, 1);
        check_ops(model, false, 3);
    }
}

/* One tensor is no pattern: nothing changes. */
static void test_one_tensor(void **state)
{
    (void)state;
    struct program *p = table_program(ROLE_MATRIX);
    const struct optimizer_settings s = small_settings();
    struct error err;
    assert_ok(pass_training_step(p, &s, &err), err);
    assert_int_equal(pass_fused_optimizer(p), 0);
    assert_int_equal(count_ops(p, OP_ADAMW, PHASE_OPTIMIZE), 1);
    program_free(p);
}

/* A forward program has no optimizer. */
static void test_without_optimizer(void **state)
{
    (void)state;
    struct program *p = small_forward(small_models[SMALL_GPT], 1);
    const int n = p->n_ops;
    assert_int_equal(pass_fused_optimizer(p), 0);
    assert_int_equal(p->n_ops, n);
    program_free(p);
}

/* ---- the same training ---- */

/* Every bit of metrics and weights is the same, clipped or not. */
static void check_training(const struct small_model *m, struct backend *b, float max_norm, int accumulate)
{
    struct optimizer_settings s = small_settings();
    s.max_norm = max_norm;
    s.accumulate = accumulate;
    struct trained was = train_small(optimized_training(*m, &s, 0, NULL, NULL), m, b, 5);
    struct trained is = train_small(optimized_training(*m, &s, one_pass("fused-optimizer"), NULL, NULL), m, b, 5);
    for (int i = 0; i < 5; i++) {
        assert_near(is.metrics[i][METRIC_NORM], was.metrics[i][METRIC_NORM], 0, "the norm");
        assert_near(is.metrics[i][METRIC_LOSS], was.metrics[i][METRIC_LOSS], 0, "the loss");
    }
    if (max_norm > 0)
        assert_true(was.metrics[4][METRIC_NORM] > max_norm);       /* it was clipped */
    assert_same_weights(was.exec, is.exec, 0, m->name);
    assert_int_equal(count_saved(exec_program(was.exec)), count_saved(exec_program(is.exec)));
    exec_free(was.exec);
    exec_free(is.exec);
}

static void test_training_is_the_same(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int b = 0; b < 4; b++) {
            check_training(&small_models[model], backends[b], 0, 1);
            check_training(&small_models[model], backends[b], 0, 3);
            check_training(&small_models[model], backends[b], 0.05f, 1);
        }
}

/* ---- steps that are not finite ---- */

static void step(struct exec *e, const struct small_batch *batch)
{
    write_batch(e, batch);
    exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
}

static float *read_parameter(struct exec *e, const char *name) { return read_value(e, program_find(exec_program(e), name)); }

/* Token 0 gets an embedding that is not a number: a batch with it changes nothing, the next one learns again. */
static void test_bad_step_changes_nothing(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_POSTLN];
    const struct optimizer_settings s = small_settings();
    for (int b = 0; b < 4; b++) {
        struct exec *e = new_exec(optimized_training(*m, &s, one_pass("fused-optimizer"), NULL, NULL), backends[b]);
        const value_id table = program_find(exec_program(e), "emb.weight");
        struct small_batch good = random_batch(m, 1);
        for (int i = 0; i < 512; i++)
            good.tokens[i] = good.tokens[i] ? good.tokens[i] : 1;
        struct small_batch bad = good;
        bad.tokens[3] = 0;
        float *rows = read_value(e, table);
        for (int64_t i = 0; i < m->config.dim; i++)
            rows[i] = NAN;
        exec_write(e, table, rows);
        step(e, &good);
        const size_t bytes = value_bytes(&exec_program(e)->values[program_find(exec_program(e), "head.weight")]);
        float *before = read_parameter(e, "head.weight");
        step(e, &bad);
        assert_true(isnan(read_named(e, "host.loss")));
        float *after = read_parameter(e, "head.weight");
        assert_memory_equal(before, after, bytes);
        step(e, &good);
        float *later = read_parameter(e, "head.weight");
        assert_memory_not_equal(before, later, bytes);
        for (size_t i = 0; i < bytes / sizeof *later; i++)
            assert_true(isfinite(later[i]));
        free(rows);
        free(before);
        free(after);
        free(later);
        exec_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_one_tensor),
        cmocka_unit_test(test_without_optimizer),
        cmocka_unit_test(test_training_is_the_same),
        cmocka_unit_test(test_bad_step_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
