/* Every op on a GPU against the CPU's reference, on every case of the table that serves test_ops: in place too, with a number that is
 * not one, and replayed from a graph. One test per op, so that a run tells of all that are wrong. Needs a GPU. */
#include "ops/cpu/cpu_int.h"
#include "support/on_gpu.h"

/* GPU against reference: the largest difference, as a share of the largest number of the output. What is not listed is copied or counted,
 * and must be equal to the last bit. */
static const double tolerances[OP_KINDS] = {
    [OP_EMBED_GRAD] = 1e-6,     [OP_MATMUL] = 2e-6,         [OP_SUM_LEADING] = 2e-6,  [OP_GELU] = 4e-7,
    [OP_GELU_GRAD] = 1e-6,      [OP_SILU] = 4e-7,           [OP_SILU_GRAD] = 1e-6,    [OP_LAYERNORM] = 2e-6,
    [OP_LAYERNORM_GRAD] = 4e-6, [OP_RMSNORM] = 1e-6,        [OP_RMSNORM_GRAD] = 4e-6, [OP_ROPE_TABLE] = 1e-7,
    [OP_ROPE] = 3e-7,           [OP_ATTN_SCORES] = 2e-6,    [OP_ATTN_MIX] = 2e-6,     [OP_ATTN_MIX_T] = 2e-6,
    [OP_SOFTMAX] = 1e-6,        [OP_SOFTMAX_GRAD] = 1e-6,   [OP_LOG_SOFTMAX] = 5e-7,  [OP_LOG_SOFTMAX_GRAD] = 1e-6,
    [OP_ATTENTION] = 2e-6,      [OP_ATTENTION_GRAD] = 5e-6, [OP_ATTEND_KV] = 2e-6,
    [OP_ACCUMULATE] = 2e-7,     [OP_SUM_SQUARES] = 1e-6,    [OP_SQUARE_BLOCKS] = 1e-6,  [OP_SUM_BLOCKS] = 1e-6,   [OP_ADAMW] = 1e-6,
    [OP_ADD_LAYERNORM] = 2e-6,  [OP_ADD_RMSNORM] = 1e-6,    [OP_LINEAR_GELU] = 1e-5,
    [OP_PROJECT] = 2e-6,        [OP_PROJECT_GRAD] = 2e-6,   [OP_SWIGLU] = 5e-7,       [OP_SWIGLU_GRAD] = 1e-6,
    [OP_LINEAR_LOSS] = 8e-6,    [OP_ADAMW_ALL] = 1e-6,
    /* one rounding apart */
    [OP_DROPOUT] = 2e-7,        [OP_NLL] = 2e-7,            [OP_NLL_GRAD] = 2e-7,     [OP_LR] = 2e-7,
    [OP_DIVIDE] = 2e-7,         [OP_CLIP] = 2e-7,
};

/* With values of 16 bits: one rounding of a result is allowed for beside these. What is stored narrow on the way costs more: the weights
 * of attention and its gradients as operands; most of all logits, of which a large one in bf16 is off by 0.03, and its exponential by as
 * much of itself. f16 has eight times the precision. */
static const double narrow_tolerances[OP_KINDS] = {
    [OP_ATTENTION] = 0x1p-7, [OP_ATTENTION_GRAD] = 0x1p-5, [OP_LINEAR_LOSS] = 0x1p-4, [OP_LINEAR_GELU] = 0x1p-7,
};
/* TF32: operands of 11 bits. What is off in a product of many terms goes through GELU and its slope, or an exponential. */
static double tf32_tolerance(enum op_kind kind) { return kind == OP_LINEAR_GELU || kind == OP_LINEAR_LOSS ? 0x1p-6 : 0x1p-8; }

/* HONE_FEW_CASES=1: each case once in f32 and once in bf16, where a sanitizer makes every launch a hundred times as long. */
static bool few(void) { return getenv("HONE_FEW_CASES") != NULL; }

/* Once: by itself. Three times: the third is a replay. */
static void check_variant(struct program *p, const struct op_case *c, struct variant v, const struct plain *should)
{
    double within[OP_KINDS];
    for (int i = 0; i < OP_KINDS; i++)
        within[i] = tolerances[i] + (op_has_narrow_values(p, &p->ops[0]) ? narrow_tolerances[i] : 0) +
                    (p->ops[0].attrs.round == ROUND_TF32 ? tf32_tolerance((enum op_kind)i) : 0);
    struct plain a = run_on_gpu(p, c, v, 1, NULL), b = run_on_gpu(p, c, v, 3, NULL);
    compare(c, v, &a, should, within);
    assert_same_bits(c, v, &a, &b);
    plain_release(&a);
    plain_release(&b);
}

static void check_case(const struct op_case *c, bool nan, struct typing types, enum rounding round)
{
    struct program *p = program_of_typed_case(c, types);
    p->ops[0].attrs.round = round;
    struct plain should = on_reference(p, c, nan);
    for (int alias = -1; alias < (few() ? 0 : p->ops[0].n_in); alias++)
        if (alias < 0 || may_alias(p, alias))
            check_variant(p, c, (struct variant){gpu, alias, nan}, &should);
    plain_release(&should);
    program_free(p);
}

static void test_op(void **state)
{
    NEEDS_GPU;
    const enum op_kind kind = *(const enum op_kind *)*state;
    for (int nan = 0; nan < (few() ? 1 : 2); nan++)
        for (int i = 0; i < OP_CASES; i++)
            if (op_cases[i].kind == kind)
                check_case(&op_cases[i], nan, (struct typing){F32, ""}, ROUND_NO);
}

static void test_narrow_op(void **state)
{
    NEEDS_GPU;
    static const char *const letters[] = {"noa", "n", "o", "a", "no", "na", "oa"};
    const size_t typings = few() ? 1 : sizeof letters / sizeof *letters;
    const enum op_kind kind = *(const enum op_kind *)*state;
    for (int i = 0; i < OP_CASES; i++)
        for (size_t k = 0; k < typings && op_cases[i].kind == kind; k++)
            for (enum dtype t = BF16; t <= (few() ? BF16 : F16); t++)
                check_case(&op_cases[i], false, (struct typing){t, letters[k]}, ROUND_NO);
}

static void test_products_of_tf32(void **state)
{
    (void)state;
    NEEDS_GPU;
    for (int i = 0; i < OP_CASES; i++)
        if (op_info(op_cases[i].kind)->product)
            check_case(&op_cases[i], false, (struct typing){F32, ""}, ROUND_TF32);
}

/* Where the module was built, GPU or not. */
static void test_every_op_has_a_kernel(void **state)
{
    (void)state;
    for (int kind = 0; kind < OP_KINDS; kind++) {
        const char *name;
        if (cuda_kernel_name(&name, (enum op_kind)kind, &no_gpu) != OK) {
            print_message("skipped: %s\n", no_gpu.text);
            skip();
        }
        if (!name)
            fail_msg("op %s has no kernel", op_info((enum op_kind)kind)->name);
    }
}

/* HONE_PART=I/N: the I-th of N parts of the tests alone, so that several processes share them. */
static int keep_part(struct CMUnitTest *tests, int n)
{
    int part = 1, parts = 1, kept = 0;
    const char *text = getenv("HONE_PART");
    if (text && (sscanf(text, "%d/%d", &part, &parts) != 2 || part < 1 || part > parts))
        fail_msg("HONE_PART is '%s'; it should be like 1/2", text);
    for (int i = 0; i < n; i++)
        if (i % parts == part - 1)
            tests[kept++] = tests[i];
    return kept;
}

int main(void)
{
    enum { MORE = 2 * OP_KINDS, TESTS = MORE + 2 };
    struct CMUnitTest tests[TESTS] = {[MORE] = cmocka_unit_test(test_every_op_has_a_kernel),
                                      [MORE + 1] = cmocka_unit_test(test_products_of_tf32)};
    enum op_kind kinds[OP_KINDS];
    char names[OP_KINDS][64];
    for (int i = 0; i < OP_KINDS; i++) {
        kinds[i] = (enum op_kind)i;
        snprintf(names[i], sizeof names[i], "%s of 16 bits", op_info(kinds[i])->name);
        tests[i] = (struct CMUnitTest){.name = op_info(kinds[i])->name, .test_func = test_op, .initial_state = &kinds[i]};
        tests[OP_KINDS + i] = (struct CMUnitTest){.name = names[i], .test_func = test_narrow_op, .initial_state = &kinds[i]};
    }
    return _cmocka_run_group_tests("ops on a GPU", tests, (size_t)keep_part(tests, TESTS), open_all, close_all);
}
