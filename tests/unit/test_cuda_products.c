/* Products on a GPU in shapes that the table of cases has not: those that its kernel for small products takes, cut into 1 to 64 pieces,
 * and Hopper's for larger ones; and products that do the work of other ops on the way: GELU and its gradient. Needs a GPU. */
#include "support/gpu.h"
#include "support/op_compare.h"

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

static struct backend *reference;

static int open_all(void **state)
{
    reference = new_backend(1, true);
    return open_gpu(state);
}

static int close_all(void **state)
{
    reference->free(reference);
    return close_gpu(state);
}

/* ---- programs on the GPU ---- */

/* Every value has memory of its own, but for those that share; one scratch for all ops. */
struct bound {
    struct program *program;
    void *own[16], *memory[16], *in[4][16], *out[4][4], *scratch;
    struct bound_op ops[4];
    size_t scratch_bytes;
};

static void *take(size_t bytes)
{
    void *memory = gpu->alloc(gpu, bytes);
    assert_non_null(memory);
    return memory;
}

static void bind(struct bound *b, struct program *p)
{
    struct error err;
    *b = (struct bound){.program = p};
    assert_true(p->n_values <= 16 && p->n_ops <= 4);
    for (int i = 0; i < p->n_values; i++)
        b->own[i] = b->memory[i] = take(value_bytes(&p->values[i]));
    for (int i = 0; i < p->n_ops; i++) {
        size_t bytes = 0;
        assert_ok(gpu->scratch(gpu, &bytes, p, &p->ops[i], &err), err);
        b->scratch_bytes = bytes > b->scratch_bytes ? bytes : b->scratch_bytes;
    }
    b->scratch = take(b->scratch_bytes);
}

/* Prepares the ops [first, end). */
static struct prepared *prepare(struct bound *b, int first, int end)
{
    struct prepared *prepared = NULL;
    struct error err;
    for (int i = first; i < end; i++) {
        struct op *op = &b->program->ops[i];
        for (int j = 0; j < op->n_in; j++)
            b->in[i][j] = b->memory[op->in[j]];
        for (int j = 0; j < op->n_out; j++)
            b->out[i][j] = b->memory[op->out[j]];
        b->ops[i] = (struct bound_op){b->program, op, b->in[i], b->out[i]};
    }
    assert_ok(gpu->prepare(gpu, &prepared, b->ops + first, end - first, b->scratch, b->scratch_bytes, &err), err);
    return prepared;
}

static void run_all(struct prepared *p, int ops)
{
    struct error err;
    assert_ok(gpu->run(gpu, p, 0, ops, NULL, &err), err);
}

static void unbind(struct bound *b)
{
    for (int i = 0; i < b->program->n_values; i++)
        gpu->free_memory(gpu, b->own[i], value_bytes(&b->program->values[i]));
    gpu->free_memory(gpu, b->scratch, b->scratch_bytes);
}

/* ---- small ones ---- */

static struct plain filled(struct program *p, const struct op_case *c)
{
    struct plain x = plain_new(p, reference);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&x, i, c, i);
    return x;
}

static void run_case(struct plain *x, const struct op_case *c, const char *kernel)
{
    const struct op *op = &x->program->ops[0];
    struct bound b;
    struct error err;
    bind(&b, x->program);
    struct prepared *p = prepare(&b, 0, 1);
    assert_string_equal(gpu->about(p, 0).kernel, kernel);
    for (int i = 0; i < case_inputs(c); i++)
        assert_ok(gpu->upload(gpu, b.memory[i], x->memory[i], value_bytes(&x->program->values[i]), &err), err);
    for (int i = 0; i < 3; i++)                         /* what clusters count is 0 again each time */
        run_all(p, 1);
    for (int i = 0; i < op->n_out; i++)
        assert_ok(gpu->download(gpu, x->memory[op->out[i]], b.memory[op->out[i]], value_bytes(&x->program->values[op->out[i]]), &err), err);
    gpu->release(gpu, p);
    unbind(&b);
}

static void check_case(const struct op_case *c, struct typing types, const char *kernel)
{
    struct program *p = program_of_typed_case(c, types);
    struct plain should = filled(p, c), is = filled(p, c);
    plain_run_op(&should, &p->ops[0]);
    run_case(&is, c, kernel);
    compare(c, (struct variant){gpu, -1, false}, &is, &should, within);
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
    const bool hopper = strstr(gpu->device, "H100") || strstr(gpu->device, "H200");
    for (int i = 0; i < HOPPER_CASES; i++)
        check_case(&hopper_cases[i], typings[i % 3], hopper ? "hopper" : "cublaslt");
}

/* ---- products that do the work of other ops ---- */

struct size { int64_t rows, width, inner; };

static value_id number_matrix(struct program *p, const char *name, int64_t rows, int64_t columns)
{
    return program_add_value(p, name, VALUE_INPUT, BF16, shape_of(2, rows, columns));
}

static value_id narrow_result(struct program *p, value_id v)
{
    p->values[v].dtype = BF16;
    return v;
}

/* gelu(x w^T + bias) and its slope; dy = dz back; du = dy * slope. */
static struct program *feed_forward(struct size s)
{
    struct program *p = program_new("feed-forward");
    const value_id x = number_matrix(p, "x", s.rows, s.width), w = number_matrix(p, "w", s.inner, s.width);
    const value_id bias = program_add_value(p, "bias", VALUE_INPUT, F32, shape_of(1, s.inner));
    const value_id dz = number_matrix(p, "dz", s.rows, s.width), back = number_matrix(p, "back", s.width, s.inner);
    p->phase = PHASE_FORWARD;
    narrow_result(p, program_emit(p, OP_LINEAR_GELU, (struct op_attrs){.parts = 2}, "y", 3, x, w, bias));
    const value_id slope = narrow_result(p, p->ops[0].out[1]);
    const value_id dy = narrow_result(p, program_emit(p, OP_MATMUL, (struct op_attrs){0}, "dy", 2, dz, back));
    narrow_result(p, program_emit(p, OP_MUL, (struct op_attrs){0}, "du", 2, dy, slope));
    return p;
}

static void write_numbers(const struct bound *b, value_id v, uint32_t seed)
{
    const int64_t n = shape_count(b->program->values[v].shape);
    const bool narrow = b->program->values[v].dtype == BF16;
    char *host = plain_alloc(value_bytes(&b->program->values[v]));
    struct error err;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float x = ((float)(seed >> 8) * 0x1p-23f - 1) * 0.25f;
        if (narrow)
            ((uint16_t *)host)[i] = bf16_bits(x);
        else
            ((float *)host)[i] = x;
    }
    assert_ok(gpu->upload(gpu, b->memory[v], host, value_bytes(&b->program->values[v]), &err), err);
    free(host);
}

static float *read_numbers(const struct bound *b, value_id v)
{
    const int64_t n = shape_count(b->program->values[v].shape);
    void *host = plain_alloc(value_bytes(&b->program->values[v]));
    struct error err;
    assert_ok(gpu->download(gpu, host, b->memory[v], value_bytes(&b->program->values[v]), &err), err);
    float *wide = widened(host, n, b->program->values[v].dtype);
    free(host);
    return wide;
}

static void assert_close(const float *is, const float *should, int64_t n, double tolerance)
{
    double most = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(should[i]));
        off = fmax(off, fabs((double)is[i] - should[i]));
        if (!isfinite(is[i]))
            fail_msg("number %lld is %g", (long long)i, is[i]);
    }
    if (!(most > 0 && off <= tolerance * most))
        fail_msg("off by %g, and the largest is %g", off, most);
}

/* Prepared together, ops do each other's work, which the name of the last one's kernel tells; each by itself they do not. Compared are the
 * outputs of the first and of the last op, which may write where its first input is. */
static void check_merged(struct program *p, const char *kernel, bool in_place, double tolerance)
{
    const int last = p->n_ops - 1;
    const value_id out[2] = {p->ops[0].out[0], p->ops[last].out[0]};
    struct prepared *each[4];
    struct bound b;
    float *should[2], *is;
    bind(&b, p);
    if (in_place)
        b.memory[out[1]] = b.memory[p->ops[last].in[0]];
    for (value_id v = 0; v < p->n_values && p->values[v].kind == VALUE_INPUT; v++)
        write_numbers(&b, v, (uint32_t)v + 1);
    for (int i = 0; i <= last; i++) {
        each[i] = prepare(&b, i, i + 1);
        run_all(each[i], 1);
    }
    for (int i = 0; i < 2; i++)
        should[i] = read_numbers(&b, out[i]);
    struct prepared *all = prepare(&b, 0, last + 1);
    assert_string_equal(gpu->about(all, last).kernel, kernel);
    run_all(all, last + 1);
    for (int i = 0; i < 2; i++) {
        is = read_numbers(&b, out[i]);
        assert_close(is, should[i], shape_count(p->values[out[i]].shape), tolerance);
        free(is);
        free(should[i]);
    }
    for (int i = 0; i <= last; i++)
        gpu->release(gpu, each[i]);
    gpu->release(gpu, all);
    unbind(&b);
    program_free(p);
}

/* Both round to bf16, the merged ones once less. */
static void test_gelu_at_the_end(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_merged(feed_forward((struct size){4096, 512, 2048}), "merged", true, 0x1p-6);
    check_merged(feed_forward((struct size){8192, 256, 2048}), "gelu_slope", true, 0x1p-6);
    check_merged(feed_forward((struct size){300, 72, 136}), "merged", true, 0x1p-6);
}

/* Gradients of weights of several shapes, dw = dy^T x in f32 of bf16. */
static struct program *weight_gradients(int n, const struct size *sizes)
{
    struct program *p = program_new("weight gradients");
    value_id dy[4], x[4];
    char name[16];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "dy%d", i);
        dy[i] = number_matrix(p, name, sizes[i].rows, sizes[i].width);
        snprintf(name, sizeof name, "x%d", i);
        x[i] = number_matrix(p, name, sizes[i].rows, sizes[i].inner);
    }
    p->phase = PHASE_BACKWARD;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "dw%d", i);
        program_emit(p, OP_MATMUL, (struct op_attrs){.trans_a = true}, name, 2, dy[i], x[i]);
    }
    return p;
}

/* The first and the last of each list are compared: all shapes take their turn there. */
static void test_weight_gradients_together(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct size few[] = {{1024, 512, 512}, {1024, 512, 512}, {1024, 512, 520}};
    static const struct size many[] = {{1000, 512, 712}, {1000, 1408, 512}, {1000, 72, 8}, {1000, 136, 200}};
    static const struct size back[] = {{1000, 136, 200}, {1000, 72, 8}, {1000, 512, 712}, {1000, 1408, 512}};
    static const struct size deep[] = {{9000, 128, 136}, {9000, 256, 128}};
    const bool hopper = strstr(gpu->device, "H100") || strstr(gpu->device, "H200");
    const char *kernel = hopper ? "hopper" : "cublaslt";
    check_merged(weight_gradients(3, few), kernel, false, 2e-5);
    check_merged(weight_gradients(4, many), kernel, false, 2e-5);
    check_merged(weight_gradients(4, back), kernel, false, 2e-5);
    check_merged(weight_gradients(2, deep), kernel, false, 2e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_products), cmocka_unit_test(test_hopper_products), cmocka_unit_test(test_gelu_at_the_end),
                                        cmocka_unit_test(test_weight_gradients_together)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
