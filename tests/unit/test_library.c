/* libhone as a program uses it: through include/hone.h alone. */
#include <hone.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TRACE HONE_CONFIGS "/../tests/fuzz/seeds/diagnose/step.json"
enum { STEPS = 6 };

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hone-test-library-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void need(hone_status status)
{
    if (status != HONE_OK)
        fail_msg("%d: %s", status, hone_message());
}

static void refused(hone_status status, hone_status wanted, const char *message)
{
    assert_int_equal(status, wanted);
    assert_string_equal(hone_message(), message);
}

static hone_config *small(const char *more)
{
    static const char *settings[] = {"model.dim=32", "model.heads=2", "model.layers=1", "model.seq=16", "data.chars=20000", "data.workers=0", "train.batch_size=2",
                                     "train.steps=20", "train.warmup=2", "eval.every=10", "eval.batches=2", "checkpoint.every=10", "threads=1", NULL};
    hone_config *c;
    int n = 0;
    while (n < (int)(sizeof settings / sizeof *settings) - 1)
        n++;
    settings[n] = more;
    need(hone_config_open(&c, HONE_CONFIGS "/quickstart.yaml", settings, n + (more != NULL)));
    return c;
}

/* ---- a run in memory ---- */

struct losses {
    double of[STEPS];
    int64_t n, stop_at;
};

static int keep(void *context, const hone_step *s)
{
    struct losses *l = context;
    assert_int_equal(s->step, l->n + 1);
    assert_true(s->gradient_norm > 0 && s->us > 0);
    l->of[l->n++] = s->loss;
    return s->step == l->stop_at;
}

static void test_run(void **state)
{
    (void)state;
    hone_config *c = small(NULL);
    hone_run *run;
    struct losses first = {0}, again = {0};
    double before, after;
    char *program;
    need(hone_run_open(&run, c));
    hone_config_free(c);                        /* a handle needs nothing of what it was made of */
    assert_true(isnan(hone_run_loss(run)) && hone_run_bytes(run) > 0);
    need(hone_run_program(run, &program));
    assert_non_null(strstr(program, "adamw"));
    hone_free(program);
    need(hone_run_evaluate(run, &before));
    need(hone_run_train(run, STEPS, keep, &first));
    need(hone_run_evaluate(run, &after));
    assert_int_equal(hone_run_steps(run), STEPS);
    assert_true(hone_run_loss(run) == first.of[STEPS - 1] && after < before);
    need(hone_run_restart(run));
    again.stop_at = 4;
    need(hone_run_train(run, STEPS, keep, &again));
    assert_int_equal(again.n, 4);
    assert_memory_equal(first.of, again.of, 4 * sizeof *again.of);
    hone_run_free(run);
}

static void test_no_validation_data(void **state)
{
    (void)state;
    hone_config *c = small("data.val_fraction=0");
    hone_run *run;
    double loss = 5;
    need(hone_run_open(&run, c));
    refused(hone_run_evaluate(run, &loss), HONE_NO, "there is no validation data; try a data.val_fraction above 0, or data.val_path");
    assert_true(loss == 5);
    hone_run_free(run);
    hone_config_free(c);
}

/* ---- a run in a folder ---- */

static int stop_at_seven(void *context, const hone_step *s)
{
    (void)context;
    return s->step == 7;
}

static void test_train_stop_resume_evaluate(void **state)
{
    (void)state;
    char run[80];
    hone_config *c = small(NULL);
    hone_result r;
    hone_loss l;
    snprintf(run, sizeof run, "%s/run", folder);
    need(hone_train(c, run, 0, stop_at_seven, NULL, &r));
    assert_true(r.stopped && r.steps == 7);
    assert_int_equal(hone_train(c, run, 0, NULL, NULL, NULL), HONE_BAD_INPUT);         /* there is a run */
    need(hone_train(c, run, 1, NULL, NULL, &r));
    assert_true(!r.stopped && r.steps == 20 && r.val_loss > 0);
    assert_int_equal(access(r.checkpoint, F_OK), 0);
    need(hone_evaluate(&l, run, NULL, 0));
    assert_true(l.loss > l.entropy && l.tokens > 0 && l.bytes > 0);
    hone_loss one;
    need(hone_evaluate(&one, run, (const char *const[]){"eval.batches=1", "eval.batch_size=1"}, 2));
    assert_true(one.tokens > 0 && one.tokens < l.tokens / 2);
    hone_config_free(c);
}

/* A restart that fails half-way leaves a run that says so, and another one mends it. */
static void test_restart_that_fails(void **state)
{
    (void)state;
    static const char again[] = "the run is not at its start, as its last restart failed; restart it again";
    char weights[80], away[80], init[100];
    hone_config *c = small("train.steps=2");
    hone_run *run;
    double loss;
    struct losses first = {0}, second = {0};
    snprintf(weights, sizeof weights, "%s/run", folder);
    snprintf(away, sizeof away, "%s/away", folder);
    snprintf(init, sizeof init, "train.init=%s", weights);
    need(hone_train(c, weights, 0, NULL, NULL, NULL));
    hone_config_free(c);
    c = small(init);
    need(hone_run_open(&run, c));
    need(hone_run_train(run, 2, keep, &first));
    assert_int_equal(rename(weights, away), 0);
    assert_int_equal(hone_run_restart(run), HONE_BAD_INPUT);
    refused(hone_run_train(run, 1, NULL, NULL), HONE_CANNOT, again);
    refused(hone_run_evaluate(run, &loss), HONE_CANNOT, again);
    assert_int_equal(rename(away, weights), 0);
    need(hone_run_restart(run));
    need(hone_run_train(run, 2, keep, &second));
    assert_memory_equal(first.of, second.of, sizeof first.of);
    hone_run_free(run);
    hone_config_free(c);
}

/* ---- a profile ---- */

static void test_profile(void **state)
{
    (void)state;
    char report[80], file[100], *json = NULL;
    hone_config *c = small(NULL);
    snprintf(report, sizeof report, "%s/report", folder);
    snprintf(file, sizeof file, "%s/report.html", report);
    refused(hone_profile(c, 0, NULL, &json), HONE_BAD_INPUT, "steps is 0; it must be 1 to 100000");
    assert_null(json);
    need(hone_profile(c, 2, report, &json));
    assert_non_null(strstr(json, "\"findings\""));
    assert_int_equal(access(file, F_OK), 0);
    hone_free(json);
    hone_config_free(c);
}

/* ---- traces ---- */

static void *analyze(void *out)
{
    static const char *const paths[] = {TRACE};
    hone_analysis *a;
    need(hone_analyze(&a, paths, 1, NULL));
    need(hone_analysis_json(a, out));
    hone_analysis_free(a);
    return NULL;
}

/* Two threads at once say what one says. */
static void test_traces_side_by_side(void **state)
{
    (void)state;
    char *alone, *side[2];
    pthread_t threads[2];
    analyze(&alone);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, analyze, &side[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_string_equal(side[i], alone);
        hone_free(side[i]);
    }
    hone_free(alone);
}

static void test_analysis(void **state)
{
    (void)state;
    static const char *const paths[] = {TRACE};
    char report[80], file[100], *text;
    int low, critical;
    hone_analysis *a;
    need(hone_analyze(&a, paths, 1, &(hone_analyze_options){.step_ms = 40}));
    need(hone_analysis_markdown(a, &text));
    assert_non_null(strstr(text, "## Findings"));
    hone_free(text);
    need(hone_analysis_screen(a, 0, &text));
    assert_null(strchr(text, '\033'));
    hone_free(text);
    need(hone_analysis_count(a, "low", &low));
    need(hone_analysis_count(a, "critical", &critical));
    assert_true(low > critical && critical >= 0);
    refused(hone_analysis_count(a, "hig", &low), HONE_BAD_INPUT, "the severity is 'hig'; it can be critical, high, medium or low");
    snprintf(report, sizeof report, "%s/trace", folder);
    snprintf(file, sizeof file, "%s/report.md", report);
    need(hone_analysis_write(a, report));
    assert_int_equal(access(file, F_OK), 0);
    hone_analysis_free(a);
}

/* A folder of ranks has its name, also when who named it has thrown that away. */
static void test_name_of_a_folder(void **state)
{
    (void)state;
    char command[300], wanted[80], *name = strdup(folder), *json;
    const char *paths[] = {name};
    hone_analysis *a;
    snprintf(command, sizeof command, "cp '%s' '%s/rank0.json' && cp '%s' '%s/rank1.json'", TRACE, folder, TRACE, folder);
    assert_int_equal(system(command), 0);
    need(hone_analyze(&a, paths, 1, NULL));
    memset(name, 'x', strlen(name));
    free(name);
    need(hone_analysis_json(a, &json));
    snprintf(wanted, sizeof wanted, "\"name\": \"%s\"", folder);
    assert_non_null(strstr(json, wanted));
    hone_free(json);
    hone_analysis_free(a);
}

/* ---- a program that writes 0,5 ---- */

/* LC_NUMERIC of a locale with a comma, as glibc reads it from $LOCPATH: how many texts, where each begins, the texts. */
static bool use_comma(void)
{
    static const struct { uint32_t magic, n, at[6]; char point[2], group[2], groups[4]; uint32_t wide_point, wide_group; char codeset[6]; } numeric =
        {0x20031114, 6, {32, 34, 36, 40, 44, 48}, ",", ".", "\3\3", ',', '.', "UTF-8"};
    char path[100];
    snprintf(path, sizeof path, "%s/comma", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    FILE *f = fopen(path, "w");
    assert_true(f && fwrite(&numeric, 54, 1, f) == 1 && fclose(f) == 0);
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "comma") && strtod("0,5", NULL) == 0.5;
}

static int see_comma(void *context, const hone_step *s)
{
    (void)s;
    *(int *)context += *localeconv()->decimal_point == ',';
    return 0;
}

static void test_decimal_comma(void **state)
{
    (void)state;
    static const char *const paths[] = {TRACE};
    static const hone_analyze_options halves = {.step_ms = 40.5};
    char run[80], *yaml, *plain[3], *text[3];
    int commas = 0;
    hone_analysis *a;
    hone_result r;
    hone_loss l;
    if (!use_comma())
        skip();
    setlocale(LC_NUMERIC, "C");
    need(hone_analyze(&a, paths, 1, &halves));
    need(hone_analysis_json(a, &plain[0]));
    need(hone_analysis_markdown(a, &plain[1]));
    need(hone_analysis_screen(a, 0, &plain[2]));
    hone_analysis_free(a);
    setlocale(LC_NUMERIC, "comma");
    need(hone_analyze(&a, paths, 1, &halves));
    need(hone_analysis_json(a, &text[0]));
    need(hone_analysis_markdown(a, &text[1]));
    need(hone_analysis_screen(a, 0, &text[2]));
    hone_analysis_free(a);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(text[i], plain[i]);
        hone_free(text[i]);
        hone_free(plain[i]);
    }
    refused(hone_analyze(&a, paths, 1, &(hone_analyze_options){.step_ms = -0.5}), HONE_BAD_INPUT, "step_ms is -0.5; it must be above 0 and at most 1e9, or 0: not known");
    hone_config *c = small("train.lr=0.0035");
    need(hone_config_text(c, &yaml));
    assert_non_null(strstr(yaml, "lr: 0.0035"));
    hone_free(yaml);
    snprintf(run, sizeof run, "%s/run", folder);
    need(hone_train(c, run, 0, see_comma, &commas, &r));
    assert_int_equal(commas, 20);
    hone_config_free(c);
    assert_true(strtod("0,5", NULL) == 0.5);            /* the program's locale is back */
    setlocale(LC_NUMERIC, "C");
    need(hone_evaluate(&l, run, NULL, 0));              /* another program, without a comma, reads the checkpoint */
    assert_true(l.loss > 0);
}

/* ---- refusals ---- */

static void test_refusals(void **state)
{
    (void)state;
    static const char *const missing[] = {"/nowhere/trace.json"}, *const wrong[] = {"train.lr=fast"}, *const holes[] = {"/nowhere/trace.json", NULL};
    hone_config *c = NULL;
    hone_analysis *a = NULL;
    hone_loss l;
    refused(hone_config_open(&c, NULL, NULL, 0), HONE_BAD_INPUT, "the path of the config is NULL; it must be given");
    refused(hone_config_open(&c, HONE_CONFIGS "/quickstart.yaml", wrong, 1), HONE_BAD_INPUT, "--set train.lr=fast: train.lr is 'fast'; a number is wanted");
    refused(hone_analyze(&a, missing, 1, NULL), HONE_BAD_INPUT, "cannot find '/nowhere/trace.json': No such file or directory");
    refused(hone_analyze(&a, holes, 2, NULL), HONE_BAD_INPUT, "trace 2 of 2 is NULL; it must be given");
    refused(hone_config_open(&c, HONE_CONFIGS "/quickstart.yaml", holes + 1, 1), HONE_BAD_INPUT, "setting 1 of 1 is NULL; it must be given");
    refused(hone_evaluate(&l, "/nowhere", holes + 1, 1), HONE_BAD_INPUT, "setting 1 of 1 is NULL; it must be given");
    refused(hone_analyze(&a, missing, 0, NULL), HONE_BAD_INPUT, "no trace is given; at least one must be");
    refused(hone_analyze(&a, missing, 1, &(hone_analyze_options){.step_ms = -1}), HONE_BAD_INPUT, "step_ms is -1; it must be above 0 and at most 1e9, or 0: not known");
    assert_int_equal(hone_evaluate(&l, "/nowhere", NULL, 0), HONE_BAD_INPUT);
    assert_true(!c && !a);
    refused(hone_run_train(NULL, 1, NULL, NULL), HONE_BAD_INPUT, "the run is NULL; it must be given");
    hone_config_free(NULL);
    hone_run_free(NULL);
    hone_analysis_free(NULL);
    hone_free(NULL);
}

static void test_config_text(void **state)
{
    (void)state;
    hone_config *c = small("train.lr=0.125");
    char *yaml;
    need(hone_config_text(c, &yaml));
    assert_non_null(strstr(yaml, "lr: 0.125"));
    hone_free(yaml);
    hone_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_no_validation_data),
        cmocka_unit_test_setup_teardown(test_train_stop_resume_evaluate, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_restart_that_fails, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_profile, make_folder, remove_folder),
        cmocka_unit_test(test_traces_side_by_side),
        cmocka_unit_test_setup_teardown(test_analysis, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_name_of_a_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_decimal_comma, make_folder, remove_folder),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_config_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
