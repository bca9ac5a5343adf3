/* Numbers that follow from the profile, so that every form of the report shows the same ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "report/report_int.h"

double report_ratio(double a, double b) { return isfinite(a) && isfinite(b) && b > 0 ? a / b : NAN; }

double report_op_work_us(const struct profile *p)
{
    double us = 0;
    for (int i = 0; i < p->n_ops; i++)
        us += p->ops[i].self_us;
    return us;
}

static double parts_us(const struct profile_part *parts, int n)
{
    double us = 0;
    for (int i = 0; i < n; i++)
        us += parts[i].us;
    return us;
}

double report_split_us(const struct profile *p) { return parts_us(p->split, p->n_split); }
double report_gaps_us(const struct profile *p) { return parts_us(p->gaps, p->n_gaps); }

double report_gflops(double flops, double us) { return report_ratio(flops, us) / 1e3; }
double report_gb_per_s(double bytes, double us) { return report_ratio(bytes, us) / 1e3; }

double report_memory_gb_per_s(const struct profile *p)
{
    for (int level = CACHE_LEVELS - 1; level >= 0; level--)
        if (p->peaks.copy_gb_per_s[level] > 0)
            return p->peaks.copy_gb_per_s[level];
    return NAN;
}

void report_put_memory(FILE *to, const struct profile *p)
{
    number_text n;
    fprintf(to, "%s planned", report_show_bytes(p->planned_bytes, n));
    fprintf(to, ", values %s of it at their peak", report_show_bytes(p->peak_bytes, n));
    if (!p->gpu)
        fprintf(to, "; process %s", report_show_bytes(p->rss_peak_bytes, n));
    if (p->available_bytes > 0)
        fprintf(to, p->gpu ? "; %s available" : " of %s", report_show_bytes(p->available_bytes, n));
}

/* What of available_bytes the run took: a GPU's memory is not the process's. */
double report_taken_bytes(const struct profile *p) { return p->gpu ? p->planned_bytes : p->rss_peak_bytes; }

double report_samples_per_step(const struct profile *p)
{
    return (double)p->batch * (double)(p->accumulate > 0 ? p->accumulate : 1);
}

double report_tokens_per_step(const struct profile *p) { return round(p->tokens_per_s * p->step_us / 1e6); }

double report_memory_total(const struct profile_memory_point *m)
{
    return m->parameters + m->state + m->gradients + m->activations + m->inputs;
}

int report_op_runs(const struct profile *p, const struct profile_op *op)
{
    if (op->phase == PHASE_SETUP)
        return 0;
    return op->phase <= PHASE_BACKWARD && p->accumulate > 1 ? (int)p->accumulate : 1;
}

static int longer_first(const void *a, const void *b, void *profile)
{
    const struct profile *p = profile;
    const int i = *(const int *)a, j = *(const int *)b;
    const double x = p->ops[i].self_us, y = p->ops[j].self_us;
    return x > y ? -1 : x < y ? 1 : i - j;
}

int *report_ops_by_time(const struct profile *p)
{
    int *order = xcalloc((size_t)p->n_ops + 1, sizeof *order);
    for (int i = 0; i < p->n_ops; i++)
        order[i] = i;
    qsort_r(order, (size_t)p->n_ops, sizeof *order, longer_first, (void *)p);
    return order;
}

const char *report_level_name(int level) { return (const char *[CACHE_LEVELS]){"L1", "L2", "L3", "memory"}[level]; }

const char *report_op_phase(const struct profile_op *op)
{
    return op->phase >= PHASE_SETUP && op->phase < PHASES ? phase_name(op->phase) : "other";
}

void report_put_recording(FILE *to, const struct profile *p)
{
    if (!isfinite(p->recording_percent) || p->recording_percent < 0.05)
        fputs("recording costs nothing that shows", to);
    else
        fprintf(to, "recording costs %.1f %%, taken out", p->recording_percent);
}

void report_put_padding(FILE *to, const struct profile *p)
{
    number_text a, b;
    if (p->padding_share > 0)
        fprintf(to, " (%s of samples, %s padding)", report_show_count(p->tokens_per_s * (1 - p->padding_share), a),
                report_show_percent(p->padding_share, b));
}

static bool is_same(const char *a, const char *b) { return a && b && !strcmp(a, b); }

/* That of the most time, of the ops of the kind that have one. */
const char *report_kind_target(const struct profile *p, const char *kind)
{
    const char *best = NULL;
    double most = 0;
    for (int i = 0; kind && i < p->n_findings; i++) {
        double us = 0;
        for (int k = 0; k < p->n_ops; k++)
            us += is_same(p->ops[k].kind, kind) && is_same(p->ops[k].target, p->findings[i].rule) ? p->ops[k].self_us : 0;
        if (us > most) {
            most = us;
            best = p->findings[i].rule;
        }
    }
    return best;
}

double report_op_phase_flops(const struct profile *p, enum phase phase)
{
    double flops = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct profile_op *op = &p->ops[i];
        const double early = op->phase == PHASE_FORWARD ? op->flops * op->gradient_share : 0;
        flops += op->phase == phase ? op->flops - early : phase == PHASE_BACKWARD ? early : 0;
    }
    return flops;
}

struct memory_part {
    const char *name;
    double bytes;
};

static int larger_first(const void *a, const void *b)
{
    const double x = ((const struct memory_part *)a)->bytes, y = ((const struct memory_part *)b)->bytes;
    return x > y ? -1 : x < y;
}

static void put_memory_parts(FILE *to, const struct profile_memory_point *m)
{
    struct memory_part parts[] = {{"activations", m->activations}, {"gradients", m->gradients},
                                  {"optimizer state", m->state},   {"parameters", m->parameters},
                                  {"inputs and tables", m->inputs}};
    number_text bytes, share;
    qsort(parts, sizeof parts / sizeof *parts, sizeof *parts, larger_first);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && parts[i].bytes > 0; i++)
        fprintf(to, "%s %s %s (%s)", i ? "," : ":", parts[i].name, report_show_bytes(parts[i].bytes, bytes),
                report_show_percent(report_ratio(parts[i].bytes, report_memory_total(m)), share));
}

/* What training has to have: where values find their place, and what kernels work in. */
static void put_plan(FILE *to, const struct profile *p)
{
    number_text a, b;
    if (!(p->planned_bytes > 0))
        return;
    fprintf(to, "Training is planned to take %s: room for the values", report_show_bytes(p->planned_bytes, a));
    if (p->scratch_bytes > 0)
        fprintf(to, ", and %s that kernels work in", report_show_bytes(p->scratch_bytes, a));
    if (p->naive_bytes > p->planned_bytes)
        fprintf(to, "; without values that share room it would be %s", report_show_bytes(p->naive_bytes, b));
    fputs(". ", to);
}

static void put_peak(FILE *to, const struct profile *p)
{
    const bool known = p->memory && p->peak_op >= 0 && p->peak_op < p->n_ops;
    number_text a, b;
    if (known) {
        const struct profile_op *op = &p->ops[p->peak_op];
        fprintf(to, "Values take %s at their peak, while ", report_show_bytes(p->peak_bytes, a));
        report_put_text(to, op->name);
        fprintf(to, " runs (%s, op %d of %d)", report_op_phase(op), p->peak_op + 1, p->n_ops);
        put_memory_parts(to, &p->memory[p->peak_op]);
        fputs(". ", to);
    }
    put_plan(to, p);
    if (p->gpu) {
        if (p->available_bytes > 0)
            fprintf(to, "%s were available on the GPU.", report_show_bytes(p->available_bytes, b));
        return;
    }
    if (p->rss_peak_bytes > 0)
        fprintf(to, "The whole process, with the program itself, data and evaluation, took %s at most", report_show_bytes(p->rss_peak_bytes, a));
    if (p->rss_peak_bytes > 0 && p->available_bytes > 0)
        fprintf(to, "; %s were available", report_show_bytes(p->available_bytes, b));
    if (p->rss_peak_bytes > 0)
        fputc('.', to);
}

char *report_peak_words(const struct profile *p)
{
    char *words = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&words, &size);
    if (!to)
        return xstrdup("");
    put_peak(to, p);
    if (fclose(to) != 0 || !words) {
        free(words);
        return xstrdup("");
    }
    while (size > 0 && words[size - 1] == ' ')
        words[--size] = 0;
    return words;
}
