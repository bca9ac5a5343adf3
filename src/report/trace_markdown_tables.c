/* The long tables of an imported trace's report.md (kernels, ops, ranks), its launches, and what was measured over time. */
#include <math.h>

#include "report/report_int.h"
#include "report/trace_views_int.h"

enum { TOP_KINDS = 12, TOP_KERNELS = 10, TOP_OPS = 10, TOP_RANKS = 8, NAME_COLUMNS = 90, CURVE_BINS = 60 };

static void put_name(FILE *to, const char *name)
{
    report_put_markdown_cut(to, name && *name ? name : "–", NAME_COLUMNS);
    fputs(" | ", to);
}

static void put_more(FILE *to, int n, int top, const char *what)
{
    if (n > top)
        fprintf(to, "\n%d more %s are in report.json.\n", n - top, what);
}

static void put_kinds(FILE *to, const struct diagnosis *d)
{
    double whole = 0;
    for (int i = 0; i < d->n_kinds; i++)
        whole += d->kinds[i].us;
    if (!d->n_kinds)
        return;
    fputs("\n## Kernel time by kind, per step\n\n| kind | time | share | |\n|---|---:|---:|---|\n", to);
    for (int i = 0; i < d->n_kinds && i < TOP_KINDS; i++)
        report_markdown_part(to, &d->kinds[i], whole);
    put_more(to, d->n_kinds, TOP_KINDS, "kinds");
}

static void put_kernels(FILE *to, const struct diagnosis *d)
{
    if (!d->n_kernels)
        return;
    number_text a, b, c, e;
    fputs("\n## Top kernels\n\n| kernel | op | kind | total | share | count | mean | occupancy |\n"
          "|---|---|---|---:|---:|---:|---:|---:|\n", to);
    for (int i = 0; i < d->n_kernels && i < TOP_KERNELS; i++) {
        const struct trace_kernel *k = &d->kernels[i];
        fputs("| ", to);
        put_name(to, k->shown ? k->shown : k->name);
        put_name(to, k->op);
        put_name(to, k->kind);
        fprintf(to, "%s | %s | %lld | %s | %s |\n", report_show_us(k->total_us, a), report_show_percent(k->share, b),
                (long long)k->count, report_show_us(k->mean_us, c),
                report_show_percent(k->occupancy >= 0 ? k->occupancy / 100 : NAN, e));
    }
    put_more(to, d->n_kernels, TOP_KERNELS, "kernels");
}

static void put_ops(FILE *to, const struct diagnosis *d)
{
    if (!d->n_ops)
        return;
    number_text a, b, c, e, f;
    fputs("\n## Top ops\n\n| op | device self | share | host self | host total | count | launches | device total |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|\n", to);
    for (int i = 0; i < d->n_ops && i < TOP_OPS; i++) {
        const struct trace_op *o = &d->ops[i];
        fputs("| ", to);
        put_name(to, o->name);
        fprintf(to, "%s | %s | %s | %s | %lld | %lld | %s |\n", report_show_us(o->device_self_us, a),
                report_show_percent(o->share, b), report_show_us(o->self_us, c), report_show_us(o->total_us, e),
                (long long)o->count, (long long)o->launches, report_show_us(o->device_us, f));
    }
    put_more(to, d->n_ops, TOP_OPS, "ops");
    char note[OPS_NOTE_MOST];
    fprintf(to, "\nSelf: without the ops inside. Times are sums over the trace. %s\n", report_trace_ops_note(d, note));
}

/* Values over time as a curve of equal stretches, each the largest in it; a stretch without a value keeps the last. */
static void put_curve(FILE *to, const struct trace_point *points, int n, const char *words)
{
    const double first = points[0].us, length = points[n - 1].us - first;
    double bins[CURVE_BINS], last = points[0].value;
    for (int b = 0, i = 0; b < CURVE_BINS; b++) {
        double most = last;
        for (; i < n && (b == CURVE_BINS - 1 || points[i].us - first <= length * (b + 1) / CURVE_BINS); i++)
            most = fmax(most, last = points[i].value);
        bins[b] = most;
    }
    report_markdown_curve(to, bins, CURVE_BINS, words);
}

static void put_launches(FILE *to, const struct diagnosis *d)
{
    const struct trace_launches *l = &d->launches;
    if (!l->count)
        return;
    number_text a, b, c, e;
    char words[96];
    fprintf(to, "\n## Launches\n\n%lld launches, %s per step. Median: call %s, from its end to the start of the work %s, work %s; "
            "%lld of them start work that is shorter than the call.", (long long)l->count, report_show_count(l->per_step, a),
            report_show_us(l->call_us, b), report_show_us(l->delay_us, c), report_show_us(l->kernel_us, e),
            (long long)l->shorter_than_call);
    fprintf(to, " The host waits for the device in %lld calls, %s in all.", (long long)l->syncs, report_show_us(l->sync_us, a));
    if (l->graphs)
        fprintf(to, " %lld launches are of whole graphs.", (long long)l->graphs);
    fprintf(to, " Queue: %s launched and not finished on average, %lld at most.\n\n", report_show_number(l->queue_mean, a),
            (long long)l->queue_max);
    snprintf(words, sizeof words, "queue length over time, up to %lld", (long long)l->queue_max);
    if (d->n_queue > 1)
        put_curve(to, d->queue, d->n_queue, words);
}

static void put_memory(FILE *to, const struct diagnosis *d)
{
    if (d->n_memory < 2 && !(d->memory_peak_bytes > 0))
        return;
    number_text a;
    char words[96];
    fprintf(to, "\n## Device memory\n\nPeak %s", report_show_bytes(d->memory_peak_bytes, a));
    if (d->memory_total_bytes > 0)
        fprintf(to, " of %s", report_show_bytes(d->memory_total_bytes, a));
    fputs(".\n\n", to);
    snprintf(words, sizeof words, "allocated over time, up to %s", report_show_bytes(d->memory_peak_bytes, a));
    if (d->n_memory > 1)
        put_curve(to, d->memory, d->n_memory, words);
}

static void put_ranks(FILE *to, const struct diagnosis *d)
{
    if (d->n_ranks < 2)
        return;
    fputs("\n## Ranks, per step\n\n| rank | step | kernels | communication | exposed | idle | host | waits for others | file |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---|\n", to);
    for (int i = 0; i < d->n_ranks && i < TOP_RANKS; i++) {
        const struct trace_rank *r = &d->ranks[i];
        const double times[] = {r->step_us, r->kernel_us, r->comm_us, r->exposed_comm_us, r->idle_us, r->host_us, r->wait_us};
        number_text n;
        fputs("| ", to);
        report_put_markdown_cut(to, r->rank < 0 && r->name ? r->name : report_show_rank(r->rank, n), NAME_COLUMNS);
        fputs(" | ", to);
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            fprintf(to, "%s | ", report_show_us(times[k], n));
        report_put_markdown_cut(to, r->path, NAME_COLUMNS);
        fputs(" |\n", to);
    }
    put_more(to, d->n_ranks, TOP_RANKS, "ranks");
}

void report_trace_markdown_tables(FILE *to, const struct diagnosis *d)
{
    put_kinds(to, d);
    put_kernels(to, d);
    put_ops(to, d);
    report_trace_markdown_views(to, d);
    put_launches(to, d);
    put_memory(to, d);
    report_markdown_collectives(to, d);
    put_ranks(to, d);
}
