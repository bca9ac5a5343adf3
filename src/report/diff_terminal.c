/* The screen of two traces side by side: the step, its split, and the ops and kernels that changed most. */
#include <math.h>
#include <string.h>

#include "report/terminal_int.h"

enum { TOP = 8, NAME = 44 };

/* "+1.20 ms", coloured when it is more than a hundredth of the step. */
static void put_change(const struct screen *s, double a_us, double b_us, double step_us)
{
    number_text n, text;
    const double change = b_us - a_us;
    snprintf(text, sizeof text, "%s%s", change >= 0 ? "+" : "-", report_show_us(fabs(change), n));
    const bool matters = fabs(change) > 0.01 * step_us;
    fputs(screen_style(s, !matters ? DIM : change > 0 ? RED : GREEN), s->to);
    screen_put_right(s, change == 0 ? "0" : text, 12);
    fputs(screen_style(s, OFF), s->to);
}

static void put_row(const struct screen *s, const struct trace_diff *d, const struct diff_row *r, bool counts)
{
    number_text n;
    fputs("  ", s->to);
    screen_put_padded(s, screen_kernel_name(r->name), NAME);
    screen_put_right(s, report_show_us(r->a_us, n), 11);
    screen_put_right(s, report_show_us(r->b_us, n), 11);
    put_change(s, r->a_us, r->b_us, d->a_step_us);
    if (counts) {
        screen_put_right(s, report_show_count(r->a_count, n), 9);
        screen_put_right(s, report_show_count(r->b_count, n), 9);
    }
    fputc('\n', s->to);
}

static void put_head(const struct screen *s, const char *title, const char *more, bool counts)
{
    screen_put_heading(s, title, more);
    fprintf(s->to, "  %s%-*s%11s%11s%12s", screen_style(s, DIM), NAME, "per step", "A", "B", "change");
    fprintf(s->to, "%s%s\n", counts ? "  count A  count B" : "", screen_style(s, OFF));
}

static void put_table(const struct screen *s, const struct trace_diff *d, const char *title, const struct diff_row *rows, int n)
{
    if (!n)
        return;
    put_head(s, title, ", largest differences first", true);
    for (int i = 0; i < n && i < TOP; i++)
        put_row(s, d, &rows[i], true);
    if (n > TOP)
        fprintf(s->to, "  %sand %d more%s\n", screen_style(s, DIM), n - TOP, screen_style(s, OFF));
}

/* What is 1.00 times as fast when it is printed is as fast. */
static void put_verdict(const struct screen *s, const struct trace_diff *d)
{
    number_text ratio, one;
    const bool slower = d->b_step_us > d->a_step_us;
    const double times = slower ? report_ratio(d->b_step_us, d->a_step_us) : report_ratio(d->a_step_us, d->b_step_us);
    if (!isfinite(times))
        return;
    if (!strcmp(report_show_speedup(times, ratio), report_show_speedup(1, one)))
        fputs(": B is as fast as A", s->to);
    else
        fprintf(s->to, ": B is %s %s", ratio, slower ? "slower" : "faster");
}

static void put_title(const struct screen *s, const struct trace_diff *d)
{
    number_text a, b, ratio;
    screen_put_label(s, "A");
    screen_put_cut(s, d->a, SCREEN_COLUMNS - SCREEN_INDENT);
    fputc('\n', s->to);
    screen_put_label(s, "B");
    screen_put_cut(s, d->b, SCREEN_COLUMNS - SCREEN_INDENT);
    fprintf(s->to, "\n%sA step takes %s in A and %s in B", screen_style(s, BOLD), report_show_us(d->a_step_us, a),
            report_show_us(d->b_step_us, b));
    put_verdict(s, d);
    fprintf(s->to, ".%s\n", screen_style(s, OFF));
    if (d->as_recorded)
        fprintf(s->to, "%s%s.%s\n", screen_style(s, DIM), REPORT_ONE_GIVEN, screen_style(s, OFF));
    else if (d->a_recorded_us > 0 && d->b_recorded_us > 0)
        fprintf(s->to, "%sWithout the profiler; as recorded %s and %s.%s\n", screen_style(s, DIM), report_show_us(d->a_recorded_us, a),
                report_show_us(d->b_recorded_us, b), screen_style(s, OFF));
    if (d->host_factor > 0 && d->host_factor != 1)
        fprintf(s->to, "%sEqual ops took %s as long on B's host; that is taken out of its step.%s\n", screen_style(s, DIM),
                report_show_speedup(d->host_factor, ratio), screen_style(s, OFF));
}

static void put_numbers(const struct screen *s, const struct trace_diff *d)
{
    number_text text;
    bool any = false;
    for (int i = 0; i < DIFF_NUMBERS; i++) {
        const struct diff_number *n = &d->numbers[i];
        if (!report_diff_known(n))
            continue;
        fputs(any ? "  " : "\n  ", s->to);
        screen_put_padded(s, n->name, NAME);
        screen_put_right(s, report_show_diff(n, n->a, text), 11);
        screen_put_right(s, report_show_diff(n, n->b, text), 11);
        fputc('\n', s->to);
        any = true;
    }
}

void report_diff_print_terminal(const struct trace_diff *d, FILE *to, bool color)
{
    const struct screen s = {to, color};
    put_title(&s, d);
    put_numbers(&s, d);
    put_head(&s, "Step split", ", as recorded", false);
    for (int i = 0; i < d->n_split; i++)
        if (d->split[i].a_us > 0 || d->split[i].b_us > 0)
            put_row(&s, d, &d->split[i], false);
    put_table(&s, d, d->n_host_ops ? "Ops, on the device" : "Ops", d->ops, d->n_ops);
    put_table(&s, d, "Ops, on the host", d->host_ops, d->n_host_ops);
    fprintf(to, "  names on the host in the last step: %lld with equal counts, %lld only in B, %lld only in A\n",
            (long long)d->ops_equal, (long long)d->ops_added, (long long)d->ops_removed);
    put_table(&s, d, d->kernels_by_op ? "Kernels by op and kind" : "Kernels", d->kernels, d->n_kernels);
}
