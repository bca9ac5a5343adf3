/* The matrix product: our own and BLAS against sums in double precision, for every layout, odd sizes and strides, with scale,
 * bias and accumulation; nothing outside the result is written, no result that was there is read unless it is added to, and
 * a second run has the same bits. Operands have exactly their size, so that a sanitizer sees every step outside. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "ops/cpu/gemm.h"

static const float CANARY = 12345.0f;

struct product {
    int64_t m, n, k;
    bool a_transposed, b_transposed, accumulate, bias;
    float scale;
    int64_t wider;              /* rows of all matrices are so much longer than they need be */
};

/* What a number of the result should be, and how far it may be from that. */
struct wanted { double value, most_off; };

static uint32_t state = 1;
static float random_number(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (1 << 23) - 1;
}

/* (rows, columns) with a row stride; the last row ends with its last number. */
static float *matrix(int64_t rows, int64_t columns, int64_t stride)
{
    const int64_t count = rows > 0 && columns > 0 ? (rows - 1) * stride + columns : 1;
    float *x = xcalloc((size_t)count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = random_number();
    return x;
}

static struct wanted wanted_at(const struct gemm *g, const float *before, int64_t i, int64_t j)
{
    double sum = 0, size = 0;
    for (int64_t q = 0; q < g->k; q++) {
        const double x = g->a[i * g->a_row + q * g->a_col] * (double)(g->b_transposed ? g->b[j * g->ldb + q] : g->b[q * g->ldb + j]);
        sum += x;
        size += fabs(x);
    }
    return (struct wanted){sum * g->scale + (g->bias ? g->bias[j] : 0) + (g->accumulate ? before[i * g->ldc + j] : 0),
                           6e-8 * (double)(g->k + 4) * (size * fabs(g->scale) + 2)};
}

static struct wanted *all_wanted(const struct gemm *g, const float *before)
{
    struct wanted *w = xcalloc((size_t)(g->m * g->n) + 1, sizeof *w);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            w[i * g->n + j] = wanted_at(g, before, i, j);
    return w;
}

static void assert_product(const struct gemm *g, const struct wanted *w)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++, w++) {
            const double is = g->c[i * g->ldc + j];
            if (!(fabs(is - w->value) <= w->most_off))
                fail_msg("%ld x %ld x %ld %c%c, kernel '%s', scale %g, bias %d, accumulate %d: (%ld, %ld) is %.9g; it should be "
                         "%.9g", (long)g->m, (long)g->n, (long)g->k, g->a_col != 1 ? 'T' : 'N', g->b_transposed ? 'T' : 'N',
                         gemm_variants[g->kernel], g->scale, g->bias != NULL, g->accumulate, (long)i, (long)j, is, w->value);
        }
}

/* Numbers between the rows of c are as they were. */
static void assert_untouched(const struct gemm *g)
{
    for (int64_t i = 0; i + 1 < g->m && g->n > 0; i++)
        for (int64_t j = g->n; j < g->ldc; j++)
            assert_true(g->c[i * g->ldc + j] == CANARY);
}

gemm_fn cpu_gemm_baseline;
#if defined(__x86_64__)
gemm_fn cpu_gemm_avx2, cpu_gemm_avx512;
#endif

/* By one kernel of one instruction set, twice. */
static void check_one(gemm_fn *gemm, struct gemm g, const float *before, size_t bytes, const struct wanted *wanted)
{
    float *c = xcalloc(bytes + 1, 1), *again = xcalloc(bytes + 1, 1);
    memcpy(c, before, bytes);
    memcpy(again, before, bytes);
    g.c = c;
    gemm(&g);
    assert_product(&g, wanted);
    assert_untouched(&g);
    g.c = again;
    gemm(&g);
    assert_memory_equal(c, again, bytes);
    free(c);
    free(again);
}

/* By every kernel, on every instruction set that is there. */
static void check_everywhere(struct gemm g, const float *before, size_t bytes)
{
    gemm_fn *all[3] = {cpu_gemm_baseline};
#if defined(__x86_64__)
    all[1] = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? cpu_gemm_avx2 : NULL;
    all[2] = __builtin_cpu_supports("x86-64-v4") ? cpu_gemm_avx512 : NULL;
#endif
    struct wanted *wanted = all_wanted(&g, before);
    for (int kernel = 0; kernel < GEMM_KERNELS; kernel++)
        for (int i = 0; i < 3; i++) {
            g.kernel = (enum gemm_kernel)kernel;
            if (all[i])
                check_one(all[i], g, before, bytes, wanted);
        }
    free(wanted);
}

static void check(struct product p)
{
    const int64_t a_ld = (p.a_transposed ? p.m : p.k) + p.wider, b_ld = (p.b_transposed ? p.k : p.n) + p.wider, c_ld = p.n + p.wider;
    float *a = p.a_transposed ? matrix(p.k, p.m, a_ld) : matrix(p.m, p.k, a_ld);
    float *b = p.b_transposed ? matrix(p.n, p.k, b_ld) : matrix(p.k, p.n, b_ld);
    float *bias = matrix(1, p.n, p.n), *before = matrix(p.m, p.n, c_ld);
    const size_t bytes = p.m > 0 && p.n > 0 ? (size_t)((p.m - 1) * c_ld + p.n) * sizeof(float) : 0;
    for (int64_t i = 0; i < (int64_t)(bytes / sizeof(float)); i++)
        before[i] = i % c_ld >= p.n ? CANARY : p.accumulate ? before[i] : NAN;
    check_everywhere((struct gemm){.m = p.m, .n = p.n, .k = p.k, .a = a, .a_row = p.a_transposed ? 1 : a_ld, .a_col = p.a_transposed ? a_ld : 1, .b = b, .ldb = b_ld,
                                   .b_transposed = p.b_transposed, .ldc = c_ld, .scale = p.scale, .bias = p.bias ? bias : NULL, .accumulate = p.accumulate}, before, bytes);
    free(a);
    free(b);
    free(bias);
    free(before);
}

/* Every layout; the rest varies with `mix`. */
static void check_all(int64_t m, int64_t n, int64_t k, unsigned mix)
{
    static const float scales[] = {1, 1.44269504f, -0.5f};
    for (unsigned i = 0; i < 4; i++)
        check((struct product){.m = m, .n = n, .k = k, .a_transposed = i & 1, .b_transposed = i >> 1 & 1, .accumulate = mix & 1, .bias = mix >> 1 & 1,
                               .scale = scales[mix % 3], .wider = (mix >> 2 & 1) * (1 + mix % 5)});
}

static void test_small_sizes(void **state_)
{
    (void)state_;
    unsigned mix = 0;
    for (int64_t m = 1; m <= 40; m++)
        for (int64_t n = 1; n <= 40; n += m % 3 + 1)
            check_all(m, n, 1 + (m * 7 + n * 13) % 40, mix++);
    for (int64_t k = 1; k <= 40; k++)
        check_all(8, 16, k, mix++);
}

/* Around the sizes of tiles, strips and blocks. */
static void test_edges(void **state_)
{
    (void)state_;
    static const int64_t sizes[] = {1, 31, 63, 64, 65, 127, 128, 129, 130};
    enum { N = sizeof sizes / sizeof *sizes };
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++)
            check_all(sizes[i], sizes[j], sizes[(i * 2 + j) % N], i + 2 * j);
}

/* More than one block of k or of rows; operands too large for the caches nearby; rows that compete for cache lines, where none is longer than k. */
static void test_large_sizes(void **state_)
{
    (void)state_;
    static const int64_t sizes[][3] = {{9, 17, 255},   {9, 17, 256},    {9, 17, 257},   {16, 33, 513},  {33, 20, 1024},
                                       {17, 140, 1024}, {300, 40, 300}, {270, 150, 260}, {1100, 24, 64}, {24, 530, 270},
                                       {70, 9, 4100},   {20, 1700, 300},  {15, 70, 2048}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_all(sizes[i][0], sizes[i][1], sizes[i][2], i);
    for (unsigned mix = 0; mix < 4; mix++) {
        check_all(17, 140, 1024, mix);
        check_all(40, 70, 2048, mix);
    }
}

/* Without rows or columns nothing is written; without k the product is zero, and bias and c remain. */
static void test_empty(void **state_)
{
    (void)state_;
    for (unsigned mix = 0; mix < 8; mix++) {
        check_all(0, 5, 3, mix);
        check_all(5, 0, 3, mix);
        check_all(5, 40, 0, mix);
        check_all(13, 7, 0, mix);
    }
}

/* One number that is not finite reaches its row or column of the result, and no other. */
static void test_nan_stays_in_its_row(void **state_)
{
    (void)state_;
    enum { M = 13, N = 70, K = 40, ROW = 9 };
    for (int kernel = 0; kernel < GEMM_KERNELS; kernel++)
        for (int transposed = 0; transposed < 2; transposed++) {
            float *a = matrix(M, K, K), *b = matrix(K, N, N), *c = matrix(M, N, N);
            a[transposed ? 3 * M + ROW : ROW * K + 3] = NAN;
            cpu_gemm()(&(struct gemm){.m = M, .n = N, .k = K, .a = a, .a_row = transposed ? 1 : K, .a_col = transposed ? M : 1,
                                      .b = b, .ldb = N, .c = c, .ldc = N, .scale = 1, .kernel = (enum gemm_kernel)kernel});
            for (int i = 0; i < M * N; i++)
                assert_true(!isnan(c[i]) == (i / N != ROW));
            free(a);
            free(b);
            free(c);
        }
}

/* Numbers as a training step has them: about a size, positive, of many sizes, tiny. */
static float number_of(int kind)
{
    const float x = random_number();
    return kind == 1 ? fabsf(x) : kind == 2 ? x * expf(12 * random_number()) : kind == 3 ? x * 1e-30f : x;
}

/* How far a product is from sums in double, all of it together and relative to it. */
static double error_of(const float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0;
        for (int64_t q = 0; q < k; q++)
            sum += (double)a[i / n * k + q] * b[i % n * k + q];
        error += (c[i] - sum) * (c[i] - sum);
        size += sum * sum;
    }
    return sqrt(error / size);
}

static void multiply_adds_in_order(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m * n; i++) {
        c[i] = 0;
        for (int64_t q = 0; q < k; q++)
            c[i] = fmaf(a[i / n * k + q], b[i % n * k + q], c[i]);
    }
}

/* Whatever a product is made of, it is as exact as multiply-adds of f32, one after another; and thirds as exact as our own. */
static void test_as_exact_as_f32(void **state_)
{
    (void)state_;
    enum { M = 48, N = 96 };
    for (int kind = 0; kind < 4; kind++)
        for (int64_t k = 64; k <= 1024; k *= 4) {
            float *a = matrix(M, k, k), *b = matrix(N, k, k), *c = matrix(M, N, N);
            for (int64_t i = 0; i < M * k; i++)
                a[i] = number_of(kind % 3);
            for (int64_t i = 0; i < N * k; i++)
                b[i] = number_of(kind);
            multiply_adds_in_order(c, a, b, M, N, k);
            const double plain = error_of(c, a, b, M, N, k);
            double errors[GEMM_KERNELS];
            for (int kernel = 0; kernel < GEMM_KERNELS; kernel++) {
                cpu_gemm()(&(struct gemm){.m = M, .n = N, .k = k, .a = a, .a_row = k, .a_col = 1, .b = b, .ldb = k, .b_transposed = true, .c = c,
                                          .ldc = N, .scale = 1, .kernel = (enum gemm_kernel)kernel});
                errors[kernel] = error_of(c, a, b, M, N, k);
                if (!(errors[kernel] <= 1.1 * plain))
                    fail_msg("numbers of kind %d, k %ld: kernel %d is %.3g from the right result, multiply-adds %.3g", kind, (long)k, kernel, errors[kernel], plain);
            }
            if (!(errors[GEMM_THIRDS] <= 1.1 * errors[GEMM_OWN]))
                fail_msg("numbers of kind %d, k %ld: thirds %.3g from the right result, our own %.3g", kind, (long)k, errors[GEMM_THIRDS], errors[GEMM_OWN]);
            free(a);
            free(b);
            free(c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_sizes), cmocka_unit_test(test_edges), cmocka_unit_test(test_large_sizes),
        cmocka_unit_test(test_empty), cmocka_unit_test(test_nan_stays_in_its_row), cmocka_unit_test(test_as_exact_as_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
