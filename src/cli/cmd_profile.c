/* hone profile: measures steps, says what bounds them, writes the reports. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "dist/dist.h"
#include "ops/cpu/cpu.h"
#include "prove/situation.h"
#include "report/report.h"

static void on_progress(void *context, int done, int total)
{
    char text[64];
    snprintf(text, sizeof text, "measuring step %d/%d", done, total);
    progress_show(context, done, text);
}

/* Memory that can be had before the run takes its own; 0: unknown. */
static double available_bytes(const struct config *c)
{
    const size_t bytes = train_available_bytes(c);
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}

/* ---- files ---- */

/* A page of Markdown under TensorBoard's tab for text. */
static enum status add_text(struct tensorboard *t, const char *tag, enum status (*write)(const struct profile *p, FILE *to, struct error *err),
                            const struct profile *p, struct error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return error_no_memory(err, "a page for TensorBoard", 1 << 16);
    enum status st = write(p, f, err);
    if (fclose(f) && st == OK)
        st = error_no_memory(err, "a page for TensorBoard", 1 << 16);
    if (st == OK)
        tensorboard_text(t, tag, 0, text);
    free(text);
    return st;
}

static enum status write_tensorboard(const struct profile *p, const char *folder, struct error *err)
{
    struct tensorboard *t;
    char path[1200];
    snprintf(path, sizeof path, "%s/tensorboard", folder);
    enum status st = fs_make_dirs(path, err);
    if (st == OK)
        st = tensorboard_open(&t, path, err);
    if (st != OK)
        return st;
    tensorboard_scalar(t, "step/ms", 0, p->step_us / 1e3);
    tensorboard_scalar(t, "step/samples_per_s", 0, p->samples_per_s);
    tensorboard_scalar(t, "step/tokens_per_s", 0, p->tokens_per_s);
    tensorboard_scalar(t, "step/mfu_percent", 0, p->mfu_percent);
    tensorboard_scalar(t, "step/loss", 0, p->loss);
    tensorboard_scalar(t, "memory/peak_mb", 0, p->rss_peak_bytes / 1e6);
    for (int i = 0; i < p->n_ops; i++) {
        const struct profile_memory_point *m = &p->memory[i];
        const double alive = m->parameters + m->state + m->gradients + m->activations + m->inputs;
        tensorboard_scalar(t, "memory/alive_mb_by_op", i, alive / 1e6);
    }
    st = add_text(t, "report", report_write_markdown, p, err);
    if (st == OK)
        st = add_text(t, "operations", report_write_operations, p, err);
    struct error why;
    const enum status closed = tensorboard_close(t, st == OK ? err : &why);
    return st == OK ? closed : st;
}

static enum status write_all(const void *what, const char *folder, struct error *err)
{
    const struct profile *p = what;
    char path[1200];
    enum status st = report_write(p, folder, err);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    if (st == OK)
        st = trace_write_chrome(p->trace, path, p->name, err);
    return st == OK ? write_tensorboard(p, folder, err) : st;
}

/* Rank 0 measures them where they are not known, and the others wait. */
static enum status peaks_of_ranks(const struct config *c, struct dist *d, struct peaks *peaks, bool *new_peaks, struct error *err)
{
    *new_peaks = false;
    const enum status st = dist_agree(d, dist_rank(d) == 0 ? known_peaks(c, peaks, new_peaks, err) : OK, err);
    return st == OK ? dist_broadcast(d, peaks, sizeof *peaks, err) : st;
}

/* What was found, for people or for programs. */
static enum status show(const struct situation *s, const char *out, bool json, struct error *err)
{
    if (json)
        return report_write_json(&s->p, stdout, err);
    report_print_terminal(&s->p, stdout, stream_is_terminal(stdout) && !getenv("NO_COLOR"));
    printf("\npasses: %s\n", s->m.passes);
    printf("report: %s/report.html   (also report.md, report.json, trace.json for Perfetto, tensorboard/)\n", shown(out));
    return OK;
}

static int profile(const struct config *c, int steps, const char *out, bool json, struct dist *ranks)
{
    const bool leads = dist_rank(ranks) == 0;
    struct situation s;
    struct peaks peaks;
    struct progress bar;
    struct error err;
    struct config measured_as = *c;         /* the hook takes no const */
    bool new_peaks;
    enum status st = dist_agree(ranks, leads ? report_folder_check(out, REPORT_PROFILE, &err) : OK, &err);
    if (st == OK)
        st = peaks_of_ranks(c, ranks, &peaks, &new_peaks, &err);
    if (st != OK)
        return ranks_report(ranks, &err);
    const bool cuda = c->device == DEVICE_CUDA;
    const struct situation_options options = {
        .steps = steps, .last = true, .peaks = &peaks, .peaks_are_new = new_peaks,
        .measure_peaks = leads ? measure_peaks_again : NULL, .peaks_context = &measured_as, .ask_passes = leads, .stop = &stop_requested,
        .progress = leads ? on_progress : NULL, .context = &bar,
        .device = cuda ? "cuda" : "cpu", .isa = cuda ? peaks.machine : cpu_isa_name(), .blas = cuda ? "cublas" : cpu_blas_name(),
        .usable_cores = cpu_usable_cores(), .available_bytes = available_bytes(c)};
    install_stop_handler();
    progress_start(&bar, 0, steps);
    st = situation_measure(&s, c, &options, &err);
    progress_clear(&bar);
    if (st != OK)
        return ranks_report(ranks, &err);
    if (!leads) {
        situation_release(&s);
        return OK;
    }
    peaks_remember(&s.peaks, NULL);         /* what steps proved; no harm if it cannot be written */
    st = report_folder_publish(out, REPORT_PROFILE, write_all, &s.p, &err);
    if (st == OK)
        st = show(&s, out, json, &err);
    situation_release(&s);
    return st == OK ? OK : report_error(&err);
}

int cmd_profile(int argc, char **argv)
{
    struct text_list sets = {0}, positional = {0};
    const char *out = NULL;
    bool json = false;
    int64_t steps = 20, batch = INT64_MIN, seq = INT64_MIN;     /* not given */
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "override a key of the config; may be repeated"},
        {"--batch-size", "N", OPTION_INT, &batch, "the same as --set train.batch_size=N"},
        {"--seq-len", "N", OPTION_INT, &seq, "the same as --set model.seq=N"},
        {"--steps", "N", OPTION_INT, &steps, "steps to measure, each once without and once with events (default 20)"},
        {"--out", "DIR", OPTION_TEXT, &out, "folder of the report (default profiles/NAME)"},
        {"--json", NULL, OPTION_FLAG, &json, "print report.json to the standard output, and nothing else there"},
        {0},
    };
    const struct usage usage = {
        "profile", "CONFIG", "Measures training steps and writes where every microsecond, FLOP and byte went: report.html, report.md,\n"
        "report.json, flops_profile.json, computational_intensity.json, roofline_data.json, trace.json, tensorboard/.", options,
        "  hone profile quickstart\n  hone profile tinyllama-ex3 --batch-size 16 --seq-len 256 --steps 10 --out profiles/wide\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct config c;
    struct error err;
    char folder[CONFIG_PATH_MAX], batch_set[64], seq_set[64];
    if (steps < 1 || steps > 100000) {
        error_set(&err, BAD_INPUT, "--steps is %lld; it must be 1 to 100000", (long long)steps);
        return report_error(&err);
    }
    if (sets.n + 2 > MAX_LIST) {
        error_set(&err, BAD_INPUT, "--set is given %d times; at most %d are taken", sets.n, MAX_LIST - 2);
        return report_error(&err);
    }
    if (batch != INT64_MIN) {
        snprintf(batch_set, sizeof batch_set, "train.batch_size=%lld", (long long)batch);
        sets.item[sets.n++] = batch_set;
    }
    if (seq != INT64_MIN) {
        snprintf(seq_set, sizeof seq_set, "model.seq=%lld", (long long)seq);
        sets.item[sets.n++] = seq_set;
    }
    struct dist *ranks;
    int code = ranks_open(&ranks, &c, positional.item[0], &sets);
    if (code != OK)
        return code;
    char named[CONFIG_PATH_MAX + 16];
    snprintf(named, sizeof named, "profiles/%s", c.name);
    if (report_folder_name(folder, out ? out : named, &err) != OK)
        code = ranks_report(ranks, &err);
    else
        code = profile(&c, (int)steps, folder, json, ranks);
    ranks_close(ranks, code);
    return code;
}
