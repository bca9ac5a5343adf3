/* report.md of an imported trace, as text that fits an issue comment; its long tables are in trace_markdown_tables.c. */
#include <math.h>

#include "report/report_int.h"
#include "report/trace_views_int.h"
#include "report/trace_watched_int.h"

/* With the tables and the findings, together below 350 lines and 64 kB for any trace. */
enum { TOP_STEPS = 8, TOP_WARNINGS = 10, SENTENCE_COLUMNS = 500 };

static void put_top(FILE *to, const struct diagnosis *d, const struct plan *plan)
{
    const struct answers answers = report_trace_answers(d);
    char title[TITLE_MOST];
    report_markdown_top(to, "Diagnosis of", report_trace_title(d, title), &answers, plan);
}

/* A given step is what it is. */
static const char *no_cold_start(const struct diagnosis *d) { return d->all_cold && !d->corrected.given ? " and cold start" : ""; }

static void put_numbers(FILE *to, const struct diagnosis *d)
{
    const struct corrected_view *c = &d->corrected;
    number_text a, b;
    fputs("\n| | |\n|---|---|\n", to);
    report_markdown_fact(to, "device", d->device);
    fprintf(to, "| step as recorded | %s (%s%d step%s%s) |\n", report_show_us(d->mean.total_us, a), d->n_steps > 1 ? "mean of " : "", d->n_steps,
            d->n_steps == 1 ? "" : "s", !d->no_step_marks ? "" : d->steps_by ? ", told without step marks" : ": the whole trace, which has no step marks");
    fprintf(to, "| step without the profiler%s | %s", no_cold_start(d), report_show_us(c->step_us, a));
    if (c->given)
        fputs(d->watched ? ", measured undisturbed" : ", as given", to);
    else
        fprintf(to, " (%s to %s), estimated", report_show_us(c->low_us, a), report_show_us(c->high_us, b));
    fputs(" |\n", to);
    if (d->gpu.total_us > 0)
        fprintf(to, "| GPU busy | %s of the time from its first event to its last; %s of a step without the profiler |\n",
                report_show_percent(report_ratio(d->gpu.busy_us, d->gpu.total_us), a),
                report_show_percent(report_ratio(c->device_us, c->step_us), b));
    fprintf(to, "| per step | %lld kernels, %s launches, %lld host ops |\n", (long long)d->mean.kernels,
            report_show_count(d->launches.per_step, a), (long long)d->mean.host_ops);
}

static void put_split(FILE *to, const struct diagnosis *d)
{
    if (!d->n_steps)
        return;
    const struct trace_step *m = &d->mean;
    const struct profile_part parts[] = {
        {"kernel", m->kernel_us},         {"copy", m->memcpy_us},       {"fill", m->memset_us},   {"communication", m->comm_us},
        {"runtime call", m->runtime_us},  {"data loader", m->dataloader_us}, {"CPU op", m->cpu_us}, {"other", m->other_us}};
    fputs("\n## Step split, as recorded\n\nEach moment goes to the first of these that is active.\n\n"
          "| part | time | share | |\n|---|---:|---:|---|\n", to);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        report_markdown_part(to, &parts[i], m->total_us);
}

static void put_step(FILE *to, const struct trace_step *s)
{
    const double parts[] = {s->total_us, s->kernel_us, s->memcpy_us, s->memset_us, s->comm_us, s->runtime_us,
                            s->dataloader_us, s->cpu_us, s->other_us};
    number_text n;
    fprintf(to, "| %lld |", (long long)s->number);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(to, " %s |", report_show_us(parts[i], n));
    fputc('\n', to);
}

static void put_steps(FILE *to, const struct diagnosis *d)
{
    if (d->n_steps < 2)
        return;
    fputs("\n| step | total | kernel | copy | fill | comm. | runtime | loader | CPU op | other |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", to);
    const int shown = diagnosis_shown_steps(d);
    char note[STEPS_NOTE_MOST];
    for (int i = 0; i < shown && i < TOP_STEPS; i++)
        put_step(to, &d->steps[i]);
    if (shown > TOP_STEPS)
        fprintf(to, "\n%d more steps are in report.json.\n", shown - TOP_STEPS);
    if (*report_trace_steps_note(d, note))
        fprintf(to, "\n%s\n", note);
}

static void put_gpu(FILE *to, const struct diagnosis *d)
{
    const struct trace_gpu *g = &d->gpu;
    if (!(g->total_us > 0)) {
        fputs("\n## GPU\n\nThe trace has no work on a device.\n", to);
        return;
    }
    const struct profile_part parts[] = {{"busy", g->busy_us},
                                         {"idle: waits for the host", g->idle_host_us},
                                         {"idle: between kernels", g->idle_kernel_us},
                                         {"idle: other, such as waits for another stream", g->idle_other_us}};
    number_text a, b, c;
    char note[DEVICES_NOTE_MOST];
    report_trace_devices_note(d, note);
    fprintf(to, "\n## GPU, as recorded\n\nFrom its first to its last event: %s on %d stream%s.%s%s\n\n"
            "| | time | share | |\n|---|---:|---:|---|\n", report_show_us(g->total_us, a), g->streams, g->streams == 1 ? "" : "s", *note ? " " : "", note);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        report_markdown_part(to, &parts[i], g->total_us);
    fprintf(to, "\nComputation %s.", report_show_us(g->computation_us, a));
    if (g->comm_us > 0)
        fprintf(to, " Communication %s, of which %s (%s) is not hidden behind computation.", report_show_us(g->comm_us, a),
                report_show_us(g->exposed_comm_us, b), report_show_percent(report_ratio(g->exposed_comm_us, g->comm_us), c));
    if (g->memcpy_us > 0)
        fprintf(to, " Copies %s, of which %s is not hidden.", report_show_us(g->memcpy_us, a),
                report_show_us(g->exposed_memcpy_us, b));
    fputc('\n', to);
}

static void put_corrected_row(FILE *to, const char *label, double recorded, double corrected)
{
    number_text a, b;
    fprintf(to, "| %s | %s | %s |\n", label, report_show_us(recorded, a), report_show_us(corrected, b));
}

static void put_corrected(FILE *to, const struct diagnosis *d)
{
    const struct corrected_view *c = &d->corrected;
    if (!(c->recorded_us > 0))
        return;
    number_text a, b;
    fputs("\n## As recorded and without the profiler\n\n", to);
    if (report_trace_shows_cost(d))
        fprintf(to, "The profiler costs the host about %s for each of %s recorded events per step. Kernels keep their length.\n\n",
                report_show_us(c->cost_per_event_us, a), report_show_count(c->events_per_step, b));
    fprintf(to, "| per step | as recorded | without the profiler%s |\n|---|---:|---:|\n", no_cold_start(d));
    put_corrected_row(to, d->n_steps > 1 ? "step, of those that are judged" : "step", c->recorded_us, c->step_us);
    put_corrected_row(to, "host work, waits left out", NAN, c->host_us);
    if (d->gpu.total_us > 0) {
        put_corrected_row(to, "GPU busy", c->device_us, c->device_us);
        put_corrected_row(to, "GPU idle", c->recorded_idle_us, c->idle_us);
    }
    char note[RECORDED_NOTE_MOST];
    if (*report_trace_recorded_note(d, note))
        fprintf(to, "\n%s\n", note);
}

static void put_warnings(FILE *to, const struct diagnosis *d)
{
    if (!d->n_warnings)
        return;
    fputs("\n## Warnings\n\n", to);
    for (int i = 0; i < d->n_warnings && i < TOP_WARNINGS; i++) {
        fputs("- ", to);
        report_put_markdown_cut(to, d->warnings[i], SENTENCE_COLUMNS);
        fputc('\n', to);
    }
    if (d->n_warnings > TOP_WARNINGS)
        fprintf(to, "- and %d more in report.json\n", d->n_warnings - TOP_WARNINGS);
}

enum status report_trace_write_markdown(const struct diagnosis *d, FILE *to, struct error *err)
{
    (void)err;
    const struct plan plan = report_trace_plan(d);
    put_top(to, d, &plan);
    put_numbers(to, d);
    report_baseline_markdown(to, d->baseline);
    report_markdown_watched(to, d);
    report_markdown_plan(to, &plan);
    report_markdown_iteration(to, d);
    put_split(to, d);
    put_steps(to, d);
    put_gpu(to, d);
    put_corrected(to, d);
    report_trace_markdown_tables(to, d);
    put_warnings(to, d);
    return OK;
}
