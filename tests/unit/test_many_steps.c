/* Traces with very many steps: the report is bounded and says so, the numbers are of all steps, and short traces have them all. */
#include "report/report.h"
#include "unit/traced_text.h"

enum { MANY = 100000, SLOW_AT = 4711, FAST_AT = 4713, LARGEST_PAGE = 2 << 20 };

/* Steps of 10 µs with 2 to 6 µs of work, but for one slow and one fast one; no two marks touch. */
static double length_of(int i) { return i == SLOW_AT ? 18 : i == FAST_AT ? 8 : 10 + i % 5; }

static struct trace *steps_of(int n)
{
    struct traced m = traced_new();
    for (int i = 0; i < n; i++) {
        const double at = 20.0 * i;
        traced_get(&m, traced_at(&m, EVENT_STEP, "ProfilerStep", at, length_of(i)))->step = i + 1;
        traced_at(&m, EVENT_HOST_OP, "aten::mm", at + 0.5, 2);
        traced_work_at(&m, "cudaLaunchKernel", at + 1, 1, EVENT_KERNEL, "gemm", at + 2, 2 + i % 5);
    }
    return m.trace;
}

static struct diagnosis diagnosed(struct trace *t)
{
    struct diagnosis d;
    struct error err;
    assert_ok(diagnose(&d, &t, 1, &(struct diagnose_options){0}, &err), err);
    return d;
}

static const struct trace_step *step_numbered(const struct diagnosis *d, int64_t number)
{
    for (int i = 0; i < diagnosis_shown_steps(d); i++)
        if (d->steps[i].number == number)
            return &d->steps[i];
    return NULL;
}

static void check_list(const struct diagnosis *d)
{
    const int shown = diagnosis_shown_steps(d);
    int64_t widest = 0;
    assert_true(shown <= SHOWN_STEPS && shown > SHOWN_STEPS * 9 / 10);
    assert_int_equal(d->steps[0].number, 1);
    assert_int_equal(d->steps[shown - 1].number, MANY);
    for (int i = 1; i < shown; i++) {
        const int64_t gap = d->steps[i].number - d->steps[i - 1].number;
        assert_true(gap > 0);
        widest = gap > widest ? gap : widest;
    }
    assert_true(widest <= MANY / (SHOWN_STEPS - SHOWN_SLOWEST - 3) + 1);
    assert_non_null(step_numbered(d, SLOW_AT + 1));
    assert_non_null(step_numbered(d, FAST_AT + 1));
    assert_near(step_numbered(d, SLOW_AT + 1)->total_us, 18, 1e-9, "the slowest");
}

static void check_means(const struct diagnosis *d)
{
    double total = 0;
    for (int i = 0; i < MANY; i++)
        total += length_of(i) / MANY;
    assert_int_equal(d->n_steps, MANY);
    assert_near(d->mean.total_us, total, 1e-6, "mean of all steps");
    assert_near(d->mean.kernel_us, 4, 1e-6, "work of all steps");
    assert_near(step_numbered(d, diagnosis_timeline_number(d))->total_us, 12, 1e-9, "the median");
}

static char *written(enum status (*write)(const struct diagnosis *, FILE *, struct error *), const struct diagnosis *d, size_t *size)
{
    char *text = NULL;
    struct error err;
    FILE *f = open_memstream(&text, size);
    assert_ok(write(d, f, &err), err);
    fclose(f);
    return text;
}

static void check_reports(const struct diagnosis *d)
{
    static const char note[] = " of 100000 steps are listed: the first, the last, the fastest, the 20 slowest, and others evenly spread.";
    size_t size;
    char *json = written(report_trace_write_json, d, &size), shown[64];
    snprintf(shown, sizeof shown, "\"steps_shown\": %d", diagnosis_shown_steps(d));
    assert_true(size < LARGEST_PAGE && strstr(json, "\"steps_total\": 100000") && strstr(json, shown) && strstr(json, note));
    free(json);
    char *markdown = written(report_trace_write_markdown, d, &size);
    assert_non_null(strstr(markdown, note));
    free(markdown);
    char *page = written(report_trace_write_html, d, &size);
    assert_true(size < LARGEST_PAGE && strstr(page, note));
    free(page);
    char *text = NULL;
    FILE *f = open_memstream(&text, &size);
    report_trace_print_terminal(d, f, false);
    fclose(f);
    assert_non_null(strstr(text, " of 100000 steps are listed: "));
    free(text);
}

static void test_many_steps(void **state)
{
    (void)state;
    struct trace *t = steps_of(MANY);
    struct diagnosis d = diagnosed(t);
    check_list(&d);
    check_means(&d);
    check_reports(&d);
    diagnosis_release(&d);
    trace_free(t);
}

static void test_all_of_a_thousand(void **state)
{
    (void)state;
    for (int n = SHOWN_STEPS; n <= SHOWN_STEPS + 1; n++) {
        struct trace *t = steps_of(n);
        struct diagnosis d = diagnosed(t);
        size_t size;
        char *json = written(report_trace_write_json, &d, &size);
        assert_int_equal(strstr(json, "\"steps_note\": null") != NULL, n == SHOWN_STEPS);
        assert_int_equal(d.steps_left_out > 0, n > SHOWN_STEPS);
        free(json);
        diagnosis_release(&d);
        trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_steps), cmocka_unit_test(test_all_of_a_thousand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
