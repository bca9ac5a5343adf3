/* The losses of domains: what follows from them, how they come back from a manifest, and runs that are made quietly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/fs.h"
#include "train/train_int.h"

#define assert_ok(call, err)                                                                                           \
    do {                                                                                                               \
        if ((call) != OK)                                                                                              \
            fail_msg("%s", (err).text);                                                                                \
    } while (0)

static char folder[64];

static int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hone-test-forget-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
    (void)state;
    return fs_remove_tree(folder, NULL) == OK ? 0 : -1;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

static void test_numbers(void **state)
{
    (void)state;
    struct forgetting f = {.n = 3, .steps_each = 10};
    assert_true(isnan(forgetting_nats(&f, 0)) && isnan(forgetting_transfer(&f)));
    forgetting_add(&f, (const double[]){4, 5, 6});
    assert_true(isnan(forgetting_nats(&f, 0)) && isnan(forgetting_transfer(&f)));
    forgetting_add(&f, (const double[]){2, 4, 5});
    assert_true(isnan(forgetting_nats(&f, 0)) && isnan(forgetting_transfer(&f)));
    forgetting_add(&f, (const double[]){2.5, 1, 5.5});
    assert_true(near(forgetting_nats(&f, 0), 0.5) && near(forgetting_transfer(&f), -0.5));
    assert_true(isnan(forgetting_nats(&f, 1)) && isnan(forgetting_nats(&f, 2)));
    forgetting_add(&f, (const double[]){3, 0.75, 2});
    assert_int_equal(f.rows, 4);
    assert_true(near(forgetting_nats(&f, 0), 1) && near(forgetting_nats(&f, 1), -0.25) && isnan(forgetting_nats(&f, 2)));
    assert_true(near(forgetting_percent(&f, 0), 100 * (exp(3) / exp(2) - 1)));
    assert_true(near(forgetting_percent(&f, 1), 100 * (exp(0.75) / exp(1) - 1)));
    assert_true(near(forgetting_transfer(&f), (-1 + 0.25) / 2));
}

/* A loss that is no number is none after a round through JSON, and what follows from it is none either. */
static void test_round_trip(void **state)
{
    (void)state;
    struct forgetting f = {.n = 2, .steps_each = 10}, g = f;
    struct error err;
    forgetting_add(&f, (const double[]){1.0 / 3, NAN});
    forgetting_add(&f, (const double[]){INFINITY, 1e-300});
    json_t *rows = forgetting_rows(&f);
    char *text = json_dumps(rows, 0);
    json_t *read = json_loads(text, 0, NULL);
    assert_ok(forgetting_restore(&g, read, 10, "x", &err), err);
    assert_int_equal(g.rows, 2);
    assert_true(g.loss[0][0] == 1.0 / 3 && isnan(g.loss[0][1]) && isnan(g.loss[1][0]) && g.loss[1][1] == 1e-300);
    assert_true(isnan(forgetting_transfer(&g)));
    json_decref(rows);
    json_decref(read);
    free(text);
}

static void test_restore(void **state)
{
    (void)state;
    static const struct { const char *rows; int64_t step; int wanted; } cases[] = {     /* wanted: rows, -1: refused */
        {"[]", 0, 0},
        {"[[1, 2]]", 0, 1},
        {"[[1, 2]]", 1, 1},
        {"[[1, 2]]", 9, 1},
        {"[[1, 2]]", 10, 1},                    /* the stage has just ended, and its row was not made */
        {"[[1, 2], [3, 4]]", 10, 2},
        {"[[1, 2], [3, null]]", 19, 2},
        {"[[1, 2], [3, 4], [5, 6]]", 20, 3},
        {"[]", 1, -1},
        {"[]", 10, -1},
        {"[[1, 2]]", 11, -1},
        {"[[1, 2], [3, 4]]", 9, -1},
        {"[[1, 2], [3, 4], [5, 6], [7, 8]]", 30, -1},
        {"[[1, 2], [3]]", 10, -1},
        {"[[1, 2], [3, 4, 5]]", 10, -1},
        {"[[1, 2], 7]", 10, -1},
        {"{}", 10, -1},
        {"null", 10, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct forgetting f = {.n = 2, .steps_each = 10};
        struct error err = {.text = ""};
        json_t *rows = json_loads(cases[i].rows, JSON_DECODE_ANY, NULL);
        const enum status st = forgetting_restore(&f, rows, cases[i].step, "runs/x", &err);
        assert_int_equal(st == OK ? f.rows : -1, cases[i].wanted);
        assert_true(st == OK || strstr(err.text, "'runs/x/manifest.json': the losses of the domains are missing or damaged"));
        json_decref(rows);
    }
}

static const char CONFIG[] = "model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 8}\n"
                             "data: {domains: [code, formulas, prose], chars: 3000, workers: 2}\n"
                             "train: {batch_size: 2, steps: 7, accumulate: 2, warmup: 0}\n"
                             "eval: {every: 0, batches: 2}\nlog: {every: 1}\nthreads: 1\n";

static struct config config_of(const char *set)
{
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "t.yaml", CONFIG, strlen(CONFIG), &set, set ? 1 : 0, &err), err);
    return c;
}

static void test_stage_of_step(void **state)
{
    (void)state;
    const struct config c = config_of(NULL);
    struct model_run r;
    struct dataset *d;
    struct error err;
    assert_ok(dataset_open(&d, &c, &err), err);
    assert_ok(model_run_open(&r, &c, d, &err), err);
    assert_int_equal(r.total_steps, 21);
    assert_int_equal(r.stage_steps, 7);
    assert_non_null(r.eval);                    /* though eval.every is 0 */
    static const struct { int64_t step; int stage; } cases[] = {{0, 0}, {1, 0}, {7, 0}, {8, 1}, {14, 1}, {15, 2}, {21, 2}, {22, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(model_run_stage(&r, cases[i].step), cases[i].stage);
    assert_int_equal(model_run_epoch(&r, 8), 1);
    model_run_close(&r);
}

/* ---- quiet runs ---- */

struct told {
    int64_t last, total, calls, stop_at;
    sig_atomic_t stop;
};

static void tell(void *context, int64_t step, int64_t total)
{
    struct told *t = context;
    assert_true(step > t->last);
    t->last = step;
    t->total = total;
    t->calls++;
    t->stop = step == t->stop_at;
}

static char *read_forgetting(const char *out)
{
    char path[128], *text;
    size_t size;
    struct error err;
    snprintf(path, sizeof path, "%s/forgetting.json", out);
    assert_ok(fs_read(path, &text, &size, 0, &err), err);
    return text;
}

/* Stopped in the second stage and called again it ends as one that was not; other seeds and other configs are told apart. */
static void test_quietly(void **state)
{
    (void)state;
    char whole[96], parts[96];
    struct config c = config_of(NULL);
    struct train_result r, s;
    struct error err;
    struct told t = {0}, u = {.stop_at = 10};
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(parts, sizeof parts, "%s/parts", folder);
    assert_ok(train_quietly(&c, 5, whole, &t.stop, tell, &t, &r, &err), err);
    assert_true(!r.interrupted && t.calls == 21 && t.total == 21 && r.forgetting.rows == 4);
    assert_ok(train_quietly(&c, 5, parts, &u.stop, tell, &u, &s, &err), err);
    assert_true(s.interrupted && u.last == 10 && s.forgetting.rows == 2);
    u.stop = 0;
    assert_ok(train_quietly(&c, 5, parts, &u.stop, tell, &u, &s, &err), err);
    assert_true(!s.interrupted && u.calls == 21 && u.last == 21);
    assert_memory_equal(&r.forgetting, &s.forgetting, sizeof r.forgetting);
    char *a = read_forgetting(whole), *b = read_forgetting(parts);
    assert_string_equal(a, b);
    free(b);

    assert_int_equal(train_quietly(&c, 6, parts, NULL, NULL, NULL, &s, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "parts' holds a run with train.seed 5, and it is 6 now; give another --out"));
    c = config_of("train.lr=0.5");
    assert_int_equal(train_quietly(&c, 5, parts, NULL, NULL, NULL, &s, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "train.lr"));
    c = config_of("log.every=9");               /* nothing is computed otherwise */
    assert_ok(train_quietly(&c, 5, parts, NULL, NULL, NULL, &s, &err), err);
    snprintf(parts, sizeof parts, "%s/other", folder);
    assert_ok(train_quietly(&c, 6, parts, NULL, NULL, NULL, &s, &err), err);
    b = read_forgetting(parts);
    assert_string_not_equal(a, b);
    free(a);
    free(b);
}

/* A folder for forgetting.json that cannot be replaced: it warns in mid-run, and fails at the end with nothing lost. */
struct warned {
    int n;
    char text[512];
};

static void on_warning(void *context, const char *text)
{
    struct warned *w = context;
    w->n++;
    snprintf(w->text, sizeof w->text, "%s", text);
}

static void on_start(void *context, const struct train_info *info)
{
    char path[128];
    (void)context;
    (void)info;
    snprintf(path, sizeof path, "%s/blocked/forgetting.json/x", folder);
    assert_int_equal(fs_make_dirs(path, NULL), OK);
}

static void test_unwritten(void **state)
{
    (void)state;
    char out[96], path[160];
    const struct config c = config_of(NULL);
    struct warned w = {0};
    const struct train_observer watch = {.context = &w, .on_start = on_start, .on_warning = on_warning};
    const struct train_options options = {.out = out};
    struct train_result r;
    struct error err;
    snprintf(out, sizeof out, "%s/blocked", folder);
    assert_int_not_equal(train_run(&c, &options, &watch, &r, &err), OK);
    assert_non_null(strstr(err.text, "forgetting.json"));
    assert_int_equal(w.n, 4);
    assert_non_null(strstr(w.text, "forgetting.json"));
    snprintf(path, sizeof path, "%s/forgetting.json", out);
    assert_int_equal(fs_remove_tree(path, NULL), OK);
    const struct train_observer nobody = {0};
    const struct train_options again = {.out = out, .resume = true};
    assert_ok(train_run(&c, &again, &nobody, &r, &err), err);
    assert_int_equal(r.forgetting.rows, 4);
    free(read_forgetting(out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_stage_of_step),
        cmocka_unit_test(test_quietly),
        cmocka_unit_test(test_unwritten),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
