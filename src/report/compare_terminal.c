/* The screen of hone compare: the table of hone runs, and what runs took. */
#include <stdlib.h>

#include "core/arena.h"
#include "report/runs_text_int.h"
#include "report/terminal_int.h"

enum { NAME = 28, SPARK = 32 };

/* Losses of the curve. */
static void put_spark(const struct screen *s, const json_t *points)
{
    const size_t n = json_array_size(points);
    double *losses = xcalloc(n + 1, sizeof *losses);
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(json_array_get(points, i), 3);
        losses[i] = json_is_number(x) ? json_number_value(x) : NAN;
    }
    report_put_blocks(s->to, losses, (int)n, SPARK);
    free(losses);
}

static void put_run(const struct screen *s, const json_t *run)
{
    number_text n;
    fputs("  ", s->to);
    screen_put_padded(s, word(run, "name"), NAME);
    fputc(' ', s->to);
    put_spark(s, json_object_get(json_object_get(run, "curve"), "points"));
    screen_put_right(s, show_loss(num(run, "best_val_loss"), n), 10);
    screen_put_right(s, report_show_count(num(run, "tokens"), n), 9);
    screen_put_right(s, report_show_seconds(num(run, "seconds"), n), 12);
    screen_put_right(s, report_show_bytes(num(run, "planned_bytes"), n), 9);
    screen_put_right(s, report_show_bytes(num(run, "peak_bytes"), n), 9);
    fputc('\n', s->to);
}

void report_compare_print_terminal(const json_t *compared, FILE *to, bool color)
{
    const struct screen s = {to, color};
    const json_t *run;
    size_t i;
    fprintf(to, "%s", screen_style(&s, BOLD));
    screen_put_wrapped(&s, word(compared, "headline"), 0);
    fprintf(to, "%s\n", screen_style(&s, OFF));
    report_runs_print_terminal(compared, to, color);
    fprintf(to, "\n%s  %-*s %-*s  best val   tokens        time  planned     peak%s\n", screen_style(&s, DIM), NAME, "", SPARK, "loss over steps", screen_style(&s, OFF));
    json_array_foreach(json_object_get(compared, "runs"), i, run)
        put_run(&s, run);
}
