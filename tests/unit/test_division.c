/* How ranks divide a run, and what they cannot: refusals that need no rank. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "train/train_int.h"

static enum status check(const char *yaml, int ranks, struct error *err)
{
    struct comm nobody = {.size = ranks};
    struct config c;
    assert_ok(config_parse(&c, "t", yaml, strlen(yaml), NULL, 0, err), *err);
    c.dist.comm = &nobody;
    return division_check(&c, err);
}

#define SLICES "model: {arch: gpt, vocab: 64}\ntrain: {batch_size: 4}\ndist: {shard: optimizer}\n"

static void test_slices_of_narrow_weights_on_a_gpu(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(check(SLICES "device: cuda\noptimize: {precision: bf16}\n", 2, &err), BAD_INPUT);
    assert_string_equal(err.text, "dist.shard is optimizer and optimize.precision bf16: on a GPU ranks divide the optimizer in f32 alone so far; set "
                        "optimize.precision: f32 or tf32, or dist.shard: none");
    assert_int_equal(check(SLICES "device: cuda\noptimize: {precision: f16}\n", 2, &err), BAD_INPUT);
    assert_int_equal(check(SLICES "device: cuda\noptimize: {precision: bf16}\n", 1, &err), OK);
    assert_int_equal(check(SLICES "device: cuda\n", 2, &err), OK);
    assert_int_equal(check(SLICES "device: cuda\noptimize: {precision: tf32}\n", 2, &err), OK);
    assert_int_equal(check(SLICES "optimize: {precision: bf16}\n", 2, &err), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices_of_narrow_weights_on_a_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
