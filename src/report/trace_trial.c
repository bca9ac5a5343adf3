/* What was tried in a watched program (src/watch/hook/hone_hook/trial): measured gains beside the predicted ones. The hook's own document is
 * shown; what is missing in it is a dash. */
#include <math.h>

#include "report/fields_int.h"
#include "report/trace_watched_int.h"

enum { MOST_ROWS = 40, NAME = 26, RULE = 20 };

static const json_t *switches(const struct diagnosis *d) { return json_object_get(d->watched ? d->watched->trial : NULL, "switches"); }

/* What the finding that a switch answers promises; NAN: there is none. */
static double predicted(const struct diagnosis *d, const json_t *one)
{
    for (int i = 0; i < d->n_findings; i++)
        if (!strcmp(d->findings[i].rule, word(one, "rule")))
            return d->findings[i].predicted > 0 ? d->findings[i].predicted : d->findings[i].speedup;
    return NAN;
}

/* ---- report.json ---- */

json_t *report_trial(const struct diagnosis *d)
{
    size_t i;
    json_t *one, *trial = d->watched && d->watched->trial ? json_deep_copy(d->watched->trial) : NULL;
    if (!trial)
        return json_null();
    json_array_foreach(json_object_get(trial, "switches"), i, one)
        if (json_is_object(one))
            json_object_set_new(one, "predicted_speedup", report_number(predicted(d, one)));
    return trial;
}

/* ---- words ---- */

static const char *say_measured(const json_t *one, char *out)
{
    number_text a, b, c;
    if (!isfinite(num(one, "speedup")))
        return "–";
    snprintf(out, 96, "%s (%s to %s)", report_show_speedup(num(one, "speedup"), a), report_show_speedup(num(one, "low"), b),
             report_show_speedup(num(one, "high"), c));
    return out;
}

/* "kept" is what the hook says of a switch that won. */
static bool won(const json_t *one) { return !strcmp(word(one, "state"), "kept") && length(one, "lines"); }

static bool any_won(const struct diagnosis *d)
{
    size_t i;
    const json_t *one;
    json_array_foreach(switches(d), i, one)
        if (won(one))
            return true;
    return false;
}

static const char *say_restored(const json_t *trial)
{
    const json_t *restored = json_object_get(trial, "restored");
    return json_is_true(restored)    ? "weights, optimizer, data and random numbers are what they were before, bit for bit"
           : json_is_false(restored) ? "the program could not be put back as it was: what it trained since is not what it would have"
                                     : "";
}

static const char *why_not(const json_t *trial) { return *word(trial, "why") ? word(trial, "why") : word(trial, "status"); }

/* Why all that won may not be switched on together; NULL: they may, or were not tried so. */
static const char *total_failure(const json_t *trial)
{
    size_t i;
    const json_t *gate;
    json_array_foreach(json_object_get(json_object_get(trial, "total"), "gates"), i, gate)
        if (json_is_false(json_object_get(gate, "pass")))
            return word(gate, "why");
    return NULL;
}

static const char *say_together(const json_t *trial, char out[256])
{
    const json_t *total = json_object_get(trial, "total");
    if (!total_failure(trial))
        return isfinite(num(total, "speedup")) ? say_measured(total, out) : "not tried, as the trial was cut short";
    snprintf(out, 256, "failed: %.240s", total_failure(trial));
    return out;
}

/* ---- report.md ---- */

/* Indented, so that it is code whatever is in it. */
static void markdown_lines(FILE *to, const json_t *one)
{
    size_t i;
    const json_t *line;
    number_text n;
    fputs("\n    # ", to);
    report_put_text(to, word(one, "name"));
    fprintf(to, ": %s\n", report_show_speedup(num(one, "speedup"), n));
    json_array_foreach(json_object_get(one, "lines"), i, line) {
        fputs("    ", to);
        report_put_text(to, json_is_string(line) ? json_string_value(line) : "");
        fputc('\n', to);
    }
}

static void markdown_won(FILE *to, const struct diagnosis *d, const json_t *trial)
{
    size_t i;
    const json_t *one;
    char together[256];
    if (*say_restored(trial))
        fprintf(to, "\nAfter it %s.\n", say_restored(trial));
    if (!any_won(d))
        return;
    fputs("\nAll that won, together: ", to);
    put_words(to, say_together(trial, together));
    fputs(". The lines for the script, in order, each with its gain over those above it", to);
    if (*word(trial, "settings_file")) {
        fputs("; importing ", to);
        put_words(to, word(trial, "settings_file"));
        fputs(" does the same", to);
    }
    fputs(":\n", to);
    json_array_foreach(switches(d), i, one)
        if (i < MOST_ROWS && won(one))
            markdown_lines(to, one);
}

void report_markdown_trial(FILE *to, const struct diagnosis *d)
{
    size_t i;
    const json_t *one;
    const json_t *trial = d->watched ? d->watched->trial : NULL;
    char measured[96];
    number_text n;
    if (!trial)
        return;
    fputs("\n## Tried in the running program\n\n", to);
    if (!json_array_size(switches(d))) {
        put_words(to, why_not(trial));
        fputc('\n', to);
        return;
    }
    fputs("| switch | answers | predicted | measured | | |\n|---|---|---:|---:|---|---|\n", to);
    json_array_foreach(switches(d), i, one) {
        if (i == MOST_ROWS)
            break;
        fputs("| ", to);
        put_words(to, word(one, "name"));
        fputs(" | ", to);
        put_words(to, word(one, "rule"));
        fprintf(to, " | %s | %s | ", report_show_speedup(predicted(d, one), n), say_measured(one, measured));
        put_words(to, word(one, "state"));
        fputs(" | ", to);
        put_words(to, word(one, "why"));
        fputs(" |\n", to);
    }
    markdown_won(to, d, trial);
}

/* ---- the terminal ---- */

static void put_switch(const struct screen *s, const struct diagnosis *d, const json_t *one)
{
    char measured[96];
    number_text n;
    fputs("  ", s->to);
    screen_put_padded(s, word(one, "name"), NAME);
    screen_put_padded(s, word(one, "state"), 10);
    screen_put_right(s, report_show_speedup(predicted(d, one), n), 10);
    screen_put_right(s, say_measured(one, measured), 26);
    fputs("  ", s->to);
    screen_put_cut(s, word(one, "why"), SCREEN_COLUMNS - NAME - 50);
    fputc('\n', s->to);
}

static void put_lines(const struct screen *s, const json_t *one)
{
    size_t i;
    const json_t *line;
    json_array_foreach(json_object_get(one, "lines"), i, line) {
        fputs("    ", s->to);
        screen_put_cut(s, json_is_string(line) ? json_string_value(line) : "", SCREEN_COLUMNS);
        fputc('\n', s->to);
    }
}

static void put_won(const struct screen *s, const struct diagnosis *d, const json_t *trial)
{
    size_t i;
    const json_t *one;
    char together[256];
    screen_put_answer(s, "after it", say_restored(trial));
    if (!any_won(d))
        return;
    screen_put_answer(s, "together", say_together(trial, together));
    screen_put_answer(s, "settings", word(trial, "settings_file"));
    screen_put_answer(s, "lines", *word(trial, "settings_file") ? "for the script, in order; or import the settings in its first line" : "for the script, in order");
    json_array_foreach(switches(d), i, one)
        if (i < MOST_ROWS && won(one))
            put_lines(s, one);
}

void screen_put_trial(const struct screen *s, const struct diagnosis *d)
{
    size_t i;
    const json_t *one;
    const json_t *trial = d->watched ? d->watched->trial : NULL;
    if (!trial)
        return;
    screen_put_heading(s, "Tried", ", in the running program, in turns");
    if (!json_array_size(switches(d))) {
        screen_put_answer(s, "nothing", why_not(trial));
        return;
    }
    fprintf(s->to, "  %s%-*s%-10s%10s%26s%s\n", screen_style(s, DIM), NAME, "switch", "", "predicted", "measured", screen_style(s, OFF));
    json_array_foreach(switches(d), i, one)
        if (i < MOST_ROWS)
            put_switch(s, d, one);
    put_won(s, d, trial);
}

void report_trial_print_terminal(const struct watched *w, FILE *to, bool color)
{
    const struct diagnosis d = {.watched = w};          /* that finds nothing, as nothing was recorded */
    const struct screen s = {to, color};
    if (json_array_size(switches(&d)))
        screen_put_trial(&s, &d);
}
