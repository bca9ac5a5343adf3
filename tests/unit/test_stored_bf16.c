/* Values that products of bf16 alone read are stored in bf16 on a CPU: which they are, that kernels which write and read them give the bits of
 * f32 values that are rounded when they are packed, and that a step does, in every way that this CPU and build multiply bf16. */
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu_int.h"
#include "support/all_backends.h"
#include "support/bf16_ways.h"
#include "support/op_compare.h"
#include "support/optimized.h"

static const struct precision_goal goals[] = {{.round = ROUND_BF16}, {.round = ROUND_BF16, .attention = true}};

/* ---- single ops ---- */

static bool is_stored(const struct op *op, int out) { return op_out_type(op, out) == TYPE_STORED; }

/* The loss may scale what it reads before it rounds it. */
static bool is_read(const struct op *op, int in)
{
    return op_in_type(op, in) == TYPE_OPERAND && op_info(op->kind)->product && !(op->kind == OP_LINEAR_LOSS && in == 0);
}

/* A program of the case; bit i of `in` and `out`: that value is stored in bf16, if it may be. */
static struct program *stored_case(const struct op_case *c, unsigned in, unsigned out)
{
    struct program *p = program_of_case(c);
    struct op *op = &p->ops[0];
    struct error err;
    op->attrs.round = op_info(op->kind)->product ? ROUND_BF16 : ROUND_NO;
    for (int i = 0; i < op->n_in; i++)
        if ((in >> i & 1) && is_read(op, i))
            p->values[op->in[i]].dtype = BF16;
    for (int i = 0; i < op->n_out; i++)
        if ((out >> i & 1) && is_stored(op, i))
            p->values[op->out[i]].dtype = BF16;
    assert_ok(program_validate(p, &err), err);
    return p;
}

static struct plain run_case(struct program *p, const struct op_case *c, struct backend *b, bool nan)
{
    struct plain x = plain_new(p, b);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&x, i, c, i);
    if (nan && p->values[0].dtype == F32)
        *(float *)x.memory[0] = NAN;
    else if (nan && p->values[0].dtype == BF16)
        *(uint16_t *)x.memory[0] = bf16_bits(NAN);
    plain_run_op(&x, &p->ops[0]);
    return x;
}

/* Every output has the bits of the f32 one, rounded where it is stored. NaN is NaN: signs may differ. */
static void compare_stored(const struct op_case *c, const struct plain *is, const struct plain *f32)
{
    const struct op *op = &is->program->ops[0];
    for (int o = 0; o < op->n_out; o++) {
        const struct value *v = &is->program->values[op->out[o]];
        const float *should = f32->memory[op->out[o]];
        float *numbers = v->dtype == I32 ? NULL : widened(is->memory[op->out[o]], shape_count(v->shape), v->dtype);
        for (int64_t i = 0; numbers && i < shape_count(v->shape); i++) {
            const float x = v->dtype == BF16 ? bf16_round(should[i]) : should[i];
            if (memcmp(&numbers[i], &x, sizeof x) && !(isnan(x) && isnan(numbers[i])))
                fail_msg("%s, case %d, %d threads: output %d[%lld] is %.9g; it should be %.9g", op_info(c->kind)->name, (int)(c - op_cases),
                         is->backend->lanes, o, (long long)i, numbers[i], x);
        }
        free(numbers);
    }
}

/* The tuned kernel knows both; the loss has none for a loss scale. */
static void check_kernel(const struct op_case *c, struct program *p, struct program *f32, struct backend *b)
{
    const bool tuned = b != backends[0] && !(c->kind == OP_LINEAR_LOSS && p->ops[0].n_in > 3);
    assert_ptr_equal(cpu_choose(b, p, &p->ops[0]), tuned ? cpu_choose(b, f32, &f32->ops[0]) : &cpu_narrow_kernel);
}

static void check_case(const struct op_case *c, unsigned in, unsigned out)
{
    struct program *p = stored_case(c, in, out), *f32 = stored_case(c, 0, 0);
    for (int b = 0; b < BACKENDS && op_has_narrow_values(p, &p->ops[0]); b++)
        for (int nan = 0; nan < 2; nan++) {
            assert_true(op_is_rounded_ahead(p, &p->ops[0]));
            check_kernel(c, p, f32, backends[b]);
            struct plain is = run_case(p, c, backends[b], nan), should = run_case(f32, c, backends[b], nan);
            compare_stored(c, &is, &should);
            plain_release(&is);
            plain_release(&should);
        }
    program_free(p);
    program_free(f32);
}

static bool may_be_stored(const struct op_case *c)
{
    const struct op op = {.kind = c->kind, .n_in = case_inputs(c), .attrs = c->attrs};
    return is_read(&op, 1) || is_stored(&op, 0);
}

static void test_ops(void **state)
{
    (void)state;
    static const unsigned which[][2] = {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {~0u, ~0u}};
    int kinds[OP_KINDS] = {0};
    for (int i = 0; i < OP_CASES; i++)
        for (size_t k = 0; k < sizeof which / sizeof *which && may_be_stored(&op_cases[i]); k++) {
            struct program *p = stored_case(&op_cases[i], which[k][0], which[k][1]);
            kinds[op_cases[i].kind] += op_has_narrow_values(p, &p->ops[0]);
            program_free(p);
            check_case(&op_cases[i], which[k][0], which[k][1]);
        }
    assert_true(kinds[OP_MATMUL] && kinds[OP_PROJECT] && kinds[OP_PROJECT_GRAD] && kinds[OP_LINEAR_GELU] && kinds[OP_LINEAR_LOSS] && kinds[OP_RMSNORM] && kinds[OP_LAYERNORM] &&
                kinds[OP_ADD_RMSNORM] && kinds[OP_ADD_LAYERNORM] && kinds[OP_SWIGLU] && kinds[OP_SWIGLU_GRAD] && kinds[OP_ROPE]);
}

/* ---- the pass ---- */

static struct program *training(int model, pass_set set, struct precision_goal goal)
{
    const struct optimizer_settings s = small_settings();
    return training_towards(small_models[model], &s, set, NULL, NULL, goal);
}

/* Do products that round it read it, and nobody else? */
static bool for_products_alone(const struct program *p, value_id v)
{
    int others = 0;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_in; k++)
            others += p->ops[i].in[k] == v && !(is_read(&p->ops[i], k) && p->ops[i].attrs.round == ROUND_BF16);
    return !others;
}

static int check_types(const struct program *p)
{
    int stored = 0;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++) {
            const value_id v = p->ops[i].out[k];
            const bool should = is_stored(&p->ops[i], k) && for_products_alone(p, v);
            if (p->values[v].dtype != I32 && p->values[v].kind != VALUE_TABLE && (p->values[v].dtype == BF16) != should)
                fail_msg("%s of %s is %s", p->values[v].name, op_info(p->ops[i].kind)->name, dtype_name(p->values[v].dtype));
            stored += should;
        }
    return stored;
}

/* The same step with f32 values and no copies of weights: operands are rounded when they are packed. */
static struct program *training_in_f32(int model, pass_set set, struct precision_goal goal)
{
    struct program *p = training(model, set & ~one_pass("mixed-precision"), goal);
    for (int i = 0; i < p->n_ops; i++) {
        const enum op_kind kind = p->ops[i].kind;
        if (op_info(kind)->product || (goal.attention && (kind == OP_ATTENTION || kind == OP_ATTENTION_GRAD)))
            p->ops[i].attrs.round = ROUND_BF16;
    }
    return p;
}

/* Of a step's forward and backward. */
static double all_bytes(const struct program *p)
{
    double bytes = 0;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].phase == PHASE_FORWARD || p->ops[i].phase == PHASE_BACKWARD)
            bytes += op_bytes(p, &p->ops[i]);
    return bytes;
}

static bool has_copy(const struct program *p, value_id v)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_CAST && p->ops[i].in[0] == v)
            return true;
    return false;
}

/* Products read weights from the copies, which the setup makes and the optimizer writes; returns how many copies there are. */
static int check_copies(const struct program *p)
{
    int copies = 0, written = 0;
    for (int i = 0; i < p->n_ops; i++) {
        for (int k = 0; k < p->ops[i].n_in; k++)
            assert_false(p->values[p->ops[i].in[k]].kind == VALUE_PARAMETER && is_read(&p->ops[i], k) && has_copy(p, p->ops[i].in[k]));
        copies += p->ops[i].kind == OP_CAST;
        written += p->ops[i].kind == OP_ADAMW || p->ops[i].kind == OP_ADAMW_ALL ? p->ops[i].attrs.copies : 0;
    }
    assert_int_equal(copies, written);
    return copies;
}

static void test_programs(void **state)
{
    (void)state;
    int copies = 0;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int all = 0; all < 2; all++) {
            const pass_set set = all ? PASS_SET_ALL : one_pass("mixed-precision");
            struct program *p = training(model, set, goals[1]), *f32 = training_in_f32(model, set, goals[1]);
            struct memory_plan plan, f32_plan;
            assert_true(check_types(p) > 0 || !all);
            copies += check_copies(p);
            assert_true(pass_planned_bytes(p) <= pass_planned_bytes(f32));
            pass_memory_plan(p, &plan);
            pass_memory_plan(f32, &f32_plan);
            assert_true(!all || (plan.naive_bytes < f32_plan.naive_bytes && all_bytes(p) < all_bytes(f32)));
            assert_int_equal(pass_mixed_precision(p), 0);               /* nothing is left to do */
            memory_plan_release(&plan);
            memory_plan_release(&f32_plan);
            program_free(p);
            program_free(f32);
        }
    assert_true(copies > 0);
}

/* TF32, and programs that evaluate, store nothing. */
static void test_leaves_others_alone(void **state)
{
    (void)state;
    struct program *p = training(SMALL_LLAMA, PASS_SET_ALL, (struct precision_goal){.round = ROUND_TF32});
    for (int i = 0; i < p->n_values; i++)
        assert_true(p->values[i].dtype == F32 || p->values[i].dtype == I32);
    program_free(p);
}

/* ---- steps ---- */

enum { STEPS = 4 };

static void check_steps(int model, pass_set set, struct backend *b)
{
    const struct precision_goal goal = goals[cpu_bf16_way() == BF16_AMX];
    struct program *p = training(model, set, goal), *f32 = training_in_f32(model, set, goal);
    struct trained is = train_small(p, &small_models[model], b, STEPS), should = train_small(f32, &small_models[model], b, STEPS);
    assert_memory_equal(is.metrics, should.metrics, sizeof *is.metrics * STEPS);
    assert_same_weights(is.exec, should.exec, 0, small_models[model].name);
    exec_free(is.exec);
    exec_free(should.exec);
}

/* Kernels are not chosen by time: what is chosen for operands of other types may be another one. */
static void test_steps(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int b = 1; b < BACKENDS; b++) {
            check_steps(model, one_pass("mixed-precision"), backends[b]);
            check_steps(model, PASS_SET_ALL & ~one_pass("autotune"), backends[b]);
        }
}

static int run_ops(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ops), cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_leaves_others_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL) + run_in_every_way(run_ops);
}
