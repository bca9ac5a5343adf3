/* Products on a GPU in shapes that the table of cases has not: those that its kernel for small products takes, cut into 1 to 64 pieces,
 * Hopper's for larger ones, parts in one call, and heads whose logits are not stored. Needs a GPU. */
#include "support/on_gpu.h"

#define X(...) {NORMAL, {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}}

/* Widths are multiples of 8, so that rows are aligned, but not of a tile. The number of pieces follows from the depth: the fewer tiles, the
 * more of them. */
static const struct op_case cases[] = {
    {OP_MATMUL, {.trans_b = true}, {X(1, 8), X(8, 8)}},
    {OP_MATMUL, {.trans_b = true}, {X(72, 64), X(136, 64)}},
    {OP_MATMUL, {.trans_b = true}, {X(65, 264), X(72, 264)}},
    {OP_MATMUL, {.trans_b = true}, {X(70, 1000), X(65, 1000)}},
    {OP_MATMUL, {.trans_b = true}, {X(2, 50, 200), X(136, 200), X(136)}},
    {OP_MATMUL, {0}, {X(136, 256), X(256, 72)}},
    {OP_MATMUL, {0}, {X(33, 520), X(520, 40)}},
    {OP_MATMUL, {.trans_a = true}, {X(70, 72), X(70, 136)}},
    {OP_MATMUL, {.trans_a = true}, {X(500, 64), X(500, 64)}},
    {OP_MATMUL, {.trans_a = true}, {X(1025, 72), X(1025, 40)}},
    {OP_MATMUL, {.trans_a = true}, {X(2100, 64), X(2100, 136)}},
    {OP_MATMUL, {.trans_a = true}, {X(4100, 64), X(4100, 64)}},
    {OP_MATMUL, {.trans_a = true}, {X(9000, 72), X(9000, 64)}},
    {OP_PROJECT, {.parts = 2}, {X(3, 30, 136), X(72, 136), X(200, 136)}},
    {OP_PROJECT, {.parts = 3}, {X(70, 64), X(64, 64), X(32, 64), X(32, 64), X(64), X(32), X(32)}},
    {OP_PROJECT, {.parts = 4}, {X(5, 1032), X(65, 1032), X(16, 1032), X(1, 1032), X(130, 1032)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(70, 72), X(70, 200), X(72, 136), X(200, 136)}},
    {OP_PROJECT_GRAD, {.parts = 3}, {X(2, 33, 64), X(2, 33, 32), X(2, 33, 32), X(64, 64), X(32, 64), X(32, 64)}},
    {OP_PROJECT_GRAD, {.parts = 4}, {X(9, 1000), X(9, 8), X(9, 520), X(9, 264), X(1000, 72), X(8, 72), X(520, 72), X(264, 72)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(70, 64), X(136, 64), X(136)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(3, 1000), X(65, 1000), X(65)}},
    {OP_LINEAR_GELU, {.parts = 1}, {X(130, 72), X(72, 72), X(72)}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Larger ones, of several parts, which Hopper's kernel takes: by rule in tiles of every width, and in 1, 2 and 4 pieces. */
static const struct op_case hopper_cases[] = {
    {OP_PROJECT, {.parts = 2}, {X(1000, 520), X(264, 520), X(392, 520)}},
    {OP_PROJECT, {.parts = 3}, {X(5, 200, 512), X(256, 512), X(256, 512), X(136, 512), X(256), X(256), X(136)}},
    {OP_PROJECT, {.parts = 2}, {X(3000, 136), X(384, 136), X(383, 136)}},
    {OP_PROJECT, {.parts = 3}, {X(4100, 400), X(64, 400), X(64, 400), X(60, 400)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(600, 712), X(600, 200), X(712, 600), X(200, 600)}},
    {OP_PROJECT_GRAD, {.parts = 3}, {X(130, 1504), X(130, 1504), X(130, 1000), X(1504, 600), X(1504, 600), X(1000, 600)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(2048, 200), X(2048, 136), X(200, 520), X(136, 520)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(1030, 648), X(1030, 520), X(648, 256), X(520, 256)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(4100, 72), X(4100, 200), X(72, 328), X(200, 328)}},
};
enum { HOPPER_CASES = sizeof hopper_cases / sizeof *hopper_cases };

/* Of sums in f32, which tensor cores do not round but cut; where the result is narrow, one rounding is allowed for beside it. A slope is at
 * most 1.1, and follows sums that are much larger. */
static const double within[OP_KINDS] = {
    [OP_MATMUL] = 2e-5, [OP_PROJECT] = 2e-5, [OP_PROJECT_GRAD] = 2e-5, [OP_LINEAR_GELU] = 5e-4,
};

/* ---- small ones ---- */

static void check_case(const struct op_case *c, struct typing types, const char *kernel)
{
    struct program *p = program_of_typed_case(c, types);
    const struct variant v = {gpu, -1, false};
    struct plain should = on_reference(p, c, false), is = run_on_gpu(p, c, v, 3, kernel);       /* what clusters count is 0 again each time */
    compare(c, v, &is, &should, within);
    plain_release(&should);
    plain_release(&is);
    program_free(p);
}

static void test_small_products(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct typing typings[] = {{BF16, "noa"}, {BF16, "o"}, {F16, "noa"}};
    for (int i = 0; i < CASES; i++)
        for (size_t k = 0; k < sizeof typings / sizeof *typings; k++)
            check_case(&cases[i], typings[k], "small");
}

/* Each in one type, and those of a kind one after the other in all of them: the reference takes its time. */
static void test_hopper_products(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct typing typings[] = {{BF16, "noa"}, {BF16, "o"}, {F16, "noa"}};
    for (int i = 0; i < HOPPER_CASES; i++)
        check_case(&hopper_cases[i], typings[i % 3], is_hopper() ? "hopper" : "cublaslt");
}

/* ---- parts that lie evenly apart in memory: one call makes all of them ---- */

static const struct op_case even_cases[] = {
    {OP_PROJECT, {.parts = 2}, {X(1200, 520), X(264, 520), X(264, 520)}},
    {OP_PROJECT, {.parts = 3}, {X(5, 200, 512), X(256, 512), X(256, 512), X(256, 512), X(256), X(256), X(256)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(1200, 264), X(1200, 264), X(264, 520), X(264, 520)}},
    {OP_PROJECT_GRAD, {.parts = 3}, {X(2, 500, 256), X(2, 500, 256), X(2, 500, 256), X(256, 512), X(256, 512), X(256, 512)}},
};

/* Gives these values memory in one block, with a gap behind each. The caller frees it. */
static void *lay_evenly(struct bound *b, const value_id *values, int n, size_t *bytes)
{
    const size_t each = value_bytes(&b->program->values[values[0]]) + 256;
    char *block = gpu_alloc(b->backend, *bytes = each * (size_t)n);
    for (int i = 0; i < n; i++)
        b->memory[values[i]] = block + (size_t)i * each;
    return block;
}

static struct plain run_evenly(struct program *p, const struct op_case *c)
{
    struct plain x = filled(p, c, (struct variant){gpu, -1, false});
    const struct op *op = &p->ops[0];
    const int n = op->attrs.parts;
    struct bound b;
    size_t bytes[2];
    bind(&b, gpu, p);
    void *blocks[2] = {lay_evenly(&b, op->kind == OP_PROJECT ? op->in + 1 : op->in, n, &bytes[0]),
                       lay_evenly(&b, op->kind == OP_PROJECT ? op->out : op->in + n, n, &bytes[1])};
    struct prepared *prepared = prepare(&b, 0, 1);
    assert_string_equal(gpu->about(prepared, 0).kernel, "together");
    write_all(&b, &x);
    gpu_run(gpu, prepared, 1);
    for (int i = 0; i < op->n_out; i++)
        gpu_read(gpu, x.memory[op->out[i]], b.memory[op->out[i]], value_bytes(&p->values[op->out[i]]));
    gpu->release(gpu, prepared);
    for (int i = 0; i < 2; i++)
        gpu->free_memory(gpu, blocks[i], bytes[i]);
    unbind(&b);
    return x;
}

static void test_parts_together(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct typing typings[] = {{BF16, "noa"}, {F16, "noa"}};
    for (size_t i = 0; i < sizeof even_cases / sizeof *even_cases; i++)
        for (size_t k = 0; k < sizeof typings / sizeof *typings; k++) {
            const struct op_case *c = &even_cases[i];
            struct program *p = program_of_typed_case(c, typings[k]);
            struct plain should = on_reference(p, c, false), is = run_evenly(p, c);
            compare(c, (struct variant){gpu, -1, false}, &is, &should, within);
            plain_release(&should);
            plain_release(&is);
            program_free(p);
        }
}

/* ---- heads of short rows ---- */

#define OF_TARGETS(n) {TARGETS, {1, {n}}}

static const struct op_case head_cases[] = {
    {OP_LINEAR_LOSS, {.parts = 2}, {X(8200, 40), X(1031, 40), OF_TARGETS(8200)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(8200, 40), X(1031, 40), OF_TARGETS(8200)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(8192, 72), X(1024, 72), OF_TARGETS(8192)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(8321, 128), X(1160, 128), OF_TARGETS(8321), {LARGE, {1, {1}}}}},
};

/* Targets are all over the vocabulary; padding stays. */
static struct plain head_filled(struct program *p, const struct op_case *c)
{
    struct plain x = filled(p, c, (struct variant){gpu, -1, false});
    int32_t *targets = x.memory[2];
    const int64_t rows = shape_rows(p->values[0].shape), vocab = p->values[1].shape.dim[0];
    for (int64_t i = 0; i < rows; i++)
        targets[i] = targets[i] < 0 ? -1 : (int32_t)((i * 131 + targets[i]) % vocab);
    return x;
}

static void check_head(const struct op_case *c, struct typing types)
{
    struct program *p = program_of_typed_case(c, types);
    struct op *op = &p->ops[0];
    struct plain should = head_filled(p, c), is = head_filled(p, c);
    struct bound b;
    double off[OP_KINDS] = {[OP_LINEAR_LOSS] = 0x1p-7};     /* logits are f32; their gradient is narrow where it is multiplied */
    plain_run_op(&should, op);
    bind(&b, gpu, p);
    struct prepared *prepared = prepare(&b, 0, 1);
    for (int i = 0; i < 3; i++) {
        write_all(&b, &is);
        gpu_run(gpu, prepared, 1);
    }
    for (int i = 0; i < op->n_out; i++)
        gpu_read(gpu, is.memory[op->out[i]], b.memory[op->out[i]], value_bytes(&p->values[op->out[i]]));
    compare(c, (struct variant){gpu, -1, false}, &is, &should, off);
    gpu->release(gpu, prepared);
    unbind(&b);
    plain_release(&should);
    plain_release(&is);
    program_free(p);
}

static void test_heads_of_short_rows(void **state)
{
    (void)state;
    NEEDS_GPU;
    if (!is_hopper())
        skip();
    check_head(&head_cases[0], (struct typing){BF16, "oa"});
    check_head(&head_cases[1], (struct typing){F16, "oa"});
    check_head(&head_cases[2], (struct typing){BF16, "o"});
    check_head(&head_cases[3], (struct typing){BF16, "oa"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_products), cmocka_unit_test(test_hopper_products),
                                       cmocka_unit_test(test_parts_together), cmocka_unit_test(test_heads_of_short_rows)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
