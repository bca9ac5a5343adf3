/* What fuse-qkv and fuse-gate-up find, what they leave alone, and what they put in its place. */
#include "passes/optimize.h"
#include "support/models.h"
#include "support/table.h"

/* The pass, and a program that is still valid. */
static int run_pass(pass_fn *pass, struct program *p)
{
    struct error err;
    const int places = pass(p);
    assert_ok(program_validate(p, &err), err);
    return places;
}

static int projects_of(const struct program *p, int parts)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += p->ops[i].kind == OP_PROJECT && p->ops[i].attrs.parts == parts;
    return n;
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static void check_found(struct program *p, int layers, int gates)
{
    const int products = count_ops(p, OP_MATMUL, PHASE_FORWARD), values = p->n_values;
    assert_int_equal(run_pass(pass_fuse_qkv, p), layers);
    assert_int_equal(projects_of(p, 3), layers);
    assert_int_equal(projects_of(p, 2), 0);                 /* gate and up are not queries */
    assert_int_equal(run_pass(pass_fuse_gate_up, p), gates);
    assert_int_equal(projects_of(p, 2), gates);
    assert_int_equal(count_ops(p, OP_SWIGLU, PHASE_FORWARD), gates);
    assert_int_equal(count_ops(p, OP_SILU, PHASE_FORWARD) + count_ops(p, OP_MUL, PHASE_FORWARD), 0);
    assert_int_equal(count_ops(p, OP_MATMUL, PHASE_FORWARD), products - 3 * layers - 2 * gates);
    for (int v = values; v < p->n_values; v++)              /* parameters are what they were */
        assert_int_equal(p->values[v].kind, VALUE_ACTIVATION);
}

static void test_models(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        const int layers = (int)small_models[m].config.layers;
        struct program *p = small_forward(small_models[m], 7);
        check_found(p, layers, m == SMALL_LLAMA ? layers : 0);
        const int ops = p->n_ops;
        assert_int_equal(run_pass(pass_fuse_qkv, p) + run_pass(pass_fuse_gate_up, p), 0);   /* nothing is left to do */
        assert_int_equal(p->n_ops, ops);
        program_free(p);
    }
}

/* Attention may be one op already or become one later; either pass finds as much in both orders. */
static void test_orders_with_flash_attention(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct program *first = small_forward(small_models[m], 7), *last = small_forward(small_models[m], 7);
        const int flash = run_pass(pass_flash_attention, first);
        assert_int_equal(run_pass(pass_fuse_qkv, first), small_models[m].config.layers);
        assert_int_equal(run_pass(pass_fuse_qkv, last), small_models[m].config.layers);
        assert_int_equal(run_pass(pass_flash_attention, last), flash);
        assert_int_equal(first->n_ops, last->n_ops);
        program_free(first);
        program_free(last);
    }
}

/* One name per part, and the layer, so that a listing can be read. */
static void test_names_and_layers(void **state)
{
    (void)state;
    struct program *p = small_forward(small_models[SMALL_LLAMA], 7);
    run_pass(pass_fuse_qkv, p);
    run_pass(pass_fuse_gate_up, p);
    static const char *const names[] = {"blocks.1.attn.qkv", "blocks.1.attn.qkv.2", "blocks.1.gate_up", "blocks.1.swiglu"};
    for (int i = 0; i < 4; i++) {
        const value_id v = program_find(p, names[i]);
        if (v == NO_VALUE)
            fail_msg("the program has no value '%s'", names[i]);
        assert_int_equal(p->values[v].layer, 1);
    }
    program_free(p);
}

/* The gradient of the input is summed inside the op, and what SiLU gave is not kept. */
static void test_backward_is_smaller(void **state)
{
    (void)state;
    const int layers = (int)small_models[SMALL_LLAMA].config.layers;
    struct program *p[2];
    struct memory_plan plan[2];
    struct error err;
    for (int k = 0; k < 2; k++) {
        p[k] = small_forward(small_models[SMALL_LLAMA], 7);
        if (k)
            assert_int_equal(run_pass(pass_fuse_qkv, p[k]) + run_pass(pass_fuse_gate_up, p[k]), 2 * layers);
        const struct optimizer_settings s = small_settings();
        assert_ok(pass_training_step(p[k], &s, &err), err);
        pass_memory_plan(p[k], &plan[k]);
    }
    assert_int_equal(count_ops(p[0], OP_ADD, PHASE_BACKWARD) - count_ops(p[1], OP_ADD, PHASE_BACKWARD), 3 * layers);
    assert_int_equal(count_ops(p[1], OP_PROJECT_GRAD, PHASE_BACKWARD), 2 * layers);
    assert_int_equal(count_ops(p[1], OP_SWIGLU_GRAD, PHASE_BACKWARD), layers);
    assert_true(program_cost(p[1], PHASE_BACKWARD).bytes < program_cost(p[0], PHASE_BACKWARD).bytes);
    assert_true(plan[1].workspace_bytes < plan[0].workspace_bytes);
    for (int k = 0; k < 2; k++) {
        memory_plan_release(&plan[k]);
        program_free(p[k]);
    }
}

/* --- near misses -------------------------------------------------------------------------------------------------- */

enum { BATCH = 2, SEQ = 3, DIM = 4 };
static const struct op_attrs HEADS = {.heads = 2, .kv_heads = 2, .scale = 1}, TRANSPOSED = {.trans_b = true};

static value_id input(struct program *p, const char *name)
{
    return program_add_value(p, name, VALUE_INPUT, F32, shape_of(3, (int64_t)BATCH, (int64_t)SEQ, (int64_t)DIM));
}

static value_id product_of(struct program *p, const char *name, value_id x, bool bias)
{
    char text[32];
    snprintf(text, sizeof text, "%s.weight", name);
    const value_id w = program_add_parameter(p, text, shape_of(2, (int64_t)DIM, (int64_t)DIM), ROLE_MATRIX, INIT_NORMAL, 1);
    if (!bias)
        return program_emit(p, OP_MATMUL, TRANSPOSED, name, 2, x, w);
    snprintf(text, sizeof text, "%s.bias", name);
    const value_id b = program_add_parameter(p, text, shape_of(1, (int64_t)DIM), ROLE_BIAS, INIT_ZEROS, 0);
    return program_emit(p, OP_MATMUL, TRANSPOSED, name, 3, x, w, b);
}

static void attend(struct program *p, value_id q, value_id k, value_id v)
{
    const value_id w = program_emit(p, OP_SOFTMAX, NONE, "w", 1, program_emit(p, OP_ATTN_SCORES, HEADS, "s", 2, q, k));
    p->logits = program_emit(p, OP_ATTN_MIX, HEADS, "y", 2, w, v);
}

static void assert_untouched(pass_fn *pass, struct program *p)
{
    const int ops = p->n_ops, values = p->n_values;
    assert_int_equal(run_pass(pass, p), 0);
    assert_int_equal(p->n_ops, ops);
    assert_int_equal(p->n_values, values);
    program_free(p);
}

static void test_qkv_near_misses(void **state)
{
    (void)state;
    struct program *p = program_new("two inputs");          /* attention across: keys and values of another input */
    value_id x = input(p, "x"), z = input(p, "z");
    attend(p, product_of(p, "q", x, false), product_of(p, "k", z, false), product_of(p, "v", z, false));
    assert_untouched(pass_fuse_qkv, p);

    p = program_new("one bias");
    x = input(p, "x");
    attend(p, product_of(p, "q", x, true), product_of(p, "k", x, false), product_of(p, "v", x, false));
    assert_untouched(pass_fuse_qkv, p);

    p = program_new("two layers");
    x = input(p, "x");
    const value_id q = product_of(p, "q", x, false);
    p->layer = 1;
    attend(p, q, product_of(p, "k", x, false), product_of(p, "v", x, false));
    assert_untouched(pass_fuse_qkv, p);

    p = program_new("no attention");
    x = input(p, "x");
    const value_id a = product_of(p, "a", x, false), b = product_of(p, "b", x, false), c = product_of(p, "c", x, false);
    p->logits = program_emit(p, OP_ADD, NONE, "abc", 2, program_emit(p, OP_ADD, NONE, "ab", 2, a, b), c);
    assert_untouched(pass_fuse_qkv, p);

    p = program_new("keys are values");
    x = input(p, "x");
    const value_id kv = product_of(p, "kv", x, false);
    attend(p, product_of(p, "q", x, false), kv, kv);
    assert_untouched(pass_fuse_qkv, p);
}

/* Values first, and a query that something else reads too: parts are in the order q, k, v, and every reader follows. */
static void test_qkv_in_another_order(void **state)
{
    (void)state;
    struct program *p = program_new("order");
    const value_id x = input(p, "x"), v = product_of(p, "v", x, true), q = product_of(p, "q", x, true);
    const value_id twice = program_emit(p, OP_ADD, NONE, "twice", 2, q, q), k = product_of(p, "k", x, true);
    attend(p, twice, k, v);
    assert_untouched(pass_fuse_qkv, p);                     /* the query goes through a sum */

    p = program_new("order");
    const value_id y = input(p, "y"), v2 = product_of(p, "v", y, true), q2 = product_of(p, "q", y, true);
    p->loss = program_emit(p, OP_SILU, NONE, "other", 1, q2);
    attend(p, q2, product_of(p, "k", y, true), v2);
    assert_int_equal(run_pass(pass_fuse_qkv, p), 1);
    const struct op *op = &p->ops[0];
    assert_int_equal(op->kind, OP_PROJECT);
    assert_string_equal(p->values[op->in[1]].name, "q.weight");
    assert_string_equal(p->values[op->in[6]].name, "v.bias");
    assert_int_equal(p->ops[1].in[0], op->out[0]);
    assert_int_equal(p->ops[p->n_ops - 1].in[1], op->out[2]);
    program_free(p);
}

static void test_gate_up_near_misses(void **state)
{
    (void)state;
    struct program *p = program_new("silu read twice");
    value_id x = input(p, "x"), act = program_emit(p, OP_SILU, NONE, "s", 1, product_of(p, "g", x, false));
    value_id y = program_emit(p, OP_MUL, NONE, "y", 2, act, product_of(p, "u", x, false));
    p->logits = program_emit(p, OP_ADD, NONE, "more", 2, y, act);
    assert_untouched(pass_fuse_gate_up, p);

    p = program_new("silu is a result");
    x = input(p, "x");
    p->logits = act = program_emit(p, OP_SILU, NONE, "s", 1, product_of(p, "g", x, false));
    program_emit(p, OP_MUL, NONE, "y", 2, act, product_of(p, "u", x, false));
    assert_untouched(pass_fuse_gate_up, p);

    p = program_new("gated by itself");
    const value_id g = product_of(p, "g", input(p, "x"), false);
    p->logits = program_emit(p, OP_MUL, NONE, "y", 2, program_emit(p, OP_SILU, NONE, "s", 1, g), g);
    assert_untouched(pass_fuse_gate_up, p);

    p = program_new("two inputs");
    act = program_emit(p, OP_SILU, NONE, "s", 1, product_of(p, "g", input(p, "x"), false));
    p->logits = program_emit(p, OP_MUL, NONE, "y", 2, act, product_of(p, "u", input(p, "z"), false));
    assert_untouched(pass_fuse_gate_up, p);
}

/* SiLU on the right of the product, and two units next to each other. */
static void test_gate_up_in_another_order(void **state)
{
    (void)state;
    struct program *p = program_new("units");
    const value_id x = input(p, "x");
    value_id side[2], act[2];
    for (int i = 0; i < 2; i++) {
        side[i] = product_of(p, i ? "u1" : "u0", x, true);
        act[i] = program_emit(p, OP_SILU, NONE, "s", 1, product_of(p, i ? "g1" : "g0", x, true));
    }
    const value_id a = program_emit(p, OP_MUL, NONE, "a", 2, side[0], act[0]);
    const value_id b = program_emit(p, OP_MUL, NONE, "b", 2, side[1], act[1]);
    p->logits = program_emit(p, OP_ADD, NONE, "y", 2, a, b);
    assert_int_equal(run_pass(pass_fuse_gate_up, p), 2);
    assert_int_equal(p->n_ops, 5);
    assert_string_equal(p->values[p->ops[0].in[1]].name, "g0.weight");     /* the gate is the first part */
    assert_string_equal(p->values[p->ops[1].in[4]].name, "u1.bias");
    assert_int_equal(p->ops[3].kind, OP_SWIGLU);
    assert_int_equal(p->ops[3].in[0], p->ops[1].out[0]);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_orders_with_flash_attention),
        cmocka_unit_test(test_names_and_layers),
        cmocka_unit_test(test_backward_is_smaller),
        cmocka_unit_test(test_qkv_near_misses),
        cmocka_unit_test(test_qkv_in_another_order),
        cmocka_unit_test(test_gate_up_near_misses),
        cmocka_unit_test(test_gate_up_in_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
