/* The loss of a checkpoint: progress, a stop on the way, batches that are limited, and targets that count once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/fs.h"
#include "train/train_int.h"

static char folder[64], run[96];

static const char CONFIG[] = "model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 8}\n"
                             "data: {domains: [code, formulas], chars: 3000, workers: 2}\n"
                             "train: {batch_size: 2, steps: 5, warmup: 0}\n"
                             "eval: {every: 0, batches: 3, batch_size: 5}\nthreads: 1\n";

static void assert_ok(enum status st, const struct error *err)
{
    if (st != OK)
        fail_msg("%s", err->text);
}

static int train(void **state)
{
    (void)state;
    struct config c;
    struct error err = {.text = ""};
    struct train_result r;
    strcpy(folder, "/tmp/hone-test-eval-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(run, sizeof run, "%s/run", folder);
    const bool done = config_parse(&c, "t.yaml", CONFIG, strlen(CONFIG), NULL, 0, &err) == OK &&
                      train_quietly(&c, 1, run, NULL, NULL, NULL, &r, &err) == OK;
    fprintf(stderr, "%s", err.text);
    return done ? 0 : -1;
}

static int clean(void **state)
{
    (void)state;
    return fs_remove_tree(folder, NULL) == OK ? 0 : -1;
}

struct told {
    int64_t done, total, stop_at;
    sig_atomic_t stop;
};

static void tell(void *context, int64_t done, int64_t total)
{
    struct told *t = context;
    assert_int_equal(done, t->done + 1);
    t->done = done;
    t->total = total;
    t->stop |= done == t->stop_at;
}

/* 300 validation tokens of each domain: 37 windows of 8, in batches of 5. */
enum { SAMPLES = 37, BATCHES = 8 };

static void test_whole(void **state)
{
    (void)state;
    struct eval_result r;
    struct error err;
    struct told t = {0};
    const struct eval_options o = {.progress = tell, .context = &t, .stop = &t.stop};
    assert_ok(eval_run(run, &o, &r, &err), &err);
    assert_true(t.done == 2 * BATCHES && t.total == 2 * BATCHES && !r.interrupted);
    assert_true(r.n == 2 && r.domains[0].tokens == SAMPLES * 8 && r.domains[1].tokens == SAMPLES * 8 && r.all.tokens == 2 * SAMPLES * 8);
    assert_string_equal(r.domains[0].name, "code");
    assert_string_equal(r.domains[1].name, "formulas");
    assert_true(fabs(r.all.loss - (r.domains[0].loss + r.domains[1].loss) / 2) < 1e-12);
    assert_true(fabs(r.all.entropy - (r.domains[0].entropy + r.domains[1].entropy) / 2) < 1e-12);
    assert_int_equal(r.step, 10);
}

/* Stopped in the second domain: the first one is whole, and what there is of the second counts. */
static void test_stop(void **state)
{
    (void)state;
    struct eval_result r, whole;
    struct error err;
    struct told t = {.stop_at = BATCHES + 2};
    struct eval_options o = {.batches = 0};
    assert_ok(eval_run(run, &o, &whole, &err), &err);
    o = (struct eval_options){.progress = tell, .context = &t, .stop = &t.stop};
    assert_ok(eval_run(run, &o, &r, &err), &err);
    assert_true(r.interrupted && t.done == BATCHES + 2);
    assert_true(r.domains[0].loss == whole.domains[0].loss && r.domains[1].tokens == 2 * 5 * 8);
    t = (struct told){.stop_at = 3};
    assert_ok(eval_run(run, &o, &r, &err), &err);
    assert_true(r.interrupted && r.domains[0].tokens == 3 * 5 * 8 && r.domains[1].tokens == 0 && isnan(r.domains[1].loss));
    assert_true(r.all.loss == r.domains[0].loss && r.all.tokens == 3 * 5 * 8);
}

/* So many batches as training evaluates: the last row of the matrix, bit by bit. */
static void test_as_training(void **state)
{
    (void)state;
    struct eval_result r;
    struct train_result again;
    struct config c;
    struct error err;
    const struct eval_options o = {.batches = 3};
    assert_ok(config_parse(&c, "t.yaml", CONFIG, strlen(CONFIG), NULL, 0, &err), &err);
    assert_ok(train_quietly(&c, 1, run, NULL, NULL, NULL, &again, &err), &err);
    assert_ok(eval_run(run, &o, &r, &err), &err);
    assert_int_equal(again.forgetting.rows, 3);
    assert_true(r.domains[0].loss == again.forgetting.loss[2][0] && r.domains[1].loss == again.forgetting.loss[2][1]);
}

/* One sample at a time, and more at once than there are. */
static void test_batch_sizes(void **state)
{
    (void)state;
    const char *sets[] = {"eval.batch_size=1", "eval.batch_size=100"};
    double loss[2];
    for (int i = 0; i < 2; i++) {
        const struct eval_options o = {.sets = &sets[i], .n_sets = 1};
        struct eval_result r;
        struct error err;
        assert_ok(eval_run(run, &o, &r, &err), &err);
        assert_true(r.all.tokens == 2 * SAMPLES * 8);
        loss[i] = r.all.loss;
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_as_training),
        cmocka_unit_test(test_batch_sizes),
    };
    return cmocka_run_group_tests(tests, train, clean);
}
