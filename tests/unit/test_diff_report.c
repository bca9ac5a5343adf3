/* The report of two traces side by side, in JSON and Markdown. */
#include "report_check.h"
#include "trace_diagnosis.h"

static __attribute__((noinline)) char *diff_written(enum status (*write)(const struct trace_diff *, FILE *, struct error *),
                                                    const struct trace_diff *d)
{
    char *text = NULL;
    size_t size = 0;
    struct error err;
    FILE *to = open_memstream(&text, &size);
    assert_ok(write(d, to, &err), err);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void two_traces_are_compared(void **state)
{
    (void)state;
    struct diff_row split[] = {{"kernel", 9000, 8000, 24, 24}, {"CPU op", 4000, 5500, 36, 40}};
    struct diff_row ops[] = {{"aten::mm", 0, 1250, 0, 12}, {HOSTILE, 700, 390, 3, 3}};
    const struct trace_diff d = {.a = "before.json", .b = "after.json", .a_step_us = 20000, .b_step_us = 19500, .split = split,
                                 .n_split = 2, .ops = ops, .n_ops = 2, .ops_equal = 5, .ops_added = 3, .ops_removed = 1,
                                 .numbers = {{"MFU", DIFF_SHARE, 0.41, NAN}, {"GPU busy", DIFF_SHARE, NAN, NAN}, {"kernels", DIFF_COUNT, 1200, 300},
                                             {"memory at its peak", DIFF_BYTES, NAN, 2.5e9}}};
    char *text = diff_written(report_diff_write_json, &d), *md = diff_written(report_diff_write_markdown, &d);
    assert_has(md, "| per step | A | B |\n|---|---:|---:|\n| MFU | 41.0 % | – |\n| kernels | 1.20 k | 300 |\n| memory at its peak | – | 2.50 GB |\n\n## Step split");
    json_t *j = parsed(text);
    assert_string_equal(words(j, "kind"), "diff");
    assert_string_equal(words(j, "a.name"), "before.json");
    assert_number(j, "b.step_us", 19500);
    assert_number(j, "difference_us", -500);
    assert_number(j, "ratio", 0.975);
    assert_number(j, "split.1.difference_us", 1500);
    assert_true(json_is_null(at(j, "ops.0.ratio")));            /* there is none in A */
    assert_number(j, "ops.0.b_count", 12);
    assert_number(j, "ops_added", 3);
    assert_int_equal(json_array_size(at(j, "kernels")), 0);
    assert_int_equal(json_array_size(at(j, "numbers")), 3);
    assert_string_equal(words(j, "numbers.1.unit"), "count");
    assert_number(j, "numbers.1.b", 300);
    assert_true(json_is_null(at(j, "numbers.0.b")));
    assert_has(md, "From A to B the step changes by -500 µs (B / A 0.97×).");
    assert_has(md, "| kernel | 9.00 ms | 8.00 ms | -1.00 ms | 0.89× |\n");      /* parts of a step have no count */
    assert_has(md, "| aten::mm | 0 µs | 1.25 ms | +1.25 ms | – | 0 | 12 |");
    assert_has(md, "Names on the host in the last step: 5 with equal counts, 3 only in B, 1 only in A.");
    assert_has_not(md, "<script");
    assert_has_not(md, "\x1b");
    json_decref(j);
    free(text);
    free(md);

    const struct trace_diff none = {0};
    free(diff_written(report_diff_write_markdown, &none));
    text = diff_written(report_diff_write_json, &none);
    json_decref(parsed(text));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_traces_are_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
