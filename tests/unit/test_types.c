/* Values of 16 bits on the CPU: conversions to the bit, every op of the table in both types, what the validator refuses, and where the
 * planner may not let an output take an input's memory. */
#include "support/check.h"

#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "passes/passes.h"
#include "support/op_compare.h"

static struct backend *reference, *tuned;

static int make_backends(void **state)
{
    (void)state;
    struct error err;
    return cpu_backend_new(&reference, 1, true, &err) || cpu_backend_new(&tuned, 2, false, &err) ? -1 : 0;
}

static int free_backends(void **state)
{
    (void)state;
    reference->free(reference);
    tuned->free(tuned);
    return 0;
}

/* ---- f16 ---- */

static void test_f16_there_and_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const float x = f16_value((uint16_t)bits);
        if (isnan(x))
            assert_true((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) && isnan(f16_value(f16_bits(x))));
        else
            assert_int_equal(f16_bits(x), bits);
    }
}

/* Between two neighbours the nearer one; in the middle the one whose last bit is 0. */
static void test_f16_rounds_to_the_nearest(void **state)
{
    (void)state;
    for (uint16_t bits = 0; bits < 0x7bff; bits++) {
        const float low = f16_value(bits), high = f16_value((uint16_t)(bits + 1)), middle = (low + high) / 2;   /* exact in f32 */
        assert_int_equal(f16_bits(middle), bits & 1 ? bits + 1 : bits);
        assert_int_equal(f16_bits(nextafterf(middle, low)), bits);
        assert_int_equal(f16_bits(nextafterf(middle, high)), bits + 1);
        assert_int_equal(f16_bits(-middle), 0x8000 | (bits & 1 ? bits + 1 : bits));
    }
    assert_int_equal(f16_bits(65504), 0x7bff);
    assert_int_equal(f16_bits(65519.996f), 0x7bff);
    assert_int_equal(f16_bits(65520), 0x7c00);
    assert_int_equal(f16_bits(INFINITY), 0x7c00);
    assert_int_equal(f16_bits(-1e30f), 0xfc00);
    assert_int_equal(f16_bits(0x1p-25f), 0);
    assert_int_equal(f16_bits(nextafterf(0x1p-25f, 1)), 1);
    assert_int_equal(f16_bits(-1e-30f), 0x8000);
}

/* ---- every op ---- */

static struct plain run(struct program *p, const struct op_case *c, struct backend *b, int alias)
{
    struct plain x = plain_new(p, b);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&x, i, c, i);
    if (alias >= 0)
        plain_alias(&x, p->ops[0].out[0], p->ops[0].in[alias]);
    plain_run_op(&x, &p->ops[0]);
    return x;
}

/* A norm of a sum is of the sum as it is stored: the first term becomes that, and the second 0. */
static void round_sum(struct plain *x, const struct op *op, enum dtype type)
{
    float *a = x->memory[op->in[0]], *b = x->memory[op->in[1]];
    const int64_t n = shape_count(x->program->values[op->in[0]].shape);
    for (int64_t i = 0; i < n; i++) {
        const float sum = a[i] + b[i];
        a[i] = type == BF16 ? bf16_value(bf16_bits(sum)) : f16_value(f16_bits(sum));
        b[i] = 0;
    }
}

/* The same op in f32, on the same numbers, its results rounded: what an op with narrow values is. */
static struct plain rounded_result(struct program *wide, const struct program *narrow, const struct plain *in, const struct op_case *c)
{
    struct plain x = plain_new(wide, reference);
    for (int i = 0; i < case_inputs(c); i++) {
        const struct value *v = &narrow->values[i];
        float *numbers = v->dtype == I32 ? NULL : widened(in->memory[i], shape_count(v->shape), v->dtype);
        plain_write(&x, i, numbers ? (void *)numbers : in->memory[i]);
        free(numbers);
    }
    const struct op *op = &wide->ops[0];
    const enum dtype sum = op->n_out > 1 ? narrow->values[narrow->ops[0].out[1]].dtype : F32;
    if ((op->kind == OP_ADD_LAYERNORM || op->kind == OP_ADD_RMSNORM) && dtype_is_narrow(sum))
        round_sum(&x, op, sum);
    plain_run_op(&x, &wide->ops[0]);
    return x;
}

static void check_outputs(const struct op_case *c, const struct program *p, const struct plain *is, const struct plain *wide)
{
    const struct op *op = &p->ops[0];
    for (int j = 0; j < op->n_out; j++) {
        const struct value *v = &p->values[op->out[j]];
        const int64_t n = shape_count(v->shape);
        uint16_t *half = plain_alloc((size_t)n * sizeof(float));
        const void *should = wide->memory[wide->program->ops[0].out[j]];
        if (dtype_is_narrow(v->dtype)) {
            narrow_floats(half, should, n, v->dtype);
            should = half;
        }
        if (memcmp(is->memory[op->out[j]], should, value_bytes(v)))
            fail_msg("%s, case %d, %s: output %d is not the rounded result of f32", op_info(c->kind)->name, (int)(c - op_cases),
                     dtype_name(v->dtype), j);
        free(half);
    }
}

/* f32 throughout; copies too, which are of 16 bits in every program. */
static struct program *wide_program(const struct op_case *c)
{
    struct program *p = program_of_case(c);
    for (int i = 0; i < p->n_values; i++)
        if (dtype_is_narrow(p->values[i].dtype))
            p->values[i].dtype = F32;
    return p;
}

static void check_typing(const struct op_case *c, struct typing types)
{
    struct program *p = program_of_typed_case(c, types), *wide = wide_program(c);
    struct plain in = plain_new(p, reference);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&in, i, c, i);
    struct plain should = rounded_result(wide, p, &in, c);
    for (int alias = -1; alias < p->ops[0].n_in; alias++) {
        if (alias >= 0 && !may_alias(p, alias))
            continue;
        for (int b = 0; b < 2; b++) {
            if (b && (!op_has_narrow_values(p, &p->ops[0]) || op_is_rounded_ahead(p, &p->ops[0])))
                continue;               /* a tuned kernel is another test's matter */
            struct plain is = run(p, c, b ? tuned : reference, alias);
            check_outputs(c, p, &is, &should);
            plain_release(&is);
        }
    }
    plain_release(&in);
    plain_release(&should);
    program_free(p);
    program_free(wide);
}

static bool has_letters(const struct op_case *c, const char *letters)
{
    struct program *p = program_of_case(c);
    const struct op *op = &p->ops[0];
    bool all = true;
    for (; *letters; letters++) {
        bool one = false;
        for (int i = 0; i < op->n_in + op->n_out; i++)
            one |= (char)(i < op->n_in ? op_in_type(op, i) : op_out_type(op, i - op->n_in)) == *letters;
        all &= one;
    }
    program_free(p);
    return all;
}

static void test_every_op_in_every_type(void **state)
{
    (void)state;
    static const char *const letters[] = {"n", "o", "a", "no", "na", "oa", "noa"};
    for (int i = 0; i < OP_CASES; i++)
        for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
            for (enum dtype t = BF16; t <= F16 && has_letters(&op_cases[i], letters[k]); t++)
                check_typing(&op_cases[i], (struct typing){t, letters[k]});
}

/* ---- rules ---- */

static void test_types_that_do_not_fit(void **state)
{
    (void)state;
    struct error err = {0};
    struct program *p = program_new("types");
    const value_id a = program_add_value(p, "a", VALUE_INPUT, BF16, shape_of(1, (int64_t)4));
    const value_id b = program_add_value(p, "b", VALUE_INPUT, F32, shape_of(1, (int64_t)4));
    program_emit(p, OP_MUL, (struct op_attrs){0}, "y", 2, a, b);
    assert_int_equal(program_validate(p, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "value 'b' is f32, which does not fit the op and its other values"));
    p->values[b].dtype = BF16;
    assert_ok(program_validate(p, &err), err);
    assert_int_equal(p->values[p->ops[0].out[0]].dtype, BF16);
    p->values[p->ops[0].out[0]].dtype = F16;
    assert_int_equal(program_validate(p, &err), BAD_INPUT);
    program_free(p);
}

/* Threads that write half as many bytes from the front would write over what others have still to read. */
static void test_no_reuse_across_types(void **state)
{
    (void)state;
    struct program *p = program_new("reuse");
    struct memory_plan plan;
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(1, (int64_t)64));
    const value_id y = program_emit(p, OP_GELU, (struct op_attrs){0}, "y", 1, x);
    const value_id z = program_emit(p, OP_LOG_SOFTMAX_GRAD, (struct op_attrs){0}, "z", 2, y, y);
    const value_id u = program_emit(p, OP_LOG_SOFTMAX_GRAD, (struct op_attrs){0}, "u", 2, z, x);
    p->values[u].dtype = BF16;
    p->logits = u;
    pass_memory_plan(p, &plan);
    assert_true(plan.offset[u] != plan.offset[z]);
    memory_plan_release(&plan);
    p->values[u].dtype = F32;
    pass_memory_plan(p, &plan);
    assert_true(plan.offset[u] == plan.offset[z]);
    memory_plan_release(&plan);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_there_and_back),     cmocka_unit_test(test_f16_rounds_to_the_nearest),
        cmocka_unit_test(test_every_op_in_every_type), cmocka_unit_test(test_types_that_do_not_fit),
        cmocka_unit_test(test_no_reuse_across_types),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
