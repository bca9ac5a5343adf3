/* Two traces side by side, as JSON and as Markdown. */
#include <math.h>

#include "report/report_int.h"

enum { TOP_ROWS = 25, NAME_COLUMNS = 90, MAX_ROWS = 1000 };

#define N report_number
#define W report_name

static json_t *rows(const struct diff_row *row, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n && i < MAX_ROWS; i++)
        list = report_array(list, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", W(row[i].name), "a_us", N(row[i].a_us),
                                            "b_us", N(row[i].b_us), "difference_us", N(row[i].b_us - row[i].a_us), "ratio",
                                            N(report_ratio(row[i].b_us, row[i].a_us)), "a_count", N(row[i].a_count),
                                            "b_count", N(row[i].b_count)));
    return list;
}

static const char *const units[] = {[DIFF_SHARE] = "share", [DIFF_COUNT] = "count", [DIFF_BYTES] = "bytes"};

bool report_diff_known(const struct diff_number *n) { return n->name && (isfinite(n->a) || isfinite(n->b)); }

const char *report_show_diff(const struct diff_number *of, double value, number_text out)
{
    return of->unit == DIFF_SHARE ? report_show_percent(value, out) : of->unit == DIFF_COUNT ? report_show_count(value, out) : report_show_bytes(value, out);
}

static json_t *numbers(const struct trace_diff *d)
{
    json_t *list = json_array();
    for (int i = 0; i < DIFF_NUMBERS; i++)
        if (report_diff_known(&d->numbers[i]))
            list = report_array(list, json_pack("{s:o,s:s,s:o,s:o}", "name", W(d->numbers[i].name), "unit", units[d->numbers[i].unit], "a", N(d->numbers[i].a), "b",
                                                N(d->numbers[i].b)));
    return list;
}

enum status report_diff_write_json(const struct trace_diff *d, FILE *to, struct error *err)
{
    json_t *sides = json_pack("{s:{s:o,s:o,s:o},s:{s:o,s:o,s:o},s:o,s:o}", "a", "name", W(d->a), "step_us", N(d->a_step_us),
                              "recorded_us", N(d->a_recorded_us), "b", "name", W(d->b), "step_us", N(d->b_step_us), "recorded_us",
                              N(d->b_recorded_us), "difference_us", N(d->b_step_us - d->a_step_us),
                              "ratio", N(report_ratio(d->b_step_us, d->a_step_us)));
    json_t *lists = json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:b,s:I,s:I,s:I}", "as_recorded", d->as_recorded, "host_factor", N(d->host_factor), "split", rows(d->split, d->n_split), "ops", rows(d->ops, d->n_ops),
                              "host_ops", rows(d->host_ops, d->n_host_ops), "kernels", rows(d->kernels, d->n_kernels), "kernels_by_op",
                              d->kernels_by_op, "ops_equal", (json_int_t)d->ops_equal, "ops_added",
                              (json_int_t)d->ops_added, "ops_removed", (json_int_t)d->ops_removed);
    json_object_set_new(sides, "numbers", numbers(d));
    json_t *document = report_merge(report_merge(report_head("diff", TRACE_SCHEMA, HONE_VERSION, NULL), sides), lists);
    const enum status st = report_put_json(document, JSON_INDENT(1), to, err);
    fputc('\n', to);
    return st;
}

/* "+1.25 ms", "-310 µs" */
static void put_change(FILE *to, double us)
{
    number_text n;
    fprintf(to, "%s%s", us > 0 ? "+" : "", report_show_us(us, n));
}

static void put_rows(FILE *to, const char *heading, const char *what, const struct diff_row *row, int n, int top, bool counts)
{
    if (!n)
        return;
    number_text a, b;
    fprintf(to, "\n## %s, per step\n\n| %s | A | B | difference | B / A |%s\n|---|---:|---:|---:|---:|%s\n", heading, what,
            counts ? " count A | count B |" : "", counts ? "---:|---:|" : "");
    for (int i = 0; i < n && i < top; i++) {
        fputs("| ", to);
        report_put_markdown_cut(to, row[i].name, NAME_COLUMNS);
        fprintf(to, " | %s | %s | ", report_show_us(row[i].a_us, a), report_show_us(row[i].b_us, b));
        put_change(to, row[i].b_us - row[i].a_us);
        fprintf(to, " | %s |", report_show_speedup(report_ratio(row[i].b_us, row[i].a_us), a));
        if (counts)
            fprintf(to, " %s | %s |", report_show_count(row[i].a_count, a), report_show_count(row[i].b_count, b));
        fputc('\n', to);
    }
    if (n > top)
        fprintf(to, "\n%d more change less.\n", n - top);
}

static void put_side(FILE *to, const char *label, const char *name, double step_us, double recorded_us)
{
    number_text a, b;
    fprintf(to, "| %s | ", label);
    report_put_markdown_cut(to, name && *name ? name : "–", NAME_COLUMNS);
    fprintf(to, " | %s | %s |\n", report_show_us(step_us, a), report_show_us(recorded_us, b));
}

static void put_numbers(FILE *to, const struct trace_diff *d)
{
    number_text a, b;
    bool any = false;
    for (int i = 0; i < DIFF_NUMBERS; i++) {
        const struct diff_number *n = &d->numbers[i];
        if (!report_diff_known(n))
            continue;
        fputs(any ? "" : "\n| per step | A | B |\n|---|---:|---:|\n", to);
        fprintf(to, "| %s | %s | %s |\n", n->name, report_show_diff(n, n->a, a), report_show_diff(n, n->b, b));
        any = true;
    }
}

enum status report_diff_write_markdown(const struct trace_diff *d, FILE *to, struct error *err)
{
    (void)err;
    number_text n;
    fprintf(to, "# Two traces\n\n| | trace | step%s | as recorded |\n|---|---|---:|---:|\n", d->as_recorded ? "" : " without the profiler");
    put_side(to, "A", d->a, d->a_step_us, d->a_recorded_us);
    put_side(to, "B", d->b, d->b_step_us, d->b_recorded_us);
    fputs("\nFrom A to B the step changes by ", to);
    put_change(to, d->b_step_us - d->a_step_us);
    fprintf(to, " (B / A %s).\n", report_show_speedup(report_ratio(d->b_step_us, d->a_step_us), n));
    if (d->as_recorded)
        fprintf(to, "\n%s.\n", REPORT_ONE_GIVEN);
    if (d->host_factor > 0 && d->host_factor != 1)
        fprintf(to, "\nEqual ops took %s as long on B's host; that is taken out of its step.\n", report_show_speedup(d->host_factor, n));
    put_numbers(to, d);
    put_rows(to, "Step split, as recorded", "part", d->split, d->n_split, d->n_split, false);
    put_rows(to, d->n_host_ops ? "Ops, on the device" : "Ops", "op", d->ops, d->n_ops, TOP_ROWS, true);
    put_rows(to, "Ops, on the host", "op", d->host_ops, d->n_host_ops, TOP_ROWS, true);
    fprintf(to, "\nNames on the host in the last step: %lld with equal counts, %lld only in B, %lld only in A.\n", (long long)d->ops_equal,
            (long long)d->ops_added, (long long)d->ops_removed);
    put_rows(to, d->kernels_by_op ? "Kernels by op and kind" : "Kernels", d->kernels_by_op ? "op, kind" : "kernel", d->kernels, d->n_kernels, TOP_ROWS, true);
    return OK;
}
