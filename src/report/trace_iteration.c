/* The iteration of an imported trace by its phases, in the names and the order of a profile: in JSON, Markdown and a terminal. */
#include "report/terminal_int.h"
#include "report/trace_views_int.h"

json_t *report_trace_iteration(const struct diagnosis *d)
{
    const double whole = d->corrected.step_us;
    json_t *list = json_array();
    for (int i = 0; i < d->n_iteration; i++) {
        const struct trace_phase *p = &d->iteration[i];
        json_t *row = json_pack("{s:o,s:o,s:o}", "name", report_name(p->name), "us", report_number(p->us), "share", report_number(report_ratio(p->us, whole)));
        list = report_array(list, report_merge(row, json_pack("{s:o,s:o}", "recorded_us", report_number(p->recorded_us), "busy_us", report_number(p->busy_us))));
    }
    return list;
}

/* It is not 0.0 %, in one of both views. */
static bool shows(const struct diagnosis *d, const struct trace_phase *p)
{
    return p->us >= d->corrected.step_us / 2000 || p->recorded_us >= d->corrected.recorded_us / 2000;
}

/* Of which rank, where there are several; "" else. */
static const char *of_rank(const struct diagnosis *d, char out[32])
{
    const int rank = d->trace ? d->trace->origin.rank : -1;
    if (rank >= 0)
        snprintf(out, 32, ", of rank %d", rank);
    return d->n_ranks < 2 ? "" : rank < 0 ? ", of the first rank" : out;
}

/* ---- a terminal ---- */

static void put_row(const struct screen *s, const struct diagnosis *d, const struct trace_phase *p)
{
    number_text n;
    screen_put_part(s, p->name, p->us, d->corrected.step_us, BLUE);
    if (d->gpu.total_us > 0)
        screen_put_right(s, report_show_us(p->busy_us, n), 13);
    screen_put_right(s, report_show_us(p->recorded_us, n), 15);
    fputc('\n', s->to);
}

void screen_put_iteration(const struct screen *s, const struct diagnosis *d)
{
    const bool device = d->gpu.total_us > 0;
    char rank[32], more[128];
    if (!d->n_iteration && !d->iteration_note)
        return;
    snprintf(more, sizeof more, "%s%s", of_rank(d, rank), device && d->n_iteration ? "; time in which the GPU is idle goes to the phase that the host is in" : "");
    screen_put_heading(s, "Iteration", more);
    if (!d->n_iteration) {
        fprintf(s->to, "  – %s", screen_style(s, DIM));
        screen_put_wrapped(s, d->iteration_note, 4);
        fputs(screen_style(s, OFF), s->to);
        return;
    }
    const int bar = s->color ? SCREEN_BAR + 2 : 0;
    fprintf(s->to, "  %s%-*s%*s%9s%9s%s%15s%s\n", screen_style(s, DIM), SCREEN_NAME, "without profiler", bar, "", "time", "share", device ? "     GPU busy" : "",
            "as recorded", screen_style(s, OFF));
    for (int i = 0; i < d->n_iteration; i++)
        if (shows(d, &d->iteration[i]))
            put_row(s, d, &d->iteration[i]);
}

/* ---- Markdown ---- */

static void put_markdown_row(FILE *to, const struct diagnosis *d, const struct trace_phase *p)
{
    const double share = report_ratio(p->us, d->corrected.step_us);
    number_text a, b, c, e;
    fprintf(to, "| %s | %s | %s | ", p->name, report_show_us(p->us, a), report_show_percent(share, b));
    report_markdown_bar(to, share);
    if (d->gpu.total_us > 0)
        fprintf(to, " | %s", report_show_us(p->busy_us, c));
    fprintf(to, " | %s |\n", report_show_us(p->recorded_us, e));
}

void report_markdown_iteration(FILE *to, const struct diagnosis *d)
{
    const bool device = d->gpu.total_us > 0;
    char rank[32];
    if (!d->n_iteration && !d->iteration_note)
        return;
    fprintf(to, "\n## Iteration, without the profiler%s\n\n", of_rank(d, rank));
    if (!d->n_iteration) {
        fprintf(to, "– (%s)\n", d->iteration_note);
        return;
    }
    if (device)
        fputs("A moment goes to the phase whose work the GPU does; where it does none, to the phase that the host is in.\n\n", to);
    fprintf(to, "| phase | time | share | |%s as recorded |\n|---|---:|---:|---|%s---:|\n", device ? " GPU busy |" : "", device ? "---:|" : "");
    for (int i = 0; i < d->n_iteration; i++)
        if (shows(d, &d->iteration[i]))
            put_markdown_row(to, d, &d->iteration[i]);
}
