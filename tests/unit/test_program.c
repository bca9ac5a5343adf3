/* Programs: what the builder and the validator refuse and how they say it, the listing, shapes and costs. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "program/program.h"

static const struct op_attrs NONE = {0};

static value_id input(struct program *p, const char *name, struct shape shape)
{
    return program_add_value(p, name, VALUE_INPUT, F32, shape);
}

static value_id ids(struct program *p, const char *name, struct shape shape)
{
    return program_add_value(p, name, VALUE_INPUT, I32, shape);
}

#define DIM(n) ((int64_t)(n))

/* x -> gelu -> silu, in layer 3. */
static struct program *chain(void)
{
    struct program *p = program_new("chain");
    program_scope(p, 3, "part");
    const value_id x = input(p, "x", shape_of(2, DIM(2), DIM(5)));
    const value_id y = program_emit(p, OP_GELU, NONE, "y", 1, x);
    program_emit(p, OP_SILU, NONE, "z", 1, y);
    return p;
}

static void assert_valid(const struct program *p)
{
    struct error err;
    assert_ok(program_validate(p, &err), err);
}

static struct error refused(struct program *p)
{
    struct error err = {0};
    assert_int_equal(program_validate(p, &err), BAD_INPUT);
    program_free(p);
    return err;
}

/* --- the validator ----------------------------------------------------------------------------------------------- */

static void test_a_good_program_is_valid(void **state)
{
    (void)state;
    struct program *p = chain();
    assert_valid(p);
    program_free(p);
    program_free(NULL);
}

static void test_read_before_write(void **state)
{
    (void)state;
    struct program *p = chain();
    const struct op first = p->ops[0];
    p->ops[0] = p->ops[1];
    p->ops[1] = first;
    const struct error err = refused(p);
    assert_says(&err, "op 0 silu", "layer 3", "made by model", "'part.y'", "read before it is written", NULL);
}

static void test_written_twice(void **state)
{
    (void)state;
    struct program *p = chain();
    p->ops[1].out[0] = p->ops[0].out[0];
    const struct error err = refused(p);
    assert_says(&err, "op 1 silu", "'part.y'", "written twice", NULL);
}

static void test_parameters_and_inputs_are_not_written(void **state)
{
    (void)state;
    struct program *p = chain();
    p->ops[1].out[0] = 0;
    const struct error err = refused(p);
    assert_says(&err, "op 1 silu", "'part.x'", "written twice", NULL);
}

static void test_wrong_shape(void **state)
{
    (void)state;
    struct program *p = chain();
    p->values[p->ops[1].out[0]].shape.dim[1] = 6;
    const struct error err = refused(p);
    assert_says(&err, "op 1 silu", "'part.z'", "is (2, 6)", "gives (2, 5)", NULL);
}

static void test_inputs_that_no_longer_fit(void **state)
{
    (void)state;
    struct program *p = program_new("misfit");
    const value_id a = input(p, "a", shape_of(2, DIM(2), DIM(3))), b = input(p, "b", shape_of(2, DIM(2), DIM(3)));
    program_emit(p, OP_MUL, NONE, "y", 2, a, b);
    p->values[b].shape = shape_of(1, DIM(6));
    const struct error err = refused(p);
    assert_says(&err, "op 0", "op mul", "shapes must be equal", "a (2, 3)", "b (6)", NULL);
}

static void test_unknown_values(void **state)
{
    (void)state;
    struct program *p = chain();
    p->ops[1].in[0] = 99;
    struct error err = refused(p);
    assert_says(&err, "op 1 silu", "value 99 does not exist", NULL);
    p = chain();
    p->ops[1].out[0] = NO_VALUE;
    err = refused(p);
    assert_says(&err, "op 1 silu", "value -1 does not exist", NULL);
}

static void test_wrong_number_of_inputs(void **state)
{
    (void)state;
    struct program *p = chain();
    p->ops[1].n_in = 0;
    const struct error err = refused(p);
    assert_says(&err, "op 1 silu", "0 inputs", "takes 1 to 1", NULL);
}

static void test_two_values_of_one_name(void **state)
{
    (void)state;
    struct program *p = program_new("names");
    program_add_parameter(p, "w", shape_of(1, DIM(3)), ROLE_MATRIX, INIT_ZEROS, 0);
    program_add_parameter(p, "w", shape_of(1, DIM(4)), ROLE_MATRIX, INIT_ZEROS, 0);
    const struct error err = refused(p);
    assert_says(&err, "two values", "'w'", NULL);
}

/* Activations may share names: nobody looks for them. */
static void test_activations_may_share_a_name(void **state)
{
    (void)state;
    struct program *p = program_new("names");
    const value_id x = input(p, "x", shape_of(1, DIM(3)));
    program_emit(p, OP_GELU, NONE, "y", 1, program_emit(p, OP_GELU, NONE, "y", 1, x));
    assert_valid(p);
    program_free(p);
}

static void test_update_of_a_value_that_does_not_persist(void **state)
{
    (void)state;
    struct program *p = program_new("update");
    const value_id x = input(p, "x", shape_of(1, DIM(3)));
    const value_id y = program_emit(p, OP_GELU, NONE, "y", 1, x);
    assert_int_equal(program_emit(p, OP_ZERO, NONE, "zero", 1, y), y);
    const struct error err = refused(p);
    assert_says(&err, "op 1 zero", "'y'", "updated in place", NULL);
}

static void test_update_in_place(void **state)
{
    (void)state;
    struct program *p = program_new("update");
    const value_id s = program_add_value(p, "s", VALUE_STATE, F32, shape_of(1, DIM(3)));
    const value_id x = input(p, "x", shape_of(1, DIM(3)));
    assert_int_equal(program_emit(p, OP_ACCUMULATE, NONE, "acc", 2, s, x), s);
    assert_int_equal(program_emit(p, OP_ZERO, NONE, "zero", 1, s), s);
    assert_valid(p);
    program_free(p);
}

static void test_empty_dimensions(void **state)
{
    (void)state;
    struct program *p = program_new("empty");
    const value_id x = input(p, "x", shape_of(2, DIM(3), DIM(0)));
    program_emit(p, OP_LAYERNORM, NONE, "y", 3, x, x, x);
    program_free(p);
    p = program_new("empty");
    input(p, "x", shape_of(2, DIM(3), DIM(0)));
    const struct error err = refused(p);
    assert_says(&err, "'x'", "dimension 1 is 0", "at least 1", NULL);
}

static void test_phases_in_order(void **state)
{
    (void)state;
    struct program *p = chain();
    p->ops[0].phase = PHASE_BACKWARD;
    const struct error err = refused(p);
    assert_says(&err, "op 1 silu", "forward", "backward", NULL);
}

/* --- the builder ------------------------------------------------------------------------------------------------- */

/* The first mistake stays; what follows is not added. */
static void test_first_mistake_is_kept(void **state)
{
    (void)state;
    struct program *p = program_new("mistake");
    program_scope(p, 2, "blocks.2");
    const value_id a = input(p, "a", shape_of(2, DIM(2), DIM(3))), b = input(p, "b", shape_of(2, DIM(3), DIM(2)));
    assert_int_equal(program_emit(p, OP_MUL, NONE, "y", 2, a, b), NO_VALUE);
    assert_int_equal(program_emit(p, OP_GELU, NONE, "z", 1, a), NO_VALUE);
    assert_int_equal(p->n_ops, 0);
    const struct error err = refused(p);
    assert_says(&err, "program mistake", "op mul", "blocks.2.a (2, 3)", "blocks.2.b (3, 2)", NULL);
}

static void test_builder_refuses_unknown_inputs(void **state)
{
    (void)state;
    struct program *p = program_new("unknown");
    program_scope(p, 0, "blocks.0");
    assert_int_equal(program_emit(p, OP_GELU, NONE, "y", 1, NO_VALUE), NO_VALUE);
    struct error err = refused(p);
    assert_says(&err, "op gelu in blocks.0", "input 0 does not exist", NULL);
    p = program_new("count");
    const value_id x = input(p, "x", shape_of(1, DIM(3)));
    assert_int_equal(program_emit(p, OP_GELU, NONE, "y", 2, x, x), NO_VALUE);
    err = refused(p);
    assert_says(&err, "op gelu", "2 inputs", "takes 1 to 1", NULL);
}

struct misfit {
    enum op_kind kind;
    struct op_attrs attrs;
    int n_in;
    struct { int rank; int64_t dim[4]; } in[7];
    bool ints;                  /* the second input is i32 */
    const char *says;
};

static const struct op_member far[] = {{0, 0}, {4, 0}};

static const struct misfit misfits[] = {
    {OP_EMBED, {0}, 2, {{2, {5, 4}}, {2, {2, 3}}}, false, "ids (B, T) of i32"},
    {OP_EMBED, {0}, 2, {{1, {5}}, {2, {2, 3}}}, true, "table (V, D)"},
    {OP_EMBED_GRAD, {0}, 3, {{2, {5, 4}}, {2, {2, 3}}, {3, {2, 3, 5}}}, true, "does not fit table and ids"},
    {OP_MATMUL, {0}, 2, {{2, {2, 3}}, {2, {4, 3}}}, false, "inner dimensions differ"},
    {OP_MATMUL, {.trans_b = true}, 2, {{2, {2, 3}}, {2, {3, 4}}}, false, "inner dimensions differ"},
    {OP_MATMUL, {.trans_a = true}, 2, {{2, {2, 3}}, {2, {3, 4}}}, false, "inner dimensions differ"},
    {OP_MATMUL, {.trans_b = true}, 3, {{2, {2, 3}}, {2, {4, 3}}, {1, {3}}}, false, "bias"},
    {OP_MATMUL, {0}, 2, {{1, {3}}, {2, {3, 4}}}, false, "wants matrices"},
    {OP_SUM_LEADING, {0}, 2, {{2, {4, 3}}, {1, {4}}}, false, "must end the first"},
    {OP_ADD, {0}, 2, {{2, {4, 3}}, {1, {4}}}, false, "must end the first"},
    {OP_ADD, {0}, 2, {{1, {3}}, {2, {4, 3}}}, false, "must end the first"},
    {OP_GELU_GRAD, {0}, 2, {{1, {3}}, {1, {4}}}, false, "shapes must be equal"},
    {OP_LAYERNORM, {0}, 3, {{2, {4, 3}}, {1, {3}}, {1, {4}}}, false, "width of the input"},
    {OP_RMSNORM, {0}, 2, {{2, {4, 3}}, {1, {4}}}, false, "width of the input"},
    {OP_RMSNORM_GRAD, {0}, 4, {{2, {4, 3}}, {2, {3, 4}}, {1, {3}}, {1, {4}}}, false, "one shape"},
    {OP_ROPE, {.heads = 2}, 3, {{3, {1, 5, 8}}, {2, {5, 3}}, {2, {5, 3}}}, false, "table (T, D/2)"},
    {OP_ROPE, {.heads = 2}, 3, {{3, {1, 6, 12}}, {2, {5, 3}}, {2, {5, 3}}}, false, "table (T, D/2)"},
    {OP_ROPE, {.heads = 2}, 4, {{3, {1, 5, 12}}, {2, {9, 3}}, {2, {9, 3}}, {2, {1, 6}}}, false, "a place for each"},
    {OP_STORE_KV, {0}, 5, {{3, {2, 9, 4}}, {3, {2, 9, 5}}, {3, {2, 1, 4}}, {3, {2, 1, 4}}, {2, {2, 1}}}, false, "keys and values (S, C, W)"},
    {OP_STORE_KV, {0}, 5, {{3, {2, 9, 4}}, {3, {2, 9, 4}}, {3, {2, 1, 5}}, {3, {2, 1, 5}}, {2, {2, 1}}}, false, "new ones (B, T, W)"},
    {OP_STORE_KV, {0}, 5, {{3, {4, 9, 4}}, {3, {4, 9, 4}}, {3, {2, 1, 4}}, {3, {2, 1, 4}}, {2, {2, 1}}}, false, "or one for all"},
    {OP_STORE_KV, {0}, 5, {{3, {4, 9, 4}}, {3, {4, 9, 4}}, {3, {1, 3, 4}}, {3, {1, 3, 4}}, {2, {1, 2}}}, false, "a place for each"},
    {OP_ATTEND_KV, {.heads = 4, .kv_heads = 3}, 4, {{3, {2, 1, 8}}, {3, {2, 9, 6}}, {3, {2, 9, 6}}, {2, {2, 1}}}, false, "K dividing H"},
    {OP_ATTEND_KV, {.heads = 4, .kv_heads = 2}, 4, {{3, {2, 1, 8}}, {3, {3, 9, 4}}, {3, {3, 9, 4}}, {2, {2, 1}}}, false, "keys and values (B, C, K*D)"},
    {OP_ATTEND_KV, {.heads = 4, .kv_heads = 2}, 4, {{3, {2, 1, 8}}, {3, {2, 9, 4}}, {3, {2, 9, 4}}, {2, {2, 2}}}, false, "a place for each"},
    {OP_ATTN_SCORES, {.heads = 4, .kv_heads = 3}, 2, {{3, {1, 5, 8}}, {3, {1, 5, 6}}}, false, "K dividing H"},
    {OP_ATTN_SCORES, {.heads = 4, .kv_heads = 2}, 2, {{3, {1, 5, 8}}, {3, {1, 5, 8}}}, false, "K dividing H"},
    {OP_ATTN_SCORES, {.heads = 4, .kv_heads = 2}, 2, {{3, {1, 5, 8}}, {3, {1, 6, 4}}}, false, "K dividing H"},
    {OP_ATTN_MIX, {.heads = 4, .kv_heads = 2}, 2, {{4, {1, 3, 5, 5}}, {3, {1, 5, 4}}}, false, "weights (B, H, T, T)"},
    {OP_ATTN_MIX_T, {.heads = 4, .kv_heads = 2}, 2, {{4, {1, 4, 5, 5}}, {3, {1, 5, 6}}}, false, "weights (B, H, T, T)"},
    {OP_ATTN_MIX, {.heads = 4}, 2, {{4, {1, 4, 5, 5}}, {3, {1, 5, 4}}}, false, "weights (B, H, T, T)"},
    {OP_SOFTMAX_GRAD, {0}, 2, {{2, {1, 3}}, {1, {3}}}, false, "shapes must be equal"},
    {OP_NLL, {0}, 2, {{2, {4, 3}}, {1, {3}}}, true, "one i32 target per row"},
    {OP_NLL, {0}, 2, {{2, {4, 3}}, {1, {4}}}, false, "one i32 target per row"},
    {OP_LR, {0}, 1, {{1, {2}}}, false, "must be a scalar"},
    {OP_ACCUMULATE, {0}, 2, {{1, {2}}, {1, {3}}}, false, "shapes must be equal"},
    {OP_ACCUMULATE, {0}, 3, {{1, {2}}, {1, {2}}, {1, {2}}}, false, "weight and batch must be scalars"},
    {OP_ACCUMULATE, {0}, 4, {{1, {2}}, {1, {2}}, {0}, {0}}, false, "weight and batch must be scalars, the batch of i32"},
    {OP_ADAMW, {.masked = true}, 7, {{1, {2}}, {1, {2}}, {1, {2}}, {1, {2}}, {0}, {0}, {0}}, false, "three scalars"},
    {OP_MEAN, {0}, 3, {{1, {3}}, {1, {3}}, {1, {4}}}, false, "shapes must be equal"},
    {OP_HELD, {.every = 1}, 2, {{1, {3}}, {0}}, true, "selections are kept"},
    {OP_GROUP_SCORES, {.parts = 2, .n_members = 2, .members = far}, 2, {{0}, {1, {2}}}, false, "the group of each"},
    {OP_GROUP_SCORES, {.parts = 5, .n_members = 2, .members = far}, 2, {{0}, {1, {3}}}, false, "the group of each"},
    {OP_SUM_SQUARES, {.masked = true, .n_members = 1, .members = far}, 3, {{1, {3}}, {1, {3}}, {1, {5}}}, false, "the group of each"},
    {OP_TOP_K, {.k = 4, .every = 1}, 5, {{1, {3}}, {1, {3}}, {0}, {0}, {1, {3}}}, true, "k from 1 to G"},
    {OP_TOP_K, {.k = 0, .every = 1}, 5, {{1, {3}}, {1, {3}}, {0}, {0}, {1, {3}}}, true, "k from 1 to G"},
    {OP_TOP_K, {.k = 1, .every = 1}, 6, {{1, {3}}, {1, {3}}, {0}, {0}, {1, {3}}, {0}}, true, "G scores"},
    {OP_KEEP, {0}, 4, {{2, {4, 3}}, {0}, {0}, {1, {3}}}, true, "n numbers in all"},
    {OP_ADAMW, {0}, 7, {{1, {2}}, {1, {2}}, {1, {2}}, {1, {3}}, {0}, {0}, {0}}, false, "one shape"},
};

static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        const struct misfit *m = &misfits[i];
        struct program *p = program_new("misfit");
        value_id in[7];
        for (int j = 0; j < m->n_in; j++) {
            char name[16];
            struct shape shape = {.rank = m->in[j].rank};
            memcpy(shape.dim, m->in[j].dim, sizeof shape.dim);
            snprintf(name, sizeof name, "in%d", j);
            in[j] = program_add_value(p, name, VALUE_STATE, m->ints && j == 1 ? I32 : F32, shape);
        }
        assert_int_equal(program_add_op(p, m->kind, m->attrs, "y", m->n_in, in), -1);
        const struct error err = refused(p);
        assert_says(&err, op_info(m->kind)->name, m->says, "in0 (", NULL);
    }
}

static void test_outputs_are_named_and_typed(void **state)
{
    (void)state;
    struct program *p = program_new("names");
    program_scope(p, 1, "blocks.%d", 1);
    const value_id x = input(p, "x", shape_of(2, DIM(4), DIM(3))), g = input(p, "g", shape_of(1, DIM(3)));
    const int at = program_add_op(p, OP_LAYERNORM, NONE, "n", 3, (value_id[]){x, g, g});
    const value_id *out = p->ops[at].out;
    assert_string_equal(p->values[out[0]].name, "blocks.1.n");
    assert_string_equal(p->values[out[2]].name, "blocks.1.n.2");
    assert_int_equal(p->values[out[0]].kind, VALUE_ACTIVATION);
    assert_int_equal(p->values[out[0]].layer, 1);
    assert_true(shape_equal(p->values[out[1]].shape, shape_of(1, DIM(4))));
    const value_id mask = program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 4}, "mask", 0);
    assert_int_equal(p->values[mask].kind, VALUE_CONSTANT);
    p->phase = PHASE_BACKWARD;
    assert_int_equal(p->values[program_emit(p, OP_GELU, NONE, "d", 1, x)].kind, VALUE_GRADIENT);
    assert_int_equal(program_find(p, "blocks.1.n.2"), out[2]);
    assert_int_equal(program_find(p, "n"), NO_VALUE);
    program_free(p);
}

/* Lists grow past their first size. */
static void test_many_ops(void **state)
{
    (void)state;
    struct program *p = program_new("many");
    value_id x = input(p, "x", shape_of(1, DIM(3)));
    for (int i = 0; i < 1000; i++)
        x = program_emit(p, OP_GELU, NONE, "x", 1, x);
    assert_valid(p);
    assert_int_equal(p->n_ops, 1000);
    program_free(p);
}

/* --- shapes ------------------------------------------------------------------------------------------------------ */

static void test_shapes(void **state)
{
    (void)state;
    char text[64];
    const struct shape s = shape_of(3, DIM(8), DIM(128), DIM(256)), scalar = shape_of(0);
    assert_int_equal(shape_count(s), 8 * 128 * 256);
    assert_int_equal(shape_rows(s), 8 * 128);
    assert_int_equal(shape_last(s), 256);
    assert_string_equal(shape_text(s, text), "(8, 128, 256)");
    assert_int_equal(shape_count(scalar), 1);
    assert_int_equal(shape_rows(scalar), 1);
    assert_int_equal(shape_last(scalar), 1);
    assert_string_equal(shape_text(scalar, text), "()");
    assert_false(shape_equal(s, scalar));
    assert_false(shape_equal(shape_of(1, DIM(6)), shape_of(2, DIM(2), DIM(3))));
    const struct shape huge = shape_of(4, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX);
    assert_true(strlen(shape_text(huge, text)) < 64);
}

/* --- the listing ------------------------------------------------------------------------------------------------- */

static const char *const LISTING =
    "program tiny: 3 ops, 6 values, 24 parameters\n"
    "  input     %0    x                                  f32  (2, 3)\n"
    "  parameter %1    w                                  f32  (8, 3)\n"
    "  state     %3    tick                               i32  ()\n"
    "forward: 2 ops, 1.12e-07 GFLOP, 0.000316 MB\n"
    "    0   2 matmul           %0 %1 NT -> %2  blocks.2.y (2, 8)  9.6e-05 MFLOP 0.000184 MB  [model]\n"
    "    1   - dropout          %2 %3 prob=0.25 -> %4  drop (2, 8)  1.6e-05 MFLOP 0.000132 MB  [model]\n"
    "backward: 1 ops, 1.6e-08 GFLOP, 0.000192 MB\n"
    "    2   - mul              %4 %2 -> %5  d (2, 8)  1.6e-05 MFLOP 0.000192 MB  [autodiff]\n";

static void test_listing(void **state)
{
    (void)state;
    struct program *p = program_new("tiny");
    const value_id x = input(p, "x", shape_of(2, DIM(2), DIM(3)));
    const value_id w = program_add_parameter(p, "w", shape_of(2, DIM(8), DIM(3)), ROLE_MATRIX, INIT_NORMAL, 0.02f);
    program_scope(p, 2, "blocks.2");
    const value_id y = program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, x, w);
    program_scope(p, NO_LAYER, "%s", "");
    const value_id tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
    const value_id z = program_emit(p, OP_DROPOUT, (struct op_attrs){.prob = 0.25f}, "drop", 2, y, tick);
    p->phase = PHASE_BACKWARD;
    p->made_by = "autodiff";
    program_emit(p, OP_MUL, NONE, "d", 2, z, y);
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    program_print(p, to);
    fclose(to);
    assert_string_equal(text, LISTING);
    free(text);
    program_free(p);
}

/* --- costs ------------------------------------------------------------------------------------------------------- */

static void assert_cost(const struct program *p, double flops, double bytes)
{
    const struct op *op = &p->ops[p->n_ops - 1];
    assert_near(op_flops(p, op), flops, 0, op_info(op->kind)->name);
    assert_near(op_bytes(p, op), bytes, 0, op_info(op->kind)->name);
}

static void test_cost_of_products(void **state)
{
    (void)state;
    struct program *p = program_new("cost");
    const value_id a = input(p, "a", shape_of(3, DIM(2), DIM(5), DIM(33)));
    const value_id b = input(p, "b", shape_of(2, DIM(7), DIM(33)));
    const value_id bias = input(p, "bias", shape_of(1, DIM(7)));
    const value_id y = program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, a, b);
    assert_cost(p, 70 * 66, 4 * (330 + 231 + 70));
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "z", 3, a, b, bias);
    assert_cost(p, 70 * 67, 4 * (330 + 231 + 7 + 70));
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_a = true}, "w", 2, y, a);    /* (7, 33) over 10 rows */
    assert_cost(p, 7 * 33 * 20, 4 * (70 + 330 + 231));
    program_free(p);
}

/* B 3, T 17, 4 heads of 5, 2 heads of keys and values: 3 * 4 * 17 * 17 weights of 5 multiplications and additions. */
static void test_cost_of_attention(void **state)
{
    (void)state;
    const double weights = 3 * 4 * 17 * 17, q_size = 3 * 17 * 20, k_size = 3 * 17 * 10;
    const struct op_attrs heads = {.heads = 4, .kv_heads = 2, .scale = 1};
    struct program *p = program_new("cost");
    const value_id q = input(p, "q", shape_of(3, DIM(3), DIM(17), DIM(20)));
    const value_id k = input(p, "k", shape_of(3, DIM(3), DIM(17), DIM(10)));
    const value_id w = program_emit(p, OP_ATTN_SCORES, heads, "w", 2, q, k);
    assert_cost(p, weights * 10, 4 * (weights + q_size + k_size));
    program_emit(p, OP_ATTN_MIX, heads, "y", 2, w, k);
    assert_cost(p, weights * 10, 4 * (weights + q_size + k_size));
    program_emit(p, OP_ATTN_MIX_T, heads, "z", 2, w, q);
    assert_cost(p, weights * 10, 4 * (weights + q_size + k_size));
    program_free(p);
}

/* Of what is kept: a query reads it once, on the average half of the room; a store writes its rows into every sample. */
static void test_cost_of_what_is_kept(void **state)
{
    (void)state;
    struct program *p = program_new("cost");
    const struct shape kept = shape_of(3, DIM(3), DIM(100), DIM(10));
    const value_id keys = program_add_value(p, "keys", VALUE_TABLE, F32, kept), values = program_add_value(p, "values", VALUE_TABLE, F32, kept);
    const value_id k = input(p, "k", shape_of(3, DIM(1), DIM(7), DIM(10))), places = ids(p, "places", shape_of(2, DIM(1), DIM(7)));
    program_emit(p, OP_STORE_KV, (struct op_attrs){0}, "keep", 5, keys, values, k, k, places);
    assert_cost(p, 0, 4 * (2 * 70 * (1 + 3) + 7));
    const value_id q = input(p, "q", shape_of(3, DIM(3), DIM(1), DIM(20))), place = ids(p, "place", shape_of(2, DIM(3), DIM(1)));
    program_emit(p, OP_ATTEND_KV, (struct op_attrs){.heads = 4, .kv_heads = 2, .scale = 1}, "y", 4, q, keys, values, place);
    assert_cost(p, 4 * 60 * 50, 4 * (2 * 60 + 3000 + 3));
    program_free(p);
}

static void test_cost_of_the_rest(void **state)
{
    (void)state;
    struct program *p = program_new("cost");
    const value_id x = input(p, "x", shape_of(2, DIM(6), DIM(5))), row = input(p, "row", shape_of(1, DIM(5)));
    const value_id t = ids(p, "t", shape_of(2, DIM(2), DIM(3))), scalar = input(p, "s", shape_of(0));
    const value_id wide = input(p, "wide", shape_of(2, DIM(9), DIM(5)));
    program_emit(p, OP_ADD, NONE, "add", 2, x, row);
    assert_cost(p, 30, 4 * (30 + 5 + 30));
    program_emit(p, OP_MUL, NONE, "mul", 2, x, x);
    assert_cost(p, 30, 4 * 90);
    program_emit(p, OP_SUM_LEADING, NONE, "sum", 2, x, row);
    assert_cost(p, 30, 4 * (30 + 5));
    program_emit(p, OP_EMBED, NONE, "embed", 2, x, t);                      /* reads 6 rows, not the table */
    assert_cost(p, 0, 4 * (6 + 30 + 30));
    program_emit(p, OP_EMBED_GRAD, NONE, "embed_grad", 3, wide, t, x);      /* writes the table's gradient; reads no table */
    assert_cost(p, 30, 4 * (6 + 30 + 45));
    program_emit(p, OP_NLL, NONE, "nll", 2, x, t);                          /* one number of each row */
    assert_cost(p, 0, 4 * (6 + 6));
    program_emit(p, OP_NLL_GRAD, NONE, "nll_grad", 4, x, t, scalar, scalar);
    assert_cost(p, 0, 4 * (6 + 30));
    program_emit(p, OP_SUM_SQUARES, NONE, "squares", 1, x);
    assert_cost(p, 30, 4 * 31);
    program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 7}, "mask", 0);
    assert_cost(p, 0, 4 * 49);
    program_free(p);
}

/* Parameter and moments are read and written, the gradient is read, the copy of 16 bits is written. */
static void test_cost_of_an_update(void **state)
{
    (void)state;
    struct program *p = program_new("cost");
    const struct shape s = shape_of(2, DIM(6), DIM(5));
    const value_id w = program_add_parameter(p, "w", s, ROLE_MATRIX, INIT_NORMAL, 0.02f), grad = input(p, "grad", s);
    const value_id m = program_add_value(p, "m", VALUE_STATE, F32, s), v = program_add_value(p, "v", VALUE_STATE, F32, s);
    const value_id copy = program_add_value(p, "copy", VALUE_TABLE, BF16, s), step = program_add_value(p, "step", VALUE_STATE, I32, shape_of(0));
    const value_id lr = input(p, "lr", shape_of(0)), factor = input(p, "factor", shape_of(0));
    program_emit(p, OP_ADAMW, NONE, "plain", 7, w, m, v, grad, lr, step, factor);
    assert_near(op_bytes(p, &p->ops[0]), 4 * (7 * 30 + 3), 0, "an update");
    program_emit(p, OP_ADAMW, (struct op_attrs){.copies = 1}, "with a copy", 8, w, m, v, copy, grad, lr, step, factor);
    assert_near(op_bytes(p, &p->ops[1]), 4 * (7 * 30 + 3) + 2 * 30, 0, "an update with a copy");
    program_free(p);
}

static void test_cost_of_a_phase_is_the_sum(void **state)
{
    (void)state;
    struct program *p = chain();
    p->phase = PHASE_BACKWARD;
    program_emit(p, OP_MUL, NONE, "back", 2, p->ops[0].out[0], p->ops[0].out[0]);
    const struct program_cost forward = program_cost(p, PHASE_FORWARD), backward = program_cost(p, PHASE_BACKWARD);
    assert_int_equal(forward.ops, 2);
    assert_near(forward.flops, 8 * 10 + 4 * 10, 0, "FLOPs of gelu and silu");
    assert_near(forward.bytes, 4 * 40, 0, "bytes of gelu and silu");
    assert_int_equal(backward.ops, 1);
    assert_near(backward.bytes, 4 * 30, 0, "bytes of mul");
    assert_int_equal(program_cost(p, PHASE_OPTIMIZE).ops, 0);
    program_free(p);
}

/* A new attribute changes the size: it belongs into op_attrs_equal, and into the list below. */
_Static_assert(sizeof(struct op_attrs) == 208, "op_attrs_equal and test_attributes know every attribute");

#define DIFFERS(field) do { struct op_attrs a = {0}, b = {0}; b.field = 1; \
    assert_true(op_attrs_equal(&a, &a) && op_attrs_equal(&b, &b)); \
    if (op_attrs_equal(&a, &b)) fail_msg("ops that differ in %s are taken for equal", #field); } while (0)

static void test_attributes(void **state)
{
    (void)state;
    DIFFERS(trans_a); DIFFERS(trans_b); DIFFERS(inverse); DIFFERS(causal); DIFFERS(round); DIFFERS(to); DIFFERS(copies);
    DIFFERS(scaled);
    DIFFERS(heads); DIFFERS(kv_heads); DIFFERS(parts); DIFFERS(rows); DIFFERS(cols);
    DIFFERS(scale); DIFFERS(eps); DIFFERS(value); DIFFERS(prob); DIFFERS(base); DIFFERS(stretch.factor); DIFFERS(stretch.low); DIFFERS(stretch.high);
    DIFFERS(stretch.context); DIFFERS(seed); DIFFERS(stream);
    DIFFERS(lr); DIFFERS(min_lr); DIFFERS(weight_decay); DIFFERS(beta1); DIFFERS(beta2); DIFFERS(max_norm);
    DIFFERS(schedule); DIFFERS(warmup); DIFFERS(total);
    DIFFERS(masked); DIFFERS(packed); DIFFERS(random); DIFFERS(k); DIFFERS(every);
    DIFFERS(sliced); DIFFERS(first);
    static const struct op_member one[] = {{0, 0}, {0, 1}}, other[] = {{0, 0}, {1, 1}}, third[] = {{0, 0}, {0, 0}};
    const struct op_attrs a = {.n_members = 2, .members = one}, b = {.n_members = 2, .members = other},
                          c = {.n_members = 2, .members = third}, fewer = {.n_members = 1, .members = one};
    assert_true(op_attrs_equal(&a, &a));
    assert_false(op_attrs_equal(&a, &b) || op_attrs_equal(&a, &c) || op_attrs_equal(&a, &fewer));
    static const int64_t half[] = {0, 5, 10}, less[] = {0, 4, 10};
    const struct op_attrs d = {.n_cuts = 3, .cuts = half}, e = {.n_cuts = 3, .cuts = less}, f = {.n_cuts = 2, .cuts = half};
    assert_true(op_attrs_equal(&d, &d));
    assert_false(op_attrs_equal(&d, &e) || op_attrs_equal(&d, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_program_is_valid),
        cmocka_unit_test(test_read_before_write),
        cmocka_unit_test(test_written_twice),
        cmocka_unit_test(test_parameters_and_inputs_are_not_written),
        cmocka_unit_test(test_wrong_shape),
        cmocka_unit_test(test_inputs_that_no_longer_fit),
        cmocka_unit_test(test_unknown_values),
        cmocka_unit_test(test_wrong_number_of_inputs),
        cmocka_unit_test(test_two_values_of_one_name),
        cmocka_unit_test(test_activations_may_share_a_name),
        cmocka_unit_test(test_update_of_a_value_that_does_not_persist),
        cmocka_unit_test(test_update_in_place),
        cmocka_unit_test(test_empty_dimensions),
        cmocka_unit_test(test_phases_in_order),
        cmocka_unit_test(test_first_mistake_is_kept),
        cmocka_unit_test(test_builder_refuses_unknown_inputs),
        cmocka_unit_test(test_shapes_that_do_not_fit),
        cmocka_unit_test(test_outputs_are_named_and_typed),
        cmocka_unit_test(test_many_ops),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_cost_of_products),
        cmocka_unit_test(test_cost_of_attention),
        cmocka_unit_test(test_cost_of_what_is_kept),
        cmocka_unit_test(test_cost_of_the_rest),
        cmocka_unit_test(test_cost_of_an_update),
        cmocka_unit_test(test_cost_of_a_phase_is_the_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
