/* A trace held against the report of an earlier one: a gate, and what takes longer. */
#include "unit/trace_models.h"

#include <unistd.h>

#include "report/report.h"

static char path[] = "/tmp/hone-baseline-XXXXXX";

static void write_report(const struct diagnosis *d)
{
    struct error err;
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    assert_ok(report_trace_write_json(d, to, &err), err);
    assert_int_equal(fclose(to), 0);
}

static void write_words(const char *text)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    assert_int_equal(fclose(to), 0);
}

static void think(struct model *m)
{
    model_begin(m, "histc", "[[512]]");
    traced_idle(&m->t, 1500);
    model_end(m);
}

static struct judged judge_with(model_part *end)
{
    struct model m = model_new(HOST_BOUND);
    m.end = end;
    return model_judge(&m, model_step_us(&m));
}

static void a_step_that_takes_longer_fails_and_says_what_does(void **state)
{
    (void)state;
    char words[BASELINE_WORDS];
    struct error err;
    struct judged before = judge_with(NULL), after = judge_with(think);
    write_report(&before.d);
    assert_ok(report_baseline(&after.d, path, 0.05, &err), err);
    const struct baseline *b = after.d.baseline;
    assert_true(b->slower);
    assert_near(b->after_us - b->before_us, 1501, 1, "longer by what was added");
    assert_true(b->n_rows > 0);
    assert_string_equal(b->rows[0].name, "aten::histc");
    assert_string_equal(b->rows[0].what, "op on the host");
    assert_near(b->rows[0].before_us, 0, 0, "was not there");
    assert_non_null(strstr(report_baseline_words(b, words), "too slow"));
    assert_ok(report_baseline(&before.d, path, 0.05, &err), err);      /* against itself */
    assert_false(before.d.baseline->slower);
    assert_near(before.d.baseline->change, 0, 1e-6, "no change");
    assert_int_equal(before.d.baseline->n_rows, 0);
    assert_null(before.d.baseline->new_rules);
    write_report(&after.d);                                            /* and what became faster */
    struct judged again = judge_with(NULL);
    assert_ok(report_baseline(&again.d, path, 0, &err), err);
    assert_false(again.d.baseline->slower);
    assert_true(again.d.baseline->change < 0);
    judged_release(&again);
    judged_release(&before);
    judged_release(&after);
}

static void a_slower_machine_is_taken_out(void **state)
{
    (void)state;
    char words[BASELINE_WORDS];
    struct error err;
    struct model fast = model_new(HOST_BOUND), slow = model_new(HOST_BOUND);
    slow.host_us *= 1.2;
    struct judged before = model_judge(&fast, 0), after = model_judge(&slow, 0);
    write_report(&before.d);
    assert_ok(report_baseline(&after.d, path, 0.05, &err), err);
    assert_true(after.d.baseline->host_factor > 1.1);
    assert_false(after.d.baseline->slower);
    assert_true(after.d.baseline->forgiven);                           /* which is said: it may be the program's own change */
    assert_true(after.d.baseline->full_change > 0.1);
    assert_non_null(strstr(report_baseline_words(after.d.baseline, words), "with it the step is +"));
    after.d.trace->origin.has_stacks = !after.d.trace->origin.has_stacks;
    assert_ok(report_baseline(&after.d, path, 0.05, &err), err);       /* what else was recorded cost the host, too */
    assert_near(after.d.baseline->host_factor, 1, 0, "not recorded alike");
    judged_release(&before);
    judged_release(&after);
}

/* Steps on a CPU: products, and small ops around them. */
static struct judged judge_cpu(double product_us)
{
    struct traced t = traced_new();
    for (int step = 0; step < 4; step++) {
        traced_step_begin(&t, step);
        for (int i = 0; i < 20; i++) {
            traced_op(&t, "aten::addmm", product_us);
            traced_op(&t, "aten::relu", 50);
        }
        traced_step_end(&t);
    }
    return trace_judge(t.trace, 0);
}

/* There the ops are the work: nothing tells a busy machine from a slower program. */
static void on_a_cpu_slower_ops_are_a_slower_step(void **state)
{
    (void)state;
    struct error err;
    struct judged before = judge_cpu(500), after = judge_cpu(650);
    write_report(&before.d);
    assert_ok(report_baseline(&after.d, path, 0.05, &err), err);
    assert_near(after.d.baseline->host_factor, 1, 0, "nothing is taken out");
    assert_true(after.d.baseline->slower);
    assert_true(after.d.baseline->change > 0.2);
    judged_release(&before);
    judged_release(&after);
}

/* The same trace, of which the time without the profiler is known once, and once not. */
static void a_given_step_is_not_compared_with_an_estimated_one(void **state)
{
    (void)state;
    char words[BASELINE_WORDS];
    struct error err;
    struct model a = model_new(HOST_BOUND), b = model_new(HOST_BOUND);
    struct judged before = model_judge(&a, 0), after = model_judge(&b, 0.7 * model_step_us(&b));
    assert_true(after.d.corrected.given);
    write_report(&before.d);
    assert_ok(report_baseline(&after.d, path, 0.05, &err), err);
    assert_true(after.d.baseline->as_recorded);
    assert_near(after.d.baseline->change, 0, 1e-6, "no change");
    assert_non_null(strstr(report_baseline_words(after.d.baseline, words), "as recorded"));
    write_report(&after.d);
    assert_ok(report_baseline(&before.d, path, 0.05, &err), err);
    assert_near(before.d.baseline->change, 0, 1e-6, "nor the other way");
    judged_release(&before);
    judged_release(&after);
}

static void what_is_no_report_is_refused_by_name(void **state)
{
    (void)state;
    static const struct { const char *text, *says; } cases[] = {
        {"{", "not JSON"},
        {"[]", "no report of `hone analyze`"},
        {"{\"schema\": \"hone-report\", \"kind\": \"profile\"}", "no report of `hone analyze`"},
        {"{\"schema\": \"hone-report\", \"kind\": \"trace\"}", "corrected.step_us"},
        {"{\"schema\": \"hone-report\", \"kind\": \"trace\", \"corrected\": {\"step_us\": -1}}", "corrected.step_us"},
        {"{\"schema\": \"hone-report\", \"kind\": \"trace\", \"device\": \"Tesla T4\", \"corrected\": {\"step_us\": 10}}", "the same device"},
    };
    struct judged j = judge_with(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        write_words(cases[i].text);
        assert_int_equal(report_baseline(&j.d, path, 0.05, &err), BAD_INPUT);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_non_null(strstr(err.text, path));
        assert_null(j.d.baseline);
    }
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_takes_longer_fails_and_says_what_does),
        cmocka_unit_test(a_slower_machine_is_taken_out),
        cmocka_unit_test(on_a_cpu_slower_ops_are_a_slower_step),
        cmocka_unit_test(a_given_step_is_not_compared_with_an_estimated_one),
        cmocka_unit_test(what_is_no_report_is_refused_by_name),
    };
    const int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
