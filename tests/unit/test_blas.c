/* The check of a BLAS library: one that is right passes; one whose callers share a buffer does not, nor one that is wrong alone. */
#include "support/check.h"

#include <sched.h>
#include <string.h>

#include "core/inside.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/cpu.h"

enum { ROOM = 256 * 96 };

static struct gemm as_gemm(int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                           float beta, float *c, int ldc)
{
    return (struct gemm){.m = m, .n = n, .k = k, .a = a, .a_row = trans_a == BLAS_TRANSPOSED ? 1 : lda,
                         .a_col = trans_a == BLAS_TRANSPOSED ? lda : 1, .b = b, .ldb = ldb, .b_transposed = trans_b == BLAS_TRANSPOSED,
                         .c = c, .ldc = ldc, .scale = alpha, .accumulate = beta != 0, .kernel = GEMM_OWN};
}

static void right_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                        float beta, float *c, int ldc)
{
    const struct gemm g = as_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    assert_int_equal(order, BLAS_ROW_MAJOR);
    cpu_gemm()(&g);
}

/* Copies the left operand into a buffer that all callers share, as a library that was built without locks does. */
__attribute__((no_sanitize("thread")))
static void sharing_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                          float beta, float *c, int ldc)
{
    static float shared[ROOM];
    (void)order;
    memcpy(shared, a, (size_t)(m * k) * sizeof *a);
    sched_yield();                      /* also on one core the others get a chance */
    const struct gemm g = as_gemm(ta, tb, m, n, k, alpha, shared, lda, b, ldb, beta, c, ldc);
    cpu_gemm()(&g);
}

static void half_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                       float beta, float *c, int ldc)
{
    right_sgemm(order, ta, tb, m, n, k, alpha / 2, a, lda, b, ldb, beta, c, ldc);
}

static void test_right_library(void **state)
{
    (void)state;
    struct blas_check check;
    for (int threads = 2; threads <= 4; threads += 2) {
        blas_check(&check, right_sgemm, threads);
        assert_true(check.right);
        assert_int_equal(check.threads, threads);
        assert_true(check.rounds >= 1000);
    }
}

static const char *marked;
static void marked_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                         float beta, float *c, int ldc)
{
    marked = inside_library();
    right_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* An abort in a product is the library's, and before and after it is not. */
static void test_inside(void **state)
{
    (void)state;
    const float a[2] = {1, 2}, b[2] = {3, 4};
    float c[1] = {0};
    const struct gemm g = {.m = 1, .n = 1, .k = 2, .a = a, .a_row = 2, .a_col = 1, .b = b, .ldb = 1, .c = c, .ldc = 1, .scale = 1};
    assert_null(inside_library());
    blas_multiply(marked_sgemm, &g);
    assert_non_null(marked);
    assert_null(inside_library());
    assert_true(c[0] == 11);
}

static void test_shared_buffer(void **state)
{
    (void)state;
#ifdef HONE_SANITIZED_THREADS
    skip();                             /* the race is meant */
#endif
    struct blas_check check;
    blas_check(&check, sharing_sgemm, 2);
    assert_false(check.right);
    assert_non_null(strstr(check.why, "while 2 threads called it at once"));
}

static void test_wrong_alone(void **state)
{
    (void)state;
    struct blas_check check;
    blas_check(&check, half_sgemm, 2);
    assert_false(check.right);
    assert_non_null(strstr(check.why, "own kernel"));
}

/* What this machine uses has passed, and is named. */
static void test_library_in_use(void **state)
{
    (void)state;
    struct blas_check check;
    sgemm_fn *blas = cpu_blas();
    if (!blas) {
        assert_string_equal(cpu_blas_name(), "own kernels");
        return;
    }
    blas_check(&check, blas, 4);
    assert_true(check.right);
    assert_non_null(strstr(cpu_blas_about(), cpu_blas_name()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_library), cmocka_unit_test(test_shared_buffer), cmocka_unit_test(test_wrong_alone),
        cmocka_unit_test(test_library_in_use), cmocka_unit_test(test_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
