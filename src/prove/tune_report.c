/* What tune did, as JSON and Markdown. */
#include <math.h>

#include "prove/tune.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *point(const struct tune_point *p)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "step_us", number(p->step_us), "samples_per_s", number(p->samples_per_s),
                     "tokens_per_s", number(p->tokens_per_s), "planned_bytes", number(p->planned_bytes), "ops", number(p->ops));
}

static const char *effort_word(enum pass_effort e) { return e == PASS_LOW ? "low" : e == PASS_MEDIUM ? "medium" : "high"; }

/* How far the prediction was from what was measured, as a part of the latter. */
static double prediction_error(const struct tune_stage *s) { return s->predicted / s->measured - 1; }

static json_t *stage(const struct tune_stage *s, double cumulative)
{
    return json_pack("{s:s,s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:s}", "pass", s->pass, "answers", s->answers, "effort",
                     effort_word(s->effort), "places", s->places, "predicted_speedup", number(s->predicted),
                     "measured_speedup", number(s->measured), "measured_low", number(s->low), "measured_high", number(s->high),
                     "prediction_error", number(prediction_error(s)), "cumulative_speedup", number(cumulative), "kept", s->kept,
                     "why", s->why);
}

json_t *tune_json(const struct tune_result *r)
{
    json_t *stages = json_array(), *sizes = json_array();
    double cumulative = 1;
    for (int i = 0; i < r->n_stages; i++) {
        if (r->stages[i].kept)
            cumulative *= r->stages[i].measured;
        json_array_append_new(stages, stage(&r->stages[i], cumulative));
    }
    for (int i = 0; i < r->n_sizes; i++)
        json_array_append_new(sizes, json_pack("{s:I,s:I,s:o,s:o}", "batch", (json_int_t)r->sizes[i].batch, "seq",
                                               (json_int_t)r->sizes[i].seq, "before", point(&r->sizes[i].before), "after",
                                               point(&r->sizes[i].after)));
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o}", "kind", "tune", "name", r->base.name, "stages",
                     stages, "before", point(&r->before), "after", point(&r->after), "speedup", number(r->speedup),
                     "speedup_low", number(r->speedup_low), "speedup_high", number(r->speedup_high), "sizes", sizes,
                     "out_of_time", r->out_of_time, "interrupted", r->interrupted, "seconds", number(r->seconds));
}

/* ---- Markdown ---- */

static void put_times(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, "%.2f×", x);
    else
        fputs("–", to);
}

static void put_stage(FILE *to, const struct tune_stage *s, double cumulative)
{
    fprintf(to, "| %s | %s | ", s->pass, effort_word(s->effort));
    put_times(to, s->predicted);
    fputs(" | ", to);
    put_times(to, s->measured);
    if (isfinite(s->measured))
        fprintf(to, " (%.2f to %.2f) | %+.0f %%", s->low, s->high, 100 * prediction_error(s));
    else
        fputs(" | –", to);
    fprintf(to, " | %s | ", s->kept ? "kept" : "dropped");
    put_times(to, s->kept ? cumulative : NAN);
    fprintf(to, " | %s |\n", s->why);
}

static void put_row(FILE *to, const char *what, double a, double b, const char *unit)
{
    if (isfinite(a) && isfinite(b))
        fprintf(to, "| %s | %.4g %s | %.4g %s | %.2f |\n", what, a, unit, b, unit, b / a);
}

void tune_markdown(const struct tune_result *r, FILE *to)
{
    fprintf(to, "# %s, tuned\n\n", r->base.name);
    fprintf(to, "A step is %.2f times as fast as without passes (%.2f to %.2f, base and tuned in turns).\n", r->speedup, r->speedup_low,
            r->speedup_high);
    if (r->out_of_time)
        fputs("The time was spent before every pass was tried.\n", to);
    if (r->interrupted)
        fputs("It was interrupted: this is what had been proved by then.\n", to);
    fputs("\n## Passes, in the order in which they were tried\n\n"
          "| pass | effort | predicted | measured | error of the prediction | verdict | speed-up so far | why |\n"
          "|---|---|---|---|---|---|---|---|\n", to);
    double cumulative = 1;
    for (int i = 0; i < r->n_stages; i++) {
        if (r->stages[i].kept)
            cumulative *= r->stages[i].measured;
        put_stage(to, &r->stages[i], cumulative);
    }
    fputs("\n## Before and after\n\n| | before | after | ratio |\n|---|---|---|---|\n", to);
    put_row(to, "step", r->before.step_us / 1e3, r->after.step_us / 1e3, "ms");
    put_row(to, "throughput", r->before.tokens_per_s, r->after.tokens_per_s, "tokens/s");
    put_row(to, "planned memory", r->before.planned_bytes / 1e6, r->after.planned_bytes / 1e6, "MB");
    put_row(to, "ops per step", r->before.ops, r->after.ops, "");
    fputs("\n## Other sizes\n\n| batch × sequence | step before | after | memory before | after |\n|---|---|---|---|---|\n", to);
    for (int i = 0; i < r->n_sizes; i++) {
        const struct tune_size *s = &r->sizes[i];
        fprintf(to, "| %lld × %lld | ", (long long)s->batch, (long long)s->seq);
        if (isfinite(s->before.step_us) && isfinite(s->after.step_us))
            fprintf(to, "%.4g ms | %.4g ms", s->before.step_us / 1e3, s->after.step_us / 1e3);
        else
            fputs("– | –", to);
        fprintf(to, " | %.4g MB | %.4g MB |\n", s->before.planned_bytes / 1e6, s->after.planned_bytes / 1e6);
    }
}
