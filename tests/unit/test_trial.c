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

static struct config with_lines(const char *set)
{
    static const char yaml[] = "model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 40}\n"
                               "data: {domain: code, samples: lines, chars: 20000, workers: 1, prefetch: 1024}\n"
                               "train: {batch_size: 6, steps: 50, warmup: 0}\nthreads: 1\n";
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "lines", yaml, sizeof yaml - 1, &set, set != NULL, &err), err);
    return c;
}

static void take_steps(struct trial *t, int n)
{
    struct trial_step s;
    struct error err;
    for (int i = 0; i < n; i++)
        assert_ok(trial_step(t, &s, &err), err);
}

/* A trial that rests makes no batches in the time of another: what it ended before that is told. */
static void test_loaders_rest(void **state)
{
    (void)state;
    enum { STEPS = 30 };
    const struct config c = with_lines(NULL);
    struct trial *a, *b;
    struct error err;
    assert_ok(trial_open(&b, &c, NULL, NULL, &err), err);
    assert_ok(trial_open(&a, &c, NULL, NULL, &err), err);      /* whose loader has just begun */
    take_steps(a, 1);
    assert_int_equal(trial_batches_rested(a), 0);
    assert_ok(trial_rest(a, &err), err);
    assert_in_range(trial_batches_rested(a), 0, 1);         /* that which its worker was at */
    const int64_t ready = trial_batches_ahead(a);
    take_steps(b, STEPS);
    assert_int_equal(trial_batches_ahead(a), ready);
    take_steps(a, 1);
    assert_int_equal(trial_batches_rested(a), 0);
    assert_true(trial_wait_us(a) > 0 && trial_workers(a) == 1);
    trial_free(a);
    take_steps(b, 1);
    trial_free(b);
}

/* The usual count of FLOPs is of rows of model.seq tokens: of shorter ones it would be too many, and MFU too high. Samples have as many tokens in either. */
static void test_rows_of_several_lengths(void **state)
{
    (void)state;
    const struct config whole = with_lines(NULL), shorter = with_lines("data.bucket=8");
    struct trial *t;
    struct error err;
    assert_ok(trial_open(&t, &whole, NULL, NULL, &err), err);
    assert_true(trial_model_flops(t) > 0);
    const double tokens = trial_tokens_per_step(t);
    assert_true(tokens > 0 && tokens < 6 * 40);             /* lines are shorter than rows */
    trial_free(t);
    assert_ok(trial_open(&t, &shorter, NULL, NULL, &err), err);
    assert_true(isnan(trial_model_flops(t)));
    assert_true(trial_tokens_per_step(t) == tokens);
    trial_free(t);
}

/* Steps of K-1 that choose and those that do not are told from each other. */
static void test_cycle(void **state)
{
    (void)state;
    static const char yaml[] = "model: {arch: k1, dim: 16, tree: [2, 2], heads: 2, seq: 8}\n"
                               "data: {domain: code, chars: 4000, workers: 0}\ntrain: {batch_size: 2, steps: 50}\nthreads: 1\n";
    const struct { const char *every; int64_t cycle; } cases[] = {{"k1.every=1", 1}, {"k1.every=4", 4}, {"k1.every=50", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *sets[] = {cases[i].every};
        struct config c;
        struct trial *t;
        struct error err;
        assert_ok(config_parse(&c, "k1", yaml, sizeof yaml - 1, sets, 1, &err), err);
        assert_ok(trial_open(&t, &c, NULL, NULL, &err), err);
        assert_int_equal(trial_cycle(t), cases[i].cycle);
        trial_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_step_that_fails), cmocka_unit_test(test_loaders_rest),
                                       cmocka_unit_test(test_rows_of_several_lengths), cmocka_unit_test(test_cycle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
