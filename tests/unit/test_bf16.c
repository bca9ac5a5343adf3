/* bf16: rounding to the bit, products of rounded operands with f32 sums of every size and orientation, and the five ops that
 * have them against their reference; in every way that this CPU and build have. */
#include "ops/cpu/bf16.h"
#include "ops/cpu/gemm.h"
#include "support/all_backends.h"
#include "support/bf16_ways.h"
#include "support/op_fill.h"

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- rounding ---- */

/* The nearer of the two neighbours in bf16; in the middle, the one whose last bit is 0. Overflow goes to infinity by itself. */
static uint16_t nearest(uint32_t bits)
{
    const uint32_t rest = bits & 0xffff;
    const uint16_t low = (uint16_t)(bits >> 16), high = (uint16_t)(low + 1);
    return rest > 0x8000 || (rest == 0x8000 && low % 2) ? high : low;
}

static void test_rounding(void **state)
{
    (void)state;
    static const uint32_t ends[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t top = 0; top < 0x10000; top++)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            const uint32_t bits = top << 16 | ends[i];
            const float x = from_bits(bits);
            const uint16_t is = bf16_bits(x);
            if (isnan(x))
                assert_true(isnan(bf16_round(x)) && is >> 15 == bits >> 31);
            else if (is != nearest(bits))
                fail_msg("%.9g is %04x in bf16; it should be %04x", x, is, nearest(bits));
        }
    assert_true(bf16_round(3.4e38f) == INFINITY && bf16_round(-INFINITY) == -INFINITY && bf16_round(1) == 1);
    assert_true(bf16_operand(1.0009f, true) == 1 && bf16_operand(1.0009f, false) == 1.0009f);
}

/* ---- the product itself, against a plain one in double precision ---- */

struct product { int64_t m, n, k; bool ta, tb, accumulate, bias; };

/* Room around every row: strides are not widths, and nothing is written there. */
enum { ROOM = 3 };

static float *normal(int64_t n, uint64_t stream)
{
    float *x = plain_alloc((size_t)n * sizeof *x);
    rng_fill_normal(x, n, 1, 5, stream);
    return x;
}

static void check_product(struct product s, float scale)
{
    const int64_t lda = (s.ta ? s.m : s.k) + ROOM, ldb = (s.tb ? s.k : s.n) + ROOM, ldc = s.n + ROOM;
    float *a = normal((s.ta ? s.k : s.m) * lda, 1), *b = normal((s.tb ? s.n : s.k) * ldb, 2), *c = normal(s.m * ldc, 3),
          *before = normal(s.m * ldc, 3), *bias = normal(s.n, 4);
    cpu_gemm()(&(struct gemm){.m = s.m, .n = s.n, .k = s.k, .a = a, .a_row = s.ta ? 1 : lda, .a_col = s.ta ? lda : 1, .b = b,
                              .ldb = ldb, .b_transposed = s.tb, .c = c, .ldc = ldc, .scale = scale,
                              .bias = s.bias ? bias : NULL, .accumulate = s.accumulate, .bf16 = true});
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < ldc; j++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < s.k && j < s.n; p++) {
                const double x = bf16_round(a[s.ta ? p * lda + i : i * lda + p]);
                const double y = bf16_round(b[s.tb ? j * ldb + p : p * ldb + j]);
                sum += x * y;
                size += fabs(x * y);
            }
            const bool inside = j < s.n;
            const double start = (s.accumulate || !inside ? before[i * ldc + j] : 0) + (s.bias && inside ? bias[j] : 0);
            const double should = start + scale * sum;
            const double most = inside ? (size * fabs(scale) + 4) * (8 + (double)s.k / 16) * 0x1p-23 : 0;
            if (!(fabs(c[i * ldc + j] - should) <= most))
                fail_msg("(%lld, %lld, %lld) %c%c%s at (%lld, %lld): %.9g should be %.9g", (long long)s.m, (long long)s.n,
                         (long long)s.k, s.ta ? 'T' : 'N', s.tb ? 'T' : 'N', s.accumulate ? " added" : "", (long long)i,
                         (long long)j, c[i * ldc + j], should);
        }
    free(a);
    free(b);
    free(c);
    free(before);
    free(bias);
}

static void test_products(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},   {1, 7, 2},    {2, 3, 5},     {8, 32, 4},   {8, 8, 256},   {9, 33, 7},
                                       {7, 31, 64}, {16, 64, 33}, {17, 65, 255}, {130, 9, 258}, {3, 1030, 9}, {1, 5, 600},
                                       {300, 2, 3}, {5, 530, 270}, {65, 40, 513}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 8; how++)
            check_product((struct product){sizes[i][0], sizes[i][1], sizes[i][2], how & 1, how & 2, how & 4, (how ^ (int)i) & 1},
                          how % 3 ? -1.75f : 1);
    check_product((struct product){140, 1050, 300, false, true, true, true}, 1);         /* several blocks each way */
    check_product((struct product){150, 530, 1060, true, false, false, false}, 1);
    check_product((struct product){33, 560, 1030, false, false, true, false}, 1);
    check_product((struct product){3, 5, 0, false, true, false, true}, 1);               /* a sum of nothing */
}

/* NaN and infinity come through; a factor that a kernel might lose in rounding is there. */
static void test_product_of_odd_numbers(void **state)
{
    (void)state;
    for (int k = 1; k <= 9; k++) {
        float a[9] = {0}, b[9] = {0}, c;
        struct gemm g = {.m = 1, .n = 1, .k = k, .a = a, .a_row = k, .a_col = 1, .b = b, .ldb = 1, .c = &c, .ldc = 1, .scale = 1,
                         .bf16 = true};
        a[k - 1] = from_bits(0x7f800001);       /* a NaN whose upper half is infinity */
        b[k - 1] = 1;
        cpu_gemm()(&g);
        assert_true(isnan(c));
        a[k - 1] = 3.4e38f;
        cpu_gemm()(&g);
        assert_true(c == INFINITY);
        a[k - 1] = 1 + 0x1p-8f;                 /* halfway: to even */
        b[k - 1] = 1 + 3 * 0x1p-8f;
        cpu_gemm()(&g);
        assert_true(c == 1 + 0x1p-6f);
    }
}

/* ---- the five ops ---- */

static bool is_product(enum op_kind kind)
{
    return kind == OP_MATMUL || kind == OP_PROJECT || kind == OP_PROJECT_GRAD || kind == OP_LINEAR_GELU || kind == OP_LINEAR_LOSS;
}

/* Inputs that are multiplied with each other: not biases, not targets. */
static int operands_of(const struct op *op)
{
    return op->kind == OP_PROJECT ? 1 + op->attrs.parts : op->kind == OP_PROJECT_GRAD ? op->n_in : 2;
}

/* A program of the op, its inputs filled, run once; rounded: its operands are in bf16 already. */
static struct plain run_case(struct program **p, const struct op_case *c, struct backend *b, bool bf16, bool rounded)
{
    value_id in[CASE_INPUTS];
    char name[16];
    struct op_attrs attrs = c->attrs;
    attrs.round = bf16 ? ROUND_BF16 : ROUND_NO;
    *p = program_new("case");
    for (int i = 0; i < case_inputs(c); i++) {
        snprintf(name, sizeof name, "in%d", i);
        in[i] = program_add_value(*p, name, VALUE_INPUT, content_is_int(c->in[i].content) ? I32 : F32, c->in[i].shape);
    }
    const int at = program_add_op(*p, c->kind, attrs, "out", case_inputs(c), in);
    assert_true(at >= 0);
    struct op *op = &(*p)->ops[at];
    struct plain x = plain_new(*p, b);
    for (int i = 0; i < case_inputs(c); i++) {
        fill_input(&x, in[i], c, i);
        float *values = x.memory[in[i]];
        for (int64_t k = 0; rounded && i < operands_of(op) && k < shape_count(c->in[i].shape); k++)
            values[k] = bf16_round(values[k]);
    }
    plain_run_op(&x, op);
    return x;
}

/* Every output within a share of its length; 0: to the last bit. */
static void compare_outputs(const struct op_case *c, const struct plain *is, const struct plain *should, double share,
                            const char *what)
{
    const struct op *op = &is->program->ops[0];
    for (int o = 0; o < op->n_out; o++) {
        const double apart = plain_apart(is, should, o);
        if (!(apart <= share))
            fail_msg("%s, case %d, %d threads: output %d is %.3g of its length off %s", op_info(c->kind)->name, (int)(c - op_cases),
                     is->backend->lanes, o, apart, what);
    }
}

static void release(struct plain *x)
{
    struct program *p = x->program;
    plain_release(x);
    program_free(p);
}

/* The gradients of fuse-loss are products with softmax, which kernels may scale before they round it: 2^-9 here or there. */
static bool has_inner_operands(const struct op_case *c) { return c->kind == OP_LINEAR_LOSS && c->attrs.parts == 4; }

static void check_case(const struct op_case *c)
{
    struct program *p;
    struct plain should = run_case(&p, c, backends[0], true, false);
    for (int b = 1; b < BACKENDS; b++) {
        struct plain is = run_case(&p, c, backends[b], true, false), again = run_case(&p, c, backends[b], true, false);
        compare_outputs(c, &is, &should, has_inner_operands(c) ? 0x1p-8 : 4e-6, "the reference");
        compare_outputs(c, &again, &is, 0, "the same once more");
        release(&is);
        release(&again);
    }
    release(&should);
}

static void test_ops_equal_the_reference(void **state)
{
    (void)state;
    int kinds[OP_KINDS] = {0};
    for (size_t i = 0; i < sizeof op_cases / sizeof *op_cases; i++)
        if (is_product(op_cases[i].kind)) {
            check_case(&op_cases[i]);
            kinds[op_cases[i].kind]++;
        }
    assert_true(kinds[OP_MATMUL] && kinds[OP_PROJECT] && kinds[OP_PROJECT_GRAD] && kinds[OP_LINEAR_GELU] && kinds[OP_LINEAR_LOSS]);
}

/* Rounding first and a product in f32: the same; and operands that are rounded twice are rounded once. */
static void check_rounded_first(const struct op_case *c, struct backend *b)
{
    struct program *p;
    struct plain is = run_case(&p, c, b, true, false), twice = run_case(&p, c, b, true, true);
    struct plain f32 = run_case(&p, c, b, false, true);
    compare_outputs(c, &twice, &is, 0, "operands rounded before");
    compare_outputs(c, &is, &f32, b == backends[0] ? 0 : 4e-6, "the f32 product of rounded operands");
    release(&is);
    release(&f32);
    release(&twice);
}

static void test_ops_equal_f32_of_rounded_operands(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof op_cases / sizeof *op_cases; i++)
        for (int b = 0; b < BACKENDS && is_product(op_cases[i].kind) && !has_inner_operands(&op_cases[i]); b += 2)
            check_rounded_first(&op_cases[i], backends[b]);
}

/* ---- every way ---- */

static int run_ops(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_product_of_odd_numbers),
        cmocka_unit_test(test_ops_equal_the_reference),
        cmocka_unit_test(test_ops_equal_f32_of_rounded_operands),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}

/* A limit is kept, and a way that this CPU has not is never taken. */
static void test_limits(void **state)
{
    (void)state;
    cpu_bf16_limit(BF16_AMX);
    const enum bf16_way best = cpu_bf16_way();
    for (int way = BF16_ROUNDED; way <= BF16_AMX; way++) {
        cpu_bf16_limit((enum bf16_way)way);
        assert_true(cpu_bf16_way() <= (enum bf16_way)way && cpu_bf16_way() <= best);
        assert_true(cpu_has_bf16() == (cpu_bf16_way() != BF16_ROUNDED));
    }
    assert_true(best != BF16_AMX || !strcmp((cpu_bf16_limit(BF16_AVX512), cpu_bf16_name()), "AVX512-BF16"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding), cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL) + run_in_every_way(run_ops);
}
