/* Ops whose work is cut by the number of threads in more than one way: the loss of a linear head, by rows and words, and gradients of weights, by blocks and
 * by rows that are summed. On 1 to 17 threads, for sizes with and without something left over, against the reference; and the same bits once more. */
#include <string.h>

#include "support/heads.h"
#include "support/models.h"

enum { MOST = 17 };
static struct backend *reference, *tuned[MOST];

static int make_backends(void **state)
{
    (void)state;
    reference = new_backend(1, true);
    for (int i = 0; i < MOST; i++)
        tuned[i] = new_backend(i + 1, false);
    return 0;
}

static int free_backends(void **state)
{
    (void)state;
    reference->free(reference);
    for (int i = 0; i < MOST; i++)
        tuned[i]->free(tuned[i]);
    return 0;
}

/* --- the loss ----------------------------------------------------------------------------------------------------- */

static void check_head(struct head h) { head_check(&h, reference, tuned, MOST, 4e-6, 4e-6); }

static void test_heads(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{16, 2, 1}, {17, 33, 31}, {40, 300, 48}, {133, 1000, 20}, {530, 257, 17}, {300, 1031, 64}, {20, 70, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 3; how++)
            check_head((struct head){sizes[i][0], sizes[i][1], sizes[i][2], how == 1, how < 2, 2, ROUND_NO});
}

/* Rows of several chunks, words that stay packed from one to the next and words that are too many for it. */
static void test_chunks(void **state)
{
    (void)state;
    check_head((struct head){1100, 2100, 48, false, true, 2, ROUND_NO});
    check_head((struct head){270, 8200, 40, true, true, 2, ROUND_NO});
}

/* Losses above what powers relative to the target can hold: of few rows, of many, of all. */
static void test_large_logits(void **state)
{
    (void)state;
    check_head((struct head){1100, 300, 33, false, true, 7, ROUND_NO});
    check_head((struct head){600, 300, 33, false, true, 9, ROUND_NO});
    check_head((struct head){50, 300, 33, true, true, 300, ROUND_NO});
}

/* --- gradients of weights ----------------------------------------------------------------------------------------- */

struct sum { int64_t rows, m, n; enum rounding round; };

static struct plain run_sum(const struct sum *s, struct backend *b)
{
    struct program *p = program_new("sum");
    const struct shape dy = {2, {s->rows, s->m}}, x = {2, {s->rows, s->n}};
    const value_id in[] = {program_add_value(p, "dy", VALUE_INPUT, F32, dy), program_add_value(p, "x", VALUE_INPUT, F32, x)};
    assert_true(program_add_op(p, OP_MATMUL, (struct op_attrs){.trans_a = true, .round = s->round}, "dw", 2, in) >= 0);
    struct plain is = plain_new(p, b);
    rng_fill_normal(is.memory[in[0]], s->rows * s->m, 1, 5, 1);
    rng_fill_normal(is.memory[in[1]], s->rows * s->n, 1, 5, 2);
    plain_run_op(&is, &p->ops[0]);
    return is;
}

static void check_sum(struct sum s)
{
    struct plain should = run_sum(&s, reference);
    for (int t = 0; t < MOST; t++) {
        struct plain is = run_sum(&s, tuned[t]), again = run_sum(&s, tuned[t]);
        const double off = plain_apart(&is, &should, 0);
        if (!(off < 4e-6))
            fail_msg("(%ld, %ld) summed over %ld rows on %d threads is %.3g of its length off", (long)s.m, (long)s.n, (long)s.rows, t + 1, off);
        assert_true(plain_apart(&again, &is, 0) == 0);
        head_release(&is);
        head_release(&again);
    }
    head_release(&should);
}

static void test_sums(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 3, 5},      {64, 16, 16},   {129, 17, 33},   {500, 1, 1},     {1000, 64, 64}, {1023, 130, 70},
                                       {1024, 64, 256}, {2048, 33, 20}, {2049, 129, 127}, {3000, 7, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_sum((struct sum){sizes[i][0], sizes[i][1], sizes[i][2], ROUND_NO});
        check_sum((struct sum){sizes[i][0], sizes[i][1], sizes[i][2], ROUND_BF16});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_chunks), cmocka_unit_test(test_large_logits),
                                       cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
