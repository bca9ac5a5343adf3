/* The reports of an imported trace with little in it, or with more beside it: nothing at all, no device, numbers that are none, a program that was watched. */
#include "trace_diagnosis.h"
#include "trace_written.h"

static void assert_no_nan(const char *text)
{
    static const char *const wrong[] = {"nan", "NaN", " inf", "-inf", "(null)"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_has_not(text, wrong[i]);
}

static void try_all(const struct diagnosis *d)
{
    json_decref(trace_json(d));
    char *html = trace_written(report_trace_write_html, d), *md = trace_written(report_trace_write_markdown, d);
    assert_no_nan(md);
    assert_no_nan(strstr(html, "id=\"report-data\">") ? "" : "(null)");
    free(html);
    free(md);
}

static void an_empty_diagnosis_is_reported(void **state)
{
    (void)state;
    const struct diagnosis empty = {0};
    try_all(&empty);
    json_t *j = trace_json(&empty);
    assert_int_equal(json_array_size(at(j, "steps")), 0);
    assert_int_equal(json_array_size(at(j, "findings")), 0);
    assert_int_equal(json_array_size(at(j, "timeline.events")), 0);
    assert_true(json_is_null(at(j, "device")));
    assert_true(json_is_null(at(j, "gpu.busy_share")));
    assert_true(json_is_null(at(j, "trace.rank")));
    assert_true(json_is_null(at(j, "memory.peak_bytes")));
    json_decref(j);
    char *md = trace_written(report_trace_write_markdown, &empty);
    assert_has(md, "The trace has no work on a device.");
    assert_has(md, "No rule found time to win.");
    free(md);
}

static void a_trace_without_a_device_is_reported(void **state)
{
    (void)state;
    struct diagnosis *d = traced_on_cpu();
    try_all(d);
    char *md = trace_written(report_trace_write_markdown, d);
    assert_has(md, "(1 step: the whole trace, which has no step marks)");
    assert_has(md, "Shares are of the self time of all ops.\n");
    free(md);
    traced_free(d);
}

static void numbers_that_are_none_become_null_or_a_dash(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    d->corrected.step_us = NAN;
    d->gpu.busy_us = INFINITY;
    d->steps[1].cpu_us = -INFINITY;
    d->findings[0].speedup = NAN;
    d->kernels[0].mean_us = NAN;
    d->ops[0].self_us = INFINITY;
    d->queue[3].value = NAN;
    d->ranks[0].wait_us = NAN;
    d->phases[1].high = INFINITY;
    d->mean_occupancy = NAN;
    try_all(d);
    json_t *j = trace_json(d);
    assert_true(json_is_null(at(j, "corrected.step_us")));
    assert_true(json_is_null(at(j, "corrected.slowdown")));
    assert_true(json_is_null(at(j, "gpu.busy_us")));
    assert_true(json_is_null(at(j, "steps.1.cpu_us")));
    assert_true(json_is_null(at(j, "findings.0.expected_speedup")));
    assert_true(json_is_null(at(j, "queue.3.1")));
    assert_true(json_is_null(at(j, "mean_occupancy_percent")));
    json_decref(j);
    char *md = trace_written(report_trace_write_markdown, d);
    assert_has(md, "| step without the profiler | – (13.8 ms to 16.9 ms), estimated |");
    free(md);
    traced_free(d);
}

static void a_watched_program_says_what_memory_it_took(void **state)
{
    (void)state;
    struct watched_rank ranks[2] = {{.rank = 0, .steps_by = "Optimizer.step", .peak_bytes = 11.2e9}, {.rank = 3, .steps_by = "Optimizer.step", .peak_bytes = 9e8}};
    struct watched w = {.command = "python train.py", .ranks = ranks, .n = 2};
    struct diagnosis *d = traced_diagnosis();
    const double speedup = d->findings[0].speedup;
    d->watched = &w;
    d->findings[0].predicted = 1.5;                     /* and then it was measured */
    char *md = trace_written(report_trace_write_markdown, d);
    assert_non_null(strstr(md, "\nMemory: 11.2 GB at most in tensors on the device; rank 3 900 MB.\n"));
    free(md);
    json_t *j = trace_json(d);
    assert_number(j, "findings.0.predicted_speedup", 1.5);
    assert_number(j, "findings.0.expected_speedup", speedup);
    json_decref(j);
    w.n = 1;
    ranks[0].peak_bytes = 0;                            /* a CPU */
    md = trace_written(report_trace_write_markdown, d);
    assert_null(strstr(md, "Memory: "));
    free(md);
    traced_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_diagnosis_is_reported),
        cmocka_unit_test(a_trace_without_a_device_is_reported),
        cmocka_unit_test(numbers_that_are_none_become_null_or_a_dash),
        cmocka_unit_test(a_watched_program_says_what_memory_it_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
