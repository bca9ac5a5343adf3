/* What tune did, as one JSON document: report.json, which the page and the Markdown are made of. docs/report.md has its fields. */
#include "core/json_whole.h"
#include "prove/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/detect.h"
#include "core/delay.h"
#include "core/stats.h"
#include "prove/tune_int.h"
#include "prove/tune_report_int.h"
#include "train/ranks.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
static json_t *count(int n) { return n ? json_integer(n) : json_null(); }
static json_t *measured(double x) { return number(x > 0 ? x : NAN); }       /* 0: it was not measured */

json_t *tune_text(const char *text)
{
    json_t *j = text ? json_string(text) : json_null();
    char *copy = j || !text ? NULL : strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c > 0x7e)
            *c = '?';
    if (copy)
        j = json_string(copy);
    free(copy);
    return j;
}

static const char *effort_word(enum pass_effort e) { return e == PASS_LOW ? "low" : e == PASS_MEDIUM ? "medium" : "high"; }

const char *tune_outcome_word(enum tune_outcome o)
{
    static const char *const words[] = {[TUNE_NOT_TRIED] = "not tried", [TUNE_KEPT] = "kept", [TUNE_DROPPED] = "dropped",
                                        [TUNE_NO_GAIN] = "no gain", [TUNE_NO_VERDICT] = "no verdict"};
    return words[o];
}

/* ---- what follows from the stages ---- */

static bool is_kept(const struct tune_stage *s) { return s->outcome == TUNE_KEPT; }

/* How far the prediction was from what was measured, as a part of the latter. */
static double prediction_error(const struct tune_stage *s) { return s->predicted / s->measured - 1; }

/* What the step itself won up to stage n, which is not among them. */
static double gain_before(const struct tune_result *r, int n)
{
    double gain = 1;
    for (int i = 0; i < n; i++)
        if (is_kept(&r->stages[i]) && !r->stages[i].around && isfinite(r->stages[i].measured))
            gain *= r->stages[i].measured;
    return gain;
}

/* Of all that was measured: what was dropped was predicted, too. */
static double median_error(const struct tune_result *r)
{
    double errors[TUNE_IDEAS];
    int n = 0;
    for (int i = 0; i < r->n_stages; i++)
        if (isfinite(prediction_error(&r->stages[i])))
            errors[n++] = fabs(prediction_error(&r->stages[i]));
    stats_sort(errors, n);
    return n ? stats_percentile(errors, n, 0.5) : NAN;
}

/* Stages that were measured; those of which nobody can say; kept ones that changed the step; kept ones around it. */
struct counts {
    int measured, open, kept, around;
};

static struct counts count_stages(const struct tune_result *r)
{
    struct counts n = {0};
    for (int i = 0; i < r->n_stages; i++) {
        const struct tune_stage *s = &r->stages[i];
        n.measured += s->outcome != TUNE_NOT_TRIED;
        n.open += s->outcome == TUNE_NO_VERDICT;
        n.kept += is_kept(s) && !s->around;
        n.around += is_kept(s) && s->around;
    }
    return n;
}

/* ---- in words ---- */

static void put_memory(const struct tune_result *r, FILE *to)
{
    const double a = r->before.planned_bytes, b = r->after.planned_bytes, unit = a < 1e6 ? 1e3 : a < 1e9 ? 1e6 : 1e9;
    if (a > 0 && b > 0 && fabs(b / a - 1) >= 0.005)
        fprintf(to, ", memory %.3g → %.3g %s", a / unit, b / unit, a < 1e6 ? "kB" : a < 1e9 ? "MB" : "GB");
}

static void put_gain(const struct tune_result *r, FILE *to)
{
    if (!isfinite(r->speedup))
        fprintf(to, "Stage by stage a step is %.2f times as fast; there is no memory for it and %s at once, so the whole was not measured",
                gain_before(r, r->n_stages), r->given);
    else if (r->speedup_low > fmax(r->check.believed, 1))
        fprintf(to, "A step is %.2f times as fast as %s (%.2f to %.2f)", r->speedup, r->given, r->speedup_low, r->speedup_high);
    else
        fprintf(to, "A step is no slower than %s", r->given);
    put_memory(r, to);
}

/* What won nothing, and what nobody can say of. */
static void put_nothing(const struct tune_result *r, const struct counts *n, FILE *to)
{
    if (!n->open) {
        fputs("Nothing made this step faster: the config stays as it was", to);
        return;
    }
    fprintf(to, "Nothing was proved to make this step faster, and of %d of %d moves there is no verdict", n->open, n->measured);
    if (delay_is_much(r->delayed_share))
        fprintf(to, ", as other work took the cores for up to %.0f %% of the time", 100 * r->delayed_share);
    fputs(": the config stays as it was", to);
}

/* Another program that was measured to be faster than what tuning ended with. */
static void put_faster_reference(const struct tune_result *r, FILE *to)
{
    for (int i = 0; i < r->n_references; i++) {
        const struct tune_reference *f = &r->references[i];
        if (f->judged && f->high < 1)
            fprintf(to, ". But %s is %.2f times as fast as that (%.2f to %.2f): measured, and by no gate; try --set optimize.passes=%s", f->name, 1 / f->speedup, 1 / f->high,
                    1 / f->low, f->all ? "all" : "none");
    }
}

static void put_headline(const struct tune_result *r, FILE *to)
{
    const struct counts n = count_stages(r);
    if (r->interrupted && n.kept && r->judged) {
        fputs("Interrupted after the judgement: ", to);
        put_gain(r, to);
    } else if (r->interrupted && n.kept)
        fprintf(to, "Interrupted: what was proved by then multiplies, stage by stage, to %.2f times as fast; it was not measured against %s",
                gain_before(r, r->n_stages), r->given);
    else if (r->taken_back)
        fprintf(to, "%s: what won stage by stage does not, all together, against %s (%s)", n.around ? "A step is as it was" : "Nothing was won", r->given, r->whole);
    else if (r->interrupted)
        fputs(n.around ? "Interrupted before a step was proved to be faster" : "Interrupted before anything was proved to be faster", to);
    else if (n.kept)
        put_gain(r, to);
    else if (n.around)
        fputs("A step is as it was", to);
    else if (!r->n_stages)
        fputs("Nothing to try: no pass and no setting changes this program", to);
    else if (n.measured)
        put_nothing(r, &n, to);
    else
        fputs("Nothing was tried: these are predictions only", to);
    if (n.around)
        fputs("; less of the run is evaluation", to);
    put_faster_reference(r, to);
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
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b}", "step_us", measured(p->step_us), "samples_per_s", measured(p->samples_per_s),
                     "tokens_per_s", measured(p->tokens_per_s), "mfu_percent", measured(p->mfu_percent), "mfu_peak_gflops",
                     measured(p->mfu_peak.gflops), "mfu_peak_type", tune_text(rated ? numbers_name(p->mfu_peak.numbers) : NULL),
                     "planned_bytes", json_whole(p->planned_bytes > 0 ? p->planned_bytes : NAN), "ops", json_whole(p->ops > 0 ? p->ops : NAN), "kernels",
                     measured(p->kernels), "fits", !p->too_large);
}

/* Steps of the points, and evaluation as often as it comes. */
static double run_s(const struct tune_result *r, const struct tune_point *p, double evaluation_us)
{
    return r->run.steps && p->step_us > 0 ? run_seconds(r->run.steps, tune_run_step_us(r, p->step_us), evaluation_us) : NAN;
}

/* Seconds of the whole run that a stage won, or would have: steps as long as the chain of stages makes them. */
static double saved_s(const struct tune_result *r, const struct tune_stage *s, double step_us)
{
    const double won_us = s->around ? s->evaluation.us * (1 - s->evaluation.left) : tune_run_step_us(r, step_us - step_us / s->measured);
    return r->run.steps && isfinite(s->measured) ? run_seconds(r->run.steps, won_us, 0) : NAN;
}

static double step_before(const struct tune_result *r, int i) { return r->before.step_us > 0 ? r->before.step_us / gain_before(r, i) : NAN; }

/* What was kept saves together what the whole run, measured as one, became shorter by: each has its part of that by what it won alone. */
static double part_of_whole(const struct tune_result *r)
{
    const double whole = run_s(r, &r->before, r->run.evaluation_before_us) - run_s(r, &r->after, r->run.evaluation_after_us);
    double sum = 0;
    for (int i = 0; i < r->n_stages; i++)
        sum += is_kept(&r->stages[i]) ? saved_s(r, &r->stages[i], step_before(r, i)) : 0;
    return isfinite(whole) && sum > 0 ? fmax(whole, 0) / sum : 1;
}

static json_t *stage(const struct tune_result *r, int i, double part)
{
    const struct tune_stage *s = &r->stages[i];
    const double before = gain_before(r, i), step = step_before(r, i);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:s,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:b,s:s,s:o,s:o,s:o}", "saved_s", number(saved_s(r, s, step) * (is_kept(s) ? part : 1)), "pass", tune_text(s->pass),
                     "what", tune_text(s->what), "change", tune_text(s->change), "answers", tune_text(s->answers), "effort",
                     effort_word(s->effort), "phase", s->phase, "places", s->places, "predicted_speedup", number(s->predicted),
                     "measured_speedup", number(s->measured), "measured_low", number(s->low), "measured_high", number(s->high),
                     "prediction_error", number(prediction_error(s)), "cumulative_speedup",
                     number(is_kept(s) && !s->around ? before * s->measured : before), "step_before_us", number(step), "step_after_us",
                     number(s->around ? step : step / s->measured), "around", s->around, "measured_longer", s->longer, "kept",
                     is_kept(s), "outcome", tune_outcome_word(s->outcome), "openings", count(s->openings), "turns", count(s->turns), "why", tune_text(s->why));
}

static json_t *stages(const struct tune_result *r)
{
    json_t *list = json_array();
    const double part = part_of_whole(r);
    for (int i = 0; i < r->n_stages; i++)
        json_array_append_new(list, stage(r, i, part));
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
    enum tune_outcome o = TUNE_NOT_TRIED;
    for (int i = 0; i < r->n_stages; i++)
        if (has_idea(&r->stages[i], name) && r->stages[i].outcome != TUNE_NOT_TRIED)
            o = r->stages[i].outcome;
    return tune_outcome_word(o);
}

static json_t *roadmap(const struct tune_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_roadmap; i++) {
        const struct tune_idea *d = &r->roadmap[i];
        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:s,s:i,s:i,s:o,s:s}", "name", tune_text(d->name), "what",
                                              tune_text(d->what), "answers", tune_text(d->answers), "effort",
                                              effort_word(d->effort), "phase", d->phase, "places", d->places,
                                              "predicted_speedup", number(d->predicted), "outcome", outcome(r, d->name)));
    }
    return list;
}

static int ranks(const struct tune_result *r) { return division_of(&r->base).ranks; }

/* By which tune judged, as options of `hone verify`: any gain, or where memory fell none that is lost, memory for the scratch of kernels, and as many threads. That is no command of ranks: alone it would judge
 * another program. */
static json_t *limits(const struct tune_result *r)
{
    char text[128], threads[32] = "";
    if (!r->judged || ranks(r) > 1)
        return json_null();
    if (!r->base.threads && r->base.settled_threads)
        snprintf(threads, sizeof threads, " --set threads=%d", r->base.settled_threads);
    snprintf(text, sizeof text, "--set verify.min_gain=%.10g --set verify.memory=%.10g%s", round((verdict_gate(&r->verdict, "throughput")->limit - 1) * 1e6) / 1e6,
             ceil(verdict_gate(&r->verdict, "memory")->limit * 1e3) / 1e3, threads);
    return tune_text(text);
}

/* "gates" and "gates_pass" of a verdict, or nulls. */
static void put_gates(json_t *to, const struct verdict *v, bool judged)
{
    json_object_set_new(to, "gates", judged ? verdict_gates_json(v) : json_null());
    json_object_set_new(to, "gates_pass", judged ? json_boolean(v->pass) : json_null());
}

static json_t *size(const struct tune_size *s)
{
    const struct gate *speed = s->judged ? verdict_gate(&s->verdict, "throughput") : NULL;
    json_t *j = json_pack("{s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "batch", (json_int_t)s->batch, "seq", (json_int_t)s->seq, "before",
                          point(&s->before), "after", point(&s->after), "speedup", number(speed ? speed->value : NAN), "speedup_low",
                          number(speed ? speed->low : NAN), "speedup_high", number(speed ? speed->high : NAN));
    put_gates(j, &s->verdict, s->judged);
    return j;
}

static json_t *sizes(const struct tune_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_sizes; i++)
        json_array_append_new(list, size(&r->sizes[i]));
    return list;
}

static json_t *references(const struct tune_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_references; i++) {
        const struct tune_reference *f = &r->references[i];
        json_array_append_new(list, json_pack("{s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", f->name, "judged", f->judged, "speedup", number(f->speedup), "speedup_low",
                                              number(f->low), "speedup_high", number(f->high), "step_us", number(f->step_us),
                                              "tuned_step_us", number(f->tuned_us), "openings", count(f->openings), "turns", count(f->turns)));
    }
    return list;
}

static json_t *check(const struct tune_result *r)
{
    return r->check.done ? json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "speedup", number(r->check.speedup), "speedup_low", number(r->check.low),
                                     "speedup_high", number(r->check.high), "openings", count(r->check.openings), "turns", count(r->check.turns),
                                     "believed_above", number(r->check.believed))
                         : json_null();
}

static json_t *model(const struct config *c)
{
    return json_pack("{s:o,s:s,s:I,s:I,s:I}", "name", tune_text(c->name), "arch", config_word("model.arch", (int)c->model.arch),
                     "batch", (json_int_t)c->train.batch_size, "seq", (json_int_t)c->model.seq, "accumulate",
                     (json_int_t)c->train.accumulate);
}

static json_t *run(const struct tune_result *r)
{
    if (!r->run.steps || !(r->before.step_us > 0))
        return json_null();
    return json_pack("{s:I,s:o,s:o,s:o,s:o}", "steps", (json_int_t)r->run.steps, "before_s", number(run_s(r, &r->before, r->run.evaluation_before_us)),
                     "after_s", number(run_s(r, &r->after, r->run.evaluation_after_us)), "evaluation_before_s",
                     number(run_seconds(r->run.steps, 0, r->run.evaluation_before_us)), "evaluation_after_s", number(run_seconds(r->run.steps, 0, r->run.evaluation_after_us)));
}

static json_t *larger(const struct tune_result *r)
{
    const struct tune_larger *l = &r->larger;
    const int64_t samples = l->given.train.batch_size * l->given.train.accumulate;
    return l->asked ? json_pack("{s:s,s:I,s:I,s:o,s:o,s:o,s:o}", "rule", lr_rule_name(l->rule), "samples_before", (json_int_t)samples, "samples_after",
                                (json_int_t)(samples * l->times), "lr_before", number(l->given.train.lr), "lr_after", number(r->base.train.lr), "words",
                                tune_text(l->words), "sweep", l->sweep.n ? batch_sweep_json(&l->sweep) : json_null())
                    : json_null();
}

json_t *tune_json(const struct tune_result *r)
{
    char *yaml = config_text(&r->tuned);
    json_t *j = json_pack(
        "{s:s,s:i,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:o,s:b,s:b,s:o,s:o,s:o}", "schema",
        "hone-report", "schema_version", 1, "kind", "tune", "hone_version", HONE_VERSION, "name", tune_text(r->base.name), "headline",
        headline(r), "bound", tune_text(r->bound), "model", model(&r->base), "given", tune_text(r->given), "check", check(r), "stages",
        stages(r), "median_prediction_error", number(median_error(r)), "before", point(&r->before), "after", point(&r->after),
        "speedup", number(r->speedup), "speedup_low", number(r->speedup_low), "speedup_high", number(r->speedup_high), "references",
        references(r), "taken_back", r->taken_back, "sizes", sizes(r), "roadmap", roadmap(r), "out_of_time", r->out_of_time,
        "interrupted", r->interrupted, "seconds", number(r->seconds), "changes", tune_changes(&r->base, &r->tuned), "config_yaml",
        tune_text(yaml ? yaml : ""));
    free(yaml);
    if (j) {
        put_gates(j, &r->verdict, r->judged);
        json_object_set_new(j, "ranks", json_integer(ranks(r)));
        json_object_set_new(j, "limits", limits(r));
        json_object_set_new(j, "larger_batch", larger(r));
        json_object_set_new(j, "larger_batch_expected", measured(r->larger_expected));
        json_object_set_new(j, "run", run(r));
        json_object_set_new(j, "naive_kernels", measured(r->naive_kernels));
        json_object_set_new(j, "delayed_share", r->delayed_share < 0 ? json_null() : number(r->delayed_share));
        json_object_set_new(j, "warning", tune_text(*r->warning ? r->warning : NULL));
    }
    return j;
}
