/* Passes together: each switched alone, every pair in both orders, all at once; constants that are made once; metrics that
 * wait on the device. */
#include "support/backends.h"
#include "support/optimized.h"
#include "support/table.h"

/* A pass may change the order of sums. Losses then differ by this share; those of the passes in `exact` not at all. */
static const double LOSS = 2e-5, NORM = 2e-4;
static const double BF16_LOSS = 2e-3, BF16_NORM = 2e-2;         /* with mixed-precision among them */
static const char *const exact[] = {"hoist-constants", "async-metrics", "recompute", "no-zero-fill", "fewer-meetings", "group-levels", "capture"};
enum { EXACT = sizeof exact / sizeof *exact, STEPS = 3 };

/* The small models, with what passes could trip over: dropout, and several batches per step. */
static struct small_model odd_model(int model)
{
    struct small_model m = small_models[model];
    m.config.dropout = model == SMALL_GPT ? 0.2 : 0;
    m.batch *= 2;                       /* enough activations for recompute */
    return m;
}

static struct optimizer_settings odd_settings(int model)
{
    struct optimizer_settings s = small_settings();
    s.accumulate = model == SMALL_LLAMA ? 3 : 1;
    return s;
}

static struct trained train_with(int model, struct backend *b, pass_set set, const int *order, int *places)
{
    const struct small_model m = odd_model(model);
    const struct optimizer_settings s = odd_settings(model);
    return train_small(optimized_training(m, &s, set, order, places), &m, b, STEPS);
}

static void assert_same_training(const struct trained *is, const struct trained *was, bool bf16, const char *what)
{
    const double loss = bf16 ? BF16_LOSS : LOSS, norm = bf16 ? BF16_NORM : NORM;
    for (int i = 0; i < STEPS; i++) {
        const float *a = is->metrics[i], *b = was->metrics[i];
        assert_near(a[METRIC_LOSS], b[METRIC_LOSS], loss * b[METRIC_LOSS], what);
        assert_near(a[METRIC_NORM], b[METRIC_NORM], norm * b[METRIC_NORM], what);
        assert_true(a[METRIC_LR] == b[METRIC_LR]);
    }
    assert_int_equal(count_saved(exec_program(is->exec)), count_saved(exec_program(was->exec)));
}

static void assert_equal_training(const struct trained *is, const struct trained *was, const char *what)
{
    if (memcmp(is->metrics, was->metrics, sizeof was->metrics))
        fail_msg("%s: the metrics are not the same to the last bit", what);
    assert_same_weights(was->exec, is->exec, 0, what);
    assert_same_training(is, was, false, what);
}

/* ---- the table ---- */

static void test_table(void **state)
{
    (void)state;
    int n = 0;
    for (; pass_table[n].name; n++) {
        assert_int_equal(pass_find(pass_table[n].name), n);
        assert_true(pass_table[n].run && strlen(pass_table[n].what) > 10 && strlen(pass_table[n].answers) > 3);
    }
    assert_true(n <= PASSES_MAX && n <= 32);
    assert_int_equal(pass_find("fuse-everything"), -1);
}

/* A pass that is off does nothing, and one of another stage waits for it. */
static void test_set_and_stage(void **state)
{
    (void)state;
    struct program *p = small_forward(small_models[SMALL_GPT], 1);
    int places[PASSES_MAX] = {0};
    struct error err;
    const int n = p->n_ops;
    assert_ok(pass_optimize(p, STAGE_FORWARD, 0, NULL, places, &err), err);
    assert_ok(pass_optimize(p, STAGE_STEP, PASS_SET_ALL, NULL, places, &err), err);
    assert_int_equal(p->n_ops, n);
    for (int i = 0; i < PASSES_MAX; i++)
        assert_int_equal(places[i], 0);
    program_free(p);
}

/* ---- alone, in pairs, all ---- */

/* There are sums to write where there are several batches per step, and levels in a tree. */
static bool has_work(const char *pass, int model)
{
    if (!strcmp(pass, "group-levels"))
        return model == SMALL_K1;
    if (!strcmp(pass, "capture"))
        return false;                       /* a CPU launches nothing */
    return strcmp(pass, "no-zero-fill") || odd_settings(model).accumulate > 1;
}

static void test_exact_passes(void **state)
{
    (void)state;
    struct backend *const both[] = {reference, tuned};
    pass_set all = 0;
    for (int i = 0; i < EXACT; i++)
        all |= one_pass(exact[i]);
    for (int b = 0; b < 2; b++)
        for (int model = 0; model < SMALL_MODELS; model++) {
            struct trained was = train_with(model, both[b], 0, NULL, NULL);
            for (int i = 0; i < EXACT; i++) {
                int places[PASSES_MAX] = {0};
                struct trained is = train_with(model, both[b], one_pass(exact[i]), NULL, places);
                assert_true(places[pass_find(exact[i])] > 0 || !has_work(exact[i], model));
                assert_equal_training(&is, &was, exact[i]);
                exec_free(is.exec);
            }
            struct trained is = train_with(model, both[b], all, NULL, NULL);
            assert_equal_training(&is, &was, "all of them");
            exec_free(is.exec);
            exec_free(was.exec);
        }
}

static void check_pair(int model, int first, int second, const struct trained *was)
{
    const int order[] = {first, second, -1};
    char what[128];
    snprintf(what, sizeof what, "%s, then %s on %s", pass_table[first].name, pass_table[second].name, small_models[model].name);
    struct trained is = train_with(model, tuned, PASS_SET_ALL, order, NULL);
    const int rounds = pass_find("mixed-precision");
    assert_same_training(&is, was, first == rounds || second == rounds, what);
    exec_free(is.exec);
}

/* Where sanitizers make it slow, a sample. */
#ifdef HONE_SANITIZED
enum { EVERY = 7 };
#else
enum { EVERY = 1 };
#endif

static void test_pairs_in_both_orders(void **state)
{
    (void)state;
    int pair = 0;
    for (int model = 0; model < SMALL_MODELS; model++) {
        struct trained was = train_with(model, tuned, 0, NULL, NULL);
        for (int i = 0; pass_table[i].name; i++)
            for (int k = 0; pass_table[k].name; k++)
                if (i != k && pair++ % EVERY == 0)
                    check_pair(model, i, k, &was);
        exec_free(was.exec);
    }
}

/* Of these the order does not matter, to the last bit. */
static void test_order_of_exact_passes(void **state)
{
    (void)state;
    const int optimizer = pass_find("fused-optimizer"), metrics = pass_find("async-metrics"), hoist = pass_find("hoist-constants");
    const int orders[][4] = {{hoist, optimizer, metrics, -1}, {metrics, optimizer, hoist, -1}, {optimizer, metrics, hoist, -1}};
    struct trained was = train_with(SMALL_LLAMA, tuned, PASS_SET_ALL, orders[0], NULL);
    for (int i = 1; i < 3; i++) {
        struct trained is = train_with(SMALL_LLAMA, tuned, PASS_SET_ALL, orders[i], NULL);
        assert_equal_training(&is, &was, "another order");
        exec_free(is.exec);
    }
    exec_free(was.exec);
}

static void test_all(void **state)
{
    (void)state;
    int backwards[PASSES_MAX + 1], n = 0;
    while (pass_table[n].name)
        n++;
    for (int i = 0; i < n; i++)
        backwards[i] = n - 1 - i;
    backwards[n] = -1;
    for (int model = 0; model < SMALL_MODELS; model++) {
        struct trained was = train_with(model, tuned, 0, NULL, NULL);
        struct trained all = train_with(model, tuned, PASS_SET_ALL, NULL, NULL);
        struct trained again = train_with(model, tuned, PASS_SET_ALL, NULL, NULL);
        struct trained other = train_with(model, tuned, PASS_SET_ALL, backwards, NULL);
        assert_same_training(&all, &was, true, "all passes");
        assert_equal_training(&again, &all, "all passes, a second time");
        assert_same_training(&other, &was, true, "all passes, the last one first");
        exec_free(was.exec);
        exec_free(all.exec);
        exec_free(again.exec);
        exec_free(other.exec);
    }
}

/* ---- constants ---- */

static int count_kind(const struct program *p, enum value_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        n += p->values[i].kind == kind;
    return n;
}

static struct program *hoisted(const struct small_model *m)
{
    struct program *p = NULL;
    struct error err;
    assert_ok(model_build(&p, &m->config, (struct model_options){.batch = m->batch, .loss = true}, &err), err);
    assert_ok(pass_optimize(p, STAGE_FORWARD, one_pass("hoist-constants"), NULL, NULL, &err), err);
    return p;
}

/* Two layers share one mask; the tables of the angles stay two values of one op. */
static void test_constants_are_made_once(void **state)
{
    (void)state;
    const int tables[SMALL_MODELS] = {[SMALL_GPT] = 1, [SMALL_LLAMA] = 3, [SMALL_POSTLN] = 1, [SMALL_K1] = 1};
    for (int model = 0; model < SMALL_MODELS; model++) {
        struct program *p = hoisted(&small_models[model]);
        struct error err;
        assert_ok(program_validate(p, &err), err);
        assert_int_equal(count_kind(p, VALUE_TABLE), tables[model]);
        assert_int_equal(count_ops(p, OP_CAUSAL_MASK, PHASE_SETUP), 1);
        assert_int_equal(count_ops(p, OP_CAUSAL_MASK, PHASE_FORWARD), 0);
        assert_int_equal(count_ops(p, OP_ROPE_TABLE, PHASE_SETUP), model == SMALL_LLAMA);
        assert_int_equal((int)program_cost(p, PHASE_SETUP).ops, model == SMALL_LLAMA ? 2 : 1);
        assert_true(op_runs_per_step(p, &p->ops[0]) == 0);
        assert_int_equal(pass_hoist_constants(p), 0);           /* nothing is left to do */
        program_free(p);
    }
}

/* Other sizes and other bases are other tables, with names of their own. */
static void test_different_constants_stay_apart(void **state)
{
    (void)state;
    struct program *p = program_new("constants");
    struct error err;
    const struct { enum op_kind kind; struct op_attrs attrs; } list[] = {
        {OP_CAUSAL_MASK, {.rows = 4}}, {OP_CAUSAL_MASK, {.rows = 5}}, {OP_CAUSAL_MASK, {.rows = 4}},
        {OP_ROPE_TABLE, {.rows = 4, .cols = 2, .base = 100}}, {OP_ROPE_TABLE, {.rows = 4, .cols = 2, .base = 1000}},
        {OP_ROPE_TABLE, {.rows = 4, .cols = 4, .base = 100}}, {OP_ROPE_TABLE, {.rows = 4, .cols = 2, .base = 100}},
        {OP_ROPE_TABLE, {.rows = 4, .cols = 2, .base = 100, .stretch = {.factor = 2}}}};
    value_id made[8];
    for (int i = 0; i < 8; i++)
        made[i] = program_emit(p, list[i].kind, list[i].attrs, "constant", 0);
    const value_id sum = program_emit(p, OP_ADD, NONE, "sum", 2, made[0], made[2]);
    const value_id both = program_emit(p, OP_MUL, NONE, "both", 2, made[3], made[6]);
    p->logits = made[6];
    assert_ok(pass_optimize(p, STAGE_FORWARD, one_pass("hoist-constants"), NULL, NULL, &err), err);
    assert_int_equal(program_cost(p, PHASE_SETUP).ops, 6);
    assert_int_equal(count_kind(p, VALUE_TABLE), 2 + 4 * 2);
    const struct op *add = &p->ops[6], *mul = &p->ops[7];
    assert_true(add->out[0] == sum && add->in[0] == made[0] && add->in[1] == made[0]);
    assert_true(mul->out[0] == both && mul->in[0] == made[3] && mul->in[1] == made[3]);
    assert_int_equal(p->logits, made[3]);
    program_free(p);
}

/* The executor runs the setup when it is made; a second one for evaluation uses the same memory. */
static void test_executors_share_tables(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_LLAMA];
    const struct optimizer_settings s = small_settings();
    struct exec *train = new_exec(optimized_training(*m, &s, one_pass("hoist-constants"), NULL, NULL), tuned), *eval = NULL;
    struct program *p = hoisted(m);
    struct error err;
    assert_ok(exec_new(&eval, p, tuned, train, &err), err);
    char *mask_name = arena_printf(&p->arena, "table.causal_mask.%lldx0.base0.0", (long long)m->config.seq);
    const value_id mask = program_find(p, mask_name);
    assert_true(mask != NO_VALUE);
    float *x = read_value(eval, mask), mark = 7;
    for (int64_t i = 0; i < m->config.seq * m->config.seq; i++)
        assert_true(i % m->config.seq > i / m->config.seq ? x[i] == -INFINITY : x[i] == 0);
    x[0] = mark;
    exec_write(train, program_find(exec_program(train), mask_name), x);
    free(x);
    x = read_value(eval, mask);
    assert_true(x[0] == mark);
    x[0] = 0;
    exec_write(eval, mask, x);
    free(x);
    assert_evaluation_follows(train, eval, m);
    exec_free(eval);
    exec_free(train);
}

/* A table lives outside of the workspace, and counts beside the inputs: no batch makes it larger. */
static void test_memory_of_tables(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_LLAMA];
    struct program *p = hoisted(m);
    struct memory_plan plan;
    struct memory_point *points = xcalloc((size_t)p->n_ops, sizeof *points);
    double tables = 0, inputs = 0;
    pass_memory_plan(p, &plan);
    for (int i = 0; i < p->n_values; i++) {
        inputs += p->values[i].kind == VALUE_INPUT || p->values[i].kind == VALUE_HOST ? (double)value_bytes(&p->values[i]) : 0;
        if (p->values[i].kind == VALUE_TABLE) {
            assert_true(plan.offset[i] == SIZE_MAX && value_is_persistent(&p->values[i]));
            tables += (double)value_bytes(&p->values[i]);
        }
    }
    pass_memory_timeline(p, points);
    assert_true(tables > 0 && points[0].activations == 0 && points[0].inputs == inputs + tables);     /* the setup has nothing else alive */
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    program_print(p, f);
    fclose(f);
    assert_non_null(strstr(text, "\n  table "));
    assert_non_null(strstr(text, "\nsetup: 2 ops"));
    free(text);
    free(points);
    memory_plan_release(&plan);
    program_free(p);
}

/* What the rules of a program say about the setup and its tables. */
static void test_rules_of_the_setup(void **state)
{
    (void)state;
    static const struct { int fault; const char *says; } cases[] = {
        {0, "is written by the setup but is no table"},
        {1, "is a table; only the setup writes one whole"},
        {2, "is read by the setup, which has only tables and parameters"},
        {3, "two values that persist are named 'table.causal_mask.10x0.base0.0'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program *p = hoisted(&small_models[SMALL_GPT]);
        struct error err;
        const value_id mask = p->ops[0].out[0];
        if (cases[i].fault == 0)
            p->values[mask].kind = VALUE_CONSTANT;
        if (cases[i].fault == 1)
            p->ops[0].phase = PHASE_FORWARD;
        if (cases[i].fault == 2) {
            const value_id w = p->tokens;
            p->ops[0].kind = OP_FILL;
            p->ops[0].n_in = 1;
            p->ops[0].in = arena_copy(&p->arena, &w, sizeof w);
        }
        if (cases[i].fault == 3)
            program_add_value(p, "twin", VALUE_TABLE, F32, shape_of(0)), p->values[p->n_values - 1].name = p->values[mask].name;
        assert_int_equal(program_validate(p, &err), BAD_INPUT);
        assert_says(&err, cases[i].says, NULL);
        program_free(p);
    }
}

/* ---- metrics ---- */

static void test_no_host_read_is_left(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    int places[PASSES_MAX] = {0};
    struct program *p = optimized_training(small_models[SMALL_GPT], &s, one_pass("async-metrics"), NULL, places);
    assert_int_equal(places[pass_find("async-metrics")], METRICS);
    assert_int_equal(count_ops(p, OP_HOST_READ, PHASE_OPTIMIZE), 0);
    assert_int_equal(count_ops(p, OP_KEEP, PHASE_OPTIMIZE), 1);
    assert_int_equal(count_kind(p, VALUE_HOST), 0);
    assert_int_equal(program_find(p, "host.loss"), NO_VALUE);
    assert_int_equal(pass_async_metrics(p), 0);
    program_free(p);
}

/* The ring holds the last steps, bit for bit what the host would have read, and starts over when it is full. */
static void test_ring_holds_every_step(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_GPT];
    const struct optimizer_settings s = small_settings();
    const int steps = METRICS_KEPT + 9;
    struct trained was = train_small(optimized_training(*m, &s, 0, NULL, NULL), m, tuned, steps);
    struct trained is = train_small(optimized_training(*m, &s, one_pass("async-metrics"), NULL, NULL), m, tuned, steps);
    assert_memory_equal(is.metrics, was.metrics, sizeof was.metrics);
    for (int step = steps - METRICS_KEPT + 1; step <= steps; step++) {  /* all of it at once, as a report reads it */
        float row[METRICS];
        read_metrics(is.exec, step, row);
        assert_memory_equal(row, was.metrics[step - 1], sizeof row);
    }
    exec_free(was.exec);
    exec_free(is.exec);
}

/* A loss that is not a number stands in the row of its step, and only there. */
static void test_ring_names_the_bad_step(void **state)
{
    (void)state;
    const struct small_model *m = &small_models[SMALL_POSTLN];
    const struct optimizer_settings s = small_settings();
    struct exec *e = new_exec(optimized_training(*m, &s, one_pass("async-metrics"), NULL, NULL), tuned);
    const value_id table = program_find(exec_program(e), "emb.weight");
    float *rows = read_value(e, table);
    for (int64_t i = 0; i < m->config.dim; i++)
        rows[i] = INFINITY;
    exec_write(e, table, rows);
    free(rows);
    for (int step = 1; step <= 6; step++) {
        struct small_batch batch = random_batch(m, (uint64_t)step);
        for (int i = 0; i < 512; i++)
            batch.tokens[i] = batch.tokens[i] ? batch.tokens[i] : 1;
        if (step == 4)
            batch.tokens[0] = 0;
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
    }
    for (int step = 1; step <= 6; step++) {
        float row[METRICS];
        read_metrics(e, step, row);
        assert_true((isfinite(row[METRIC_LOSS]) && isfinite(row[METRIC_NORM])) == (step != 4));
    }
    exec_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_set_and_stage),
        cmocka_unit_test(test_exact_passes),
        cmocka_unit_test(test_pairs_in_both_orders),
        cmocka_unit_test(test_order_of_exact_passes),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_constants_are_made_once),
        cmocka_unit_test(test_different_constants_stay_apart),
        cmocka_unit_test(test_executors_share_tables),
        cmocka_unit_test(test_memory_of_tables),
        cmocka_unit_test(test_rules_of_the_setup),
        cmocka_unit_test(test_no_host_read_is_left),
        cmocka_unit_test(test_ring_holds_every_step),
        cmocka_unit_test(test_ring_names_the_bad_step),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
