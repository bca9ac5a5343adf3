/* report.md of hone tune: what its page shows, as tables and bars of text. All of it comes from report.json. */
#include <math.h>
#include <string.h>

#include "report/tune_markdown_int.h"

enum { BAR = 24 };

/* ---- the parts ---- */

/* Names tried together are apart, so that the cell can break. */
static void put_pass(FILE *to, const json_t *stage)
{
    for (const char *at = word(stage, "pass"); *at;) {
        const size_t n = strcspn(at, "+");
        char name[NAME_COLUMNS];
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), at);
        report_put_markdown(to, name);
        at += n + (at[n] == '+');
        fputs(*at ? " + " : "", to);
    }
}

static void put_model(FILE *to, const json_t *model)
{
    fprintf(to, "| model | %s, batch %.0f × %.0f", word(model, "arch"), num(model, "batch"), num(model, "seq"));
    if (num(model, "accumulate") > 1)
        fprintf(to, " × %.0f accumulated", num(model, "accumulate"));
    fputs(" |\n", to);
}

/* Behind an interval: what it rests on, where that is known. */
static const char *rests_on(const json_t *of, number_text out)
{
    *out = 0;
    if (isfinite(num(of, "turns")) && isfinite(num(of, "openings")))
        snprintf(out, sizeof(number_text), ", %.0f turns in %.0f openings", num(of, "turns"), num(of, "openings"));
    return out;
}

/* What was seen of a program that wins nothing. */
static void put_noise(FILE *to, const json_t *check)
{
    number_text rest;
    if (!isfinite(num(check, "speedup_low") + num(check, "speedup_high") + num(check, "believed_above")))
        return;
    fputs("| noise | the config against itself: ", to);
    put_times(to, num(check, "speedup"));
    fprintf(to, " (%.2f× to %.2f×%s), the same bits", num(check, "speedup_low"), num(check, "speedup_high"), rests_on(check, rest));
    if (num(check, "believed_above") > 1)
        fprintf(to, "; no gain up to %.3f× was believed", num(check, "believed_above"));
    fputs(" |\n", to);
}

static void put_top(FILE *to, const json_t *j)
{
    const json_t *machine = json_object_get(j, "machine"), *model = json_object_get(j, "model");
    number_text took;
    fputs("# ", to);
    report_put_markdown_cut(to, *word(j, "name") ? word(j, "name") : "A config", NAME_COLUMNS);
    fputs(", tuned\n\n**", to);
    report_put_markdown_cut(to, word(j, "headline"), SENTENCE_COLUMNS);
    fputs(".**\n\n| | |\n|---|---|\n", to);
    if (model)
        put_model(to, model);
    report_markdown_fact(to, "machine", word(machine, "fingerprint"));
    if (*word(j, "warning")) {
        fputs("| warning | ", to);
        put_words(to, word(j, "warning"));
        fputs(" |\n", to);
    }
    put_noise(to, json_object_get(j, "check"));
    fputs("| profiled first | ", to);
    put_words(to, word(j, "bound"));
    fprintf(to, " |\n| took | %s |\n", report_show_us(1e6 * num(j, "seconds"), took));
    if (json_is_object(json_object_get(j, "larger_batch"))) {
        fputs("\nLarger batch: ", to);
        put_words(to, word(json_object_get(j, "larger_batch"), "words"));
        fputs(".\n", to);
    }
    if (yes(j, "out_of_time"))
        fputs("\nThe time was spent before everything was tried; `--budget` gives more.\n", to);
    if (yes(j, "interrupted"))
        fputs("\nIt was interrupted: this is what had been proved by then.\n", to);
}

/* The step as a part of the first one: full where time is left, light where this stage took it away. */
static void put_fall(FILE *to, double before, double after)
{
    const int a = (int)lround(fmin(fmax(before, 0), 1) * BAR), b = (int)lround(fmin(fmax(after, 0), 1) * BAR);
    for (int i = 0; i < BAR; i++)
        fputs(i < b ? "█" : i < a ? "▒" : "·", to);
}

static void put_fall_row(FILE *to, double before, double after, double step_us)
{
    number_text n;
    fputs(" | `", to);
    put_fall(to, before, after);
    fputs("` | ", to);
    put_times(to, 1 / after);
    fprintf(to, " | %s |\n", report_show_us(step_us * after, n));
}

static void put_waterfall(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "stages"), *s;
    const double step_us = num(json_object_get(j, "before"), "step_us"), tuned_us = num(json_object_get(j, "after"), "step_us");
    double now = 1;                         /* the step as a part of the first */
    size_t i;
    if (!length(j, "stages"))
        return;
    fputs("\n## From stage to stage\n\n| kept | the step | so far | |\n|---|---|---:|---:|\n| ", to);
    fputs(given_label(j), to);
    put_fall_row(to, 1, 1, step_us);
    json_array_foreach(list, i, s) {
        if (!yes(s, "kept") || yes(s, "around") || !(num(s, "cumulative_speedup") > 0))
            continue;
        fputs("| ", to);
        put_pass(to, s);
        put_fall_row(to, now, 1 / num(s, "cumulative_speedup"), step_us);
        now = 1 / num(s, "cumulative_speedup");
    }
    if (isfinite(tuned_us) && isfinite(step_us)) {
        fputs("| tuned, all together", to);
        put_fall_row(to, tuned_us / step_us, tuned_us / step_us, step_us);
    }
    if (now != 1 && isfinite(tuned_us)) {
        fputs("\nOne by one, what was kept multiplies to ", to);
        put_times(to, 1 / now);
        fprintf(to, "; all together, measured in turns with %s, it is ", word(j, "given"));
        put_times(to, num(j, "speedup"));
        fputs(".\n", to);
    }
}

static void put_stage(FILE *to, const json_t *s)
{
    number_text rest;
    fputs("| ", to);
    put_pass(to, s);
    fprintf(to, " | %s | ", word(s, "effort"));
    put_times(to, num(s, "predicted_speedup"));
    fputs(" | ", to);
    put_times(to, num(s, "measured_speedup"));
    if (isfinite(num(s, "measured_low")))
        fprintf(to, " (%.2f× to %.2f×%s)", num(s, "measured_low"), num(s, "measured_high"), rests_on(s, rest));
    fputs(" | ", to);
    put_percent(to, num(s, "prediction_error"));
    fprintf(to, " | %s | ", word(s, "outcome"));
    put_times(to, yes(s, "kept") ? num(s, "cumulative_speedup") : NAN);
    fputs(" | ", to);
    put_words(to, word(s, "change"));
    fputs(" |\n", to);
}

static bool has_measured(const json_t *stages)
{
    const json_t *s;
    size_t i;
    json_array_foreach(stages, i, s)
        if (isfinite(num(s, "measured_speedup")))
            return true;
    return false;
}

/* Those that were measured; the others are listed with what was not kept. */
static void put_stages(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "stages"), *s;
    number_text n;
    size_t i;
    fputs("\n## Predicted and measured\n\n", to);
    if (!has_measured(list)) {
        fputs(length(j, "stages") ? "Nothing was measured.\n" : "There was nothing to try: no pass and no setting changes this program.\n", to);
        return;
    }
    fputs("| move | effort | predicted | measured | error of the prediction | verdict | so far | writes |\n"
          "|---|---|---:|---:|---:|---|---:|---|\n", to);
    json_array_foreach(list, i, s)
        if (isfinite(num(s, "measured_speedup")))
            put_stage(to, s);
    if (isfinite(num(j, "median_prediction_error")))
        fprintf(to, "\nThe predictions of what was measured are off by %s in the median.\n",
                report_show_percent(num(j, "median_prediction_error"), n));
}

static const char *phase_title(double phase)
{
    return phase == 1 ? "1 quick wins" : phase == 2 ? "2 rewrites" : phase == 3 ? "3 trades" : "other";
}

static void put_roadmap(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "roadmap"), *d;
    size_t i;
    if (!length(j, "roadmap"))
        return;
    fputs("\n## Roadmap\n\nWhat could be done at the start, with what it was expected to win then.\n\n"
          "| phase | move | effort | expected | outcome | what it does |\n|---|---|---|---:|---|---|\n", to);
    json_array_foreach(list, i, d) {
        fprintf(to, "| %s | ", phase_title(num(d, "phase")));
        report_put_markdown_cut(to, word(d, "name"), NAME_COLUMNS);
        fprintf(to, " | %s | ", word(d, "effort"));
        put_times(to, num(d, "predicted_speedup"));
        fprintf(to, " | %s | ", word(d, "outcome"));
        put_words(to, word(d, "what"));
        fputs(" |\n", to);
    }
}

static void put_not_kept(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "stages"), *s;
    bool any = false;
    size_t i;
    json_array_foreach(list, i, s) {
        if (yes(s, "kept"))
            continue;
        fputs(any ? "- **" : "\n## Not kept, and why\n\n- **", to);
        any = true;
        put_pass(to, s);
        fprintf(to, "** (%s): ", word(s, "outcome"));
        put_words(to, word(s, "why"));
        fputs("; expected ", to);
        put_times(to, num(s, "predicted_speedup"));
        fputc('\n', to);
    }
}

static void put_config(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "changes"), *c;
    size_t i;
    fputs("\n## The tuned config\n\n", to);
    if (!length(j, "changes")) {
        fputs("tuned.yaml is base.yaml, the config as given: nothing was changed.\n", to);
        return;
    }
    fputs("| key | base.yaml | tuned.yaml |\n|---|---|---|\n", to);
    json_array_foreach(list, i, c) {
        fputs("| ", to);
        put_words(to, word(c, "key"));
        fputs(" | ", to);
        put_words(to, word(c, "before"));
        fputs(" | ", to);
        put_words(to, word(c, "after"));
        fputs(" |\n", to);
    }
    fputs("\nUse it: hone train ", to);
    put_words(to, *word(j, "tuned_config") ? word(j, "tuned_config") : "tuned.yaml");
    fputc('\n', to);
    if (*word(j, "limits"))
        fprintf(to, "\nThe same verdict again: hone verify base.yaml tuned.yaml %s\n", word(j, "limits"));
}

enum status report_tune_write_markdown(const json_t *tune, FILE *to, struct error *err)
{
    (void)err;
    put_top(to, tune);
    put_waterfall(to, tune);
    put_stages(to, tune);
    tune_put_points(to, tune);
    tune_put_gates(to, tune);
    tune_put_sizes(to, tune);
    put_roadmap(to, tune);
    put_not_kept(to, tune);
    put_config(to, tune);
    return OK;
}
