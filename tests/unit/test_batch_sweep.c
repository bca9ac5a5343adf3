/* The sweet spot of made-up curves, what is said of them, and what a rule makes of a config. */
#include <math.h>
#include <string.h>

#include "support/check.h"
#include "train/batch_sweep.h"

/* Batches 1, 2, 4, ... with these samples/s; 0: does not fit. Memory is 10 MB and 10 per sample. */
static struct batch_sweep sweep(const double *samples_per_s, int n, enum batch_end end, int64_t given)
{
    struct batch_sweep s = {.n = n, .end = end, .given = given, .free_bytes = 100e6, .device = "cpu", .threads = 2};
    for (int i = 0; i < n; i++)
        s.points[i] = (struct batch_point){.batch = 1 << i, .fits = samples_per_s[i] > 0, .samples_per_s = samples_per_s[i],
                                           .planned_bytes = 10e6 + 10e6 * (1 << i)};
    batch_sweep_judge(&s);
    return s;
}
#define SWEEP(end, given, ...) sweep((const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double), end, given)

static void check(const struct batch_sweep *s, int spot, bool open, const char *letters, const char *words, const char *given)
{
    char spot_words[BATCH_WORDS], given_words[BATCH_WORDS];
    static const char letter_of[] = {[BATCH_TOO_SMALL] = '<', [BATCH_SWEET_SPOT] = '*', [BATCH_NO_FASTER] = '>', [BATCH_DOES_NOT_FIT] = '!', [BATCH_UNKNOWN] = '?'};
    assert_int_equal(s->spot, spot);
    assert_int_equal(s->open, open);
    assert_int_equal(strlen(letters), s->n);
    for (int i = 0; i < s->n; i++)
        assert_int_equal(letters[i], letter_of[s->points[i].verdict]);
    batch_sweep_words(s, spot_words, given_words);
    assert_string_equal(spot_words, words);
    assert_string_equal(given_words, given);
}

static void levels_off(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_LEVEL, 1, 100, 180, 250, 255, 256);
    check(&s, 2, false, "<<*>>", "sweet spot: 4, within 5 % of the fastest (16) in 29 % of its memory",
          "train.batch_size is 1: too small, 4 makes 2.50 times as many samples/s");
    const struct batch_sweep t = SWEEP(BATCHES_LEVEL, 16, 100, 180, 250, 255, 256);
    check(&t, 2, false, "<<*>>", "sweet spot: 4, within 5 % of the fastest (16) in 29 % of its memory",
          "train.batch_size is 16: no faster than 4, which takes 29 % of the memory");
    const struct batch_sweep u = SWEEP(BATCHES_LEVEL, 4, 100, 180, 250, 240, 230);
    check(&u, 2, false, "<<*>>", "sweet spot: 4, the fastest", "");
}

static void rises_to_the_end(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_GIVEN, 3, 100, 150, 225);
    check(&s, 2, true, "<<*", "sweet spot so far: 4, 50 % more samples/s than 2; larger ones were not tried", "");
    const struct batch_sweep t = SWEEP(BATCHES_NO_MEMORY, 8, 100, 150, 225, 0);
    check(&t, 2, false, "<<*!", "sweet spot: 4, the largest of those tried that fits, 50 % more samples/s than 2", "train.batch_size is 8, and does not fit");
    const struct batch_sweep u = SWEEP(BATCHES_SLOW, 4, 100, 150, 225);
    check(&u, 2, true, "<<*", "sweet spot so far: 4, 50 % more samples/s than 2; larger ones were not tried", "");
}

/* Larger batches are slower where they fall out of a cache. */
static void falls(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_LEVEL, 2, 300, 200, 150);
    check(&s, 0, false, "*>>", "sweet spot: 1, the fastest", "train.batch_size is 2: no faster than 1, which takes 67 % of the memory");
}

/* A dip, and a wobble within the 5 %, move nothing. */
static void noise(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_LEVEL, 4, 100, 196, 185, 200, 199);
    check(&s, 1, false, "<*>>>", "sweet spot: 2, within 5 % of the fastest (8) in 33 % of its memory",
          "train.batch_size is 4: no faster than 2, which takes 60 % of the memory");
    const struct batch_sweep t = SWEEP(BATCHES_LEVEL, 4, 100, 189, 90, 200, 191);
    check(&t, 3, false, "<<<*>", "sweet spot: 8, the fastest", "train.batch_size is 4: too small, 8 makes 2.22 times as many samples/s");
}

static void one_point(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_GIVEN, 1, 100);
    check(&s, 0, true, "*", "a batch of 1 is all that was measured: there is nothing to hold it against", "");
    const struct batch_sweep t = SWEEP(BATCHES_NO_MEMORY, 1, 100, 0);
    check(&t, 0, false, "*!", "sweet spot: 1, the only one of those tried that fits", "");
}

static void nothing_fits(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_NO_MEMORY, 1, 0, 0);
    check(&s, -1, false, "!!", "no batch fits: one of 1 needs 20.0 MB, and 100.0 MB are free; `hone doctor` with this config says what would", "");
    assert_null(batch_sweep_find(&s, 1));
}

/* It takes most of them. */
static void noisy_points(void **state)
{
    (void)state;
    struct batch_sweep s = SWEEP(BATCHES_LEVEL, 1, 100, 200, 0);
    assert_false(s.noisy);
    for (int i = 0; i < 2; i++)
        s.points[i].ms_per_step = 10;
    s.points[0].ms_spread = 5.1;
    s.points[1].ms_spread = 4.9;
    batch_sweep_judge(&s);
    assert_false(s.noisy);
    s.points[1].ms_spread = 5.1;
    batch_sweep_judge(&s);
    assert_true(s.noisy);
}

static const char NO_VERDICT[] = "no verdict: times of one size differ by as much as those of two may, so that any of them may be the sweet spot";

/* Neither by other work on the machine, nor by rounds that differ by more than what makes a sweet spot. */
static void nothing_is_said_of_noise(void **state)
{
    (void)state;
    struct batch_sweep s = SWEEP(BATCHES_LEVEL, 1, 100, 180, 250, 255, 256);
    s.delayed_share = 0.3;
    batch_sweep_judge(&s);
    check(&s, 2, false, "?????", "no verdict: other work took the cores for up to 30 % of the time, so that any of them may be the sweet spot", "");
    json_t *j = batch_sweep_json(&s);
    assert_true(json_is_null(json_object_get(j, "sweet_spot")) && json_is_true(json_object_get(j, "noisy")));
    json_decref(j);
    s.delayed_share = 0.01;
    for (int i = 0; i < s.n; i++) {
        s.points[i].ms_per_step = 10;
        s.points[i].ms_slowest = 10.4;
    }
    batch_sweep_judge(&s);
    assert_false(s.noisy);
    s.points[3].ms_slowest = 10.6;
    batch_sweep_judge(&s);
    check(&s, 2, false, "?????", NO_VERDICT, "");
    s = SWEEP(BATCHES_NO_MEMORY, 1, 100, 0);                /* of which nothing is a matter of time */
    s.delayed_share = 0.3;
    batch_sweep_judge(&s);
    check(&s, 0, false, "?!", "sweet spot: 1, the only one of those tried that fits", "");
}

static void found_by_batch(void **state)
{
    (void)state;
    const struct batch_sweep s = SWEEP(BATCHES_NO_MEMORY, 1, 100, 200, 0);
    assert_ptr_equal(batch_sweep_find(&s, 2), &s.points[1]);
    assert_null(batch_sweep_find(&s, 3));
    assert_null(batch_sweep_find(&s, 4));
}

/* As many samples as before between two of anything, and the learning rate by the rule. */
static void an_update_of_more_samples(void **state)
{
    static const char text[] = "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
                               "train: {batch_size: 8, accumulate: 3, steps: 2001, warmup: 100, lr: 1.0e-3, min_lr: 1.0e-4}\n"
                               "eval: {every: 200}\ncheckpoint: {every: 1 epochs}\nlog: {every: 50}\n";
    struct config c;
    struct error err;
    (void)state;
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    assert_string_equal(lr_rules[LR_SQRT], "sqrt");
    const struct config s = config_with_update(&c, 4, LR_SQRT);
    assert_int_equal(s.train.batch_size, 8);
    assert_int_equal(s.train.accumulate, 12);
    assert_int_equal(s.train.steps, 501);
    assert_int_equal(s.train.warmup, 25);
    assert_int_equal(s.eval.every.n, 50);
    assert_int_equal(s.checkpoint.every.n, 1);
    assert_int_equal(s.log.every, 13);
    assert_true(fabs(s.train.lr - 2e-3) < 1e-12 && fabs(s.train.min_lr - 2e-4) < 1e-12);
    assert_string_equal(lr_rules[LR_LINEAR], "linear");
    const struct config l = config_with_update(&c, 4, LR_LINEAR);
    assert_true(fabs(l.train.lr - 4e-3) < 1e-12 && fabs(l.train.min_lr - 4e-4) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_off), cmocka_unit_test(rises_to_the_end), cmocka_unit_test(falls), cmocka_unit_test(noise),
        cmocka_unit_test(one_point), cmocka_unit_test(nothing_fits), cmocka_unit_test(noisy_points), cmocka_unit_test(nothing_is_said_of_noise), cmocka_unit_test(found_by_batch), cmocka_unit_test(an_update_of_more_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
