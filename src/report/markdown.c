/* report.md: the report as text that fits an issue comment: tables, and bars of characters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "report/report_int.h"

/* Together below 200 lines for any profile. */
enum { TOP_KINDS = 12, TOP_OPS = 10, CONFIG_LINES = 10 };
enum { MOST_OPS = 100 };                   /* of the tables of operations alone */

static void put_top(FILE *to, const struct profile *p, const struct plan *plan)
{
    const struct answers answers = report_profile_answers(p);
    report_markdown_top(to, "Profile of", p->name && *p->name ? p->name : "a step", &answers, plan);
}

static void put_numbers(FILE *to, const struct profile *p)
{
    number_text a, b, c;
    fputs("\n| | |\n|---|---|\n", to);
    fprintf(to, "| step time | %s (p10 %s, p90 %s; %d step%s) |\n", report_show_us(p->step_us, a),
            report_show_us(p->step_p10_us, b), report_show_us(p->step_p90_us, c), p->steps, p->steps == 1 ? "" : "s");
    fprintf(to, "| speed | %s samples/s, %s tokens/s", report_show_count(p->samples_per_s, a), report_show_count(p->tokens_per_s, b));
    report_put_padding(to, p);
    fputs(" |\n", to);
    fprintf(to, "| MFU | %s of %s FLOP/s measured in %s%s; band ", report_show_percent(p->mfu_percent / 100, a),
            report_show_count(p->mfu_peak.gflops * 1e9, b), numbers_name(p->mfu_peak.numbers), p->mfu_peak.registers ? " registers" : "");
    report_put_markdown(to, p->mfu_band ? p->mfu_band : "–");
    fputs(" |\n| memory | ", to);
    report_put_memory(to, p);
    fprintf(to, " |\n| loss | %s |\n", report_show_number(p->loss, a));
    fputs("| recording | ", to);
    report_put_recording(to, p);
    fputs(" |\n", to);
}

static void put_split(FILE *to, const struct profile *p)
{
    if (!p->n_split)
        return;
    number_text a, b, c;
    fputs("\n## Iteration\n\n| part | time | share | |\n|---|---:|---:|---|\n", to);
    for (int i = 0; i < p->n_split; i++)
        report_markdown_part(to, &p->split[i], report_split_us(p));
    fprintf(to, "\nOf the step (%s), ops work for %s; the rest (%s) is:\n\n", report_show_us(p->step_us, a),
            report_show_us(report_op_work_us(p), b), report_show_us(report_gaps_us(p), c));
    fputs("| not op work | time | share | |\n|---|---:|---:|---|\n", to);
    for (int i = 0; i < p->n_gaps; i++)
        report_markdown_part(to, &p->gaps[i], p->step_us);
    if (p->waits_behind) {
        fputs("\nThreads wait longest behind ", to);
        report_put_markdown(to, p->waits_behind);
        fputs(".\n", to);
    }
}

static void put_parts(FILE *to, const struct profile *p)
{
    if (!(report_op_work_us(p) > 0))
        return;
    fputs("\nWork of the ops by part of the model, gradients included:\n\n| part | time | share | |\n|---|---:|---:|---|\n", to);
    for (int i = 0; i < p->n_parts; i++)
        report_markdown_part(to, &p->parts[i], report_op_work_us(p));
    number_text n;
    if (p->products.ops)
        fprintf(to, "\nMatrix products, outside of attention: %s of it, in %d ops; the forward pass has %d projections.\n",
                report_show_percent(p->products.us / report_op_work_us(p), n), p->products.ops, p->products.projections);
}

static void put_target(FILE *to, const char *target)
{
    fputs(" ", to);
    report_put_markdown(to, target ? target : "–");
    fputs(" |\n", to);
}

/* The columns that ops and kinds share. */
static void put_rates(FILE *to, const struct profile *p, double us, double flops, double bytes, double floor_us)
{
    number_text a, b, c, d, e, f, g;
    fprintf(to, " %s | %s | %s | %s | %s | %s | %s |", report_show_us(us, a),
            report_show_percent(report_ratio(us, p->step_us), b), report_show_count(flops, c),
            report_show_bytes(bytes, d), report_show_number(report_gflops(flops, us), e),
            report_show_number(report_gb_per_s(bytes, us), f), report_show_percent(report_ratio(floor_us, us), g));
}

static void put_kinds(FILE *to, const struct profile *p)
{
    if (!p->n_kinds)
        return;
    fputs("\n## Operations by kind\n\n| kind | ops | self | share | FLOPs | bytes | GFLOP/s | GB/s | roofline | target |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n", to);
    for (int i = 0; i < p->n_kinds && i < TOP_KINDS; i++) {
        const struct profile_kind *k = &p->kinds[i];
        fputs("| ", to);
        report_put_markdown(to, k->kind);
        fprintf(to, " | %d |", k->count);
        put_rates(to, p, k->self_us, k->flops, k->bytes, k->floor_us);
        put_target(to, report_kind_target(p, k->kind));
    }
    if (p->n_kinds > TOP_KINDS)
        fprintf(to, "\n%d more kind%s in report.json.\n", p->n_kinds - TOP_KINDS, p->n_kinds - TOP_KINDS == 1 ? " is" : "s are");
    fputs("\nRoofline: the least time the machine's measured peaks allow, over the time taken. Target: the finding about it.\n", to);
}

static void put_ops(FILE *to, const struct profile *p, int most)
{
    if (!p->n_ops)
        return;
    fputs("\n## Operations\n\n| op | kind | phase | bound | self | share | FLOPs | bytes | GFLOP/s | GB/s | roofline | target |\n"
          "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n", to);
    int *order = report_ops_by_time(p);
    for (int i = 0; i < p->n_ops && i < most; i++) {
        const struct profile_op *op = &p->ops[order[i]];
        fputs("| ", to);
        report_put_markdown(to, op->name);
        fputs(" | ", to);
        report_put_markdown(to, op->kind);
        fprintf(to, " | %s | %s |", report_op_phase(op), op->memory_bound ? "memory" : "compute");
        put_rates(to, p, op->self_us, op->flops, op->bytes, op->floor_us);
        put_target(to, op->target);
    }
    free(order);
    if (p->n_ops > most)
        fprintf(to, "\n%d more op%s in report.json.\n", p->n_ops - most, p->n_ops - most == 1 ? " is" : "s are");
}

static void put_memory_curve(FILE *to, const struct profile *p)
{
    double *totals = xcalloc((size_t)p->n_ops + 1, sizeof *totals), top = 0;
    for (int i = 0; i < p->n_ops; i++) {
        totals[i] = report_memory_total(&p->memory[i]);
        top = fmax(top, totals[i]);
    }
    number_text n;
    char words[64];
    snprintf(words, sizeof words, "up to %s, ops in order", report_show_bytes(top, n));
    report_markdown_curve(to, totals, p->n_ops, words);
    free(totals);
}

static void put_memory(FILE *to, const struct profile *p)
{
    if (!p->n_ops || !p->memory)
        return;
    fputs("\n## Memory\n\n", to);
    put_memory_curve(to, p);
    char *words = report_peak_words(p);
    report_put_markdown(to, words);
    fputc('\n', to);
    free(words);
}

static void put_cpu(FILE *to, const struct profile *p)
{
    report_markdown_fact(to, "instruction set", p->isa);
    report_markdown_fact(to, "BLAS", p->blas);
    fprintf(to, "| threads | %d |\n", p->threads);
}

static void put_gpu(FILE *to, const struct profile *p)
{
    number_text a, b, c;
    const struct gpu_watch *w = &p->watch;
    report_markdown_fact(to, "ops timed by", p->timed_by);
    if (p->kernels_per_step > 0)
        fprintf(to, "| kernels per step | %s |\n", report_show_count(p->kernels_per_step, a));
    if (w->looks)
        fprintf(to, "| while it was measured | busy %s, counting what lies between and around the steps; %s of its memory used, %s W, up to %.0f °C, SM clock %.0f to %.0f MHz |\n",
                report_show_percent(gpu_watch_busy_percent(w) / 100, a), report_show_bytes(w->used_most_bytes, b),
                report_show_number(gpu_watch_watts(w), c), w->celsius_most, w->sm_least_mhz, w->sm_most_mhz);
}

static void put_machine(FILE *to, const struct profile *p)
{
    number_text a, b, c;
    fputs("\n## Machine and model\n\n| | |\n|---|---|\n", to);
    report_markdown_fact(to, "machine", p->peaks.machine);
    report_markdown_fact(to, "device", p->device);
    if (p->gpu)
        put_gpu(to, p);
    else
        put_cpu(to, p);
    fprintf(to, "| peak | %s GFLOP/s (f32 %s)", report_show_number(p->peaks.gflops[NUMBERS_F32], a),
            peaks_products(&p->peaks, NUMBERS_F32).registers ? "in registers" : "matrix product");
    for (enum numbers n = NUMBERS_F32 + 1; n < NUMBERS; n++)
        if (peaks_has(&p->peaks, n))
            fprintf(to, ", %s GFLOP/s (%s)", report_show_number(p->peaks.gflops[n], a), numbers_name(n));
    for (int i = 0; i < CACHE_LEVELS; i++)
        if (p->peaks.copy_gb_per_s[i] > 0)
            fprintf(to, ", %s %s GB/s", report_level_name(i), report_show_number(p->peaks.copy_gb_per_s[i], a));
    if (p->peaks.gpu.launched_us > 0)
        fprintf(to, ", a kernel %s in a graph and %s started by the host", report_show_us(p->peaks.gpu.replayed_us, a),
                report_show_us(p->peaks.gpu.launched_us, b));
    fprintf(to, " |\n| batch × sequence × accumulated | %lld × %lld × %lld |\n", (long long)p->batch, (long long)p->seq,
            (long long)p->accumulate);
    fprintf(to, "| parameters | %s |\n", report_show_count((double)p->parameters, a));
    fprintf(to, "| a step by the op table | %s FLOP, %s, %s FLOP/byte |\n", report_show_count(p->hardware_flops, a),
            report_show_bytes(p->hardware_bytes, b),
            report_show_number(report_ratio(p->hardware_flops, p->hardware_bytes), c));
    if (p->has_counters)
        fprintf(to, "| counters per step | %s instructions, %s cycles, %s cache misses |\n",
                report_show_count(p->instructions, a), report_show_count(p->cycles, b),
                report_show_count(p->cache_misses, c));
    report_markdown_fact(to, "hone", p->version);
}

/* As an indented block, which nothing in the text can end. */
static void put_config(FILE *to, const struct profile *p)
{
    if (!p->config_yaml || !*p->config_yaml)
        return;
    char *rest = xstrdup(p->config_yaml), *line, *at = rest;
    int lines = 0;
    fputs("\n## Config\n\n", to);
    for (; lines < CONFIG_LINES && (line = strsep(&at, "\n")) && (at || *line); lines++) {
        fputs("    ", to);
        report_put_text(to, line);
        fputc('\n', to);
    }
    if (at && *at)
        fputs("\nThe whole config is in report.json.\n", to);
    free(rest);
}

enum status report_write_operations(const struct profile *p, FILE *to, struct error *err)
{
    (void)err;
    number_text a, b;
    fprintf(to, "A step takes %s, of which ops work for %s.\n", report_show_us(p->step_us, a), report_show_us(report_op_work_us(p), b));
    put_kinds(to, p);
    put_ops(to, p, MOST_OPS);
    return OK;
}

enum status report_write_markdown(const struct profile *p, FILE *to, struct error *err)
{
    (void)err;
    const struct plan plan = report_profile_plan(p);
    put_top(to, p, &plan);
    put_numbers(to, p);
    report_markdown_plan(to, &plan);
    put_split(to, p);
    put_parts(to, p);
    report_markdown_ranks(to, p);
    report_markdown_run(to, p);
    put_kinds(to, p);
    put_ops(to, p, TOP_OPS);
    put_memory(to, p);
    report_markdown_layers(to, p);
    put_machine(to, p);
    put_config(to, p);
    return OK;
}
