/* Runs read back from their folders: whole, half written, cut off and garbled; curves of any length; how they are ordered. */
#include "run_folders.h"

#include "report/report.h"
#include "report_check.h"

#define LOG(step, loss, seconds) "{\"step\":" #step ",\"loss\":" #loss ",\"steps_per_s\":10,\"tokens_per_s\":320,\"seconds\":" #seconds "}\n"
#define EVAL(step, loss) "{\"step\":" #step ",\"val_loss\":" #loss "}\n"
static const char config[] = "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\ntrain: {steps: 20}\n";

static struct run *opened(struct runs *r, const char *name)
{
    const char *const list[] = {in_root(name)};
    struct error err;
    assert_ok(runs_open(r, list, 1, &err), err);
    return &r->run[0];
}

/* ---- lines ---- */

static void test_lines(void **state)
{
    (void)state;
    static const struct { const char *text; enum metrics_kind kind; int64_t step; } cases[] = {
        {"{\"step\":5,\"loss\":1.5,\"steps_per_s\":2}", METRICS_LOG, 5},
        {"{\"step\":5,\"loss\":null,\"steps_per_s\":2}", METRICS_LOG, 5},
        {"{\"step\":7,\"val_loss\":1.5}", METRICS_EVAL, 7},
        {"{\"epoch\":1,\"verdict\":\"fine\"}", METRICS_OTHER, 0},
        {"{\"step\":5}", METRICS_OTHER, 0},
        {"{\"step\":\"5\",\"loss\":1,\"steps_per_s\":2}", METRICS_OTHER, 0},
        {"{\"step\":-5,\"loss\":1,\"steps_per_s\":2}", METRICS_OTHER, 0},
        {"{\"step\":5e30,\"loss\":1,\"steps_per_s\":2}", METRICS_OTHER, 0},
        {"{\"step\":9999999999,\"loss\":1,\"steps_per_s\":2}", METRICS_BAD, 0},
        {"[1]", METRICS_BAD, 0},
        {"", METRICS_BAD, 0},
        {"{\"step\":5,\"loss\":1.", METRICS_BAD, 0},
        {"{\"step\":5,\"step\":6}", METRICS_BAD, 0},
        {"\xff\xfe", METRICS_BAD, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct metrics_line l = metrics_line_parse(cases[i].text, strlen(cases[i].text));
        assert_int_equal(l.kind, cases[i].kind);
        assert_int_equal(l.step, cases[i].step);
    }
    assert_true(isnan(metrics_line_parse(cases[1].text, strlen(cases[1].text)).loss));
}

/* The last log and the last evaluation, wherever blocks and lines end. */
static void test_last_lines(void **state)
{
    (void)state;
    struct metrics_line log, eval;
    struct error err;
    enum { LONG = 3 << 20 };
    char *text = calloc(1, LONG + 4096), path[512];
    assert_non_null(text);
    snprintf(path, sizeof path, "%s/metrics.jsonl", in_root("m"));
    put_file("m", "metrics.jsonl", "");
    assert_ok(metrics_last(path, &log, &eval, &err), err);
    assert_int_equal(log.kind, METRICS_OTHER);
    put_file("m", "metrics.jsonl", LOG(5, 2, 1) EVAL(5, 2.5) LOG(10, 1, 2) "garbage\n" LOG(15, 0.5, 3) "{\"step\":20,\"loss\":0.");
    assert_ok(metrics_last(path, &log, &eval, &err), err);
    assert_int_equal(log.step, 15);
    assert_int_equal(eval.step, 5);
    /* an evaluation far in front of many logs, and a line that is longer than a block between them */
    size_t n = (size_t)sprintf(text, EVAL(1, 9) LOG(2, 3, 1));
    memset(text + n, 'x', LONG / 2);
    n += LONG / 2;
    for (int i = 3; n < LONG; i++)
        n += (size_t)sprintf(text + n, "%s{\"step\":%d,\"loss\":%d,\"steps_per_s\":1}\n", i == 3 ? "\n" : "", i, i);
    put_text("m", "metrics.jsonl", text, n);
    assert_ok(metrics_last(path, &log, &eval, &err), err);
    assert_int_equal(eval.step, 1);
    assert_true(log.step > 1000 && log.loss == (double)log.step);
    free(text);
}

/* ---- states ---- */

static void check_state(const char *file, const char *metrics, enum run_state expected)
{
    struct runs r;
    struct error err;
    assert_ok(fs_remove_tree(in_root("s"), &err), err);
    put_config("s", config);
    if (file)
        put_file("s", "run.json", file);
    put_file("s", "metrics.jsonl", metrics);
    assert_int_equal(opened(&r, "s")->state, expected);
    assert_true(r.run[0].steps == 20 || file);
    runs_release(&r);
}

static void test_states(void **state)
{
    (void)state;
    check_state("{\"state\":\"finished\",\"step\":20,\"steps\":20}", LOG(20, 1, 1), RUN_FINISHED);
    check_state("{\"state\":\"stopped\",\"step\":7,\"steps\":20}", LOG(5, 1, 1), RUN_STOPPED);
    check_state("{\"state\":\"failed\",\"step\":7,\"steps\":20}", LOG(5, 1, 1), RUN_FAILED);
    check_state("{\"state\":\"nan\",\"step\":7,\"steps\":20}", LOG(5, 1, 1), RUN_NAN);
    check_state("{\"state\":\"running\",\"step\":0,\"steps\":20}", LOG(5, 1, 1), RUN_CRASHED);
    check_state("{\"state\":\"crashed\"}", LOG(5, 1, 1), RUN_STOPPED);
    check_state("{\"state\":\"fini", LOG(20, 1, 1), RUN_FINISHED);
    check_state(NULL, LOG(20, 1, 1), RUN_FINISHED);
    check_state(NULL, LOG(5, 1, 1), RUN_STOPPED);
    check_state(NULL, "", RUN_STOPPED);
}

static void test_locked(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    int lock, again;
    put_config("l", config);
    put_file("l", "run.json", "{\"state\":\"running\",\"step\":0,\"steps\":20}");
    put_file("l", "metrics.jsonl", LOG(5, 1, 1) EVAL(6, 1));
    assert_false(fs_is_locked(in_root("l")));
    assert_ok(fs_lock(&lock, in_root("l"), &err), err);
    assert_true(fs_is_locked(in_root("l")));
    assert_int_equal(opened(&r, "l")->state, RUN_RUNNING);
    assert_int_equal(r.run[0].step, 6);
    runs_release(&r);
    assert_int_equal(fs_lock(&again, in_root("l"), &err), BAD_INPUT);
    close(lock);
    assert_false(fs_is_locked(in_root("l")));
    assert_false(fs_is_locked(in_root("nowhere")));
}

/* What cannot be read is said, and the rest is there. */
static void test_damage(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    put_file("d", "metrics.jsonl", LOG(5, 1, 1));
    assert_non_null(strstr(opened(&r, "d")->warning, "config.yaml"));
    assert_true(r.run[0].loss == 1 && !r.run[0].config && r.run[0].steps == 0);
    runs_release(&r);
    put_file("d", "config.yaml", "model: [");
    put_file("d", "run.json", "[]");
    assert_non_null(strstr(opened(&r, "d")->warning, "run.json"));
    runs_release(&r);
    put_file("d", "run.json", "{\"state\":\"failed\",\"step\":-5,\"steps\":99999999999,\"threads\":1e9,\"device\":\"\\u001b[31mred\",\"ended\":\"soon\",\"reason\":7}");
    assert_non_null(strchr(opened(&r, "d")->device, 'r'));
    assert_null(strchr(r.run[0].device, '\033'));
    assert_true(r.run[0].step == 5 && r.run[0].steps == 0 && r.run[0].threads == 0 && !*r.run[0].reason);
    runs_release(&r);
    const char *const all[] = {root}, *const none[] = {in_root("bare")};
    assert_ok(runs_open(&r, all, 1, &err), err);                /* a folder of runs stands for them */
    assert_true(r.n == 1 && !strcmp(r.run[0].name, "d"));
    runs_release(&r);
    assert_ok(fs_make_dirs(none[0], &err), err);
    assert_int_equal(runs_open(&r, none, 1, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "holds no run: it has no metrics.jsonl"));
    runs_release(&r);
}

/* When it ended is what run.json says, also in a copy of the folder, whose files are of now. */
static void test_when(void **state)
{
    (void)state;
    struct runs r;
    const time_t now = time(NULL);
    put_config("w", config);
    put_file("w", "metrics.jsonl", LOG(5, 1, 1));
    put_file("w", "run.json", "{\"state\":\"finished\",\"started\":\"2020-01-01T00:00:00Z\",\"ended\":\"2020-01-01T00:01:40Z\"}");
    assert_int_equal(opened(&r, "w")->when, 1577836900);
    runs_release(&r);
    put_file("w", "run.json", "{\"state\":\"running\",\"started\":\"2020-01-01T00:00:00Z\"}");
    assert_true(opened(&r, "w")->when >= now - 1);      /* it was killed: its last line is the last that is known */
    runs_release(&r);
}

/* ---- curves ---- */

static void test_curve_is_bounded(void **state)
{
    (void)state;
    struct curve c;
    double sum = 0;
    curve_init(&c, 101);
    for (int64_t i = 1; i <= 1000000; i++)
        curve_add(&c, (struct curve_point){.step = i, .tokens = (double)i, .seconds = (double)i, .loss = i == 500001 ? 77 : i % 1000 ? 1 : NAN, .steps_per_s = 2, .tokens_per_s = NAN, .memory_bytes = (double)i});
    assert_true(c.n <= 100 && c.n > 50 && c.lines == 1000000 && c.each == 16384);
    double high = 0;
    for (int i = 0; i < c.n; i++) {
        high = fmax(high, c.point[i].high);
        sum += (double)c.point[i].finite;
        assert_true(c.point[i].low == 1 && c.point[i].steps_per_s == 2 && isnan(c.point[i].tokens_per_s));
    }
    assert_true(high == 77 && sum == 999000 && c.point[c.n - 1].step == 1000000 && c.point[c.n - 1].memory_bytes == 1000000);
    curve_release(&c);
}

#define PART(step, seconds, overall) "{\"step\":" #step ",\"loss\":1,\"steps_per_s\":10,\"tokens_per_s\":320,\"seconds\":" #seconds ",\"steps_per_s_overall\":" #overall "}\n"

/* A part that is logged late has a clock that is ahead of the one before it: the steps that it counts tell. */
static void test_time_of_parts(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    put_config("p", config);
    put_file("p", "metrics.jsonl", PART(5, 0.5, 10) PART(10, 1, 10) PART(30, 4, 5) PART(40, 6, 5) PART(41, 6.5, 0.153846154) PART(42, 7, -3));
    assert_ok(run_read_curves(opened(&r, "p"), 100, &err), err);
    assert_true(r.run[0].curves->seconds == 1 + 6 + 7);
    runs_release(&r);
}

/* Stopped after step 16, six behind its last log: tokens and seconds have them, and so the speed is that of both parts. */
static void test_steps_without_a_log(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    put_config("u", config);
    put_file("u", "metrics.jsonl", PART(10, 1, 10) PART(20, 0.4, 10) PART(30, 1.4, 10));
    assert_ok(run_read_curves(opened(&r, "u"), 100, &err), err);
    const struct run_curves *c = r.run[0].curves;
    assert_near(c->seconds, 3, 1e-9, "seconds");
    assert_near(c->loss.point[1].seconds, 2, 1e-9, "seconds at step 20");
    assert_near(r.run[0].tokens_per_s, 320, 1e-9, "tokens/s");
    assert_near(r.run[0].steps_per_s, 10, 1e-9, "steps/s");
    runs_release(&r);
}

/* The processes up to step 30 have left no log: their steps took what those of the first one that has did. */
static void test_parts_without_a_log(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    put_config("w", config);
    put_file("w", "metrics.jsonl", PART(45, 1.5, 10));
    assert_ok(run_read_curves(opened(&r, "w"), 100, &err), err);
    assert_near(r.run[0].curves->seconds, 4.5, 1e-9, "seconds");
    assert_near(r.run[0].curves->tokens, 1440, 1e-9, "tokens");
    assert_near(r.run[0].tokens_per_s, 320, 1e-9, "tokens/s");
    runs_release(&r);
}

/* The clock begins anew with a resume; tokens go on. Lines that go back, or are none, are counted and left out. */
static void test_curves(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    put_config("c", config);
    put_file("c", "metrics.jsonl", LOG(5, 4, 0.5) EVAL(5, 4.5) LOG(10, 3, 1) EVAL(10, 3.5) LOG(15, null, 0.5) "{\"epoch\":1}\n" LOG(12, 9, 9) "x\n"
             EVAL(15, 3.75) LOG(20, 1, 1) "{\"step\":25");
    assert_ok(run_read_curves(opened(&r, "c"), 100, &err), err);
    const struct run_curves *c = r.run[0].curves;
    assert_true(c->loss.n == 4 && c->validation.n == 3 && c->bad_lines == 2 && c->cut);
    assert_true(c->seconds == 2 && c->tokens == 640 && c->best_val_loss == 3.5 && c->best_step == 10);
    assert_true(c->loss.point[2].seconds == 1.5 && isnan(c->loss.point[2].loss) && c->validation.point[2].tokens == 480);
    assert_near(r.run[0].tokens_per_s, 320, 1e-9, "tokens/s over a resume");
    assert_near(r.run[0].steps_per_s, 10, 1e-9, "steps/s over a resume");
    assert_string_equal(r.run[0].warning, "2 lines of metrics.jsonl could not be read, or go back, and are left out");
    runs_release(&r);
}

/* A run whose run.json alone is there: the others can be compared with it all the same. */
static void test_no_lines(void **state)
{
    (void)state;
    struct runs r;
    struct error err;
    put_config("n", config);
    put_file("n", "run.json", "{\"state\":\"finished\",\"step\":20,\"steps\":20,\"loss\":1.5}");
    assert_ok(run_read_curves(opened(&r, "n"), 100, &err), err);
    assert_true(r.run[0].curves->loss.n == 0 && r.run[0].curves->validation.n == 0 && !r.run[0].curves->bad_lines && !*r.run[0].warning);
    assert_true(r.run[0].state == RUN_FINISHED && r.run[0].loss == 1.5);
    runs_release(&r);
}

/* ---- found, ordered, compared ---- */

static void put_run(const char *name, const char *more, double loss)
{
    char text[512];
    snprintf(text, sizeof text, "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\ntrain: {steps: 20%s}\n", more);
    put_config(name, text);
    snprintf(text, sizeof text, "{\"state\":\"finished\",\"step\":20,\"steps\":20,\"steps_per_s\":%g,\"tokens_per_s\":%g}", loss, 10 * loss);
    put_file(name, "run.json", text);
    snprintf(text, sizeof text, "{\"step\":20,\"loss\":%g,\"steps_per_s\":1}\n", loss);
    put_file(name, "metrics.jsonl", text);
}

static void names(const struct runs *r, char out[256])
{
    *out = '\0';
    for (int i = 0; i < r->n; i++)
        sprintf(out + strlen(out), "%s%.60s", i ? " " : "", r->run[i].name);
}

static void test_found_and_sorted(void **state)
{
    (void)state;
    struct runs r;
    struct run_keys k;
    struct error err;
    char text[256];
    struct run_bests bests;
    put_run("b", ", lr: 0.01", 2);
    put_run("b/checkpoints/step-1", "", 9);             /* not a run */
    put_run("a/deep/er", ", lr: 0.001, warmup: 7", 1);
    put_run(".hidden", "", 9);
    put_run("c", ", lr: 0.002", 3);
    put_file("no", "report.json", "{}");
    assert_int_equal(symlink(in_root("b"), in_root("link")), 0);
    assert_ok(runs_find(&r, in_root("."), &err), err);
    names(&r, text);
    assert_string_equal(text, "a/deep/er b c");
    static const char *const orders[][2] = {{"loss", "a/deep/er b c"}, {"speed", "c b a/deep/er"}, {"train.lr", "a/deep/er c b"}, {"val_loss", "a/deep/er b c"}};
    for (int i = 0; i < 4; i++) {
        assert_ok(runs_sort(&r, orders[i][0], &err), err);
        names(&r, text);
        assert_string_equal(text, orders[i][1]);
    }
    run_keys_init(&k, &r);
    assert_int_equal(k.n, 2);
    assert_string_equal(k.key[0].key, "train.lr");
    assert_string_equal(k.key[1].key, "train.warmup");
    assert_string_equal(k.key[1].value[0], "7");
    assert_string_equal(k.key[1].value[1], k.key[1].value[2]);
    assert_string_equal(k.key[0].value[2], "0.002");
    run_bests_init(&bests, &r, &k);
    assert_int_equal(bests.n, 1);
    assert_int_equal(bests.list[0].best, 0);
    assert_int_equal(bests.list[0].runs, 3);
    assert_false(bests.list[0].by_validation);
    run_bests_release(&bests);
    run_keys_release(&k);
    assert_int_equal(runs_sort(&r, "train.rl", &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "did you mean 'train.lr'?"));
    runs_release(&r);
    /* a run itself, by its own name */
    assert_ok(runs_find(&r, in_root("b/"), &err), err);
    names(&r, text);
    assert_string_equal(text, "b");
    runs_release(&r);
}

static __attribute__((noinline)) char *shown(const json_t *runs)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    report_runs_print_terminal(runs, to, false);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* It begins with these words; of one run there are no others. */
static void check_headline(const char *words)
{
    struct runs r;
    struct run_keys k;
    struct error err;
    assert_ok(runs_find(&r, in_root("."), &err), err);
    for (int i = 0; i < r.n; i++)
        assert_ok(run_read_curves(&r.run[i], 100, &err), err);
    run_keys_init(&k, &r);
    json_t *j = runs_compare_json(&r, &k);
    const char *headline = json_string_value(json_object_get(j, "headline"));
    assert_memory_equal(headline, words, strlen(words) + (r.n == 1));
    json_decref(j);
    run_keys_release(&k);
    runs_release(&r);
}

/* Runs that have not finished, and those without the loss that counts, are not what a run is the best of. */
static void test_best_of_how_many(void **state)
{
    struct error err;
    (void)state;
    put_run("a", "", 1);
    put_file("a", "run.json", "{\"state\":\"stopped\",\"step\":1,\"steps\":20}");
    put_file("a", "metrics.jsonl", LOG(1, 1, 1));
    check_headline("One run, a: stopped after 1 step");
    put_run("a", "", 1);
    put_run("b", "", 2);
    check_headline("a ends with the lowest loss of 2 runs: 1.0000");
    put_run("b", "", 1.00001);
    check_headline("a and b are tied, and end with the lowest loss of 2 runs: 1.0000; the fastest is ");
    put_run("e", "", 1);
    check_headline("a and 2 more are tied, and end with the lowest loss of 3 runs: 1.0000; the fastest is ");
    put_run("e", "", 1.0001);
    check_headline("a and b are tied, and end with the lowest loss of 3 runs: 1.0000; the fastest is ");
    assert_ok(fs_remove_tree(in_root("e"), &err), err);
    put_run("b", "", 2);
    put_run("c", "", 0.5);
    put_file("c", "run.json", "{\"state\":\"stopped\",\"step\":20,\"steps\":40}");
    check_headline("a ends with the lowest loss of those that finished, 2 of 3 runs: 1.0000");
    put_run("d", "", 3);
    put_file("d", "metrics.jsonl", LOG(20, 3, 1) EVAL(20, 3.5));
    check_headline("d ends with the lowest validation loss of those that finished with one, 1 of 4 runs: 3.5000");
}

/* Characters of two to four bytes: a name is cut between them, and columns stay in line. */
static void test_names_of_many_bytes(void **state)
{
    (void)state;
    struct runs r;
    struct run_keys k;
    struct error err;
    char name[256] = "", wanted[256] = "";
    for (int i = 0; i < 45; i++) {
        strcat(name, i % 2 ? "é" : "𝄞");
        strcat(wanted, i < 40 ? i % 2 ? "é" : "𝄞" : "");
    }
    strcat(wanted, "…  finished  ");
    put_run(name, "", 1);
    put_run("short", "", 2);
    assert_ok(runs_find(&r, in_root("."), &err), err);
    run_keys_init(&k, &r);
    json_t *j = runs_json(&r, &k, "many");
    char *text = shown(j);
    assert_has(text, wanted);
    free(text);
    json_decref(j);
    run_keys_release(&k);
    runs_release(&r);
}

static void test_hundreds(void **state)
{
    (void)state;
    struct runs r;
    struct run_keys k;
    struct error err;
    char name[32], more[64];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "many/%03d", i);
        snprintf(more, sizeof more, ", lr: %g, seed: %d", 1e-3 * (1 + i % 7), i);
        put_run(name, more, i + 1);
    }
    assert_ok(runs_find(&r, in_root("many"), &err), err);
    run_keys_init(&k, &r);
    json_t *j = runs_json(&r, &k, "many");
    assert_int_equal(json_array_size(json_object_get(j, "runs")), 300);
    assert_int_equal(k.n, 2);
    char *text = shown(j);
    assert_has(text, "\nbest: 000, loss 1.0000\n");
    free(text);
    json_decref(j);
    run_keys_release(&k);
    runs_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_curve_is_bounded),
        cmocka_unit_test_setup_teardown(test_last_lines, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_states, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_locked, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_damage, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_when, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_no_lines, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_curves, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_time_of_parts, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_steps_without_a_log, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_parts_without_a_log, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_found_and_sorted, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_best_of_how_many, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_names_of_many_bytes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_hundreds, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
