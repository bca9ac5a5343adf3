/* The optimizer as passes: clipping, AdamW, schedules, and steps that are not finite. */
#include "support/backends.h"
#include "support/models.h"
#include "support/plain.h"
#include "support/table.h"

/* --- clipping ---------------------------------------------------------------------------------------------------- */

/* The norm, and the change of a plain-SGD-like step, by hand. */
static void check_clip(float max_norm)
{
    struct program *p = table_program(ROLE_MATRIX);
    struct error err;
    value_id factor = NO_VALUE;
    assert_ok(pass_autodiff(p, &err), err);
    assert_ok(pass_clip(p, max_norm, &factor, &err), err);
    assert_ok(program_validate(p, &err), err);
    struct plain run = plain_new(p, tuned);
    plain_write(&run, p->targets, TARGETS_OF_TABLE);
    plain_run(&run, PHASE_FORWARD, PHASE_OPTIMIZE);
    /* w is zero: each row has (1/5 - 1) and four times 1/5, over 4 rows */
    const double norm = sqrt(ROWS * (0.8 * 0.8 + 4 * 0.2 * 0.2)) / ROWS;
    assert_near(*(float *)run.memory[p->norm], norm, 1e-6, "the norm");
    const double should = max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6) : 1;
    assert_near(*(float *)run.memory[factor], should, 1e-6, "the factor");
    plain_release(&run);
    program_free(p);
}

static void test_clip_factor(void **state)
{
    (void)state;
    check_clip(0.1f);
    check_clip(0.447f);         /* the norm is 0.4472 */
    check_clip(0.448f);
    check_clip(10);
    check_clip(0);
}

/* The op itself: the norm of several sums, and a factor that is NaN whenever loss or norm is not finite. */
static void test_clip_of_bad_numbers(void **state)
{
    (void)state;
    static const struct { float loss, sums[2], norm, factor; } cases[] = {
        {1, {9, 16}, 5, 2.0f / 5.000001f}, {1, {1, 0}, 1, 1},     {NAN, {9, 16}, 5, NAN},
        {-INFINITY, {9, 16}, 5, NAN},      {1, {INFINITY, 1}, INFINITY, NAN}, {1, {1, NAN}, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program *p = program_new("clip");
        const value_id loss = program_add_value(p, "loss", VALUE_INPUT, F32, shape_of(0));
        const value_id a = program_add_value(p, "a", VALUE_INPUT, F32, shape_of(0));
        const value_id b = program_add_value(p, "b", VALUE_INPUT, F32, shape_of(0));
        const value_id norm = program_emit(p, OP_CLIP, (struct op_attrs){.max_norm = 2}, "norm", 3, loss, a, b);
        struct plain run = plain_new(p, tuned);
        plain_write(&run, loss, &cases[i].loss);
        plain_write(&run, a, &cases[i].sums[0]);
        plain_write(&run, b, &cases[i].sums[1]);
        plain_run(&run, PHASE_FORWARD, PHASE_FORWARD);
        const float is[] = {*(float *)run.memory[norm], *(float *)run.memory[norm + 1]};
        const float should[] = {cases[i].norm, cases[i].factor};
        for (int k = 0; k < 2; k++)
            assert_true(isnan(should[k]) ? isnan(is[k]) : is[k] == should[k] || fabsf(is[k] - should[k]) < 1e-6f);
        plain_release(&run);
        program_free(p);
    }
}

/* --- AdamW ------------------------------------------------------------------------------------------------------- */

/* The textbook in double precision. */
struct adam {
    double w[ROWS * WIDTH], m[ROWS * WIDTH], v[ROWS * WIDTH];
};

static void adam_step(struct adam *a, const struct optimizer_settings *s, const float *grad, double lr, double decay,
                      double factor, int step)
{
    for (int i = 0; i < ROWS * WIDTH; i++) {
        const double g = grad[i] * factor;
        a->m[i] = s->beta1 * a->m[i] + (1 - s->beta1) * g;
        a->v[i] = s->beta2 * a->v[i] + (1 - s->beta2) * g * g;
        const double m = a->m[i] / (1 - pow(s->beta1, step)), v = a->v[i] / (1 - pow(s->beta2, step));
        a->w[i] -= lr * decay * a->w[i];
        a->w[i] -= lr * m / (sqrt(v) + s->eps);
    }
}

static void check_adamw(struct backend *b, enum param_role role, bool decay_all, double decay)
{
    struct optimizer_settings s = {.lr = 0.05f, .weight_decay = 0.3f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f,
                                   .schedule = 2, .max_norm = 0.2f, .accumulate = 1, .decay_all = decay_all};
    struct program *p = table_program(role);
    struct error err;
    assert_ok(pass_training_step(p, &s, &err), err);
    struct exec *e = new_exec(p, b);
    struct adam should = {.m = {0}};
    float grad[ROWS * WIDTH], now[ROWS * WIDTH];
    const value_id w = program_find(p, "w");
    exec_read(e, w, now);
    for (int i = 0; i < ROWS * WIDTH; i++)
        should.w[i] = now[i];
    exec_write(e, p->targets, TARGETS_OF_TABLE);
    for (int step = 1; step <= 20; step++) {
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
        exec_read(e, p->values[w].grad, grad);
        exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
        const double norm = read_named(e, "host.norm");
        adam_step(&should, &s, grad, s.lr, decay, norm > s.max_norm ? s.max_norm / (norm + 1e-6) : 1, step);
        exec_read(e, w, now);
        for (int i = 0; i < ROWS * WIDTH; i++)
            assert_near(now[i], should.w[i], 3e-6, "a parameter");
    }
    exec_free(e);
}

static void test_adamw_equals_the_textbook(void **state)
{
    (void)state;
    struct backend *const both[] = {reference, tuned};
    const double decay = 0.3f;
    for (int i = 0; i < 2; i++) {
        check_adamw(both[i], ROLE_MATRIX, false, decay);
        check_adamw(both[i], ROLE_EMBEDDING, false, 0);
        check_adamw(both[i], ROLE_NORM, false, 0);
        check_adamw(both[i], ROLE_BIAS, false, 0);
        check_adamw(both[i], ROLE_BIAS, true, decay);
    }
}

/* In a model, weight decay stands on the matrices and nowhere else. */
static void test_weight_decay_of_a_model(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    struct program *p = small_training(small_models[SMALL_POSTLN], &s);
    int decayed = 0;
    for (int i = 0; i < p->n_ops; i++) {
        if (p->ops[i].kind != OP_ADAMW)
            continue;
        const struct value *v = &p->values[p->ops[i].in[0]];
        const bool table = strstr(v->name, "emb") || strstr(v->name, "pos") || strstr(v->name, "seg");
        const bool matrix = v->shape.rank == 2 && !table;
        assert_near(p->ops[i].attrs.weight_decay, matrix ? s.weight_decay : 0, 0, v->name);
        decayed += matrix;
    }
    assert_int_equal(decayed, 2 * 6 + 1);           /* q, k, v, o, u, dn of two blocks, and the head */
    assert_int_equal(count_ops(p, OP_ADAMW, PHASE_OPTIMIZE), 3 + 2 * (6 * 2 + 2 * 2) + 2 + 1);
    program_free(p);
}

/* --- schedules --------------------------------------------------------------------------------------------------- */

struct rate {
    int step;
    double lr;
};

/* Trains the table and compares the rate that the host reads at some steps. */
static void check_schedule(int schedule, int64_t warmup, int64_t total, const struct rate *rates, int n)
{
    const struct optimizer_settings s = {.lr = 0.8f, .min_lr = 0.2f, .beta1 = 0.9f, .beta2 = 0.9f, .eps = 1e-8f,
                                         .schedule = schedule, .warmup = warmup, .total_steps = total, .accumulate = 1};
    struct program *p = table_program(ROLE_MATRIX);
    struct error err;
    assert_ok(pass_training_step(p, &s, &err), err);
    struct exec *e = new_exec(p, tuned);
    exec_write(e, p->targets, TARGETS_OF_TABLE);
    int step = 0;
    for (int i = 0; i < n; i++) {
        for (; step < rates[i].step; step++)
            exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        char what[64];
        snprintf(what, sizeof what, "schedule %d: the rate of step %d", schedule, step);
        assert_near(read_named(e, "host.lr"), rates[i].lr, 1e-7, what);
    }
    exec_free(e);
}

static void test_schedules(void **state)
{
    (void)state;
    /* warm-up of 4 steps to 0.8, then 20 steps down to 0.2; half-way 0.5; a quarter: 0.2 + 0.3 (1 + cos 45 degrees) */
    static const struct rate cosine[] = {{1, 0.2},  {2, 0.4},  {4, 0.8}, {9, 0.7121320344},
                                         {14, 0.5}, {24, 0.2}, {30, 0.2}};
    static const struct rate linear[] = {{1, 0.2}, {4, 0.8}, {9, 0.65}, {14, 0.5}, {24, 0.2}, {30, 0.2}};
    static const struct rate constant[] = {{1, 0.2}, {3, 0.6}, {4, 0.8}, {14, 0.8}, {30, 0.8}};
    static const struct rate no_warmup[] = {{1, 0.77}, {10, 0.5}, {20, 0.2}};
    static const struct rate only_warmup[] = {{5, 0.4}, {10, 0.8}, {12, 0.8}};
    check_schedule(0, 4, 24, cosine, 7);
    check_schedule(1, 4, 24, linear, 6);
    check_schedule(2, 4, 24, constant, 5);
    check_schedule(1, 0, 20, no_warmup, 3);
    check_schedule(0, 10, 10, only_warmup, 3);
}

/* --- steps that are not finite ------------------------------------------------------------------------------------ */

/* Everything that persists, one after the other. */
static char *snapshot(struct exec *e, size_t *bytes)
{
    const struct program *p = exec_program(e);
    char *all = NULL;
    *bytes = 0;
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->kind != VALUE_PARAMETER && strncmp(v->name, "adam.", 5))
            continue;
        all = xrealloc(all, *bytes + value_bytes(v));
        exec_read(e, i, all + *bytes);
        *bytes += value_bytes(v);
    }
    return all;
}

static void run_steps(struct exec *e, const struct small_batch *good, const struct small_batch *bad)
{
    for (int i = 0; i < exec_program(e)->micro_batches; i++) {
        write_batch(e, bad && i == 0 ? bad : good);
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    }
    exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
}

/* Token 0 gets an embedding that is not a number; only the bad batch has token 0. */
static void poison(struct exec *e, const struct small_model *m, float with)
{
    const value_id table = program_find(exec_program(e), "emb.weight");
    float *rows = read_value(e, table);
    for (int64_t i = 0; i < m->config.dim; i++)
        rows[i] = with;
    exec_write(e, table, rows);
    free(rows);
}

static void check_bad_step(struct backend *b, int accumulate, float with)
{
    const struct small_model *m = &small_models[SMALL_POSTLN];      /* its head has a table of its own */
    struct optimizer_settings s = small_settings();
    s.accumulate = accumulate;
    struct exec *e = new_exec(small_training(*m, &s), b);
    struct small_batch good = random_batch(m, 1);
    for (int i = 0; i < 512; i++)
        good.tokens[i] = good.tokens[i] ? good.tokens[i] : 1;
    struct small_batch bad = good;
    bad.tokens[3] = 0;
    poison(e, m, with);
    run_steps(e, &good, NULL);
    assert_true(isfinite(read_named(e, "host.loss")) && isfinite(read_named(e, "host.norm")));
    size_t bytes;
    char *before = snapshot(e, &bytes);
    run_steps(e, &good, &bad);
    assert_false(isfinite(read_named(e, "host.loss")) && isfinite(read_named(e, "host.norm")));
    char *after = snapshot(e, &bytes);
    assert_memory_equal(before, after, bytes);
    run_steps(e, &good, NULL);                                      /* and the next step is well again */
    assert_true(isfinite(read_named(e, "host.loss")) && isfinite(read_named(e, "host.norm")));
    char *later = snapshot(e, &bytes);
    assert_memory_not_equal(before, later, bytes);
    free(before);
    free(after);
    free(later);
    exec_free(e);
}

static void test_bad_step_changes_nothing(void **state)
{
    (void)state;
    struct backend *const both[] = {reference, tuned};
    for (int i = 0; i < 2; i++) {
        check_bad_step(both[i], 1, NAN);
        check_bad_step(both[i], 1, INFINITY);
        check_bad_step(both[i], 3, NAN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clip_factor),
        cmocka_unit_test(test_clip_of_bad_numbers),
        cmocka_unit_test(test_adamw_equals_the_textbook),
        cmocka_unit_test(test_weight_decay_of_a_model),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_bad_step_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
