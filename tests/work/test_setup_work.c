/* Setting a step up takes work in proportion to its layers, and so does going on from a checkpoint and reading all gradients. Work is counted, not timed: the rooms that set up are compiled for
 * this test so that every basic block they run counts one, and what they move in memory counts by its size. What is quadratic
 * takes four times as much for twice the layers; what is linear or sorts, about twice. */
#include <stdlib.h>

#include "core/fs.h"
#include "ops/cpu/cpu.h"
#include "support/check.h"
#include "train/train_int.h"
#include "train/trial.h"

static uint64_t work;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { work++; }

void *__real_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n)
{
    work += n / 64;
    return __real_memmove(to, from, n);
}

void *__real_memcpy(void *restrict to, const void *restrict from, size_t n);
void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t n);
void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t n)
{
    work += n / 64;
    return __real_memcpy(to, from, n);
}

enum { SETS_MOST = 3 };

/* Trees have a number of nodes near that. */
static bool is_tree(const char *const *sets) { return sets[0] && !strcmp(sets[0], "k1.k=9"); }

static struct config deep(int layers, const char *const *sets)
{
    char text[256];
    struct config c;
    struct error err;
    int n = 0;
    while (n < SETS_MOST && sets[n])
        n++;
    snprintf(text, sizeof text, "model: {arch: llama, vocab: 50, dim: 8, layers: %d, heads: 2, ffn: 12, seq: 32}\n"
             "data: {chars: 5000, workers: 0}\ntrain: {batch_size: 4, steps: 9}\nthreads: 1\n", layers);
    if (is_tree(sets))
        snprintf(text, sizeof text, "model: {arch: k1, vocab: 50, dim: 8, tree: [10, %d], heads: 2, ffn: 12, seq: 32}\n"
                 "data: {chars: 5000, workers: 0}\ntrain: {batch_size: 4, steps: 9}\nthreads: 1\n", layers / 10 - 1);
    assert_ok(config_parse(&c, "deep.yaml", text, strlen(text), sets, n, &err), err);
    return c;
}

/* A training step and, beside it, an evaluation that shares its weights. */
static uint64_t work_of(int layers, const char *const *sets)
{
    const struct config c = deep(layers, sets);
    struct program *step, *eval;
    struct backend *b;
    struct exec *train, *beside;
    struct error err;
    work = 0;
    assert_ok(train_open_backend(&b, &c, &err), err);
    assert_ok(train_step_program(&step, &c, 10, NULL, &err), err);
    assert_ok(exec_new(&train, step, b, NULL, &err), err);
    assert_ok(forward_program(&eval, &c, (struct model_options){.batch = 2, .loss = true}, NULL, &err), err);
    assert_ok(exec_new(&beside, eval, b, train, &err), err);
    const uint64_t sum = work;
    exec_free(beside);
    exec_free(train);
    b->free(b);
    return sum;
}

/* That the count sees the passes, and bytes that move, is not taken on trust. */
static void test_counts(void **state)
{
    (void)state;
    static char room[1 << 16];
    assert_true(work_of(2, (const char *[SETS_MOST]){0}) > 10000);
    const uint64_t before = work;
    void *(*volatile move)(void *, const void *, size_t) = memmove;             /* not one that the compiler leaves out */
    move(room, room + 1, sizeof room - 1);
    assert_true(work - before >= sizeof room / 64 - 1);
}

static void test_twice_the_layers(void **state)
{
    (void)state;
    static const char *const settings[][SETS_MOST] = {
        {NULL}, {"optimize.passes=none"}, {"train.accumulate=2", "optimize.fewer-meetings=off"}, {"optimize.flash-attention=off"},
        {"model.arch=gpt", "model.dropout=0.1", "model.ffn=0"},
        {"optimize.memory=1"},                  /* not to be had: recompute tries everything */
        {"k1.k=9"}, {"k1.k=9", "optimize.passes=async-metrics", "train.accumulate=2"}, {"k1.k=9", "k1.every=3", "optimize.memory=1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const uint64_t one = work_of(100, settings[i]), two = work_of(200, settings[i]);
        print_message("%-28s %8.2e for 100 layers, %.2f times that for 200\n", settings[i][0] ? settings[i][0] : "as it is",
                      (double)one, (double)two / (double)one);
        assert_true(two < one * 23 / 10);
    }
}

/* Only what has little to do beside it is counted: the tensors of a checkpoint go into memory. */
static uint64_t work_of_resuming(int layers)
{
    const struct config c = deep(layers, (const char *[SETS_MOST]){"model.vocab=0", "eval.every=0"});
    char out[] = "/tmp/hone-work-XXXXXX", path[CONFIG_PATH_MAX];
    struct model_run run;
    struct carried carried = {0};
    struct dataset *d;
    struct error err;
    int64_t step;
    assert_non_null(mkdtemp(out));
    assert_ok(dataset_open(&d, &c, &err), err);
    assert_ok(model_run_open(&run, &c, d, &err), err);
    assert_ok(state_save(&run, out, 1, &carried, path, &err), err);
    work = 0;
    assert_ok(state_resume(&run, out, &step, &carried, path, &err), err);
    const uint64_t sum = work;
    model_run_close(&run);
    assert_ok(fs_remove_tree(out, &err), err);
    return sum;
}

static uint64_t work_of_gradients(int layers)
{
    const struct config c = deep(layers, (const char *[SETS_MOST]){"model.vocab=0"});
    struct trial *t;
    struct error err;
    assert_ok(trial_open(&t, &c, NULL, NULL, &err), err);
    assert_ok(trial_backward(t, &err), err);
    const struct program *p = trial_program(t);
    work = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            float *gradient = calloc((size_t)shape_count(p->values[i].shape), sizeof *gradient);
            assert_ok(trial_gradient(t, i, gradient, &err), err);
            free(gradient);
        }
    const uint64_t sum = work;
    trial_free(t);
    return sum;
}

static void test_twice_the_tensors(void **state)
{
    (void)state;
    static uint64_t (*const works[])(int layers) = {work_of_resuming, work_of_gradients};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const uint64_t one = works[i](100), two = works[i](200);
        print_message("%-28s %8.2e for 100 layers, %.2f times that for 200\n", i ? "gradients" : "resuming", (double)one,
                      (double)two / (double)one);
        assert_true(two < one * 23 / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_twice_the_layers),
                                       cmocka_unit_test(test_twice_the_tensors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
