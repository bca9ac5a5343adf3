/* A trace against the report.json of an earlier one: is a step slower, and what in it takes longer? */
#include <math.h>
#include <string.h>

#include "core/report_json.h"
#include "report/fields_int.h"
#include "report/trace_views_int.h"

enum { MOST_ROWS = 12, TOP_ROWS = 6, MOST_RULES = 64, MOST_OPS = 400 };
static const double LEAST_COMMON = 0.3, EQUAL_SPEED = 0.05, MOST_FACTOR = 1.4;
static const double NOTICED = 0.01;         /* of the step, that something takes longer by to be named */

/* ---- the earlier report ---- */

static enum status check(const json_t *before, const struct diagnosis *d, const char *path, struct error *err)
{
    const double step = num(json_object_get(before, "corrected"), "step_us");
    if (!(step > 0 && isfinite(step)))
        return error_set(err, BAD_INPUT, "'%.300s' has no number corrected.step_us above 0", path);
    const char *device = word(before, "device");
    if (d->device && strcmp(device, d->device))
        return error_set(err, BAD_INPUT, "'%.300s' is of '%.80s' and this trace of '%.80s'; a baseline is of the same device", path, device, d->device);
    return OK;
}

/* ---- what takes longer ---- */

static void add_row(struct baseline_row *rows, int *n, struct baseline_row r)
{
    int at = *n < MOST_ROWS ? (*n)++ : MOST_ROWS;
    for (; at > 0 && r.after_us - r.before_us > rows[at - 1].after_us - rows[at - 1].before_us; at--)
        if (at < MOST_ROWS)
            rows[at] = rows[at - 1];
    if (at < MOST_ROWS)
        rows[at] = r;
}

static const json_t *op_named(const json_t *before, const char *name)
{
    size_t i;
    const json_t *op;
    json_array_foreach(json_object_get(before, "ops"), i, op)
        if (!strcmp(word(op, "name"), name))
            return op;
    return NULL;
}

static double positive(double x) { return x > 0 ? x : 0; }

/* With the same things recorded, which cost the host differently. */
static bool recorded_alike(const struct diagnosis *d, const json_t *before)
{
    const struct trace_origin *o = d->trace ? &d->trace->origin : NULL;
    const json_t *was = json_object_get(before, "trace");
    return o && o->has_stacks == yes(was, "has_stacks") && o->has_shapes == yes(was, "has_shapes") && o->has_memory == yes(was, "has_memory");
}

/* What was given and what is estimated do not compare: an error of the estimate would look like a change. */
static bool one_is_given(const struct diagnosis *d, const json_t *before)
{
    const json_t *was = json_object_get(before, "corrected");
    return d->corrected.given != yes(was, "given") && d->corrected.recorded_us > 0 && num(was, "recorded_us") > 0;
}

/* Without a device the ops are the work itself, and one that takes longer is what is looked for. Times that were given are true as they are. */
static bool speed_can_be_told(const struct diagnosis *d, const json_t *before)
{
    const bool given = d->corrected.given || yes(json_object_get(before, "corrected"), "given");
    return d->gpu.total_us > 0 && !given && recorded_alike(d, before);
}

/* As of two traces (analyze/traced/diff.c): on one machine an op that both call equally often takes equally long, but for what else it did. */
static double host_factor(const struct diagnosis *d, const json_t *before)
{
    const double steps = fmax(positive(num(before, "steps_total")), 1), now = d->n_steps > 0 ? d->n_steps : 1;
    double a = 0, b = 0, all = 0;
    if (!speed_can_be_told(d, before))
        return 1;
    for (int i = 0; i < d->n_ops && i < MOST_OPS; i++) {
        const struct trace_op *o = &d->ops[i];
        const json_t *was = op_named(before, o->name);
        all += o->self_us / now;
        if (!was || fabs(num(was, "count") / steps - (double)o->count / now) > 1e-9)
            continue;
        a += positive(num(was, "self_us")) / steps;
        b += o->self_us / now;
    }
    const bool known = a > 0 && b > LEAST_COMMON * all && b / a < MOST_FACTOR && a / b < MOST_FACTOR && fabs(b / a - 1) >= EQUAL_SPEED;
    return known ? b / a : 1;
}

static double at_equal_speed(const struct corrected_view *c, double factor)
{
    if (c->host_us < 0.8 * c->step_us)
        return c->step_us;                  /* the host is not its bound */
    return fmax(c->device_us, c->step_us - c->host_us * (1 - 1 / factor));
}

static void compare_ops(struct diagnosis *d, const json_t *before, struct baseline_row *rows, int *n)
{
    const double steps = fmax(positive(num(before, "steps_total")), 1), now = d->n_steps > 0 ? d->n_steps : 1;
    const double least = NOTICED * d->corrected.step_us;
    for (int i = 0; i < d->n_ops && i < MOST_OPS; i++) {
        const struct trace_op *o = &d->ops[i];
        const json_t *was = op_named(before, o->name);
        const double device = positive(num(was, "device_self_us")) / steps, host = positive(num(was, "self_us")) / steps;
        if (o->device_self_us / now - device > least)
            add_row(rows, n, (struct baseline_row){"op on the device", o->name, device, o->device_self_us / now});
        if (o->self_us / now - host > least)
            add_row(rows, n, (struct baseline_row){"op on the host", o->name, host, o->self_us / now});
    }
}

static void compare_split(struct diagnosis *d, const json_t *before, struct baseline_row *rows, int *n)
{
    const struct trace_step *m = &d->mean;
    const struct { const char *key, *name; double us; } parts[] = {
        {"memcpy_us", "copies", m->memcpy_us}, {"comm_us", "communication", m->comm_us}, {"dataloader_us", "the data loader", m->dataloader_us},
        {"runtime_us", "runtime calls", m->runtime_us}, {"other_us", "other", m->other_us}};
    const json_t *was = json_object_get(before, "mean_step");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const double us = positive(num(was, parts[i].key));
        if (parts[i].us - us > NOTICED * d->corrected.step_us)
            add_row(rows, n, (struct baseline_row){"part of the step", parts[i].name, us, parts[i].us});
    }
}

static bool had_rule(const json_t *before, const char *rule)
{
    size_t i;
    const json_t *f;
    json_array_foreach(json_object_get(before, "findings"), i, f)
        if (!strcmp(word(f, "rule"), rule))
            return true;
    return false;
}

static const char *new_rules(struct diagnosis *d, const json_t *before)
{
    const char *text = "";
    for (int i = 0; i < d->n_findings && i < MOST_RULES; i++)
        if (d->findings[i].severity >= SEVERITY_MEDIUM && !had_rule(before, d->findings[i].rule))
            text = arena_printf(&d->arena, "%s%s%s", text, *text ? ", " : "", d->findings[i].rule);
    return *text ? text : NULL;
}

enum status report_baseline(struct diagnosis *d, const char *path, double limit, struct error *err)
{
    json_t *before = NULL;
    enum status st = report_json_read(&before, path, "trace", "analyze", err);
    if (st == OK)
        st = check(before, d, path, err);
    if (st != OK) {
        json_decref(before);
        return st;
    }
    struct baseline *b = arena_alloc(&d->arena, sizeof *b);
    struct baseline_row *rows = arena_alloc(&d->arena, MOST_ROWS * sizeof *rows);
    int n = 0;
    compare_ops(d, before, rows, &n);
    compare_split(d, before, rows, &n);
    const bool as_recorded = one_is_given(d, before);
    const double was = num(json_object_get(before, "corrected"), as_recorded ? "recorded_us" : "step_us"), factor = host_factor(d, before);
    const double full = as_recorded ? d->corrected.recorded_us : d->corrected.step_us, is = as_recorded ? full : at_equal_speed(&d->corrected, factor);
    *b = (struct baseline){.path = arena_printf(&d->arena, "%s", path), .before_us = was, .after_us = is, .change = is / was - 1,
                           .as_recorded = as_recorded, .full_change = full / was - 1, .host_factor = factor, .limit = limit, .rows = rows, .n_rows = n,
                           .new_rules = new_rules(d, before)};
    b->slower = !(b->change <= limit);
    b->forgiven = !b->slower && !(b->full_change <= limit);
    d->baseline = b;
    json_decref(before);
    return OK;
}

/* ---- words ---- */

const char *report_baseline_words(const struct baseline *b, char out[BASELINE_WORDS])
{
    number_text a, c;
    int n = snprintf(out, BASELINE_WORDS, "a step takes %s, and %s before: %+.1f %%, %s (at most %+.3g %%)", report_show_us(b->after_us, a),
                           report_show_us(b->before_us, c), 100 * b->change, b->slower ? "too slow" : "as allowed", 100 * b->limit);
    if (b->as_recorded && n > 0 && n < BASELINE_WORDS)
        n += snprintf(out + n, (size_t)(BASELINE_WORDS - n), "; as recorded, both: the time without the profiler was given of one of the two only");
    if (b->host_factor != 1 && n > 0 && n < BASELINE_WORDS)
        n += snprintf(out + n, (size_t)(BASELINE_WORDS - n), "; equal ops took %.2f times as long on this host, which is taken out", b->host_factor);
    if (b->forgiven && n > 0 && n < BASELINE_WORDS)
        snprintf(out + n, (size_t)(BASELINE_WORDS - n), ": with it the step is %+.1f %%, too slow, and only if the machine was busy is that no change of the program", 100 * b->full_change);
    return out;
}

json_t *report_baseline_json(const struct baseline *b)
{
    if (!b)
        return json_null();
    json_t *rows = json_array();
    for (int i = 0; i < b->n_rows; i++)
        rows = report_array(rows, json_pack("{s:s,s:o,s:o,s:o}", "what", b->rows[i].what, "name", report_name(b->rows[i].name), "before_us",
                                            report_number(b->rows[i].before_us), "after_us", report_number(b->rows[i].after_us)));
    return json_pack("{s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o,s:o}", "path", report_name(b->path), "as_recorded", b->as_recorded, "before_us", report_number(b->before_us), "after_us",
                     report_number(b->after_us), "change", report_number(b->change), "full_change", report_number(b->full_change), "limit", report_number(b->limit), "host_factor",
                     report_number(b->host_factor), "slower", b->slower, "forgiven", b->forgiven, "longer", rows, "new_findings", report_name(b->new_rules));
}

void report_baseline_markdown(FILE *to, const struct baseline *b)
{
    char words[BASELINE_WORDS];
    number_text x, y;
    if (!b)
        return;
    fprintf(to, "\n## Against the baseline\n\nAgainst ");
    report_put_markdown_cut(to, b->path, NAME_COLUMNS);
    fprintf(to, ": %s.\n", report_baseline_words(b, words));
    if (b->new_rules)
        fprintf(to, "\nNew findings: %s.\n", b->new_rules);
    if (b->n_rows)
        fputs("\n| takes longer | what | before | now |\n|---|---|---:|---:|\n", to);
    for (int i = 0; i < b->n_rows && i < TOP_ROWS; i++) {
        fputs("| ", to);
        report_put_markdown_cut(to, b->rows[i].name, NAME_COLUMNS);
        fprintf(to, " | %s | %s | %s |\n", b->rows[i].what, report_show_us(b->rows[i].before_us, x), report_show_us(b->rows[i].after_us, y));
    }
}
