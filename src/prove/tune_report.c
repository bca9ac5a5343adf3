/* What tune did, as one JSON document: report.json, which the page and the Markdown are made of. docs/report.md has its fields. */
#include "prove/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "prove/tune_report_int.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
static json_t *measured(double x) { return number(x > 0 ? x : NAN); }       /* 0: it was not measured */

json_t *tune_text(const char *text)
{
    json_t *j = text ? json_string(text) : json_null();
    char *copy = j ? NULL : strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c > 0x7e)
            *c = '?';
    if (copy)
        j = json_string(copy);
    free(copy);
    return j;
}

static const char *effort_word(enum pass_effort e) { return e == PASS_LOW ? "low" : e == PASS_MEDIUM ? "medium" : "high"; }

/* ---- what follows from the stages ---- */

/* How far the prediction was from what was measured, as a part of the latter. */
static double prediction_error(const struct tune_stage *s) { return s->predicted / s->measured - 1; }

/* What the step itself won up to stage n, which is not among them. */
static double gain_before(const struct tune_result *r, int n)
{
    double gain = 1;
    for (int i = 0; i < n; i++)
        if (r->stages[i].kept && !r->stages[i].around && isfinite(r->stages[i].measured))
            gain *= r->stages[i].measured;
    return gain;
}

static double median_error(const struct tune_result *r)
{
    double errors[TUNE_IDEAS];
    int n = 0;
    for (int i = 0; i < r->n_stages; i++)
        if (r->stages[i].kept && isfinite(prediction_error(&r->stages[i])))
            errors[n++] = fabs(prediction_error(&r->stages[i]));
    stats_sort(errors, n);
    return n ? stats_percentile(errors, n, 0.5) : NAN;
}

static int count_stages(const struct tune_result *r, bool kept)
{
    int n = 0;
    for (int i = 0; i < r->n_stages; i++)
        n += kept ? r->stages[i].kept : isfinite(r->stages[i].measured);
    return n;
}

/* ---- in words ---- */

static void put_memory(const struct tune_result *r, FILE *to)
{
    const double a = r->before.planned_bytes, b = r->after.planned_bytes, unit = a < 1e6 ? 1e3 : a < 1e9 ? 1e6 : 1e9;
    if (a > 0 && b > 0 && fabs(b / a - 1) >= 0.005)
        fprintf(to, ", memory %.3g → %.3g %s", a / unit, b / unit, a < 1e6 ? "kB" : a < 1e9 ? "MB" : "GB");
}

static void put_headline(const struct tune_result *r, FILE *to)
{
    const bool kept = count_stages(r, true) > 0;
    if (r->interrupted && kept)
        fprintf(to, "Interrupted: with what was proved by then, a step is %.2f times as fast", gain_before(r, r->n_stages));
    else if (r->interrupted)
        fputs("Interrupted before anything was proved to be faster", to);
    else if (kept) {
        if (isfinite(r->speedup))
            fprintf(to, "A step is %.2f times as fast (%.2f to %.2f)", r->speedup, r->speedup_low, r->speedup_high);
        else
            fprintf(to, "A step is %.2f times as fast, stage by stage", gain_before(r, r->n_stages));
        put_memory(r, to);
    } else if (!r->n_stages)
        fputs("Nothing to try: no pass and no setting changes this program", to);
    else if (count_stages(r, false))
        fputs("Nothing made this step faster: the config stays as it was", to);
    else
        fputs("Nothing was tried: these are predictions only", to);
}

static json_t *headline(const struct tune_result *r)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    put_headline(r, to);
    json_t *j = fclose(to) == 0 && text ? tune_text(text) : NULL;
    free(text);
    return j;
}

/* ---- the parts ---- */

static json_t *point(const struct tune_point *p)
{
    const bool rated = p->mfu_percent > 0;
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b}", "step_us", measured(p->step_us), "samples_per_s", measured(p->samples_per_s),
                     "tokens_per_s", measured(p->tokens_per_s), "mfu_percent", measured(p->mfu_percent), "mfu_peak_gflops",
                     measured(p->mfu_peak.gflops), "mfu_peak_type", tune_text(rated ? products_peak_type(p->mfu_peak) : NULL),
                     "planned_bytes", measured(p->planned_bytes), "ops", measured(p->ops), "fits", !p->too_large);
}

static json_t *stage(const struct tune_result *r, int i)
{
    const struct tune_stage *s = &r->stages[i];
    const double before = gain_before(r, i), step = r->before.step_us > 0 ? r->before.step_us / before : NAN;
    return json_pack("{s:o,s:o,s:o,s:o,s:s,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o}", "pass", tune_text(s->pass), "what",
                     tune_text(s->what), "change", tune_text(s->change), "answers", tune_text(s->answers), "effort",
                     effort_word(s->effort), "phase", s->phase, "places", s->places, "predicted_speedup", number(s->predicted),
                     "measured_speedup", number(s->measured), "measured_low", number(s->low), "measured_high", number(s->high),
                     "prediction_error", number(prediction_error(s)), "cumulative_speedup",
                     number(s->kept && !s->around ? before * s->measured : before), "step_before_us", number(step), "step_after_us",
                     number(s->around ? step : step / s->measured), "around", s->around, "kept", s->kept, "why", tune_text(s->why));
}

static json_t *stages(const struct tune_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_stages; i++)
        json_array_append_new(list, stage(r, i));
    return list;
}

/* Is the idea in a stage, alone or with others? */
static bool has_idea(const struct tune_stage *s, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = s->pass; *at; at += strcspn(at, "+"), at += *at == '+')
        if (strcspn(at, "+") == n && !strncmp(at, name, n))
            return true;
    return false;
}

static const char *outcome(const struct tune_result *r, const char *name)
{
    const char *word = "not tried";
    for (int i = 0; i < r->n_stages; i++)
        if (has_idea(&r->stages[i], name) && (r->stages[i].kept || isfinite(r->stages[i].measured)))
            word = r->stages[i].kept ? "kept" : "dropped";
    return word;
}

static json_t *roadmap(const struct tune_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_roadmap; i++) {
        const struct tune_idea *d = &r->roadmap[i];
        const char *name = d->name ? d->name : "";
        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:s,s:i,s:i,s:o,s:s}", "name", tune_text(name), "what",
                                              tune_text(d->what), "answers", tune_text(d->answers), "effort",
                                              effort_word(d->effort), "phase", d->phase, "places", d->places,
                                              "predicted_speedup", number(d->predicted), "outcome", outcome(r, name)));
    }
    return list;
}

static json_t *sizes(const struct tune_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_sizes; i++)
        json_array_append_new(list, json_pack("{s:I,s:I,s:o,s:o}", "batch", (json_int_t)r->sizes[i].batch, "seq",
                                              (json_int_t)r->sizes[i].seq, "before", point(&r->sizes[i].before), "after",
                                              point(&r->sizes[i].after)));
    return list;
}

static json_t *model(const struct config *c)
{
    return json_pack("{s:o,s:s,s:I,s:I,s:I}", "name", tune_text(c->name), "arch", config_word("model.arch", (int)c->model.arch),
                     "batch", (json_int_t)c->train.batch_size, "seq", (json_int_t)c->model.seq, "accumulate",
                     (json_int_t)c->train.accumulate);
}

json_t *tune_json(const struct tune_result *r)
{
    char *yaml = config_text(&r->tuned);
    json_t *j = json_pack(
        "{s:s,s:i,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o,s:o,s:o}", "schema", "hone-report",
        "schema_version", 1, "kind", "tune", "hone_version", HONE_VERSION, "name", tune_text(r->base.name), "headline", headline(r),
        "bound", tune_text(r->bound), "model", model(&r->base), "stages", stages(r), "median_prediction_error",
        number(median_error(r)), "before", point(&r->before), "after", point(&r->after), "speedup", number(r->speedup),
        "speedup_low", number(r->speedup_low), "speedup_high", number(r->speedup_high), "sizes", sizes(r), "roadmap", roadmap(r),
        "out_of_time", r->out_of_time, "interrupted", r->interrupted, "seconds", number(r->seconds), "changes",
        tune_changes(&r->base, &r->tuned), "config_yaml", tune_text(yaml ? yaml : ""));
    free(yaml);
    return j;
}
