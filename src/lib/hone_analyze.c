/* Traces in libhone: all that the analyzer alone is made of (python/). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "lib/hone_int.h"
#include "lib/traces.h"
#include "report/folder.h"
#include "report/report.h"

struct hone_analysis {
    struct trace_job job;
};

static enum status check_number(const char *name, double value, struct error *err)
{
    if (value >= 0 && value <= 1e9)
        return OK;
    return error_set(err, BAD_INPUT, "%s is %g; it must be above 0 and at most 1e9, or 0: not known", name, value);
}

static enum status check_options(const hone_analyze_options *o, struct error *err)
{
    enum status st = check_number("step_ms", o->step_ms, err);
    if (st == OK)
        st = check_number("peak_tflops", o->peak_tflops, err);
    return st == OK ? check_number("peak_gbps", o->peak_gbps, err) : st;
}

static enum status analyze(hone_analysis **out, const char *const *paths, int n_paths, const hone_analyze_options *o, struct error *err)
{
    enum status st = n_paths > 0 ? check_options(o, err) : error_set(err, BAD_INPUT, "no trace is given; at least one must be");
    if (st != OK)
        return st;
    hone_analysis *a = xcalloc(1, sizeof *a);
    st = trace_job_make(&a->job, paths, n_paths, &(struct diagnose_options){.step_us = o->step_ms * 1e3, .peak_tflops = o->peak_tflops,
                        .peak_gbps = o->peak_gbps}, NULL, err);
    if (st == OK)
        *out = a;
    else
        hone_analysis_free(a);
    return st;
}

hone_status hone_analyze(hone_analysis **out, const char *const *paths, int n_paths, const hone_analyze_options *options)
{
    static const hone_analyze_options nothing;
    struct error err;
    if (out)
        *out = NULL;
    if (!out || !paths)
        return hone_missing(out ? "the list of traces" : "where the analysis goes");
    if (hone_missing_in("trace", paths, n_paths) != HONE_OK)
        return HONE_BAD_INPUT;
    const locale_t theirs = hone_enter();
    const enum status st = analyze(out, paths, n_paths, options ? options : &nothing, &err);
    hone_leave(theirs);
    return hone_end(st, &err);
}

/* ---- in words ---- */

static enum status write_json(const void *what, FILE *to, struct error *err) { return report_trace_write_json(what, to, err); }

static enum status write_markdown(const void *what, FILE *to, struct error *err) { return report_trace_write_markdown(what, to, err); }

static enum status write_plain(const void *what, FILE *to, struct error *err)
{
    (void)err;
    report_trace_print_terminal(what, to, false);
    return OK;
}

static enum status write_colored(const void *what, FILE *to, struct error *err)
{
    (void)err;
    report_trace_print_terminal(what, to, true);
    return OK;
}

static hone_status text_of(const hone_analysis *a, char **out, hone_write_fn *write)
{
    return a ? hone_text(out, write, &a->job.diagnosis) : hone_missing("the analysis");
}

hone_status hone_analysis_json(const hone_analysis *a, char **json) { return text_of(a, json, write_json); }

hone_status hone_analysis_markdown(const hone_analysis *a, char **text) { return text_of(a, text, write_markdown); }

hone_status hone_analysis_screen(const hone_analysis *a, int color, char **text) { return text_of(a, text, color ? write_colored : write_plain); }

/* ---- files ---- */

static enum status write_files(const void *what, const char *folder, struct error *err) { return report_trace_write(what, folder, err); }

hone_status hone_analysis_write(const hone_analysis *a, const char *folder)
{
    struct error err;
    char name[REPORT_FOLDER_MAX];
    if (!a || !folder)
        return hone_missing(a ? "the folder of the report" : "the analysis");
    const locale_t theirs = hone_enter();
    enum status st = report_folder_name(name, folder, &err);
    if (st == OK)
        st = report_folder_check(name, REPORT_TRACE, &err);
    if (st == OK)
        st = report_folder_publish(name, REPORT_TRACE, write_files, &a->job.diagnosis, &err);
    hone_leave(theirs);
    return hone_end(st, &err);
}

/* ---- findings ---- */

hone_status hone_analysis_count(const hone_analysis *a, const char *severity, int *n)
{
    struct error err;
    int least = SEVERITY_LOW;
    if (!a || !severity || !n)
        return hone_missing(!a ? "the analysis" : !severity ? "the severity" : "where the number goes");
    while (least <= SEVERITY_CRITICAL && strcmp(severity, severity_name((enum severity)least)))
        least++;
    if (least > SEVERITY_CRITICAL)
        return hone_end(error_set(&err, BAD_INPUT, "the severity is '%s'; it can be critical, high, medium or low", severity), &err);
    *n = 0;
    for (int i = 0; i < a->job.diagnosis.n_findings; i++)
        *n += (int)a->job.diagnosis.findings[i].severity >= least;
    return HONE_OK;
}

void hone_analysis_free(hone_analysis *a)
{
    if (!a)
        return;
    trace_job_release(&a->job);
    free(a);
}
