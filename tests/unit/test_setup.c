/* Setting a run up can be stopped at any point: nothing is left behind, neither memory (the sanitizers see that) nor a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/setup.h"
#include "support/check.h"
#include "train/train.h"

/* Says no from the nth time on. */
struct patience {
    int left, asked;
    char seen[4096];                /* what it was asked about, each with a comma behind it */
};

static bool answer(void *context, const char *what)
{
    struct patience *p = context;
    char text[64];
    if (!what)
        return true;
    p->asked++;
    snprintf(text, sizeof text, "%s,", what);
    if (!strstr(p->seen, text))
        strncat(p->seen, text, sizeof p->seen - strlen(p->seen) - 1);
    return p->left-- > 0;
}

static struct config small(const char *more)
{
    char text[512];
    struct config c;
    struct error err;
    snprintf(text, sizeof text, "model: {arch: llama, dim: 16, layers: 3, heads: 2, ffn: 24, seq: 32}\n"
             "data: {source: corpus, chars: 4000, workers: 0}\ntrain: {batch_size: 16, steps: 2}\neval: {every: 1, batches: 1}\n"
             "threads: 1\n%s", more);
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    return c;
}

/* Trains until it is stopped; returns whether it was. */
static bool is_stopped(const struct config *c, struct patience *p)
{
    char out[] = "/tmp/hone-setup-XXXXXX";
    assert_non_null(mkdtemp(out));
    assert_int_equal(rmdir(out), 0);
    const struct train_options options = {.out = out};
    const struct train_observer nobody = {0};
    struct train_result r;
    struct error err;
    setup_watch(answer, p);
    assert_ok(train_run(c, &options, &nobody, &r, &err), err);
    setup_watch(NULL, NULL);
    if (r.interrupted) {
        assert_true(r.steps == 0 && !*r.checkpoint && isnan(r.loss));
        assert_false(fs_exists(out));
        return true;
    }
    assert_int_equal(r.steps, 2);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", out);
    assert_int_equal(system(command), 0);
    return false;
}

static void test_stopped_anywhere(void **state)
{
    (void)state;
    static const char *const configs[] = {"", "optimize: {memory: 1}\n"};      /* the second: less than it needs */
    int asked[2];
    for (int i = 0; i < 2; i++) {
        const struct config c = small(configs[i]);
        struct patience p = {.left = 100000};
        assert_false(is_stopped(&c, &(struct patience){.left = 100000}));      /* kernels are chosen: from now on that is known */
        assert_false(is_stopped(&c, &p));
        const int times = asked[i] = p.asked;
        static const char *const parts[] = {"the corpus,", "fuse-qkv,", "autodiff,", "recompute,", "fewer-meetings,", "memory plan,",
                                            "kernels,", "weights,"};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            if (!strstr(p.seen, parts[k]))
                fail_msg("%s is not said: %s", parts[k], p.seen);
        for (int n = 0; n < times; n++)
            assert_true(is_stopped(&c, &(struct patience){.left = n}));
    }
    assert_true(asked[0] > 30 && asked[1] >= asked[0] + 4);             /* once for every plan that recompute tries */
}

static void test_measuring_says_so(void **state)
{
    (void)state;
    const struct config c = small("");
    struct patience p = {.left = 12};
    struct measured m;
    struct error err;
    setup_watch(answer, &p);
    assert_int_equal(measure_steps(&m, &c, 1, NULL, NULL, NULL, &err), BAD_INPUT);
    setup_watch(NULL, NULL);
    assert_memory_equal(err.text, "stopped before the first step, while it was set up: ", 52);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stopped_anywhere), cmocka_unit_test(test_measuring_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
