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

#define GPT "model: {arch: gpt, vocab: 64}\n"

static void test_refuses_what_cannot_be_divided(void **state)
{
    (void)state;
    static const struct { const char *yaml; int ranks; const char *says; } cases[] = {
        {GPT "train: {batch_size: 3}\n", 4, "train.batch_size is 3, and there are 4 ranks, which get a sample each at least; make it 4, or start 3 ranks"},
        {GPT "train: {batch_size: 10}\n", 4, "train.batch_size is 10, and 4 ranks cannot have equal parts of that; make it 8 or 12"},
        {GPT "train: {batch_size: 12}\ndist: {shards: 2}\n", 4,
         "dist.shards is 2, and 4 ranks cannot have equal parts of that; start 1, 2, 4... up to 2 ranks, or leave dist.shards out"},
    };
    struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(check(cases[i].yaml, cases[i].ranks, &err), BAD_INPUT);
        assert_string_equal(err.text, cases[i].says);
    }
}

static void test_takes_what_can_be(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(check(GPT "train: {batch_size: 3}\n", 3, &err), OK);
    assert_int_equal(check(GPT "train: {batch_size: 12}\ndist: {shards: 4}\n", 2, &err), OK);
    assert_int_equal(check(GPT "train: {batch_size: 4}\ndist: {shard: optimizer}\ndevice: cuda\noptimize: {precision: bf16}\n", 2, &err), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refuses_what_cannot_be_divided), cmocka_unit_test(test_takes_what_can_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
