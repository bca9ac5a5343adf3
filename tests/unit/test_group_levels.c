/* Nodes of one level in one call: which ops these are, that the list stays a program, that memory of one call is not used twice, and that
 * not a bit changes. */
#include "support/kernels.h"
#include "support/select.h"

static const pass_set GROUPED_WITH[] = {0, PASS_SET_ALL};
enum { SETS = 2, STEPS = 6 };

static pass_set with(pass_set others) { return (others | one_pass("group-levels")) & ~one_pass("mixed-precision") & ~one_pass("autotune"); }
static pass_set without(pass_set others) { return with(others) & ~one_pass("group-levels"); }

/* ---- which ops ---- */

/* Nodes of [3, 2]: 1 to 3 are of one level, 4 to 9 of the next. */
static int level_of(int node) { return node == 0 ? 0 : node < 4 ? 1 : 2; }

static void test_an_op_of_a_level_is_one_call(void **state)
{
    (void)state;
    for (int i = 0; i < SETS; i++) {
        const struct optimizer_settings s = select_settings(4, true);
        struct program *p = select_training(&s, with(GROUPED_WITH[i]), NULL);
        int alone = 0, grouped = 0;
        for (int k = 0; k < p->n_ops; k++) {
            const struct op *op = &p->ops[k];
            const struct op_call c = program_call(p, k);
            const int n = c.end - c.first;
            if (op->layer == NO_LAYER || (op->phase != PHASE_FORWARD && op->phase != PHASE_BACKWARD) || op->kind == OP_CAUSAL_MASK)
                continue;
            assert_int_equal(level_of(op->layer), level_of(p->ops[c.first].layer));
            if (op->layer == 0)
                assert_int_equal(n, 1);
            else if (op->kind == OP_ATTENTION || op->kind == OP_PROJECT || op->kind == OP_LAYERNORM_GRAD || op->kind == OP_SOFTMAX)
                assert_int_equal(n, level_of(op->layer) == 1 ? 3 : 6);
            else if (op->kind == OP_MATMUL)
                assert_int_equal(n % (level_of(op->layer) == 1 ? 3 : 6), 0);
            alone += op->layer > 0 && n == 1;
            grouped += n > 1;
        }
        assert_true(grouped > 8 * alone);
        program_free(p);
    }
}

/* In a row of blocks there is nothing to group, whatever else is on. */
static void test_rows_of_blocks_are_left_alone(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int i = 0; i < SETS; i++) {
            int places[PASSES_MAX] = {0};
            struct optimizer_settings s = small_settings();
            s.accumulate = 1 + i;
            struct program *p = optimized_training(small_models[model], &s, with(GROUPED_WITH[i]), NULL, places);
            assert_int_equal(places[pass_find("group-levels")] > 0, model == SMALL_K1);
            for (int k = 0; k < p->n_ops && model != SMALL_K1; k++)
                assert_int_equal(p->ops[k].call, 0);
            program_free(p);
        }
}

/* ---- which sizes ---- */

/* Rows that the pass makes where nodes may have values of so many numbers. None: the list is as it was. */
static int rows_up_to(int64_t most)
{
    const struct optimizer_settings s = select_settings(4, true);
    struct program *as_it_is = select_training(&s, 0, NULL), *p = select_training(&s, 0, NULL);
    p->group_most = most;
    const int rows = pass_group_levels(p);
    for (int i = 0; i < p->n_ops && rows == 0; i++)
        assert_true(p->ops[i].call == 0 && p->ops[i].kind == as_it_is->ops[i].kind && p->ops[i].layer == as_it_is->ops[i].layer);
    program_free(as_it_is);
    program_free(p);
    return rows;
}

static void test_large_nodes_are_left_alone(void **state)
{
    (void)state;
    int64_t least = 1, most = 1 << 20;              /* none is grouped up to the one, all are up to the other */
    const int all = rows_up_to(0);
    assert_true(all > 0);
    assert_int_equal(rows_up_to(-1), 0);
    assert_int_equal(rows_up_to(least), 0);
    assert_int_equal(rows_up_to(most), all);
    while (most - least > 1) {                      /* nodes are alike: all of them, or none */
        const int64_t middle = (least + most) / 2;
        const int rows = rows_up_to(middle);
        assert_true(rows == 0 || rows == all);
        *(rows ? &most : &least) = middle;
    }
}

/* ---- memory ---- */

static bool overlap(const struct memory_plan *plan, const struct program *p, value_id a, value_id b)
{
    return plan->offset[a] != SIZE_MAX && plan->offset[b] != SIZE_MAX && plan->offset[a] < plan->offset[b] + value_bytes(&p->values[b]) &&
           plan->offset[b] < plan->offset[a] + value_bytes(&p->values[a]);
}

/* What one op of a call writes lies nowhere where another one reads or writes. */
static void test_a_call_shares_no_memory(void **state)
{
    (void)state;
    for (int i = 0; i < SETS; i++) {
        const struct optimizer_settings s = select_settings(4, true);
        struct program *p = select_training(&s, with(GROUPED_WITH[i]), NULL);
        struct memory_plan plan;
        int looked = 0;
        pass_memory_plan(p, &plan);
        for (int k = 0; k < p->n_ops; k++) {
            const struct op_call c = program_call(p, k);
            for (int other = c.first; other < c.end; other++)
                for (int o = 0; o < p->ops[k].n_out && other != k; o++, looked++) {
                    for (int j = 0; j < p->ops[other].n_in; j++)
                        assert_false(overlap(&plan, p, p->ops[k].out[o], p->ops[other].in[j]));
                    for (int j = 0; j < p->ops[other].n_out; j++)
                        assert_false(overlap(&plan, p, p->ops[k].out[o], p->ops[other].out[j]));
                }
        }
        assert_true(looked > 100);
        memory_plan_release(&plan);
        program_free(p);
    }
}

/* A step that fits as it is and would not in rows stays as it is. */
static void test_memory_comes_first(void **state)
{
    (void)state;
    const struct optimizer_settings s = select_settings(4, true);
    struct program *as_it_is = select_training(&s, 0, NULL), *in_rows = select_training(&s, with(0), NULL), *p = select_training(&s, 0, NULL);
    const double least = pass_planned_bytes(as_it_is), most = pass_planned_bytes(in_rows);
    assert_true(least < most);
    p->memory_limit = least;
    assert_int_equal(pass_group_levels(p), 0);
    assert_true(pass_planned_bytes(p) == least);
    for (int i = 0; i < p->n_ops; i++)
        assert_true(p->ops[i].call == 0 && p->ops[i].kind == as_it_is->ops[i].kind && p->ops[i].layer == as_it_is->ops[i].layer);
    p->memory_limit = most;
    assert_true(pass_group_levels(p) > 0);
    program_free(as_it_is);
    program_free(in_rows);
    program_free(p);
}

/* ---- bits ---- */

static void test_no_bit_changes(void **state)
{
    (void)state;
    for (int b = 0; b < KERNELS; b++)
        for (int i = 0; i < SETS; i++)
            for (int every = 1; every < 4; every += 2) {
                struct optimizer_settings s = select_settings(4, true);
                s.select.every = every;
                s.accumulate = 1 + i;
                struct trained x = train_small(select_training(&s, without(GROUPED_WITH[i]), NULL), &small_models[SMALL_K1], kernels[b], STEPS);
                struct trained y = train_small(select_training(&s, with(GROUPED_WITH[i]), NULL), &small_models[SMALL_K1], kernels[b], STEPS);
                assert_same_weights(x.exec, y.exec, 0, "nodes of a level in one call");
                assert_memory_equal(x.metrics, y.metrics, STEPS * sizeof *x.metrics);
                exec_free(x.exec);
                exec_free(y.exec);
            }
}

/* ---- what cannot be one call ---- */

static struct program *three_scales(void)
{
    struct program *p = program_new("calls");
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(1, (int64_t)4));
    const value_id y = program_emit(p, OP_SCALE, (struct op_attrs){.scale = 2}, "y", 1, x);
    program_emit(p, OP_SCALE, (struct op_attrs){.scale = 2}, "z", 1, x);
    program_emit(p, OP_SCALE, (struct op_attrs){.scale = 2}, "w", 1, y);
    program_emit(p, OP_GELU, (struct op_attrs){0}, "gelu", 1, x);
    return p;
}

static void test_wrong_calls_are_refused(void **state)
{
    (void)state;
    struct error err;
    struct program *p = three_scales();
    p->ops[0].call = p->ops[1].call = 1;
    assert_ok(program_validate(p, &err), err);
    p->ops[2].call = 1;
    assert_int_equal(program_validate(p, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "value 'y' is written by another op of the same call"));
    p->ops[2].call = p->ops[3].call = 2;
    assert_int_equal(program_validate(p, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "is in one call with op 2, which is scale"));
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_op_of_a_level_is_one_call),
        cmocka_unit_test(test_rows_of_blocks_are_left_alone),
        cmocka_unit_test(test_large_nodes_are_left_alone),
        cmocka_unit_test(test_a_call_shares_no_memory),
        cmocka_unit_test(test_memory_comes_first),
        cmocka_unit_test(test_no_bit_changes),
        cmocka_unit_test(test_wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
