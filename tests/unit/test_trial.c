/* A trial step by step: what is read of a step that was made, and of one that could not be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/check.h"
#include "train/trial.h"

enum { TOKENS = 400, VOCAB = 16 };

/* A shard of the tokens 0, 1, 2 ... below VOCAB, or all `bad`; written in place, as a trial has it mapped. */
static void write_shard(const char *path, uint16_t bad)
{
    FILE *f = fopen(path, access(path, F_OK) ? "wb" : "r+b");
    assert_non_null(f);
    for (int i = 0; i < TOKENS; i++) {
        const uint16_t token = bad ? bad : (uint16_t)(i % VOCAB);
        assert_int_equal(fwrite(&token, sizeof token, 1, f), 1);
    }
    fclose(f);
}

static struct config on_shard(const char *path)
{
    static const char yaml[] = "model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 8, vocab: 16}\n"
                               "train: {batch_size: 2, steps: 50, lr: 1.0e-2, warmup: 0}\nthreads: 1\n";
    char set[300];
    snprintf(set, sizeof set, "data.path=%s", path);
    const char *sets[] = {"data.source=bin", "data.workers=0", "data.val_fraction=0", set};
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", yaml, sizeof yaml - 1, sets, 4, &err), err);
    return c;
}

/* Every number of a step that failed is NAN, whatever was there before: none can be taken for a loss or a time. */
static void test_a_step_that_fails(void **state)
{
    (void)state;
    char path[] = "/tmp/hone-trial-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_shard(path, 0);
    const struct config c = on_shard(path);
    struct trial *t = NULL;
    struct error err;
    struct trial_step s = {1e300, 1e300, 1e300};
    assert_ok(trial_open(&t, &c, NULL, NULL, &err), err);
    assert_ok(trial_step(t, &s, &err), err);
    assert_true(s.loss > 0 && s.loss < 10 && s.norm > 0 && s.norm < 1e6 && s.us > 0 && s.us < 1e9);
    write_shard(path, 0xFFFF);                      /* somebody writes over the data */
    s = (struct trial_step){1e300, 1e300, 1e300};
    assert_int_equal(trial_step(t, &s, &err), BAD_INPUT);
    assert_says(&err, "holds a token outside the vocabulary", path, NULL);
    assert_true(isnan(s.loss) && isnan(s.norm) && isnan(s.us));
    trial_free(t);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_step_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
