/* Products on a GPU in shapes that the table of cases has not: those that its kernel for small products takes, cut into 1 to 64 pieces,
 * and Hopper's for larger ones; and ops that do the work of others on the way: GELU and its gradient at the end of products, sums over
 * rows. Needs a GPU. */
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
    const bool hopper = strstr(gpu->device, "H100") || strstr(gpu->device, "H200");
    for (int i = 0; i < HOPPER_CASES; i++)
        check_case(&hopper_cases[i], typings[i % 3], hopper ? "hopper" : "cublaslt");
}

/* ---- ops that do the work of others ---- */

struct size { int64_t rows, width, inner; };

static value_id number_matrix(struct program *p, const char *name, enum dtype t, int64_t rows, int64_t columns)
{
    return program_add_value(p, name, VALUE_INPUT, t, shape_of(2, rows, columns));
}

static value_id numbers(struct program *p, const char *name, int64_t n) { return program_add_value(p, name, VALUE_INPUT, F32, shape_of(1, n)); }

static value_id result(struct program *p, enum dtype t, value_id v)
{
    p->values[v].dtype = t;
    return v;
}

/* gelu(x w^T + bias) and its slope; dy = dz back; du = dy * slope; where they are asked for, the sums over rows of du. */
static struct program *feed_forward(struct size s, bool summed)
{
    struct program *p = program_new("feed-forward");
    const value_id x = number_matrix(p, "x", BF16, s.rows, s.width), w = number_matrix(p, "w", BF16, s.inner, s.width);
    const value_id bias = numbers(p, "bias", s.inner);
    const value_id dz = number_matrix(p, "dz", BF16, s.rows, s.width), back = number_matrix(p, "back", BF16, s.width, s.inner);
    p->phase = PHASE_FORWARD;
    result(p, BF16, program_emit(p, OP_LINEAR_GELU, (struct op_attrs){.parts = 2}, "y", 3, x, w, bias));
    const value_id slope = result(p, BF16, p->ops[0].out[1]);
    const value_id dy = result(p, BF16, program_emit(p, OP_MATMUL, (struct op_attrs){0}, "dy", 2, dz, back));
    const value_id du = result(p, BF16, program_emit(p, OP_MUL, (struct op_attrs){0}, "du", 2, dy, slope));
    if (summed)
        program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, du, bias);
    return p;
}

/* du = dy * slope and its sums. */
static struct program *product_of_two(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("product");
    const value_id dy = number_matrix(p, "dy", t, rows, width), slope = number_matrix(p, "slope", t, rows, width), like = numbers(p, "like", width);
    p->phase = PHASE_FORWARD;
    const value_id du = result(p, t, program_emit(p, OP_MUL, (struct op_attrs){0}, "du", 2, dy, slope));
    program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, du, like);
    return p;
}

/* The gradient of a layer norm, added to another one, and the sums over its rows. */
static struct program *norm(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("norm");
    const value_id dy = number_matrix(p, "dy", t, rows, width), x = number_matrix(p, "x", t, rows, width), gain = numbers(p, "gain", width);
    const value_id mean = numbers(p, "mean", rows), rstd = numbers(p, "rstd", rows), more = number_matrix(p, "more", t, rows, width);
    p->phase = PHASE_FORWARD;
    const value_id dx = result(p, t, program_emit(p, OP_LAYERNORM_GRAD, (struct op_attrs){0}, "dx", 6, dy, x, gain, mean, rstd, more));
    program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, dx, gain);
    return p;
}

/* Sums over the rows of three matrices. */
static struct program *three_sums(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("sums");
    const value_id like = numbers(p, "like", width);
    value_id x[3];
    for (int i = 0; i < 3; i++)
        x[i] = number_matrix(p, (const char *const[]){"q", "k", "v"}[i], t, rows, width);
    p->phase = PHASE_FORWARD;
    for (int i = 0; i < 3; i++)
        program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, (const char *const[]){"dq", "dk", "dv"}[i], 2, x[i], like);
    return p;
}

static void write_numbers(const struct bound *b, value_id v, uint32_t seed)
{
    const struct value *value = &b->program->values[v];
    const int64_t n = shape_count(value->shape);
    float *wide = plain_alloc((size_t)n * sizeof *wide);
    void *host = plain_alloc(value_bytes(value));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        wide[i] = ((float)(seed >> 8) * 0x1p-23f - 1) * 0.25f;
    }
    if (dtype_is_narrow(value->dtype))
        narrow_floats(host, wide, n, value->dtype);
    else
        memcpy(host, wide, (size_t)n * sizeof *wide);
    gpu_write(b->backend, b->memory[v], host, value_bytes(value));
    free(host);
    free(wide);
}

static float *read_numbers(const struct bound *b, value_id v)
{
    const struct value *value = &b->program->values[v];
    void *host = plain_alloc(value_bytes(value));
    gpu_read(b->backend, host, b->memory[v], value_bytes(value));
    float *wide = widened(host, shape_count(value->shape), value->dtype);
    free(host);
    return wide;
}

static void assert_close(const char *name, const float *is, const float *should, int64_t n, double tolerance)
{
    double most = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(should[i]));
        off = fmax(off, fabs((double)is[i] - should[i]));
        if (!isfinite(is[i]))
            fail_msg("number %lld of %s is %g", (long long)i, name, is[i]);
    }
    if (!(most > 0 && off <= tolerance * most))
        fail_msg("%s is off by %g, and the largest is %g", name, off, most);
}

/* Which outputs are compared: those of all ops that are not written over. */
static bool is_compared(const struct bound *b, value_id v)
{
    bool last = b->program->values[v].kind != VALUE_INPUT;
    for (value_id w = v + 1; w < b->program->n_values; w++)
        last &= b->memory[w] != b->memory[v];
    return last;
}

struct merged {
    const char *kernel;             /* of the last op, when all are prepared together */
    int in_place;                   /* the op that writes where its first input is; -1: none */
    value_id kept_otherwise;        /* a value that is something else then; NO_VALUE: none */
    double tolerance;
};

/* Prepared together, ops do each other's work, which the name of the last one's kernel tells; each by itself they do not. A second run
 * of all is a graph, and must give the same bits. */
static void check_merged(struct program *p, struct merged m)
{
    const int last = p->n_ops - 1;
    struct prepared *each[BOUND_OPS];
    struct bound b;
    float *should[BOUND_VALUES] = {0};
    bind(&b, gpu, p);
    if (m.in_place >= 0)
        b.memory[p->ops[m.in_place].out[0]] = b.memory[p->ops[m.in_place].in[0]];
    for (int i = 0; i <= last; i++)
        each[i] = prepare(&b, i, i + 1);
    struct prepared *all = prepare(&b, 0, last + 1);
    assert_string_equal(gpu->about(all, last).kernel, m.kernel);
    for (int run = 0; run < 3; run++) {
        for (value_id v = 0; v < p->n_values; v++)
            write_numbers(&b, v, (uint32_t)v + 1);
        for (int i = 0; i <= last && run == 0; i++)
            gpu_run(gpu, each[i], 1);
        if (run > 0)
            gpu_run(gpu, all, last + 1);
        for (value_id v = 0; v < p->n_values; v++) {
            if (!is_compared(&b, v) || v == m.kept_otherwise)
                continue;
            float *is = read_numbers(&b, v);
            if (run > 0)
                assert_close(p->values[v].name, is, should[v], shape_count(p->values[v].shape), run == 1 ? m.tolerance : 0);
            free(should[v]);
            should[v] = is;
        }
    }
    for (value_id v = 0; v < p->n_values; v++)
        free(should[v]);
    for (int i = 0; i <= last; i++)
        gpu->release(gpu, each[i]);
    gpu->release(gpu, all);
    unbind(&b);
    program_free(p);
}

static void check_feed_forward(struct size s, bool summed, const char *kernel)
{
    struct program *p = feed_forward(s, summed);
    check_merged(p, (struct merged){kernel, 2, p->ops[0].out[1], 0x1p-6});
}

/* Both round to bf16, the merged ones once less. */
static void test_gelu_at_the_end(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_feed_forward((struct size){4096, 512, 2048}, false, "merged");
    check_feed_forward((struct size){8192, 256, 2048}, false, "gelu_slope");
    check_feed_forward((struct size){300, 72, 136}, false, "merged");
}

/* Sums of the same numbers, in another order; of GELU's slope, of numbers that are rounded once less. */
static void test_sums_on_the_way(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct { enum dtype type; int64_t width; } matrices[] = {{F32, 384}, {F32, 2048}, {BF16, 128}, {BF16, 384},
                                                                          {BF16, 392}, {BF16, 1024}, {BF16, 2048}, {F16, 384}};
    check_feed_forward((struct size){8192, 256, 2048}, true, "merged");
    check_feed_forward((struct size){8195, 256, 1800}, true, "merged");
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const enum dtype t = matrices[i].type;
        const int64_t width = matrices[i].width, rows = (1 << 20) / width + 37;
        check_merged(product_of_two(t, rows, width), (struct merged){"merged", 0, NO_VALUE, 1e-5});
        check_merged(norm(t, rows, width), (struct merged){"merged", 0, NO_VALUE, 1e-5});
        check_merged(three_sums(t, rows, width), (struct merged){"merged", -1, NO_VALUE, 1e-5});
    }
}

/* Where it does not pay, or rows are not of whole packs, everybody does his own work. */
static void test_small_sums_stay(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_merged(norm(BF16, 1000, 384), (struct merged){"sum_leading", 0, NO_VALUE, 0});
    check_merged(three_sums(BF16, 3000, 389), (struct merged){"sum_leading", -1, NO_VALUE, 0});
}

/* Gradients of weights of several shapes, dw = dy^T x in f32 of bf16. */
static struct program *weight_gradients(int n, const struct size *sizes)
{
    struct program *p = program_new("weight gradients");
    value_id dy[4], x[4];
    char name[16];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "dy%d", i);
        dy[i] = number_matrix(p, name, BF16, sizes[i].rows, sizes[i].width);
        snprintf(name, sizeof name, "x%d", i);
        x[i] = number_matrix(p, name, BF16, sizes[i].rows, sizes[i].inner);
    }
    p->phase = PHASE_BACKWARD;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "dw%d", i);
        program_emit(p, OP_MATMUL, (struct op_attrs){.trans_a = true}, name, 2, dy[i], x[i]);
    }
    return p;
}

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
    check_merged(weight_gradients(3, few), (struct merged){kernel, -1, NO_VALUE, 2e-5});
    check_merged(weight_gradients(4, many), (struct merged){kernel, -1, NO_VALUE, 2e-5});
    check_merged(weight_gradients(4, back), (struct merged){kernel, -1, NO_VALUE, 2e-5});
    check_merged(weight_gradients(2, deep), (struct merged){kernel, -1, NO_VALUE, 2e-5});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_products), cmocka_unit_test(test_hopper_products),
                                       cmocka_unit_test(test_gelu_at_the_end), cmocka_unit_test(test_sums_on_the_way),
                                       cmocka_unit_test(test_small_sums_stay), cmocka_unit_test(test_weight_gradients_together)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
