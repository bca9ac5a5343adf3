/* A step that does not fit into memory is refused with settings that would fit: the advice is taken at its word here. Nothing
 * is allocated, only planned, and how much memory is free is said by the test. */
#include <string.h>

#include "core/arena.h"
#include "core/setup.h"
#include "ops/cpu/cpu.h"
#include "passes/passes.h"
#include "support/own_machine.h"
#include "train/train_int.h"

static const size_t FREE = (size_t)3 << 30;

static struct config config_of(const char *optimize)
{
    char text[256];
    struct config c;
    struct error err;
    snprintf(text, sizeof text, "model: {arch: llama, vocab: 100, dim: 64, layers: 4, heads: 4, seq: 256}\noptimize: {%s}\n",
             optimize);
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    return c;
}

static double planned(struct config c, int64_t batch, int64_t accumulate)
{
    struct program *p;
    struct error err;
    c.train.batch_size = batch;
    c.train.accumulate = accumulate;
    assert_ok(train_step_program(&p, &c, 10, NULL, &err), err);
    const double bytes = pass_planned_bytes(p);
    program_free(p);
    return bytes;
}

/* A batch whose step, without recompute, needs so many times what is free. */
static int64_t batch_of(struct config c, double times)
{
    c.optimize.memory = 1000000000;
    const double two = planned(c, 16, 1), one = planned(c, 8, 1);
    return (int64_t)(times * (double)FREE / ((two - one) / 8));
}

static struct error refusal(const struct config *c)
{
    struct error err;
    error_no_memory(&err, "the workspace", 123456789);
    assert_int_equal(step_refuse(c, 10, &err), CANNOT);
    assert_says(&err, "out of memory: the workspace needs 123.5 MB, and 3221 MB are free; try ", NULL);
    return err;
}

/* The same samples per step, in the largest batches that fit but for the even split. */
static void check_batch(const struct config *c, const struct error *err)
{
    const double limit = 0.9 * (double)FREE;
    const char *at = strstr(err->text, "train.batch_size: ");
    long long batch = 0, accumulate = 0;
    double mb = 0;
    if (!at || sscanf(at, "train.batch_size: %lld with train.accumulate: %lld (%lf MB)", &batch, &accumulate, &mb) != 3)
        fail_msg("no batch in: %s", err->text);
    const int64_t samples = c->train.batch_size * c->train.accumulate;
    assert_true(accumulate > c->train.accumulate && batch * accumulate >= samples && batch * accumulate < samples + accumulate);
    const double bytes = planned(*c, batch, accumulate);
    assert_near(mb, bytes / 1e6, 0.01 * mb, "the plan");
    assert_true(bytes < 1.05 * limit);
    assert_true(planned(*c, 2 * batch + 2, 2) > 0.95 * limit);
}

static void test_recompute_or_a_smaller_batch(void **state)
{
    (void)state;
    machine_has_free(FREE);
    static const char *const optimize[] = {"recompute: off", "passes: none, flash-attention: on"};
    for (int i = 0; i < 2; i++)
        for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
            struct config c = config_of(optimize[i]);
            c.train.batch_size = batch_of(c, 1.4);
            c.train.accumulate = accumulate;
            const struct error err = refusal(&c);
            assert_says(&err, "try optimize.recompute: on (", " or train.batch_size: ", NULL);
            check_batch(&c, &err);
        }
}

static void test_only_a_smaller_batch(void **state)
{
    (void)state;
    machine_has_free(FREE);
    struct config c = config_of("");
    c.train.batch_size = batch_of(c, 40);
    const struct error err = refusal(&c);
    assert_says(&err, "are free; try train.batch_size: ", NULL);
    check_batch(&c, &err);
}

static void test_a_limit_above_what_is_free(void **state)
{
    (void)state;
    machine_has_free(FREE);
    struct config c = config_of("memory: 1000000000");
    c.train.batch_size = batch_of(c, 1.4);
    const struct error err = refusal(&c);
    assert_says(&err, "try optimize.memory: 0 (", " or train.batch_size: ", NULL);
    check_batch(&c, &err);
}

static void test_a_model_that_is_too_large(void **state)
{
    (void)state;
    machine_has_free(FREE);
    struct config c = config_of("");
    c.model.dim = 65536;
    c.model.ffn = 262144;
    c.model.layers = 20;
    const struct error err = refusal(&c);
    assert_says(&err, "try a smaller model.seq, model.dim or model.layers: not even a train.batch_size of 1 fits (", NULL);
}

static void test_other_errors_stay(void **state)
{
    (void)state;
    const struct config c = config_of("");
    struct error err;
    error_set(&err, CANNOT, "no kernel; try another backend");
    assert_int_equal(step_refuse(&c, 10, &err), CANNOT);
    assert_string_equal(err.text, "no kernel; try another backend");
    assert_int_equal(evaluation_refuse(&c, &err), CANNOT);
    assert_string_equal(err.text, "no kernel; try another backend");
}

/* A machine that does not say what is free. */
static void test_free_memory_is_not_known(void **state)
{
    (void)state;
    const struct config c = config_of("");
    struct error err;
    error_no_memory(&err, "the workspace", 5000000);
    assert_int_equal(step_refuse(&c, 10, &err), CANNOT);
    assert_string_equal(err.text,
                        "out of memory: the workspace needs 5.0 MB; try a smaller train.batch_size, model.seq, model.dim or model.layers");
}

/* The text of an error is for people: what it says does not decide. */
static void test_words_do_not_decide(void **state)
{
    (void)state;
    machine_has_free(FREE);
    const struct config c = config_of("");
    struct error err;
    error_set(&err, CANNOT, "out of memory for '; try' on another machine");
    assert_int_equal(step_refuse(&c, 10, &err), CANNOT);
    assert_string_equal(err.text, "out of memory for '; try' on another machine");
    error_no_memory(&err, "the values of '; try this.weight'", 5000000);
    assert_int_equal(evaluation_refuse(&c, &err), CANNOT);
    assert_string_equal(err.text, "out of memory: the values of '; try this.weight' needs 5.0 MB for evaluation; try a smaller "
                                  "eval.batch_size than 8");
}

static void test_evaluation(void **state)
{
    (void)state;
    const struct config c = config_of("");
    struct error err;
    error_no_memory(&err, "the workspace", 5000000);
    assert_int_equal(evaluation_refuse(&c, &err), CANNOT);
    assert_string_equal(err.text,
                        "out of memory: the workspace needs 5.0 MB for evaluation; try a smaller eval.batch_size than 8");
}

static double planned_whole(struct config c, int64_t mb)
{
    struct step_plan plan;
    struct error err;
    c.optimize.memory = mb;
    assert_ok(train_plan_step(&plan, &c, &err), err);
    return plan.bytes;
}

/* The limit is for all that is planned, what kernels work in, too: values alone may be far below it. Whoever has no backend gets the same program. */
static void test_a_limit_holds_with_scratch(void **state)
{
    (void)state;
    const struct config c = config_of("");
    char words[MEMORY_WORDS];
    const double whole = planned_whole(c, 0), least = planned_whole(c, 1);
    assert_true(least < 0.8 * whole);
    for (int64_t mb = (int64_t)(least / 1e6) + 2; (double)mb * 1e6 < whole; mb += 3) {
        struct config within = c;
        within.optimize.memory = mb;
        const double bytes = planned_whole(c, mb);
        assert_true(bytes <= (double)mb * 1e6);
        assert_null(train_memory_warning(&within, bytes, words));
        assert_true(planned(within, c.train.batch_size, 1) < bytes && planned(within, c.train.batch_size, 1) > 0.5 * bytes);
    }
}

static void test_a_limit_that_is_missed(void **state)
{
    (void)state;
    char words[MEMORY_WORDS];
    struct config c = config_of("memory: 1"), off = config_of("memory: 1, recompute: off"), none = config_of("");
    assert_string_equal(train_memory_warning(&c, 2.5e6, words),
                        "optimize.memory is 1 MB, and a step is planned to take 2.50 MB, with all computed again that can be; try a smaller "
                        "train.batch_size or model.seq");
    assert_string_equal(train_memory_warning(&off, 2.5e6, words),
                        "optimize.memory is 1 MB, and a step is planned to take 2.50 MB; try optimize.recompute: on");
    assert_null(train_memory_warning(&c, 1e6, words));
    assert_null(train_memory_warning(&none, 1e12, words));
}

/* What fits, and is about the most that does; recompute would let more in, and counts for nothing here. */
static void test_largest_batches(void **state)
{
    (void)state;
    struct config c = config_of("recompute: on"), without = config_of("recompute: off");
    without.device = DEVICE_CUDA;           /* whose program may be another one */
    const double one = planned(without, 1, 1), bytes[] = {one / 2, one, 1e8, 1e9, 1e15};
    int64_t batch[5];
    struct error err;
    assert_ok(train_largest_batches(&c, 0, bytes, batch, 5, &err), err);
    assert_true(batch[0] == 0 && batch[1] == 1 && batch[4] == LARGEST_BATCH_MOST);
    for (int i = 2; i < 4; i++) {
        assert_true(batch[i] > 1 && planned(without, batch[i], 1) <= bytes[i]);
        assert_true(planned(without, batch[i] + batch[i] / 8 + 2, 1) > bytes[i]);
    }
}

/* The limit before lets nearly the largest in; the one behind it lets the largest in all the same. */
static void test_largest_after_nearly(void **state)
{
    (void)state;
    struct config c = config_of("recompute: off"), there = c;
    there.device = DEVICE_CUDA;
    const double bytes[] = {planned(there, LARGEST_BATCH_MOST - LARGEST_BATCH_MOST / 32, 1), 1e15};
    int64_t batch[2];
    struct error err;
    assert_ok(train_largest_batches(&c, 0, bytes, batch, 2, &err), err);
    assert_true(batch[0] < LARGEST_BATCH_MOST && batch[1] == LARGEST_BATCH_MOST);
}

/* The config's own batch is asked for: above what is searched for, and where the search stops before it. */
static void test_largest_of_own(void **state)
{
    (void)state;
    struct config c = config_of("recompute: off"), there = c;
    there.device = DEVICE_CUDA;
    const int64_t own[] = {LARGEST_BATCH_MOST + 1, LARGEST_BATCH_MOST * 3, 1000, 1017, 1033};
    struct error err;
    for (int i = 0; i < 5; i++) {
        const double exact = planned(there, own[i], 1), bytes[] = {exact - 1, exact, 1e15};
        int64_t batch[3];
        c.train.batch_size = own[i];
        assert_ok(train_largest_batches(&c, 0, bytes, batch, 3, &err), err);
        assert_true(batch[0] < own[i] && batch[1] >= own[i] && batch[2] == (own[i] > LARGEST_BATCH_MOST ? own[i] : LARGEST_BATCH_MOST));
    }
}

/* What saves memory lets more in; what it lets in fits when it is on. */
static void test_savers(void **state)
{
    (void)state;
    struct config c = config_of("recompute: off"), on;
    const double bytes[] = {1e8, 1e9};
    int64_t most[SAVERS][2];
    struct error err;
    for (int s = 0; s < SAVERS; s++)
        assert_ok(train_largest_batches(&c, s, bytes, most[s], 2, &err), err);
    for (int i = 0; i < 2; i++) {
        assert_true(most[SAVE_BF16][i] > most[0][i] && most[SAVE_RECOMPUTE][i] > most[0][i]);
        assert_true(most[SAVERS - 1][i] > most[SAVE_BF16][i] && most[SAVERS - 1][i] > most[SAVE_RECOMPUTE][i]);
        on = config_of("recompute: on, precision: bf16");
        on.device = DEVICE_CUDA;
        on.optimize.memory = (int64_t)(bytes[i] / 1e6);
        assert_true(planned(on, most[SAVERS - 1][i], 1) <= bytes[i]);
    }
}

static void check_words_of(int64_t batch, int64_t accumulate, struct memory_fit f, const char *wanted)
{
    char words[FIT_WORDS];
    f.gb = 12;
    assert_string_equal(memory_fit_words(&f, &(struct config_train){.batch_size = batch, .accumulate = accumulate}, words), wanted);
}

static void check_words(int64_t batch, struct memory_fit f, const char *wanted) { check_words_of(batch, 1, f, wanted); }

static void test_words_on_memory(void **state)
{
    (void)state;
    const struct memory_fit f = {.most = {16, 30, 60, 110}}, narrow = {.most = {30, 30, 110, 110}, .narrow = true}, none = {.most = {0}},
                            only = {.most = {0, 0, 4, 7}}, many = {.most = {LARGEST_BATCH_MOST, LARGEST_BATCH_MOST, LARGEST_BATCH_MOST, LARGEST_BATCH_MOST}};
    check_words(16, f, "on a GPU of 12 GB: a batch of 16 fits; largest: 16, 30 with optimize.precision: bf16, 60 with optimize.recompute: on, 110 with bf16 and recompute");
    check_words(17, f, "on a GPU of 12 GB: a batch of 17 fits with optimize.precision: bf16; largest: 16, 30 with optimize.precision: bf16, 60 with optimize.recompute: on, "
                       "110 with bf16 and recompute");
    check_words(31, f, "on a GPU of 12 GB: a batch of 31 fits with optimize.recompute: on; largest: 16, 30 with optimize.precision: bf16, 60 with optimize.recompute: on, "
                       "110 with bf16 and recompute");
    check_words(61, f, "on a GPU of 12 GB: a batch of 61 fits with bf16 and recompute; largest: 16, 30 with optimize.precision: bf16, 60 with optimize.recompute: on, "
                       "110 with bf16 and recompute");
    check_words(256, f, "on a GPU of 12 GB: a batch of 256 does not fit: try 64, bf16 and recompute with train.accumulate: 4; largest: 16, 30 with optimize.precision: bf16, "
                        "60 with optimize.recompute: on, 110 with bf16 and recompute");
    /* as many samples of an update as before */
    check_words_of(200, 4, f, "on a GPU of 12 GB: a batch of 200 does not fit: try 100, bf16 and recompute with train.accumulate: 8; largest: 16, 30 with optimize.precision: bf16, "
                              "60 with optimize.recompute: on, 110 with bf16 and recompute");
    check_words(31, narrow, "on a GPU of 12 GB: a batch of 31 fits with optimize.recompute: on; largest: 30, 110 with optimize.recompute: on");
    check_words(1, none, "on a GPU of 12 GB: a batch of 1 does not fit, and no other: the model is too large");
    check_words(4, only, "on a GPU of 12 GB: a batch of 4 fits with optimize.recompute: on; largest: 0, 4 with optimize.recompute: on, 7 with bf16 and recompute");
    check_words(8, many, "on a GPU of 12 GB: a batch of 8 fits; largest: over 65536");
    check_words(65537, (struct memory_fit){.most = {65537, 65537, 65537, 65537}}, "on a GPU of 12 GB: a batch of 65537 fits; largest: over 65537");
    check_words(131072, many, "on a GPU of 12 GB: a batch of 131072 does not fit: try 65536 with train.accumulate: 2; largest: 65536");
}

static int asked, stop_at;

static bool goes_on(void *context, const char *what)
{
    (void)context;
    return !what || ++asked < stop_at;
}

/* A limit for which a step is made a second time, since kernels need memory, too: whoever stops it anywhere on the way gets an error, and nothing else. */
static void test_a_plan_that_is_stopped(void **state)
{
    (void)state;
    struct config c = config_of("");
    struct step_plan plan;
    struct error err;
    enum status st = BAD_INPUT;
    const double values = planned(c, c.train.batch_size, 1);
    c.optimize.memory = (int64_t)(values / 1e6) + 1;
    setup_watch(goes_on, NULL);
    for (stop_at = 1; st != OK && stop_at < 1000; stop_at++) {
        asked = 0;
        st = train_plan_step(&plan, &c, &err);
        assert_true(st == OK || (st == BAD_INPUT && strstr(err.text, "stopped")));
    }
    setup_watch(NULL, NULL);
    assert_true(st == OK && stop_at > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_MACHINE(test_recompute_or_a_smaller_batch),
        TEST_WITH_MACHINE(test_only_a_smaller_batch),
        TEST_WITH_MACHINE(test_a_limit_above_what_is_free),
        TEST_WITH_MACHINE(test_a_model_that_is_too_large),
        cmocka_unit_test(test_a_plan_that_is_stopped),
        cmocka_unit_test(test_other_errors_stay),
        TEST_WITH_MACHINE(test_free_memory_is_not_known),
        TEST_WITH_MACHINE(test_words_do_not_decide),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_a_limit_holds_with_scratch),
        cmocka_unit_test(test_a_limit_that_is_missed),
        cmocka_unit_test(test_largest_batches),
        cmocka_unit_test(test_largest_of_own),
        cmocka_unit_test(test_largest_after_nearly),
        cmocka_unit_test(test_savers),
        cmocka_unit_test(test_words_on_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
