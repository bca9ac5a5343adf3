/* The pass recompute: what is computed again and what is not, how much memory it saves, that it stops where the limit is met,
 * and that training has the same bits. */
#include "program/rewrite.h"
#include "support/backends.h"
#include "support/optimized.h"
#include "support/table.h"

static const int STEPS = 3;
static const double NO_LIMIT = 0, LEAST = 1;        /* LEAST: as little as can be reached */

static struct program *training_in(enum dtype narrow, struct small_model m, int accumulate, pass_set set, double limit, int *places)
{
    struct program *p = small_forward(m, 7);
    struct optimizer_settings s = small_settings();
    struct error err;
    s.accumulate = accumulate;
    assert_ok(pass_optimize(p, STAGE_FORWARD, set, NULL, places, &err), err);
    assert_ok(pass_training_step(p, &s, &err), err);
    p->memory_limit = limit;
    p->precision = (struct precision_goal){.narrow = narrow};
    assert_ok(pass_optimize(p, STAGE_STEP, set, NULL, places, &err), err);
    return p;
}

static struct program *training_within(struct small_model m, int accumulate, pass_set set, double limit, int *places)
{
    return training_in(F32, m, accumulate, set, limit, places);
}

static int places_of(const int *places) { return places[pass_find("recompute")]; }

/* tinyllama-ex3 and its likes, at the size where memory is short: 8 layers of 512 tokens. */
static struct small_model long_model(enum arch arch)
{
    return (struct small_model){
        "long", 8, {.arch = arch, .vocab = 1000, .dim = 256, .layers = 8, .heads = 8, .kv_heads = arch == ARCH_LLAMA ? 4 : 8,
                    .ffn = 512, .seq = 512, .rope_base = 10000, .norm_eps = 1e-6, .dropout = 0.1}};
}

/* Nor those that choose how ops are run. */
static pass_set all_but(const char *name)
{
    return PASS_SET_ALL & ~one_pass(name) & ~one_pass("mixed-precision") & ~one_pass("autotune");
}

/* ---- what it does ---- */

static bool is_again(const struct op *op) { return !strcmp(op->made_by, "recompute"); }

static bool makes(const struct program *p, const struct op *op, const char *name)
{
    return !strcmp(p->values[op->out[0]].name, name);
}

/* In front of the ops that read them, in the backward, of their layer; each with the attributes of the op that it repeats. */
static int check_copies(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (!is_again(op))
            continue;
        const char *name = p->values[op->out[0]].name;
        assert_memory_equal(name, "again.", 6);
        assert_true(op->phase == PHASE_BACKWARD && op->layer != NO_LAYER && p->values[op->out[0]].kind != VALUE_GRADIENT);
        bool found = false;
        for (int k = 0; k < i; k++)
            found |= p->ops[k].phase == PHASE_FORWARD && p->ops[k].layer == op->layer && makes(p, &p->ops[k], name + 6) &&
                     op_attrs_equal(&p->ops[k].attrs, &op->attrs);
        if (!found)
            fail_msg("%s repeats no op", name);
        bool read = false;
        for (int k = 0; k < op->n_out; k++)
            read |= program_readers(p, op->out[k], NULL) > 0;
        if (!read)
            fail_msg("%s is computed again for nothing", name);
        n++;
    }
    return n;
}

static void test_what_is_computed_again(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int fused = 0; fused < 2; fused++) {
            int places[PASSES_MAX] = {0};
            struct small_model m = small_models[model];
            m.config.dropout = 0.2;
            m.config.layers = 3;
            m.batch = 24;
            const pass_set set = fused ? all_but("no-zero-fill") : one_pass("recompute");
            struct program *p = training_within(m, 1, set, LEAST, places);
            assert_true(places_of(places) >= 2);
            assert_true(check_copies(p) > 3 * places_of(places));
            for (int i = 0; i < p->n_ops && model < SMALL_POSTLN; i++)     /* the end of a block is not needed */
                if (makes(p, &p->ops[i], "again.blocks.0.dn") || makes(p, &p->ops[i], "again.blocks.0.res2"))
                    fail_msg("%s is computed again", p->values[p->ops[i].out[0]].name);
            program_free(p);
        }
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    const double limits[] = {NO_LIMIT, 1e12};
    struct program *plain = training_within(small_models[SMALL_GPT], 1, 0, NO_LIMIT, NULL);
    for (int i = 0; i < 2; i++) {
        int places[PASSES_MAX] = {0};
        struct program *p = training_within(small_models[SMALL_GPT], 1, one_pass("recompute"), limits[i], places);
        assert_int_equal(places_of(places), 0);
        assert_int_equal(p->n_ops, plain->n_ops);
        assert_int_equal(p->n_values, plain->n_values);
        program_free(p);
    }
    program_free(plain);
    struct program *forward = small_forward(small_models[SMALL_GPT], 1);
    const int n = forward->n_ops;
    forward->memory_limit = LEAST;
    assert_int_equal(pass_recompute(forward), 0);           /* no backward, nothing to compute again for */
    assert_int_equal(forward->n_ops, n);
    program_free(forward);
}

/* Copies of dropout read the tick; were it advanced before them, they would drop other numbers. */
static void test_values_that_change_on_the_way(void **state)
{
    (void)state;
    for (int changes = 0; changes < 2; changes++) {
        struct small_model m = small_models[SMALL_GPT];
        struct error err;
        m.config.dropout = 0.2;
        m.batch = 24;
        struct program *p = training_within(m, 1, 0, NO_LIMIT, NULL);
        const value_id tick = program_find(p, "tick");
        int at = 0;
        while (p->ops[at].phase < PHASE_BACKWARD)
            at++;
        if (changes)
            assert_int_equal(program_insert_op(p, at, OP_ADVANCE, NONE, "tick", 1, &tick), at);
        p->memory_limit = LEAST;
        const int n = p->n_ops;
        assert_true((pass_recompute(p) > 0) == !changes);
        assert_true((p->n_ops > n) == !changes);
        assert_ok(program_validate(p, &err), err);
        program_free(p);
    }
}

static void test_a_second_time(void **state)
{
    (void)state;
    struct error err;
    int places[PASSES_MAX] = {0};
    struct program *p = training_within(long_model(ARCH_LLAMA), 1, one_pass("recompute"), LEAST, places);
    const double planned = pass_planned_bytes(p);
    assert_true(places_of(places) > 0);
    pass_recompute(p);
    assert_ok(program_validate(p, &err), err);
    assert_true(pass_planned_bytes(p) <= planned);
    check_copies(p);
    program_free(p);
}

/* ---- memory ---- */

static double workspace(const struct program *p)
{
    struct memory_plan plan;
    pass_memory_plan(p, &plan);
    const double bytes = (double)plan.workspace_bytes;
    memory_plan_release(&plan);
    return bytes;
}

static void test_workspace_falls(void **state)
{
    (void)state;
    static const double factor[] = {[ARCH_GPT] = 3.5, [ARCH_LLAMA] = 3.5, [ARCH_POSTLN] = 3.5};
    for (enum arch arch = ARCH_GPT; arch <= ARCH_POSTLN; arch++)
        for (int fused = 0; fused < 2; fused++) {
            const pass_set set = fused ? all_but("recompute") : 0;
            struct program *was = training_within(long_model(arch), 1, set, NO_LIMIT, NULL);
            struct program *is = training_within(long_model(arch), 1, set | one_pass("recompute"), LEAST, NULL);
            if (workspace(is) * factor[arch] > workspace(was))
                fail_msg("arch %d, fused %d: the workspace falls from %.1f to %.1f MB", (int)arch, fused, workspace(was) / 1e6,
                         workspace(is) / 1e6);
            program_free(was);
            program_free(is);
        }
}

/* As the limit falls, more is computed again, and no more than must be: with the limit at what was reached nothing changes. */
static void test_stops_at_the_limit(void **state)
{
    (void)state;
    const pass_set set = all_but("no-zero-fill");
    struct program *whole = training_within(long_model(ARCH_LLAMA), 1, set, NO_LIMIT, NULL);
    struct program *least = training_within(long_model(ARCH_LLAMA), 1, set, LEAST, NULL);
    const double most = pass_planned_bytes(whole), lowest = pass_planned_bytes(least);
    double flops = program_cost(whole, PHASE_BACKWARD).flops;
    for (int i = 1; i <= 8; i++) {
        const double limit = most + (lowest - most) * i / 8;
        int places[PASSES_MAX] = {0}, again[PASSES_MAX] = {0};
        struct program *p = training_within(long_model(ARCH_LLAMA), 1, set, limit, places);
        const double planned = pass_planned_bytes(p), cost = program_cost(p, PHASE_BACKWARD).flops;
        assert_true(planned <= limit && cost > flops);
        struct program *same = training_within(long_model(ARCH_LLAMA), 1, set, planned, again);
        assert_true(program_cost(same, PHASE_BACKWARD).flops == cost && places_of(again) == places_of(places));
        flops = cost;
        program_free(p);
        program_free(same);
    }
    program_free(whole);
    program_free(least);
}

/* Norms and activation functions come first: they save some memory and cost next to nothing. */
static void test_cheap_ops_first(void **state)
{
    (void)state;
    static const double share[] = {[ARCH_GPT] = 0.87, [ARCH_LLAMA] = 0.78, [ARCH_POSTLN] = 0.94};
    for (enum arch arch = ARCH_GPT; arch <= ARCH_POSTLN; arch++) {
        struct program *whole = training_within(long_model(arch), 1, all_but("recompute"), NO_LIMIT, NULL);
        const double limit = share[arch] * pass_planned_bytes(whole);
        struct program *p = training_within(long_model(arch), 1, all_but("no-zero-fill"), limit, NULL);
        assert_true(pass_planned_bytes(p) <= limit);
        assert_true(program_cost(p, PHASE_BACKWARD).flops < 1.01 * program_cost(whole, PHASE_BACKWARD).flops);
        assert_int_equal(count_ops(p, OP_MATMUL, PHASE_BACKWARD), count_ops(whole, OP_MATMUL, PHASE_BACKWARD));
        assert_int_equal(count_ops(p, OP_PROJECT, PHASE_BACKWARD) + count_ops(p, OP_ATTENTION, PHASE_BACKWARD), 0);
        program_free(whole);
        program_free(p);
    }
}

/* Work done twice is cost of the program, and no work of the model: MFU counts the latter. */
static void test_model_flops_stay(void **state)
{
    (void)state;
    const struct small_model m = long_model(ARCH_LLAMA);
    struct program *was = training_within(m, 1, 0, NO_LIMIT, NULL);
    struct program *is = training_within(m, 1, one_pass("recompute"), LEAST, NULL);
    assert_true(program_cost(is, PHASE_BACKWARD).flops > 1.2 * program_cost(was, PHASE_BACKWARD).flops);
    assert_true(program_cost(is, PHASE_FORWARD).flops == program_cost(was, PHASE_FORWARD).flops);
    assert_true(model_step_flops(is, &m.config, m.batch) == model_step_flops(was, &m.config, m.batch));
    program_free(was);
    program_free(is);
}

/* ---- the same training ---- */

static void assert_same(struct small_model m, enum dtype narrow, int accumulate, pass_set set, double share, struct backend *b)
{
    int places[PASSES_MAX] = {0};
    char what[128];
    m.config.layers = 3;
    m.batch = 20;                       /* enough for the activations to be most of the memory */
    snprintf(what, sizeof what, "%s of width %lld in %s, accumulate %d, passes %x, limit %g", m.name, (long long)m.config.dim, dtype_name(narrow), accumulate, set, share);
    struct program *p = training_in(narrow, m, accumulate, set, NO_LIMIT, NULL);
    struct program *before = training_in(narrow, m, accumulate, set & ~one_pass("group-levels"), NO_LIMIT, NULL);   /* it comes later, and takes memory */
    const double limit = LEAST + pass_planned_bytes(before) * share;
    program_free(before);
    struct program *q = training_in(narrow, m, accumulate, set | one_pass("recompute"), limit, places);
    if (places_of(places) == 0)
        fail_msg("%s: nothing is computed again", what);
    struct trained was = train_small(p, &m, b, STEPS), is = train_small(q, &m, b, STEPS);
    if (memcmp(is.metrics, was.metrics, sizeof was.metrics))
        fail_msg("%s: the metrics are not the same to the last bit", what);
    assert_same_weights(was.exec, is.exec, 0, what);
    exec_free(was.exec);
    exec_free(is.exec);
}

static void assert_equal(int model, int accumulate, pass_set set, double dropout, double share, struct backend *b)
{
    struct small_model m = small_models[model];
    m.config.dropout = dropout;
    assert_same(m, F32, accumulate, set, share, b);
}

/* Rows of every length that vectors may leave something of. A norm with a mean takes its squares from the stored sum in one way alone. */
static void test_same_bits_of_every_width(void **state)
{
    (void)state;
    for (int64_t dim = 32; dim <= 64; dim += 2) {
        struct small_model m = small_models[SMALL_LLAMA];
        m.config.dim = dim;
        m.config.heads = m.config.kv_heads = 1;
        assert_same(m, F32, 1, one_pass("fuse-residual-norm"), 0, tuned);
    }
}

/* A norm of a sum is of the sum as it is stored, which is what is kept of it. */
static void test_same_bits_of_narrow_values(void **state)
{
    (void)state;
    const pass_set sets[] = {one_pass("mixed-precision"), one_pass("mixed-precision") | one_pass("fuse-residual-norm")};
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int k = 0; k < 2; k++) {
            assert_same(small_models[model], BF16, 1, sets[k], 0, reference);
            assert_same(small_models[model], F16, 1, sets[k], 0, reference);
        }
}

static void test_same_bits(void **state)
{
    (void)state;
    const pass_set sets[] = {0, all_but("recompute"), one_pass("flash-attention"), one_pass("fuse-residual-norm")};
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int k = 0; k < 4; k++) {
            assert_equal(model, 1, sets[k], 0.2, 0, tuned);
            assert_equal(model, 3, sets[k], k % 2 ? 0.2 : 0, 0.97, tuned);
            if (k < 2)
                assert_equal(model, 1 + k, sets[k], 0.2, 0, reference);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_computed_again),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_values_that_change_on_the_way),
        cmocka_unit_test(test_a_second_time),
        cmocka_unit_test(test_workspace_falls),
        cmocka_unit_test(test_stops_at_the_limit),
        cmocka_unit_test(test_cheap_ops_first),
        cmocka_unit_test(test_model_flops_stay),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_same_bits_of_every_width),
        cmocka_unit_test(test_same_bits_of_narrow_values),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
