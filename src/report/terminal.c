/* The first screen in a terminal: what bounds the step, its numbers, where the time went, what to do. With colours and
 * bars, or plain. */
#include <stdlib.h>

#include "report/terminal_int.h"

enum { TOP_KINDS = 6, TOP_FINDINGS = 4 };

static void put_title(const struct screen *s, const struct profile *p)
{
    number_text n;
    fputs(screen_style(s, DIM), s->to);
    report_put_text(s->to, p->name);
    fputs(" · ", s->to);
    report_put_text(s->to, p->arch);
    fprintf(s->to, ", %s parameters, batch %lld × %lld", report_show_count((double)p->parameters, n),
            (long long)p->batch, (long long)p->seq);
    if (p->accumulate > 1)
        fprintf(s->to, " × %lld accumulated", (long long)p->accumulate);
    fputs(" · ", s->to);
    report_put_text(s->to, p->device);
    if (p->gpu) {
        fputs(", ", s->to);
        report_put_text(s->to, p->device_name);
        fprintf(s->to, "%s\n", screen_style(s, OFF));
    } else
        fprintf(s->to, ", %d thread%s%s\n", p->threads, p->threads == 1 ? "" : "s", screen_style(s, OFF));
    fputs(screen_style(s, BOLD), s->to);
    report_put_text(s->to, p->headline);
    fprintf(s->to, "%s\n\n", screen_style(s, OFF));
    if (!p->warning)
        return;
    fprintf(s->to, "  %s%-*s%s", screen_style(s, YELLOW), SCREEN_INDENT - 2, "warning", screen_style(s, OFF));
    screen_put_wrapped(s, p->warning, SCREEN_INDENT);
    fputc('\n', s->to);
}

static void put_gpu(const struct screen *s, const struct profile *p)
{
    number_text a, b, c;
    const struct gpu_watch *w = &p->watch;
    if (p->kernels_per_step > 0) {
        screen_put_label(s, "kernels");
        fprintf(s->to, "%s per step; ops timed by ", report_show_count(p->kernels_per_step, a));
        report_put_text(s->to, p->timed_by);
        fputc('\n', s->to);
    }
    if (!w->looks)
        return;
    screen_put_label(s, "gpu");
    fprintf(s->to, "busy %s, counting what lies between and around the steps\n%*s%s of its memory used, %s W, up to %.0f °C, SM clock %.0f to %.0f MHz\n",
            report_show_percent(gpu_watch_busy_percent(w) / 100, a), (int)SCREEN_INDENT, "", report_show_bytes(w->used_most_bytes, b),
            report_show_number(gpu_watch_watts(w), c), w->celsius_most, w->sm_least_mhz, w->sm_most_mhz);
}

static void put_numbers(const struct screen *s, const struct profile *p)
{
    number_text a, b, c;
    screen_put_label(s, "step");
    fprintf(s->to, "%s (%s to %s, p10 to p90 of %d step%s; ", report_show_us(p->step_us, a),
            report_show_us(p->step_p10_us, b), report_show_us(p->step_p90_us, c), p->steps, p->steps == 1 ? "" : "s");
    report_put_recording(s->to, p);
    fputs(")\n", s->to);
    screen_put_label(s, "speed");
    fprintf(s->to, "%s samples/s, %s tokens/s", report_show_count(p->samples_per_s, a), report_show_count(p->tokens_per_s, b));
    report_put_padding(s->to, p);
    fputc('\n', s->to);
    screen_put_label(s, "MFU");
    screen_put_bar(s, p->mfu_percent / 100, SCREEN_BAR, BLUE);
    fprintf(s->to, "%s of %s FLOP/s in %s%s", report_show_percent(p->mfu_percent / 100, a),
            report_show_count(p->mfu_peak.gflops * 1e9, b), numbers_name(p->mfu_peak.numbers), p->mfu_peak.registers ? " registers" : "");
    if (p->mfu_band) {
        fputs(", band ", s->to);
        report_put_text(s->to, p->mfu_band);
    }
    fputc('\n', s->to);
    screen_put_label(s, "memory");
    if (p->available_bytes > 0)
        screen_put_bar(s, report_ratio(report_taken_bytes(p), p->available_bytes), SCREEN_BAR, BLUE);
    report_put_memory(s->to, p);
    fputc('\n', s->to);
    if (p->gpu)
        put_gpu(s, p);
}

/* It is not 0.0 %. */
static bool shows(double us, double whole) { return us >= whole / 2000; }

static void put_split(const struct screen *s, const struct profile *p)
{
    if (!p->n_split)
        return;
    screen_put_heading(s, "Iteration", "");
    for (int i = 0; i < p->n_split; i++) {
        if (!shows(p->split[i].us, report_split_us(p)))
            continue;
        screen_put_part(s, p->split[i].name, p->split[i].us, report_split_us(p), BLUE);
        fputc('\n', s->to);
    }
    if (report_gaps_us(p) > 0)
        screen_put_heading(s, "Not op work", ", within the above");
    for (int i = 0; i < p->n_gaps; i++) {
        if (!shows(p->gaps[i].us, p->step_us))
            continue;
        screen_put_part(s, p->gaps[i].name, p->gaps[i].us, p->step_us, YELLOW);
        fputc('\n', s->to);
    }
    if (p->waits_behind) {
        fputs("  threads wait longest behind ", s->to);
        report_put_text(s->to, p->waits_behind);
        fputc('\n', s->to);
    }
}

/* One paragraph: what people call the parts of a model, of the work of all ops. */
static void put_parts(const struct screen *s, const struct profile *p)
{
    const double work_us = report_op_work_us(p);
    char *words = NULL;
    size_t size = 0;
    number_text n;
    FILE *to = work_us > 0 && p->n_parts ? open_memstream(&words, &size) : NULL;
    if (!to)
        return;
    const char *before = "";
    for (int i = 0; i < p->n_parts; i++)
        if (p->parts[i].us > 0) {
            fprintf(to, "%s%s %s", before, p->parts[i].name, report_show_percent(p->parts[i].us / work_us, n));
            before = ", ";
        }
    fprintf(to, " of the %s that ops work, gradients included", report_show_us(work_us, n));
    if (p->products.ops)
        fprintf(to, "; matrix products %s of it, %d op%s, %d projection%s forward", report_show_percent(p->products.us / work_us, n), p->products.ops, p->products.ops == 1 ? "" : "s",
                p->products.projections, p->products.projections == 1 ? "" : "s");
    if (fclose(to) == 0 && words)
        screen_put_answer(s, "model", words);
    free(words);
}

static void put_kinds(const struct screen *s, const struct profile *p)
{
    if (!p->n_kinds)
        return;
    number_text n;
    screen_put_heading(s, "Top operations", "");
    const int bar = s->color ? SCREEN_BAR + 2 : 0;
    fprintf(s->to, "  %s%-*s%*s%9s%9s%7s%9s%9s%10s  %s%s\n", screen_style(s, DIM), SCREEN_NAME, "kind", bar, "", "self",
            "share", "ops", "GFLOP/s", "GB/s", "roofline", "target", screen_style(s, OFF));
    for (int i = 0; i < p->n_kinds && i < TOP_KINDS; i++) {
        const struct profile_kind *k = &p->kinds[i];
        screen_put_part(s, k->kind, k->self_us, p->step_us, BLUE);
        fprintf(s->to, "%7d", k->count);
        screen_put_right(s, report_show_number(report_gflops(k->flops, k->self_us), n), 9);
        screen_put_right(s, report_show_number(report_gb_per_s(k->bytes, k->self_us), n), 9);
        screen_put_right(s, report_show_percent(report_ratio(k->floor_us, k->self_us), n), 10);
        const char *target = report_kind_target(p, k->kind);
        fputs("  ", s->to);
        screen_put_cut(s, target ? target : "–", SCREEN_NAME);
        fputc('\n', s->to);
    }
    if (p->n_kinds > TOP_KINDS)
        fprintf(s->to, "  %sand %d more kind%s%s\n", screen_style(s, DIM), p->n_kinds - TOP_KINDS, p->n_kinds - TOP_KINDS == 1 ? "" : "s", screen_style(s, OFF));
}

static void put_finding(const struct screen *s, const struct finding *f)
{
    number_text a, b, c, d;
    fprintf(s->to, "  %s%-11s%s", screen_severity_style(s, f->severity), severity_name(f->severity), screen_style(s, OFF));
    screen_put_padded(s, f->rule, SCREEN_NAME + 2);
    fprintf(s->to, "%s of %s, expected %s (%s to %s), %s effort\n%*s", report_show_percent(f->share, a), report_share_of(f),
            report_show_speedup(f->speedup, b), report_show_speedup(f->speedup_low, c),
            report_show_speedup(f->speedup_high, d), effort_name(f->effort), SCREEN_INDENT, "");
    screen_put_wrapped(s, f->fix, SCREEN_INDENT);
}

static void put_findings(const struct screen *s, const struct profile *p, const struct plan *plan)
{
    char counts[COUNTS_MOST], more[COUNTS_MOST + 8];
    snprintf(more, sizeof more, ", %s", report_counts(plan, counts));
    screen_put_heading(s, "Largest bottlenecks", p->n_findings ? more : "");
    if (!p->n_findings)
        fputs("  no rule found time to win\n", s->to);
    for (int i = 0; i < p->n_findings && i < TOP_FINDINGS; i++)
        put_finding(s, &p->findings[i]);
    if (p->n_findings > TOP_FINDINGS)
        fprintf(s->to, "  %sand %d more%s\n", screen_style(s, DIM), p->n_findings - TOP_FINDINGS, screen_style(s, OFF));
}

void report_print_terminal(const struct profile *p, FILE *to, bool color)
{
    const struct screen s = {to, color};
    put_title(&s, p);
    put_numbers(&s, p);
    put_parts(&s, p);
    put_split(&s, p);
    screen_put_ranks(&s, p);
    put_kinds(&s, p);
    const struct plan plan = report_profile_plan(p);
    put_findings(&s, p, &plan);
    screen_put_roadmap(&s, &plan);
    screen_put_run(&s, p);
    fputc('\n', to);
    screen_put_answer(&s, "bound by", p->bound_by);
    screen_put_answer(&s, "largest", p->largest);
    screen_put_answer(&s, "do first", p->first_action);
    screen_put_answer(&s, "realistic", p->realistic_gain);
}
