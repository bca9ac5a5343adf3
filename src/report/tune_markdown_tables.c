/* report.md of hone tune: what was given against what came out, the gates between them, and both at other sizes. */
#include "report/tune_markdown_int.h"

static const char *peak_type(const json_t *j, const char *end) { return word(json_object_get(j, end), "mfu_peak_type"); }

/* A row of both ends and the change, but that shares of two peaks have none. */
static void put_row(FILE *to, const json_t *j, const char *what, const char *key,
                    const char *(*show)(double x, number_text out), double unit)
{
    const bool apart = !strcmp(key, "mfu_percent") && strcmp(peak_type(j, "before"), peak_type(j, "after"));
    const double a = num(json_object_get(j, "before"), key), b = num(json_object_get(j, "after"), key);
    number_text n;
    if (!isfinite(a) || !isfinite(b))
        return;
    fprintf(to, "| %s | %s | ", what, show(a / unit, n));
    fprintf(to, "%s | ", show(b / unit, n));
    put_percent(to, apart ? NAN : b / a - 1);
    fputs(" |\n", to);
}

/* "MFU, of the f32 peak": a pass may change the numbers that are multiplied, and with them the peak. */
static const char *mfu_label(const json_t *j, char out[48])
{
    const char *a = peak_type(j, "before"), *b = peak_type(j, "after");
    if (!*a || !*b)
        snprintf(out, 48, "MFU");
    else if (!strcmp(a, b))
        snprintf(out, 48, "MFU, of the %.8s peak", a);
    else
        snprintf(out, 48, "MFU, of the %.8s and of the %.8s peak", a, b);
    return out;
}

/* Other programs that the tuned one was measured against, in turns of their own. */
static void put_references(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "references"), *f;
    number_text n;
    size_t i;
    json_array_foreach(list, i, f) {
        fputs("\nMeasured on its own, the tuned config is ", to);
        put_times(to, num(f, "speedup"));
        fprintf(to, " (%.2f× to %.2f×) against %s, a step of which takes %s%s.\n", num(f, "speedup_low"), num(f, "speedup_high"), word(f, "name"),
                report_show_us(num(f, "step_us"), n), yes(f, "judged") ? "" : ": no verdict, as there was too much noise");
    }
}

/* The whole run, and what each of what was kept saves of it. */
static void put_run(FILE *to, const json_t *j)
{
    const json_t *run = json_object_get(j, "run"), *s;
    number_text a, b, c;
    size_t i;
    if (!isfinite(num(run, "before_s")))
        return;
    fprintf(to, "\nThe whole run of %.0f step%s with its evaluations: %s before, %s after.\n", num(run, "steps"), num(run, "steps") == 1 ? "" : "s", report_show_seconds(num(run, "before_s"), a),
            report_show_seconds(num(run, "after_s"), b));
    json_array_foreach(json_object_get(j, "stages"), i, s) {
        if (!yes(s, "kept") || !(num(s, "saved_s") > 0))
            continue;
        fputs("\n- ", to);
        report_put_markdown_cut(to, word(s, "pass"), NAME_COLUMNS);
        fprintf(to, " saves %s of %s", report_show_seconds(num(s, "saved_s"), b), report_show_seconds(num(run, "before_s"), c));
    }
    fputc('\n', to);
}

/* Else before and after are one measurement. */
static bool has_new_step(const json_t *j)
{
    const json_t *s;
    size_t i;
    json_array_foreach(json_object_get(j, "stages"), i, s)
        if (yes(s, "kept") && !yes(s, "around"))
            return true;
    return false;
}

void tune_put_points(FILE *to, const json_t *j)
{
    char mfu[48];
    if (!isfinite(num(json_object_get(j, "before"), "step_us")) || !isfinite(num(json_object_get(j, "after"), "step_us")))
        return;
    fprintf(to, "\n## Before and after\n\n| | %s | tuned | change |\n|---|---:|---:|---:|\n", given_label(j));
    put_row(to, j, "step", "step_us", report_show_us, 1);
    put_row(to, j, "tokens per second", "tokens_per_s", report_show_count, 1);
    put_row(to, j, "samples per second", "samples_per_s", report_show_count, 1);
    put_row(to, j, mfu_label(j, mfu), "mfu_percent", report_show_percent, 100);
    put_row(to, j, "planned memory", "planned_bytes", report_show_bytes, 1);
    put_row(to, j, "ops per step", "ops", report_show_count, 1);
    if (num(json_object_get(j, "before"), "kernels") > 0)
        put_row(to, j, "kernels per step", "kernels", report_show_count, 1);
    fputs(has_new_step(j) ? "\nAll rows are of the same turns.\n" : "\nThe step is as it was: both have the same one.\n", to);
    put_run(to, j);
    if (num(j, "naive_kernels") > 0)
        fprintf(to, "\nThe program without passes starts %.0f kernels per step.\n", num(j, "naive_kernels"));
    put_references(to, j);
}

void tune_put_gates(FILE *to, const json_t *j)
{
    const json_t *list = json_object_get(j, "gates"), *g;
    size_t i;
    if (!length(j, "gates"))
        return;
    fprintf(to, "\n## Gates\n\nFrom %s (a) to the tuned config (b)%s\n\n| gate | verdict | |\n|---|---|---|\n", word(j, "given"),
            yes(j, "taken_back") ? ", which was taken back." : ".");
    json_array_foreach(list, i, g) {
        fprintf(to, yes(g, "pass") ? "| %s | %s | " : "| %s | **%s** | ", word(g, "gate"), word(g, "outcome"));
        put_words(to, word(g, "words"));
        fputs(" |\n", to);
    }
}
