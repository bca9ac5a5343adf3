/* The fused loss in f32 in every way that this CPU has: heads that are large enough for tiles, where numbers are three parts of bf16, with odd sizes, several blocks of
 * rows and words, padding and none, no gradients, logits that are too large for powers relative to the target's; the same bits once more. */
#include "support/all_backends.h"
#include "support/bf16_ways.h"
#include "support/heads.h"

static void check_head(struct head h, double gradients) { head_check(&h, backends[0], backends + 1, BACKENDS - 1, 2e-6, gradients); }

static void test_heads(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{129, 515, 67}, {33, 1031, 129}, {1050, 257, 70}, {70, 1070, 64}, {64, 260, 513}, {257, 300, 96}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 3; how++)
            check_head((struct head){sizes[i][0], sizes[i][1], sizes[i][2], how == 1, how < 2, 2, ROUND_NO}, 2e-6);
}

/* Losses far above what powers relative to the target can hold. Where logits are in the hundreds, so is the rounding that powers see. */
static void test_large_logits(void **state)
{
    (void)state;
    check_head((struct head){70, 1000, 65, false, true, 40, ROUND_NO}, 2e-5);
    check_head((struct head){70, 1000, 65, true, true, 300, ROUND_NO}, 2e-5);
    check_head((struct head){70, 1000, 65, true, false, 300, ROUND_NO}, 2e-5);
}

static int run_heads(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_large_logits)};
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}

int main(void)
{
    return run_in_every_way(run_heads);
}
