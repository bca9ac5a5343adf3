/* hone analyze: what bounds the steps that the PyTorch profiler recorded, and what to do about it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/trace_job.h"
#include "core/fs.h"
#include "report/report.h"

struct request {
    struct text_list paths;
    const char *out, *diff, *baseline;
    double max_slower;          /* percent; NAN: not given */
    double step_ms;             /* NAN: not given */
    double peak_tflops, peak_gbps;      /* the same */
    bool json;
    struct picked fail_on;      /* enum severity */
    char folder[CONFIG_PATH_MAX];       /* of --out */
};

struct answer {
    struct trace_job a, b;            /* b and diff: with --diff */
    struct trace_diff diff;
    bool compared;
};

/* ---- the request ---- */

static enum status check_peak(const char *option, double value, const char *what, struct error *err)
{
    const double most = 1e9;
    if (isnan(value) || (value > 0 && value <= most))
        return OK;
    return error_set(err, BAD_INPUT, "%s is %g; it must be above 0 and at most 1e9: %s", option, value, what);
}

static const double MAX_SLOWER = 5;

static enum status check_request(struct request *r, struct error *err)
{
    const double longest_ms = 1e9;
    int standard_input = r->diff && !strcmp(r->diff, "-");
    for (int i = 0; i < r->paths.n; i++)
        standard_input += !strcmp(r->paths.item[i], "-");
    if (standard_input > 1)
        return error_set(err, BAD_INPUT, "'-' is given %d times; the standard input can be read once", standard_input);
    if (!isnan(r->step_ms) && !(r->step_ms > 0 && r->step_ms <= longest_ms))
        return error_set(err, BAD_INPUT, "--step-ms is %g; it must be above 0 and at most 1e9: the milliseconds that a step "
                         "takes without the profiler", r->step_ms);
    if (!isnan(r->max_slower) && !r->baseline)          /* a gate that never closes */
        return error_set(err, BAD_INPUT, "--max-slower is %g, and there is no --baseline to hold the step against; give --baseline report.json", r->max_slower);
    if (isnan(r->max_slower))
        r->max_slower = MAX_SLOWER;
    if (r->max_slower < 0 || r->max_slower > 1000)
        return error_set(err, BAD_INPUT, "--max-slower is %g; it must be 0 to 1000: percent that a step may take longer than in --baseline", r->max_slower);
    enum status st = check_peak("--peak-tflops", r->peak_tflops, "the TFLOP/s that the device's products reach at most", err);
    if (st == OK)
        st = check_peak("--peak-gbps", r->peak_gbps, "the GB/s of the device's memory", err);
    if (st == OK && r->out)
        st = report_folder_name(r->folder, r->out, err);
    return st == OK && r->out ? report_folder_check(r->folder, REPORT_TRACE, err) : st;
}

/* ---- the work ---- */

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static enum status job_make(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options, struct error *err)
{
    const enum status st = trace_job_show(j, paths, n, options, err);
    if (st == OK)
        trace_job_print_warnings(j);
    return st;
}

static enum status answer_make(struct answer *a, const struct request *r, struct error *err)
{
    const struct diagnose_options of_device = {.peak_tflops = or_zero(r->peak_tflops), .peak_gbps = or_zero(r->peak_gbps)};
    struct diagnose_options options = of_device;
    options.step_us = or_zero(r->step_ms) * 1e3;
    enum status st = job_make(&a->a, r->paths.item, r->paths.n, &options, err);
    if (st == OK && r->baseline)
        st = report_baseline(&a->a.diagnosis, r->baseline, r->max_slower / 100, err);
    if (st != OK || !r->diff)
        return st;
    st = job_make(&a->b, &r->diff, 1, &of_device, err);
    if (st == OK)
        st = diagnosis_diff(&a->diff, &a->a.diagnosis, &a->b.diagnosis, err);
    a->compared = st == OK;
    return st;
}

static void answer_release(struct answer *a)
{
    if (a->compared)
        trace_diff_release(&a->diff);
    trace_job_release(&a->a);
    trace_job_release(&a->b);
}

/* ---- files ---- */

typedef enum status diff_writer(const struct trace_diff *d, FILE *to, struct error *err);

static enum status write_diff(const struct trace_diff *d, const char *folder, const char *name, diff_writer *write,
                              struct error *err)
{
    char path[CONFIG_PATH_MAX + 128], *data = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = open_memstream(&data, &size);
    if (!to)
        return error_errno(err, "cannot prepare '%s'", path);
    enum status st = write(d, to, err);
    if (fclose(to) != 0 && st == OK)
        st = error_set(err, CANNOT, "out of memory for '%s'", path);
    if (st == OK)
        st = fs_write_synced(path, data, size, err);
    free(data);
    return st;
}

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const struct answer *a = what;
    enum status st = report_trace_write(&a->a.diagnosis, folder, err);
    if (st == OK && a->compared)
        st = write_diff(&a->diff, folder, "diff.md", report_diff_write_markdown, err);
    if (st == OK && a->compared)
        st = write_diff(&a->diff, folder, "diff.json", report_diff_write_json, err);
    return st == OK ? fs_sync_dir(folder, err) : st;
}

/* ---- what is said ---- */

static enum status print_json(const struct answer *a, struct error *err)
{
    return a->compared ? report_diff_write_json(&a->diff, stdout, err) : report_trace_write_json(&a->a.diagnosis, stdout, err);
}

static void print_screen(const struct answer *a)
{
    const bool color = stream_has_color(stdout);
    if (a->compared)
        report_diff_print_terminal(&a->diff, stdout, color);
    else
        report_trace_print_terminal(&a->a.diagnosis, stdout, color);
}

static void print_where(const struct answer *a, const struct request *r)
{
    FILE *to = r->json ? stderr : stdout;
    if (r->out)
        fprintf(to, "%sreport: %s/report.html   (also report.md, report.json%s)\n", r->json ? "" : "\n",
                shown(r->folder), a->compared ? ", diff.md, diff.json" : "");
    else if (!r->json)
        fputs("\n`--out DIR` writes the whole report: timeline, evidence, every fix as code.\n", to);
}

/* Exit code 1 when a finding is as severe as --fail-on says, or a step slower than --baseline allows. */
static int judge(const struct answer *a, const struct request *r)
{
    const struct diagnosis *d = &a->a.diagnosis;
    char words[BASELINE_WORDS];
    const bool slower = d->baseline && d->baseline->slower, doubted = d->baseline && !slower && (d->baseline->forgiven || d->baseline->as_recorded);
    if (slower || doubted)
        fprintf(stderr, "hone: %s%s\n", doubted ? "warning: " : "", report_baseline_words(d->baseline, words));
    if (a->compared && a->diff.as_recorded)
        fprintf(stderr, "hone: warning: %s\n", REPORT_ONE_GIVEN);
    return findings_fail(d, &r->fail_on) || slower ? ANSWER_NO : OK;
}

static int analyze(struct request *r)
{
    struct answer a = {0};
    struct error err;
    enum status st = check_request(r, &err);
    if (st == OK)
        st = answer_make(&a, r, &err);
    if (st == OK && r->out) {
        install_stop_handler();                 /* no half-written folder is left behind */
        st = report_folder_publish(r->folder, REPORT_TRACE, write_files, &a, &err);
    }
    if (st == OK && r->json)
        st = print_json(&a, &err);
    else if (st == OK)
        print_screen(&a);
    if (st == OK)
        print_where(&a, r);
    const int code = st == OK ? judge(&a, r) : report_error(&err);
    answer_release(&a);
    return code;
}

int cmd_analyze(int argc, char **argv)
{
    struct request r = {.fail_on = {.words = severity_names}, .step_ms = NAN, .peak_tflops = NAN, .peak_gbps = NAN, .max_slower = NAN};
    const struct option_def options[] = {
        {"--step-ms", "X", OPTION_REAL, &r.step_ms, "milliseconds of a step of TRACE without the profiler, where known"},
        {"--peak-tflops", "X", OPTION_REAL, &r.peak_tflops, "what the device's products reach at most, where its name does not say"},
        {"--peak-gbps", "X", OPTION_REAL, &r.peak_gbps, "the bandwidth of its memory"},
        {"--out", "DIR", OPTION_TEXT, &r.out, "write report.html, report.md and report.json into this folder"},
        {"--diff", "OTHER", OPTION_TEXT, &r.diff, "compare with another trace or folder; also diff.md, diff.json in DIR"},
        {"--baseline", "FILE", OPTION_TEXT, &r.baseline, "compare with an earlier report.json; exit 1 when a step has become slower"},
        {"--max-slower", "X", OPTION_REAL, &r.max_slower, "by how many percent it may be slower (5)"},
        {"--fail-on", "SEVERITY", OPTION_WORD, &r.fail_on, "exit 1 on a finding this severe"},
        {"--json", NULL, OPTION_FLAG, &r.json, "print the diagnosis, or the comparison, as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "analyze", "TRACE...",
        "Says what bounds the steps that the PyTorch profiler recorded, where the time goes, and what would make\n"
        "them faster by how much. TRACE is a file (.json or .json.gz), a folder with the ranks of a job, or - for\n"
        "standard input; several are the ranks of one job. The profiler slows the host down: its cost is estimated\n"
        "and taken out, best with --step-ms.", options,
        "  hone analyze trace.json.gz\n"
        "  hone analyze trace.json --step-ms 41.5 --out report\n"
        "  hone analyze runs/profile/                 all ranks of a job\n"
        "  hone analyze before.json --diff after.json\n"
        "  hone analyze trace.json.gz --baseline main/report.json      a gate for CI\n"
        "  zcat trace.json.gz | hone analyze - --json --fail-on high\n", 1, MAX_LIST};
    const enum parsed parsed = parse_options(&usage, argc, argv, &r.paths);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    return analyze(&r);
}
