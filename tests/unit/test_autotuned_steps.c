/* Steps under autotune: the same run again, in this process and the next, and nearly the same under other choices. */
#include "support/backends.h"
#include "support/optimized.h"
#include "support/own_cache.h"

#include <jansson.h>

enum { STEPS = 3 };

static struct trained train_autotuned(int model)
{
    struct optimizer_settings s = small_settings();
    s.accumulate = 2;
    return train_small(optimized_training(small_models[model], &s, PASS_SET_ALL & ~one_pass("mixed-precision"), NULL, NULL),
                       &small_models[model], tuned, STEPS);
}

/* Every choice in the file becomes this variant, 15 µs against 25. */
static int force(const char *variant)
{
    json_t *file = json_load_file(choices_path(), 0, NULL), *all = json_object_get(file, "choices"), *entry;
    const char *key;
    json_object_foreach(all, key, entry)
        json_object_set_new(all, key, json_pack("{s:s, s:f, s:f}", "variant", variant, "us", 15.0, "first_us", 25.0));
    const int n = (int)json_object_size(all);
    assert_int_equal(json_dump_file(file, choices_path(), 0), 0);
    json_decref(file);
    choices_forget();
    return n;
}

static void assert_names(const struct exec *e, const char *variant)
{
    const struct program *p = exec_program(e);
    int timed = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const char *slash = strchr(exec_kernel_name(e, i), '/');
        timed += p->ops[i].timed;
        if (p->ops[i].timed)
            assert_string_equal(slash ? slash + 1 : "", variant);
        else
            assert_null(slash);
    }
    assert_true(timed > 0);
    assert_near(exec_choice_gain_us(e), *variant ? 10.0 * timed * p->micro_batches : 0, 1e-6, "the gain");
}

/* The same bits again; the same sums in another order by other variants. */
static void test_variants_agree(void **state)
{
    (void)state;
    for (int model = 0; model < SMALL_MODELS; model++) {
        struct trained first = train_autotuned(model), again = train_autotuned(model);
        assert_memory_equal(first.metrics, again.metrics, sizeof first.metrics);
        assert_same_weights(first.exec, again.exec, 0, "the second time");
        exec_free(again.exec);
        assert_true(force("thirds") > 3);
        struct trained thirds = train_autotuned(model);
        assert_names(thirds.exec, "thirds");
        force("blas");
        struct trained blas = train_autotuned(model);
        assert_names(blas.exec, "blas");
        force("nosuch");
        setenv("XDG_CACHE_HOME", "/dev/null", 1);           /* and new ones cannot be remembered */
        struct trained rule = train_autotuned(model);
        setenv("XDG_CACHE_HOME", own_cache, 1);
        assert_names(rule.exec, "");
        assert_same_weights(rule.exec, thirds.exec, 1e-3, "thirds");
        assert_same_weights(rule.exec, blas.exec, 1e-3, "blas");
        assert_same_weights(rule.exec, first.exec, 1e-3, "as timed");
        exec_free(first.exec);
        exec_free(thirds.exec);
        exec_free(blas.exec);
        exec_free(rule.exec);
    }
}

/* The executable runs itself: one line of metrics per step, and the bits of all weights. */
static void train_and_print(void)
{
    make_backends(NULL);
    struct trained t = train_autotuned(SMALL_GPT);
    const struct program *p = exec_program(t.exec);
    for (int i = 0; i < STEPS; i++)
        printf("%a %a\n", t.metrics[i][METRIC_LOSS], t.metrics[i][METRIC_NORM]);
    uint64_t bits = 0;
    for (int i = 0; i < p->n_values; i++)
        if (is_saved(&p->values[i])) {
            unsigned char *v = read_value(t.exec, i);
            for (size_t k = 0; k < value_bytes(&p->values[i]); k++)
                bits = (bits ^ v[k]) * 0x100000001b3;
            free(v);
        }
    printf("%llx\n", (unsigned long long)bits);
    exec_free(t.exec);
    free_backends(NULL);
}

static void output_of_process(char out[512])
{
    char path[256] = {0}, command[300];
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    snprintf(command, sizeof command, "'%s' train", path);
    FILE *f = popen(command, "r");
    out[fread(out, 1, 511, f)] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void test_same_bits_in_another_process(void **state)
{
    (void)state;
    char first[512], second[512], *before, *after;
    size_t before_bytes, after_bytes;
    output_of_process(first);
    assert_int_equal(fs_read(choices_path(), &before, &before_bytes, 0, NULL), OK);
    output_of_process(second);
    assert_int_equal(fs_read(choices_path(), &after, &after_bytes, 0, NULL), OK);
    assert_true(strlen(first) > 40);
    assert_string_equal(second, first);
    assert_string_equal(after, before);                     /* nothing was timed again */
    free(before);
    free(after);
}

/* A program that is bound beside one that trains leaves its weights alone. */
static void test_shared_weights_stay(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    struct program *p = small_training(small_models[SMALL_GPT], &s);
    struct program *q = optimized_training(small_models[SMALL_GPT], &s, one_pass("autotune"), NULL, NULL);
    struct exec *a = new_exec(p, tuned), *fresh = new_exec(small_training(small_models[SMALL_GPT], &s), tuned), *b = NULL;
    struct error err;
    assert_ok(exec_new(&b, q, tuned, a, &err), err);
    assert_true(fs_exists(choices_path()));
    assert_same_weights(a, fresh, 0, "after timing");
    assert_same_weights(b, fresh, 0, "seen by the other");
    exec_free(b);
    exec_free(a);
    exec_free(fresh);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "train") == 0) {
        train_and_print();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        TEST_WITH_CACHE(test_variants_agree), TEST_WITH_CACHE(test_same_bits_in_another_process),
        TEST_WITH_CACHE(test_shared_weights_stay),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
