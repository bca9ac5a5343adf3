/* The screen of an imported trace: what bounds the step, the step as recorded and without the profiler, where its time
 * went, the largest kernels and ops, the ranks; then what to do (trace_plan_terminal.c). */
#include <math.h>
#include <string.h>

#include "report/terminal_int.h"
#include "report/trace_watched_int.h"

enum { TOP = 5, RANKS = 8, LONG_NAME = 42, SHORT_NAME = 20 };

/* ---- the step ---- */

/* The last part of a path says more than its first. */
static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash[1] ? slash + 1 : path;
}

static bool kernels_equal(const struct diagnosis *d)
{
    for (int i = 0; d->steps && i < diagnosis_shown_steps(d); i++)
        if (d->steps[i].kernels != d->mean.kernels)
            return false;
    return true;
}

static void put_title(const struct screen *s, const struct diagnosis *d)
{
    number_text n;
    char title[TITLE_MOST];
    fputs(screen_style(s, DIM), s->to);
    screen_put_cut(s, report_trace_title(d, title), 40);
    fputs(" · ", s->to);
    screen_put_cut(s, d->device && *d->device ? d->device : "unknown device", 24);
    if (d->no_step_marks && !d->steps_by)
        fputs(" · one step (no step marks)", s->to);
    else
        fprintf(s->to, " · %d step%s%s", d->n_steps, d->n_steps == 1 ? "" : "s", d->no_step_marks ? " (no step marks)" : "");
    if (d->mean.kernels || d->gpu.total_us > 0)
        fprintf(s->to, ", %s kernel%s%s", report_show_count((double)d->mean.kernels, n), d->mean.kernels == 1 ? "" : "s",
                d->n_steps < 2 ? "" : kernels_equal(d) ? " each" : " on average");
    fprintf(s->to, "%s\n%s", screen_style(s, OFF), screen_style(s, BOLD));
    screen_put_wrapped(s, d->headline, 0);
    fputs(screen_style(s, OFF), s->to);
    char note[STEPS_NOTE_MOST];
    if (*report_trace_steps_note(d, note)) {
        fputs(screen_style(s, DIM), s->to);
        screen_put_wrapped(s, note, 0);
        fputs(screen_style(s, OFF), s->to);
    }
}

static void put_view(const struct screen *s, const char *name, double step_us, double busy_us, double idle_us, bool device)
{
    number_text n;
    fprintf(s->to, "  %-*s", SCREEN_NAME, name);
    screen_put_right(s, report_show_us(step_us, n), 9);
    if (!device)
        return;
    screen_put_right(s, report_show_us(busy_us, n), 13);
    screen_put_right(s, report_show_percent(report_ratio(busy_us, step_us), n), 9);
    screen_put_right(s, report_show_us(idle_us, n), 13);
    screen_put_right(s, report_show_percent(report_ratio(idle_us, step_us), n), 9);
}

static void put_note(const struct screen *s, const char *note)
{
    if (!*note)
        return;
    fprintf(s->to, "  %s", screen_style(s, DIM));
    screen_put_wrapped(s, note, 2);
    fputs(screen_style(s, OFF), s->to);
}

/* Both views, so that nobody takes the profiler's gaps for the program's. */
static void put_views(const struct screen *s, const struct diagnosis *d)
{
    const struct corrected_view *c = &d->corrected;
    const bool device = d->gpu.total_us > 0;
    number_text a, b;
    fprintf(s->to, "\n%sStep%s%s%*s%s%s\n", screen_style(s, BOLD), screen_style(s, OFF), screen_style(s, DIM),
            SCREEN_NAME + 7, "time", device ? "              GPU busy              GPU idle" : "", screen_style(s, OFF));
    put_view(s, "as recorded", c->recorded_us, c->device_us, c->recorded_idle_us, device);
    fprintf(s->to, "%s\n", !d->watched ? "" : d->cold_steps && !d->all_cold ? "  of warm steps alone" : "  of the recorded steps");
    put_view(s, "without profiler", c->step_us, c->device_us, c->idle_us, device);
    if (c->given)
        fputs(d->watched ? "  measured: undisturbed, below\n" : "  given\n", s->to);
    else
        fprintf(s->to, "  %s to %s\n", report_show_us(c->low_us, a), report_show_us(c->high_us, b));
    if (report_trace_shows_cost(d))
        fprintf(s->to, "  %sthe profiler's cost: %s for each of %s host events in a step%s\n", screen_style(s, DIM),
                report_show_us(c->cost_per_event_us, a), report_show_count(round(c->events_per_step), b),
                screen_style(s, OFF));
    if (d->all_cold && !c->given)
        put_note(s, "without profiler and cold start: what a process does once is taken out, too");
    char devices[DEVICES_NOTE_MOST], recorded[RECORDED_NOTE_MOST];
    put_note(s, report_trace_devices_note(d, devices));
    put_note(s, report_trace_recorded_note(d, recorded));
}

static void put_split(const struct screen *s, const struct diagnosis *d)
{
    const struct trace_step *m = &d->mean;
    const struct profile_part parts[] = {
        {"kernel", m->kernel_us},   {"copy", m->memcpy_us},           {"memset", m->memset_us}, {"communication", m->comm_us},
        {"runtime", m->runtime_us}, {"data loader", m->dataloader_us}, {"CPU op", m->cpu_us},    {"other", m->other_us},
    };
    char words[96];
    number_text n;
    snprintf(words, sizeof words, ", as recorded: the mean step, %s; a moment goes to the first that is active", report_show_us(m->total_us, n));
    screen_put_heading(s, "Step split", words);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!(parts[i].us > 0))
            continue;
        screen_put_part(s, parts[i].name, parts[i].us, m->total_us, BLUE);
        fputc('\n', s->to);
    }
}

static void put_idle(const struct screen *s, const struct diagnosis *d)
{
    const struct trace_gpu *g = &d->gpu;
    const struct profile_part parts[] = {
        {"host wait", g->idle_host_us}, {"kernel wait", g->idle_kernel_us}, {"other", g->idle_other_us}};
    static const char *const why[] = {"nothing was launched yet", "launched in time, started late",
                                      "waiting for another stream"};
    if (!(g->idle_us > 0))
        return;
    screen_put_heading(s, "GPU idle", ", as recorded, of all steps together: from the first device event to the last");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        screen_put_part(s, parts[i].name, parts[i].us, g->total_us, YELLOW);
        fprintf(s->to, "  %s%s%s\n", screen_style(s, DIM), why[i], screen_style(s, OFF));
    }
}

/* ---- single lines ---- */

static void put_launches(const struct screen *s, const struct trace_launches *l)
{
    number_text a, b, c, d;
    if (!l->count)
        return;
    screen_put_label(s, "launches");
    fprintf(s->to, "%s per step, median call %s, delay %s (p90 %s)\n", report_show_count(round(l->per_step), a),
            report_show_us(l->call_us, b), report_show_us(l->delay_us, c), report_show_us(l->delay_p90_us, d));
    screen_put_label(s, "queue");
    fprintf(s->to, "%s launched and not finished on average, at most %s\n", report_show_number(l->queue_mean, a),
            report_show_count((double)l->queue_max, b));
    if (l->syncs) {
        screen_put_label(s, "waits");
        fprintf(s->to, "%s call%s in which the host waits for the device, %s in all\n",
                report_show_count((double)l->syncs, a), l->syncs == 1 ? "" : "s", report_show_us(l->sync_us, b));
    }
    if (l->graphs) {
        screen_put_label(s, "graphs");
        fprintf(s->to, "%s launch%s of whole graphs\n", report_show_count((double)l->graphs, a), l->graphs == 1 ? "" : "es");
    }
}

static void put_overlap(const struct screen *s, const char *label, double us, double exposed_us)
{
    number_text a, b, c;
    if (!(us > 0))
        return;
    screen_put_label(s, label);
    fprintf(s->to, "%s, of which %s (%s) hidden by nothing\n", report_show_us(us, a), report_show_us(exposed_us, b),
            report_show_percent(report_ratio(exposed_us, us), c));
}

static void put_memory(const struct screen *s, const struct diagnosis *d)
{
    number_text a, b;
    if (!(d->memory_peak_bytes > 0))
        return;
    screen_put_label(s, "memory");
    fprintf(s->to, "%s at the peak", report_show_bytes(d->memory_peak_bytes, a));
    if (d->memory_total_bytes > 0)
        fprintf(s->to, " of %s", report_show_bytes(d->memory_total_bytes, b));
    fputc('\n', s->to);
}

static void put_lines(const struct screen *s, const struct diagnosis *d)
{
    if (d->launches.count || d->gpu.comm_us > 0 || d->gpu.memcpy_us > 0 || d->memory_peak_bytes > 0)
        fputc('\n', s->to);
    put_launches(s, &d->launches);
    put_overlap(s, "comm", d->gpu.comm_us, d->gpu.exposed_comm_us);
    put_overlap(s, "copies", d->gpu.memcpy_us, d->gpu.exposed_memcpy_us);
    put_memory(s, d);
}

/* ---- tables ---- */

static void put_count(const struct screen *s, int64_t n, size_t columns)
{
    number_text text;
    screen_put_right(s, report_show_count((double)n, text), columns);
}

static void put_us(const struct screen *s, double us, size_t columns)
{
    number_text text;
    screen_put_right(s, report_show_us(us, text), columns);
}

static void put_share(const struct screen *s, double share, size_t columns)
{
    number_text text;
    screen_put_right(s, report_show_percent(share, text), columns);
}

/* Variants of one name differ at their ends. */
static void put_name(const struct screen *s, const char *name)
{
    char *cut = report_cut_middle(name, LONG_NAME, LONG_NAME / 3);
    screen_put_padded(s, cut, LONG_NAME);
    free(cut);
}

static void put_kernels(const struct screen *s, const struct diagnosis *d)
{
    if (!d->n_kernels)
        return;
    screen_put_heading(s, "Top kernels", ", over the whole trace");
    fprintf(s->to, "  %s%-*s %-*s%9s%8s%7s%9s%s\n", screen_style(s, DIM), LONG_NAME, "name", SHORT_NAME, "launched by",
            "total", "share", "count", "mean", screen_style(s, OFF));
    for (int i = 0; i < d->n_kernels && i < TOP; i++) {
        const struct trace_kernel *k = &d->kernels[i];
        fputs("  ", s->to);
        put_name(s, k->shown ? k->shown : screen_kernel_name(k->name));
        fputc(' ', s->to);
        screen_put_padded(s, k->op, SHORT_NAME);
        put_us(s, k->total_us, 9);
        put_share(s, k->share, 8);
        put_count(s, k->count, 7);
        put_us(s, k->mean_us, 9);
        fputc('\n', s->to);
    }
}

static void put_ops(const struct screen *s, const struct diagnosis *d)
{
    if (!d->n_ops)
        return;
    const bool device = d->gpu.total_us > 0;
    screen_put_heading(s, "Top ops", device ? ", of all steps together; by self time on the device, then on the host" : ", of all steps together; by self time");
    fprintf(s->to, "  %s%-*s", screen_style(s, DIM), LONG_NAME, "name");
    fprintf(s->to, device ? "%11s%11s%9s%9s%11s%s\n" : "%.0s%11s%9s%9s%.0s%s\n", "GPU self", device ? "host self" : "self", "share", "count", "launches", screen_style(s, OFF));
    for (int i = 0; i < d->n_ops && i < TOP; i++) {
        const struct trace_op *o = &d->ops[i];
        fputs("  ", s->to);
        put_name(s, o->name);
        if (device)
            put_us(s, o->device_self_us, 11);
        put_us(s, o->self_us, 11);
        put_share(s, o->share, 9);
        put_count(s, o->count, 9);
        if (device)
            put_count(s, o->launches, 11);
        fputc('\n', s->to);
    }
    char note[OPS_NOTE_MOST];
    fprintf(s->to, "  %s", screen_style(s, DIM));
    screen_put_wrapped(s, report_trace_ops_note(d, note), 2);
    fputs(screen_style(s, OFF), s->to);
}

/* Those of a device only where there is one. */
static void put_rank(const struct screen *s, const struct trace_rank *r, bool device)
{
    number_text number;
    const struct { double us; bool of_device; } part[] = {{r->step_us, false}, {r->kernel_us, true}, {r->comm_us, false}, {r->exposed_comm_us, false},
                                                          {r->idle_us, true}, {r->wait_us, false}};
    fprintf(s->to, "  %s", screen_style(s, r->straggler ? RED : ""));
    screen_put_right(s, report_show_rank(r->rank, number), 6);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (device || !part[i].of_device)
            put_us(s, part[i].us, 10);
    fputs("  ", s->to);
    screen_put_cut(s, last_part(r->path), r->straggler ? 16 : 28);
    fprintf(s->to, "%s%s\n", r->straggler ? "  ← straggler" : "", r->straggler ? screen_style(s, OFF) : "");
}

static void put_ranks(const struct screen *s, const struct diagnosis *d)
{
    if (d->n_ranks < 2)
        return;
    screen_put_heading(s, "Ranks", ", per step; wait: in collectives, for other ranks");
    const bool device = d->gpu.total_us > 0;
    fprintf(s->to, "  %s%6s%10s", screen_style(s, DIM), "rank", "step");
    fprintf(s->to, device ? "%10s%10s%10s%10s%10s  %s%s\n" : "%.0s%10s%10s%.0s%10s  %s%s\n", "kernels", "comm", "exposed", "idle", "wait", "file", screen_style(s, OFF));
    for (int i = 0; i < d->n_ranks; i++)
        if (i < RANKS || d->ranks[i].straggler)
            put_rank(s, &d->ranks[i], device);
    if (d->n_ranks > RANKS)
        fprintf(s->to, "  %s%d ranks in all%s\n", screen_style(s, DIM), d->n_ranks, screen_style(s, OFF));
}

void report_trace_print_terminal(const struct diagnosis *d, FILE *to, bool color)
{
    const struct screen s = {to, color};
    put_title(&s, d);
    put_views(&s, d);
    screen_put_watched(&s, d);
    screen_put_iteration(&s, d);
    put_split(&s, d);
    put_idle(&s, d);
    put_lines(&s, d);
    put_kernels(&s, d);
    put_ops(&s, d);
    screen_put_views(&s, d);
    screen_put_collectives(&s, d);
    put_ranks(&s, d);
    screen_put_findings(&s, d);
    const struct plan plan = report_trace_plan(d);
    screen_put_roadmap(&s, &plan);
    screen_put_baseline(&s, d->baseline);
    if (d->bound_by)
        fputc('\n', to);
    screen_put_answer(&s, "bound by", d->bound_by);
    screen_put_answer(&s, "largest", d->largest);
    screen_put_answer(&s, "do first", d->first_action);
    screen_put_answer(&s, "realistic", d->realistic_gain);
}
