/* hone profile: measures steps, says what bounds them, writes the reports. */
#include <string.h>

#include "cli/cli.h"
#include "dist/dist.h"
#include "lib/profile.h"
#include "report/report.h"

static void on_progress(void *context, int done, int total)
{
    char text[64];
    snprintf(text, sizeof text, "measuring step %d/%d", done, total);
    progress_show(context, done, text);
}

/* What was found, for people or for programs. */
static enum status show(const struct situation *s, const char *out, bool json, struct error *err)
{
    if (json)
        return report_write_json(&s->p, stdout, err);
    report_print_terminal(&s->p, stdout, stream_has_color(stdout));
    printf("\npasses: %s\n", s->m.passes);
    printf("report: %s/report.html   (also report.md, report.json, trace.json for Perfetto, tensorboard/)\n", shown(out));
    return OK;
}

static int profile(const struct config *c, int steps, const char *out, bool json, struct dist *ranks)
{
    const bool leads = dist_rank(ranks) == 0;
    struct situation s;
    struct progress bar;
    struct error err;
    const struct profile_options options = {.steps = steps, .ranks = ranks, .stop = &stop_requested, .progress = on_progress, .context = &bar};
    enum status st = dist_agree(ranks, leads ? report_folder_check(out, REPORT_PROFILE, &err) : OK, &err);
    if (st != OK)
        return ranks_report(ranks, &err);
    install_stop_handler();
    progress_start(&bar, 0, steps);
    st = profile_measure(&s, c, &options, &err);
    progress_clear(&bar);
    if (st != OK)
        return ranks_report(ranks, &err);
    if (leads)
        st = profile_publish(&s, out, &err);
    if (st == OK && leads)
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
