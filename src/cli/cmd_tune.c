/* hone tune: makes the changes to a config that win, proves each and all together, and writes the config that has them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/arena.h"
#include "core/fs.h"
#include "dist/dist.h"
#include "lib/peaks.h"
#include "ops/cpu/cpu.h"
#include "prove/tune.h"
#include "report/report.h"
#include "train/follow.h"

static const double WORTH_A_WORD = 1.05;    /* expected of a larger batch, which is not tried by itself */

struct tuned {
    struct tune_result r;
    struct peaks peaks;
    json_t *document;                       /* report.json */
    char threads[THREADS_WORDS];            /* where the config leaves them open and not all cores are taken: as `hone train` takes them */
};

static void on_progress(void *context, const char *what, double part)
{
    progress_show(context, lround(part * 1000), what);
}

/* ---- showing ---- */

static void put_times(double x, const char *after)
{
    if (isfinite(x))
        printf("%6.2f×%s", x, after);
    else
        printf("%7s%s", "-", after);
}

enum { NAME_LEAST = 20, NAME_MOST = 32 };

/* Columns of the longest name; longer ones have a line of their own. */
static int name_columns(const struct tune_result *r)
{
    int width = NAME_LEAST;
    for (int i = 0; i < r->n_stages; i++) {
        const int n = (int)strlen(r->stages[i].pass);
        width = n > width && n <= NAME_MOST ? n : width;
    }
    return width;
}

static void print_stage(const struct tune_stage *s, int width, double *cumulative)
{
    const bool kept = s->outcome == TUNE_KEPT;
    if (kept && !s->around)
        *cumulative *= s->measured;
    printf("%-*s ", width, s->pass);
    if ((int)strlen(s->pass) > width)
        printf("\n%-*s ", width, "");
    put_times(s->predicted, "  ");
    put_times(s->measured, "  ");
    printf("%s%-11s%s", style(stdout, kept ? "green" : "dim"), tune_outcome_word(s->outcome), style(stdout, "off"));
    put_times(kept && !s->around ? *cumulative : NAN, "  ");
    printf("%s%s%s%s\n", style(stdout, "dim"), s->why, kept && s->longer ? " (measured longer, as the machine was busy)" : "",
           style(stdout, "off"));
}

static const char *digits(double x, char out[32])
{
    snprintf(out, 32, "%.4g%s", fabs(x) >= 1e7 ? x / 1e6 : fabs(x) >= 1e4 ? x / 1e3 : x, fabs(x) >= 1e7 ? " M" : fabs(x) >= 1e4 ? " k" : "");
    return out;
}

static void print_change(const char *what, double before, double after, const char *unit)
{
    char a[32], b[32];
    if (!isfinite(before) || !isfinite(after) || before <= 0)
        return;
    if (before == after)
        printf("  %-16s %10s   %-10s %s\n", what, digits(before, a), "", unit);
    else
        printf("  %-16s %10s → %-10s %-9s × %.2f\n", what, digits(before, a), digits(after, b), unit, after / before);
}

/* A pass may change the numbers that are multiplied, and with them the peak: shares of two peaks have no ratio. */
static void print_mfu(const struct tune_point *a, const struct tune_point *b)
{
    char unit[16];
    snprintf(unit, sizeof unit, "%% of %s", numbers_name(a->mfu_peak.numbers));
    if (a->mfu_peak.numbers == b->mfu_peak.numbers)
        print_change("MFU", a->mfu_percent, b->mfu_percent, unit);
    else if (a->mfu_percent > 0 && b->mfu_percent > 0)
        printf("  %-16s %10.4g → %-10.4g %% of %s, then of %s\n", "MFU", a->mfu_percent, b->mfu_percent,
               numbers_name(a->mfu_peak.numbers), numbers_name(b->mfu_peak.numbers));
}

static void print_stages(const struct tune_result *r)
{
    const int width = name_columns(r);
    double cumulative = 1;
    if (r->n_stages)
        printf("%s%-*s %8s %8s  %-11s%8s%s\n", style(stdout, "bold"), width, "move", "expected", "measured", "", "so far ",
               style(stdout, "off"));
    for (int i = 0; i < r->n_stages; i++)
        print_stage(&r->stages[i], width, &cumulative);
}

/* What else the tuned program was measured against, in turns of their own. */
static void print_references(const struct tune_result *r)
{
    for (int i = 0; i < r->n_references; i++) {
        const struct tune_reference *f = &r->references[i];
        printf("%s%.2f times as fast as %s (%.2f to %.2f)%s\n", i ? "  " : "  also ", f->speedup, f->name, f->low, f->high, f->judged ? "" : ": no verdict");
    }
}

/* What was seen of a program that wins nothing. */
static void print_noise(const struct tune_result *r)
{
    if (!r->check.done)
        return;
    printf("  %-16s the config against itself: × %.2f (%.2f to %.2f, %d turns in %d openings), the same bits", "noise", r->check.speedup, r->check.low,
           r->check.high, r->check.turns, r->check.openings);
    if (r->check.believed > 1)
        printf("; no gain up to × %.3f was believed", r->check.believed);
    putchar('\n');
}

/* "gradients pass, ..., throughput FAIL", and a sentence for what does not hold. */
static void print_gates(const char *where, const struct verdict *v)
{
    printf("  %-16s", where);
    for (int i = 0; i < v->n; i++) {
        const struct gate *g = &v->gates[i];
        printf(" %s%s %s%s%s", g->name, style(stdout, g->pass ? "green" : "red"), gate_outcome(g), style(stdout, "off"),
               i + 1 < v->n ? "," : "\n");
    }
    for (int i = 0; i < v->n; i++)
        if (!v->gates[i].pass)
            printf("  %-16s %s%s: %s%s\n", "", style(stdout, "dim"), v->gates[i].name, v->gates[i].words, style(stdout, "off"));
}

static void print_verdicts(const struct tune_result *r)
{
    if (r->judged)
        print_gates("gates", &r->verdict);
    for (int i = 0; i < r->n_sizes; i++) {
        const struct tune_size *s = &r->sizes[i];
        char where[64];
        if (!s->judged)
            continue;
        snprintf(where, sizeof where, "at %lld × %lld ", (long long)s->batch, (long long)s->seq);
        print_change(where, s->before.step_us / 1e3, s->after.step_us / 1e3, "ms");
        print_gates("", &s->verdict);
    }
}

static double member(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The whole run before and after, and what each of what was kept saves of it. */
static void print_run(const json_t *document)
{
    const json_t *run = json_object_get(document, "run"), *s;
    const double before = member(run, "before_s"), evaluation = member(run, "evaluation_before_s");
    size_t i;
    if (!isfinite(before))
        return;
    print_change("whole run", before, member(run, "after_s"), "s");
    printf("  %-16s of %.0f step%s, %.3g s of it evaluation", "", member(run, "steps"), member(run, "steps") == 1 ? "" : "s", evaluation);
    if (isfinite(member(run, "evaluation_after_s")) && member(run, "evaluation_after_s") != evaluation)
        printf(" before and %.3g s after", member(run, "evaluation_after_s"));
    putchar('\n');
    json_array_foreach(json_object_get(document, "stages"), i, s)
        if (json_is_true(json_object_get(s, "kept")) && member(s, "saved_s") > 0)
            printf("  %-16s %s saves %.3g s of %.3g s\n", "", json_string_value(json_object_get(s, "pass")), member(s, "saved_s"), before);
}

static void print_result(const struct tuned *t, const char *folder)
{
    const struct tune_result *r = &t->r;
    printf("report: %s/report.html   (also report.md, report.json)\n\n", shown(folder));
    if (r->larger.asked)
        printf("larger batch: %s\n\n", r->larger.words);
    print_stages(r);
    printf("\n%s%s%s\n", style(stdout, "bold"), json_string_value(json_object_get(t->document, "headline")), style(stdout, "off"));
    if (*t->threads)
        printf("  %-16s %s\n", "threads", t->threads);
    print_change("step", r->before.step_us / 1e3, r->after.step_us / 1e3, "ms");
    print_change("throughput", r->before.tokens_per_s, r->after.tokens_per_s, "tokens/s");
    print_run(t->document);
    print_mfu(&r->before, &r->after);
    print_change("planned memory", r->before.planned_bytes / 1e6, r->after.planned_bytes / 1e6, "MB");
    print_change("ops per step", r->before.ops, r->after.ops, "");
    print_change("kernels per step", r->before.kernels, r->after.kernels, "");
    if (r->naive_kernels > 0)
        printf("  %-16s %10.0f    in the program without passes\n", "", r->naive_kernels);
    if (*r->warning)
        printf("  %swarning:%s %s\n", style(stdout, "yellow"), style(stdout, "off"), r->warning);
    print_noise(r);
    print_references(r);
    print_verdicts(r);
    if (!r->larger.asked && r->larger_expected > WORTH_A_WORD)
        printf("not tried: twice the batch, expected to make %.2f times as many samples/s; it changes what an update sees: --larger-batch sqrt\n",
               r->larger_expected);
    if (r->out_of_time)
        printf("the time was spent before everything was tried; --budget gives more\n");
    printf("\nconfig: %s/tuned.yaml   (base.yaml is the config as given%s)\n", shown(folder), r->larger.times > 1 ? ", with the larger update" : "");
    const char *limits = json_string_value(json_object_get(t->document, "limits"));
    if (limits && !r->taken_back)
        printf("the same verdict again: hone verify %s/base.yaml %s/tuned.yaml %s\n", shown(folder), shown(folder), shown(limits));
}

/* ---- files ---- */

static bool is_utf8(const char *text)
{
    json_t *j = json_string(text);
    const bool valid = j != NULL;
    json_decref(j);
    return valid;
}

/* What tune did, on which machine, and where its config will be. */
static json_t *make_document(const struct tuned *t, const char *folder)
{
    json_t *j = tune_json(&t->r);
    char path[CONFIG_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/tuned.yaml", folder);
    json_t *machine = json_pack("{s:s,s:i,s:b}", "fingerprint", t->peaks.machine, "threads", t->peaks.threads, "gpu",
                                t->peaks.gpu.launched_us > 0);
    for (enum numbers n = 0; n < NUMBERS && machine; n++)
        json_object_set_new(machine, numbers_key(n), peaks_has(&t->peaks, n) ? json_real(t->peaks.gflops[n]) : json_null());
    json_t *about = json_pack("{s:o,s:s}", "machine", machine, "tuned_config", is_utf8(path) ? path : "tuned.yaml");
    if (!j || !about || json_object_update(j, about)) {
        json_decref(j);
        j = NULL;
    }
    json_decref(about);
    return j;
}

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const struct tuned *t = what;
    char *texts[] = {config_text(&t->r.base), config_text(&t->r.tuned), document_written(report_tune_write_html, t->document),
                     document_written(report_tune_write_markdown, t->document), json_lines(json_incref(t->document))};
    static const char *const names[] = {"base.yaml", "tuned.yaml", "report.html", "report.md", "report.json"};
    enum status st = OK;
    for (int i = 0; i < 5; i++) {
        if (st == OK)
            st = report_folder_add(folder, names[i], texts[i], err);
        free(texts[i]);
    }
    return st;
}

/* ---- the command ---- */

/* How fast ranks talk, for what is expected of other buckets. */
static enum status measure_links(struct dist *ranks, struct error *err)
{
    struct cpu_machine cpu;
    struct links links;
    if (dist_size(ranks) == 1)
        return OK;
    const enum status st = dist_measure_links(ranks, &links, err);
    cpu_machine_read(&cpu);
    snprintf(links.machine, sizeof links.machine, "%s", cpu.fingerprint);
    if (st == OK && dist_rank(ranks) == 0)
        links_remember(&links, NULL);       /* no harm if it cannot be written */
    return st;
}

/* What was asked for on the command line. */
struct wish {
    const char *out;
    double budget;
    bool json, larger_batch;
    enum lr_rule rule;
};

/* How it is judged does not make it another config, nor does what --larger-batch itself writes into base.yaml. */
static bool may_differ(const char *key, bool larger_batch)
{
    static const char *const larger[] = {"train.accumulate", "train.lr", "train.min_lr", "train.steps", "train.warmup", "log.every", "eval.every", "checkpoint.every"};
    for (size_t i = 0; larger_batch && i < sizeof larger / sizeof *larger; i++)
        if (!strcmp(key, larger[i]))
            return true;
    return !strncmp(key, "verify.", 7);
}

static enum status load_earlier(struct config *c, const char *folder, const char *name, struct error *err)
{
    char file[CONFIG_PATH_MAX + 16];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    return config_load(c, file, NULL, 0, err);
}

/* Another tuning of the same config takes the place of one before. That of another config stays, and so does what was proved where nothing will be. */
static enum status compare_earlier(const char *folder, const struct config *c, const struct wish *w, struct error *err)
{
    struct config base, tuned;
    struct config_difference d;
    int at = 0;
    if (load_earlier(&base, folder, "base.yaml", err) != OK || load_earlier(&tuned, folder, "tuned.yaml", err) != OK)
        return err->status;
    while (config_differ(&d, &base, c, &at))
        if (!may_differ(d.key, w->larger_batch))
            return error_set(err, BAD_INPUT, "'%s' holds the tuning of another config: %s is %.100s in its base.yaml, and %.100s here; give another --out, or "
                             "move it away", folder, d.key, d.a, d.b);
    at = 0;
    if (w->budget == 0 && config_differ(&d, &base, &tuned, &at))
        return error_set(err, BAD_INPUT, "'%s' holds what was proved, and --budget 0 proves nothing; give another --out, or move it away", folder);
    return OK;
}

static enum status check_earlier(const char *folder, const struct config *c, const struct wish *w, struct error *err)
{
    char base[CONFIG_PATH_MAX + 16], tuned[CONFIG_PATH_MAX + 16];
    snprintf(base, sizeof base, "%s/base.yaml", folder);
    snprintf(tuned, sizeof tuned, "%s/tuned.yaml", folder);
    return fs_exists(base) && fs_exists(tuned) ? compare_earlier(folder, c, w, err) : OK;
}

static enum status tune(struct tuned *t, struct config c, const struct wish *w, struct error *err)
{
    struct progress bar;
    if (!w->larger_batch)                   /* larger steps may be faster on all of them */
        train_settle_threads(&c, t->threads);
    enum status st = known_peaks(&c, &t->peaks, NULL, err);
    if (st != OK)
        return st;
    install_stop_handler();
    progress_start(&bar, 0, 1000);
    show_choosing(&bar);
    st = tune_run(&t->r, &c, &(struct tune_options){.budget_s = w->budget, .peaks = &t->peaks, .stop = &stop_requested,
                                                .progress = on_progress, .context = &bar, .larger_batch = w->larger_batch, .rule = w->rule}, err);
    show_choosing(NULL);
    progress_clear(&bar);
    return st;
}

/* Rank 0, or the only one. */
static int lead(const struct config *c, struct dist *ranks, const struct wish *w)
{
    struct error err;
    struct tuned *t = xcalloc(1, sizeof *t);
    char folder[CONFIG_PATH_MAX], fallback[256];
    snprintf(fallback, sizeof fallback, "runs/%s-tuned", c->name);
    enum status st = report_folder_name(folder, w->out ? w->out : fallback, &err);
    if (st == OK)
        st = report_folder_check(folder, REPORT_TUNE, &err);
    if (st == OK)
        st = check_earlier(folder, c, w, &err);
    st = dist_agree(ranks, st, &err);
    if (st == OK)
        st = measure_links(ranks, &err);
    if (st == OK) {
        follow_lead(ranks);
        st = tune(t, *c, w, &err);
        follow_end(ranks);
    }
    if (st == OK && t->r.interrupted && !t->r.judged && !tune_keeps(&t->r))
        st = error_stopped(&err, "stopped before anything was proved to be faster; nothing was written");
    if (st == OK && !(t->document = make_document(t, folder)))
        st = error_no_memory(&err, "the report", 1 << 16);
    if (st == OK)
        st = report_folder_publish(folder, REPORT_TUNE, write_files, t, &err);
    if (st == OK && w->json)
        st = print_document(json_incref(t->document), 12, &err);
    else if (st == OK)
        print_result(t, folder);
    json_decref(t->document);
    free(t);
    return st == OK ? OK : ranks_report(ranks, &err);
}

/* Of several ranks the others: they do what rank 0 does. */
static int follow_along(struct dist *ranks)
{
    struct error err;
    install_stop_handler();
    enum status st = dist_agree(ranks, OK, &err);
    if (st == OK)
        st = measure_links(ranks, &err);
    if (st == OK)
        st = follow(ranks, &stop_requested, &err);
    return st == OK ? OK : ranks_report(ranks, &err);
}

int cmd_tune(int argc, char **argv)
{
    struct text_list sets = {0}, given = {0};
    struct wish w = {.budget = 300};
    struct picked rule = {.words = lr_rules};
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "change a key of the config; may be given several times"},
        {"--out", "DIR", OPTION_TEXT, &w.out, "where tuned.yaml and the report go (default: runs/NAME-tuned)"},
        {"--budget", "SECONDS", OPTION_REAL, &w.budget, "time to try changes in (default 300); 0: predictions only"},
        {"--larger-batch", NULL, OPTION_WORD, &rule, "more samples in an update where that is faster; train.lr rises by this rule (sqrt is usual for Adam)"},
        {"--json", NULL, OPTION_FLAG, &w.json, "print the report as one JSON document"},
        {0},
    };
    const struct usage usage = {
        .command = "tune", .arguments = "CONFIG", .options = options, .min_positional = 1, .max_positional = 1,
        .summary = "Starts from the config as given. Profiles a step, makes the change that is expected to win most (a pass\n"
                   "switched on or off, or a setting such as the batch size), proves that the model still learns the same and\n"
                   "is faster, keeps or drops it, and goes on until nothing is left to win. Then all that was kept is judged at\n"
                   "once against what was given, by the gates of `hone verify`; what is no faster is not written. Passes that\n"
                   "the config switches by their own key (optimize.NAME) stay as they are. Exit code 1: the config does not\n"
                   "give the same bits twice, or is faster than itself, so that nothing could be proved.",
        .examples = "  hone tune tinyllama-ex3\n"
                    "  hone tune quickstart --set optimize.passes=none      # what do the passes win?\n"
                    "  hone tune my.yaml --set train.batch_size=16 --budget 60 --out runs/fast\n"
                    "  hone tune my.yaml --larger-batch sqrt                # also other updates, by a rule\n"
                    "  hone train runs/fast/tuned.yaml\n",
    };
    switch (parse_options(&usage, argc, argv, &given)) {
    case PARSED_HELP: return OK;
    case PARSED_BAD: return BAD_INPUT;
    case PARSED_GO: break;
    }
    struct error err;
    struct config c;
    struct dist *ranks = NULL;
    w.larger_batch = rule.text;
    w.rule = (enum lr_rule)rule.at;
    if (!(w.budget >= 0 && w.budget < 1e7)) {
        error_set(&err, BAD_INPUT, "--budget is %g; expected seconds, 0 or more", w.budget);
        return report_error(&err);
    }
    int code = ranks_open(&ranks, &c, given.item[0], &sets);
    if (code == OK) {
        code = dist_rank(ranks) == 0 ? lead(&c, ranks, &w) : follow_along(ranks);
        ranks_close(ranks, code);
    }
    return code;
}
