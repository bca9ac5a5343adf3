/* The fused loss with operands in bf16, in every way that this CPU has: heads of several blocks of rows, words and widths, with padding
 * and without, against the reference; logits that are too large for powers relative to the target's; the same bits once more. */
#include "ops/cpu/bf16.h"
#include "support/all_backends.h"
#include "support/bf16_ways.h"
#include "support/heads.h"

/* What is between two products is rounded to bf16 on another scale than the reference's, or its factor of a row is in the other operand: three
 * roundings of 2^-9. */
static void check_head(struct head h) { head_check(&h, backends[0], backends + 1, BACKENDS - 1, 4e-6, 3 * 0x1p-9); }

static void test_heads(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 2, 1},     {16, 16, 32},   {31, 33, 31},   {33, 257, 16},  {40, 300, 48}, {260, 290, 33},
                                       {300, 700, 64}, {260, 131, 513}, {40, 600, 600}, {530, 520, 17}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 3; how++)
            check_head((struct head){sizes[i][0], sizes[i][1], sizes[i][2], how == 1, how < 2, 2, ROUND_BF16});
}

/* Rows and words of more than one block of what stays near. */
static void test_large_head(void **state)
{
    (void)state;
    check_head((struct head){1050, 1070, 20, true, true, 3, ROUND_BF16});
    check_head((struct head){40, 300, 1030, false, true, 2, ROUND_BF16});
}

/* Losses far above what powers relative to the target can hold. */
static void test_large_logits(void **state)
{
    (void)state;
    check_head((struct head){50, 300, 33, false, true, 40, ROUND_BF16});
    check_head((struct head){50, 300, 33, true, true, 300, ROUND_BF16});
    check_head((struct head){50, 300, 33, true, false, 300, ROUND_BF16});
}

static int run_heads(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_large_head), cmocka_unit_test(test_large_logits)};
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}

int main(void)
{
    return run_in_every_way(run_heads);
}
