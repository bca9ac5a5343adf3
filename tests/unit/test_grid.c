/* How products are cut: every thread has a block where there is enough for all, nobody has much more than others, and small products are cut by rows. */
#define HONE_ISA test
#include "support/check.h"

#include "ops/cpu/tuned/grid.h"

static bool is_rows(struct blocks g, int threads) { return g.rows == threads && g.columns == 1 && g.depth == 1; }

/* Products of the shipped configs: where a thread has its own rows. */
static void test_small_products_are_cut_by_rows(void **state)
{
    (void)state;
    static const struct { int64_t m, n, k; bool transposed; int threads; bool rows; } cases[] = {
        {128, 256, 64, true, 2, true},      {128, 256, 64, true, 8, true},      {128, 256, 64, true, 16, false},    /* lecture-gpt-b4, forward: 8 rows do not pay for packing */
        {128, 64, 256, false, 16, true},    {128, 64, 256, false, 32, false},                                       /* its gradients */
        {1024, 256, 256, true, 16, true},   {1024, 512, 256, false, 16, true},  {1024, 1024, 256, true, 16, false}, /* tinyllama-ex3 */
        {2048, 2048, 768, true, 16, false},                                                                         /* b is large */
        {136, 64, 64, false, 16, false},                                                                            /* one thread would have 16 rows and the others 8 */
        {1032, 256, 256, true, 16, true},                                                                           /* 72 and 64 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_rows(grid_choose(cases[i].m, cases[i].n, cases[i].k, cases[i].transposed, cases[i].threads), cases[i].threads) != cases[i].rows)
            fail_msg("(%ld, %ld) over %ld on %d threads: by rows alone is wrong or right elsewhere", (long)cases[i].m, (long)cases[i].n, (long)cases[i].k, cases[i].threads);
}

/* Gradients of weights of the shipped configs: where a thread has its own rows, all of the result, and nothing that another has made. */
static void test_sums_over_rows(void **state)
{
    (void)state;
    static const struct { int64_t m, n, k; int threads; bool own, own_on_x86; } cases[] = {
        {64, 256, 128, 2, false, true},   {64, 256, 128, 4, false, false},   {64, 256, 128, 16, false, false},      /* lecture-gpt-b4: 32 rows and fewer are no sum */
        {64, 256, 512, 2, false, true},   {256, 64, 512, 4, false, true},    {256, 64, 512, 16, false, false},      /* quickstart */
        {256, 512, 1024, 2, false, false}, {256, 512, 1024, 16, false, false},                                      /* tinyllama-ex3: rows are not near, parts are many */
        {128, 128, 2048, 2, true, true},  {128, 256, 2048, 2, true, true},   {128, 128, 2048, 16, true, true},      /* k1-baseline-b32 */
        {768, 768, 4096, 16, false, false},                                                                         /* gpt2-124m-b4 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct blocks g = grid_sums(cases[i].m, cases[i].n, cases[i].k, cases[i].threads);
        if ((g.depth == cases[i].threads) != (GRID_NEAR ? cases[i].own_on_x86 : cases[i].own))
            fail_msg("(%ld, %ld) over %ld on %d threads: %d x %d blocks in %d parts", (long)cases[i].m, (long)cases[i].n, (long)cases[i].k, cases[i].threads, g.rows, g.columns, g.depth);
    }
}

/* Every row belongs to one part of each block, and no part is without rows. */
static void check_parts(int64_t k, struct blocks g, int threads)
{
    assert_int_equal(g.rows * g.columns * g.depth, threads);
    for (int block = 0; block < g.rows * g.columns; block++) {
        int64_t next = 0;
        for (int part = 0; part < g.depth; part++) {
            const struct span s = grid_depth(g, part * g.rows * g.columns + block, k);
            assert_int_equal(s.lo, next);
            assert_true(s.hi > s.lo);
            next = s.hi;
        }
        assert_int_equal(next, k);
    }
}

static void test_parts_cover_all_rows(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 16, 65, 256, 3072}, depths[] = {1, 63, 128, 130, 1000, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (size_t k = 0; k < sizeof depths / sizeof *depths; k++)
                for (int threads = 1; threads <= 20; threads++)
                    check_parts(depths[k], grid_sums(sizes[i], sizes[j], depths[k], threads), threads);
}

/* Blocks cover every element once; where rows alone are cut no thread has twice as many as another. */
static void check_blocks(int64_t m, int64_t n, struct blocks g, int threads)
{
    int64_t area = 0, most = 0, least_rows = m;
    for (int t = 0; t < threads; t++) {
        const struct block b = block_of(g, t, m, n);
        const int64_t rows = b.rows.hi - b.rows.lo;
        assert_true(b.rows.lo >= 0 && b.rows.hi <= m && b.cols.lo >= 0 && b.cols.hi <= n && rows >= 0 && b.cols.hi >= b.cols.lo);
        area += rows * (b.cols.hi - b.cols.lo);
        most = rows > most ? rows : most;
        least_rows = least(rows, least_rows);
    }
    assert_int_equal(area, m * n);
    if (is_rows(g, threads) && m >= 64 * threads)
        assert_true(most < 2 * least_rows);
}

static void test_blocks_cover_all(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 8, 16, 63, 64, 100, 128, 136, 192, 1000, 1024, 1032, 5000}, depths[] = {16, 64, 256, 2048};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (int threads = 1; threads <= 20; threads++) {
                check_blocks(sizes[i], sizes[j], grid_shortest(sizes[i], sizes[j], threads), threads);
                for (size_t k = 0; k < 2 * sizeof depths / sizeof *depths; k++)
                    check_blocks(sizes[i], sizes[j], grid_choose(sizes[i], sizes[j], depths[k / 2], k % 2, threads), threads);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_products_are_cut_by_rows), cmocka_unit_test(test_sums_over_rows), cmocka_unit_test(test_parts_cover_all_rows), cmocka_unit_test(test_blocks_cover_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
