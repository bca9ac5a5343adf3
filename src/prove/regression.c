/* Two report.json files of `hone profile`, before and after: is a step slower, does it need more memory? */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "core/arena.h"
#include "core/delay.h"
#include "core/report_json.h"
#include "core/stats.h"
#include "prove/prove_int.h"

static const double WITHIN = 1.645;             /* standard deviations of a count of steps below the median: 90 % */

struct facts {
    const char *path, *arch, *machine;          /* the texts live in `document` */
    double low_us, high_us;                     /* the interval of the median step */
    double delayed_share;                       /* by other work that had the cores; below 0: not known, or it does not count */
    const char *device, *precision;             /* NULL: not known */
    int threads, ranks;
    double parameters, layers, seq, samples;    /* samples of one update */
    double step_us, p10_us, p90_us, tokens_per_s, mfu_percent, planned_bytes, rss_bytes;
    json_t *document;
};

static enum status read_number(double *out, const struct facts *f, const char *section, const char *key, struct error *err)
{
    const json_t *j = json_object_get(json_object_get(f->document, section), key);
    *out = json_number_value(j);
    return json_is_number(j) ? OK : error_set(err, BAD_INPUT, "'%.300s' has no number %s.%s", f->path, section, key);
}

/* What is not above 0 is no time, no size and no count, and its ratio to another would be no change. */
static enum status read_positive(double *out, const struct facts *f, const char *section, const char *key, struct error *err)
{
    const enum status st = read_number(out, f, section, key, err);
    if (st != OK || (isfinite(*out) && *out > 0))
        return st;
    return error_set(err, BAD_INPUT, "'%.300s': %s.%s is %g; expected a number above 0", f->path, section, key, *out);
}

static enum status read_text(const char **out, const struct facts *f, const char *section, const char *key, struct error *err)
{
    const json_t *j = json_object_get(json_object_get(f->document, section), key);
    *out = json_string_value(j);
    return *out ? OK : error_set(err, BAD_INPUT, "'%.300s' has no text %s.%s", f->path, section, key);
}

/* Steps of one profile, in order of length: half of them lie below the median, give or take what chance does to such a count. Nothing is assumed of how
 * they spread, which is to one side. What differs between two openings is not in it. The least and the most of fewer than five have the median between them less often than nine times in ten. */
enum { STEPS_LEAST = 5 };

static void fill_interval(struct facts *f, double *us, int n)
{
    const int at = (int)fmax(floor(0.5 * (n - WITHIN * sqrt(n))), 0);
    stats_sort(us, n);
    f->low_us = n >= STEPS_LEAST ? fmin(us[at], f->step_us) : NAN;
    f->high_us = n >= STEPS_LEAST ? fmax(us[n - 1 - at], f->step_us) : NAN;
}

static enum status read_steps(struct facts *f, struct error *err)
{
    const json_t *list = json_object_get(json_object_get(f->document, "step"), "times_us");
    const int n = (int)json_array_size(list);
    if (n < 1)
        return error_set(err, BAD_INPUT, "'%.300s' has no step.times_us: an older hone wrote it; profile it again", f->path);
    double *us = xcalloc((size_t)n, sizeof *us);
    enum status st = OK;
    for (int i = 0; i < n && st == OK; i++) {
        us[i] = json_number_value(json_array_get(list, (size_t)i));
        if (!(isfinite(us[i]) && us[i] > 0))
            st = error_set(err, BAD_INPUT, "'%.300s': step.times_us[%d] is no time in microseconds", f->path, i);
    }
    if (st == OK)
        fill_interval(f, us, n);
    free(us);
    return st;
}

/* A GPU does not need the cores, and threads that are more than the cores wait for each other. */
static void read_delay(struct facts *f)
{
    const json_t *m = json_object_get(f->document, "machine"), *share = json_object_get(m, "delayed_share"), *cores = json_object_get(m, "usable_cores");
    const bool counts = json_is_number(share) && !json_is_object(json_object_get(m, "gpu")) &&
                        (!json_is_integer(cores) || f->threads <= json_integer_value(cores));
    f->delayed_share = counts ? json_number_value(share) : -1;
}

/* How it was computed. */
static void read_setting(struct facts *f)
{
    const char *yaml = json_string_value(json_object_get(f->document, "config_yaml"));
    const json_t *m = json_object_get(f->document, "machine");
    struct config c;
    struct error unread;
    f->threads = (int)json_integer_value(json_object_get(m, "threads"));
    f->ranks = (int)json_array_size(json_object_get(f->document, "ranks"));
    f->device = json_string_value(json_object_get(m, "device"));
    if (yaml && config_parse(&c, f->path, yaml, strlen(yaml), NULL, 0, &unread) == OK)
        f->precision = config_word("optimize.precision", (int)c.optimize.precision);
}

static enum status read_facts(struct facts *f, struct error *err)
{
    double batch, accumulate;
    const struct { double *to; const char *section, *key; } numbers[] = {
        {&f->parameters, "model", "parameters"}, {&f->layers, "model", "layers"}, {&f->seq, "model", "seq"},
        {&batch, "model", "batch"}, {&accumulate, "model", "accumulate"}, {&f->step_us, "step", "median_us"},
        {&f->p10_us, "step", "p10_us"}, {&f->p90_us, "step", "p90_us"}, {&f->tokens_per_s, "step", "tokens_per_s"},
        {&f->planned_bytes, "memory", "planned_bytes"},
        {&f->rss_bytes, "memory", "rss_peak_bytes"},
    };
    enum status st = read_text(&f->arch, f, "model", "arch", err);
    if (st == OK)
        st = read_text(&f->machine, f, "machine", "fingerprint", err);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && st == OK; i++)
        st = read_positive(numbers[i].to, f, numbers[i].section, numbers[i].key, err);
    if (st == OK)
        st = read_number(&f->mfu_percent, f, "efficiency", "mfu_percent", err);
    if (st == OK)
        st = read_steps(f, err);
    if (st == OK) {
        f->samples = batch * accumulate;
        read_setting(f);
        read_delay(f);
    }
    return st;
}

static enum status read_report(struct facts *f, const char *path, struct error *err)
{
    *f = (struct facts){.path = path};
    const enum status st = report_json_read(&f->document, path, "profile", "profile", err);
    return st == OK ? read_facts(f, err) : st;
}

static enum status check_comparable(const struct facts *a, const struct facts *b, struct error *err)
{
    const struct { const char *what; double a, b; } same[] = {
        {"parameters", a->parameters, b->parameters}, {"layers", a->layers, b->layers},
        {"tokens per sample", a->seq, b->seq}, {"samples per update", a->samples, b->samples},
    };
    if (strcmp(a->arch, b->arch))
        return error_set(err, BAD_INPUT, "'%.200s' and '%.200s' are of different models: %.60s and %.60s", a->path, b->path,
                         a->arch, b->arch);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].a != same[i].b)
            return error_set(err, BAD_INPUT, "'%.200s' and '%.200s' are of different models or batches: %.0f %s and %.0f", a->path,
                             b->path, same[i].a, same[i].what, same[i].b);
    if (strcmp(a->machine, b->machine))
        return error_set(err, BAD_INPUT, "'%.200s' and '%.200s' are of different machines: %.120s and %.120s", a->path, b->path,
                         a->machine, b->machine);
    return OK;
}

#define SHOW(field, ...) snprintf(g.field, sizeof g.field, __VA_ARGS__)

static struct gate gate_of(const char *name, double a, double b, double limit)
{
    struct gate g = {.name = name, .judged = true, .a = a, .b = b, .value = b / a - 1, .limit = limit, .low = NAN, .high = NAN};
    g.pass = g.value <= g.limit;
    prove_show_change(g.value, g.value_text);
    SHOW(limit_text, "at most %+.3g %%", limit * 100);
    return g;
}

static void add_words(struct gate *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_words(struct gate *g, const char *format, ...)
{
    const size_t n = strlen(g->words);
    va_list args;
    va_start(args, format);
    vsnprintf(g->words + n, sizeof g->words - n, format, args);
    va_end(args);
}

/* The same model may be computed in another way; what is won or lost by that should not go unsaid. */
static void add_setting(struct gate *g, const struct facts *a, const struct facts *b)
{
    if (a->threads != b->threads)
        add_words(g, "; %d thread%s after %d", b->threads, b->threads == 1 ? "" : "s", a->threads);
    if (a->ranks != b->ranks)
        add_words(g, "; %d rank%s after %d", b->ranks ? b->ranks : 1, b->ranks > 1 ? "s" : "", a->ranks ? a->ranks : 1);
    if (a->device && b->device && strcmp(a->device, b->device))
        add_words(g, "; device %.20s after %.20s", b->device, a->device);
    if (a->precision && b->precision && strcmp(a->precision, b->precision))
        add_words(g, "; %s after %s", b->precision, a->precision);
}

/* No verdict, which does not pass, where it could as well be the other one: the interval holds the limit, or other work had the cores. */
static void judge_step_time(struct gate *g, const struct facts *a, const struct facts *b)
{
    const double delayed = fmax(a->delayed_share, b->delayed_share);
    const bool known = isfinite(g->low) && isfinite(g->high), holds = g->low <= g->limit && g->high > g->limit, taken = delay_is_much(delayed);
    g->judged = known && !holds && !taken;
    g->pass = g->judged && g->value <= g->limit;
    if (taken)
        add_words(g, "; other work took the cores for %.0f %% of the time, so that this is no verdict: profile again when the machine is quiet", 100 * delayed);
    else if (!known)
        add_words(g, "; fewer than %d steps do not tell how they differ, so that this is no verdict: profile both with more --steps", STEPS_LEAST);
    else if (holds)
        add_words(g, "; that is too near to the limit to say: profile both with more --steps");
}

static struct gate step_time(const struct facts *a, const struct facts *b, double limit)
{
    struct gate g = gate_of("step-time", a->step_us, b->step_us, limit);
    char low[GATE_TEXT], high[GATE_TEXT];
    g.low = b->low_us / a->high_us - 1;
    g.high = b->high_us / a->low_us - 1;
    SHOW(a_text, "%.4g ms", a->step_us / 1e3);
    SHOW(b_text, "%.4g ms", b->step_us / 1e3);
    SHOW(words, "a step takes %.4g ms (most of them %.4g to %.4g), and %.4g ms (%.4g to %.4g) before", b->step_us / 1e3, b->p10_us / 1e3, b->p90_us / 1e3, a->step_us / 1e3,
         a->p10_us / 1e3, a->p90_us / 1e3);
    if (isfinite(g.low) && isfinite(g.high))
        add_words(&g, ": from %s to %s", prove_show_change(g.low, low), prove_show_change(g.high, high));
    add_words(&g, "; %.0f tokens/s after %.0f, MFU %.1f %% after %.1f %%", b->tokens_per_s, a->tokens_per_s, b->mfu_percent, a->mfu_percent);
    add_setting(&g, a, b);
    judge_step_time(&g, a, b);
    return g;
}

static struct gate peak_memory(const struct facts *a, const struct facts *b, double limit)
{
    struct gate g = gate_of("peak-memory", a->planned_bytes, b->planned_bytes, limit);
    char before[GATE_TEXT], after[GATE_TEXT];
    prove_show_bytes(g.a, g.a_text);
    prove_show_bytes(g.b, g.b_text);
    SHOW(words, "training needs %s, and %s before; the whole process had %s, and %s before", g.b_text, g.a_text,
         prove_show_bytes(b->rss_bytes, after), prove_show_bytes(a->rss_bytes, before));
    return g;
}

/* What was said of the machine when a report was made holds for what is made of it; of two the one with more of it. */
static void take_warning(struct verdict *out, const struct facts *f)
{
    const json_t *share = json_object_get(json_object_get(f->document, "machine"), "delayed_share");
    const char *warning = json_string_value(json_object_get(json_object_get(f->document, "answers"), "warning"));
    const double delayed = json_is_number(share) ? json_number_value(share) : -1;
    if (warning && (!*out->warning || delayed > out->delayed_share)) {
        const char *rest = strstr(warning, ": ");           /* what follows from it in a profile */
        snprintf(out->warning, sizeof out->warning, "Of '%.60s': %.*s", f->path, rest ? (int)(rest - warning) : (int)strlen(warning), warning);
    }
    out->delayed_share = fmax(out->delayed_share, delayed);
}

enum status verify_reports(struct verdict *out, const char *path_a, const char *path_b, double limit, struct error *err)
{
    struct facts a = {0}, b = {0};
    enum status st = read_report(&a, path_a, err);
    if (st == OK)
        st = read_report(&b, path_b, err);
    if (st == OK)
        st = check_comparable(&a, &b, err);
    if (st == OK) {
        *out = (struct verdict){.pass = true, .delayed_share = -1, .of_a = {.step_us = NAN, .ops = NAN, .kernels = NAN},
                                .of_b = {.step_us = NAN, .ops = NAN, .kernels = NAN}};
        snprintf(out->a, sizeof out->a, "%s", path_a);
        snprintf(out->b, sizeof out->b, "%s", path_b);
        const struct gate gates[] = {step_time(&a, &b, limit), peak_memory(&a, &b, limit)};
        for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
            verdict_add(out, &gates[i]);
        take_warning(out, &a);
        take_warning(out, &b);
    }
    json_decref(a.document);
    json_decref(b.document);
    return st;
}
