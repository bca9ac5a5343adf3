/* hone tune: applies the passes that win, proves each, and writes the config that has them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "prove/tune.h"

static void on_progress(void *context, const char *what, double part)
{
    progress_show(context, lround(part * 1000), what);
}

/* ---- showing ---- */

static void put_times(double x, const char *after)
{
    if (isfinite(x))
        printf("%6.2fx%s", x, after);
    else
        printf("%7s%s", "-", after);
}

static void print_stage(const struct tune_stage *s, double *cumulative)
{
    if (s->kept)
        *cumulative *= s->measured;
    printf("%-20s ", s->pass);
    if (strlen(s->pass) > 20)
        printf("\n%-20s ", "");
    put_times(s->predicted, "  ");
    put_times(s->measured, "  ");
    printf("%s%-8s%s", style(stdout, s->kept ? "green" : "dim"), s->kept ? "kept" : "dropped", style(stdout, "off"));
    put_times(s->kept ? *cumulative : NAN, "  ");
    printf("%s%s%s\n", style(stdout, "dim"), s->why, style(stdout, "off"));
}

static void print_change(const char *what, double before, double after, const char *unit)
{
    if (isfinite(before) && isfinite(after) && before > 0)
        printf("  %-16s %10.4g -> %-10.4g %-9s x %.2f\n", what, before, after, unit, after / before);
}

static void print_result(const struct tune_result *r, const char *folder)
{
    double cumulative = 1;
    printf("%s%-20s %7s  %7s  %-8s%7s%s\n", style(stdout, "bold"), "pass", "expected", "measured", "", "so far",
           style(stdout, "off"));
    for (int i = 0; i < r->n_stages; i++)
        print_stage(&r->stages[i], &cumulative);
    bool any = false;
    for (int i = 0; i < r->n_stages; i++)
        any |= r->stages[i].kept;
    if (!any)
        printf("\nno pass made this step faster: tuned.yaml is as it was without passes\n");
    else
        printf("\na step is %s%.2f times as fast%s (%.2f to %.2f, base and tuned in turns)\n", style(stdout, "bold"), r->speedup,
               style(stdout, "off"), r->speedup_low, r->speedup_high);
    print_change("step", r->before.step_us / 1e3, r->after.step_us / 1e3, "ms");
    print_change("throughput", r->before.tokens_per_s, r->after.tokens_per_s, "tokens/s");
    print_change("planned memory", r->before.planned_bytes / 1e6, r->after.planned_bytes / 1e6, "MB");
    print_change("ops per step", r->before.ops, r->after.ops, "");
    if (r->out_of_time)
        printf("the time was spent before every pass was tried; --budget gives more\n");
    printf("\nwritten: %s/tuned.yaml, base.yaml, report.md, report.json\n", folder);
}

/* ---- files ---- */

static char *markdown_text(const struct tune_result *r)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    tune_markdown(r, f);
    fclose(f);
    return text;
}

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const struct tune_result *r = what;
    char *texts[] = {config_text(&r->base), config_text(&r->tuned), markdown_text(r), json_lines(tune_json(r))};
    static const char *const names[] = {"base.yaml", "tuned.yaml", "report.md", "report.json"};
    enum status st = OK;
    for (int i = 0; i < 4; i++) {
        if (st == OK)
            st = report_folder_add(folder, names[i], texts[i], err);
        free(texts[i]);
    }
    return st;
}

/* ---- the command ---- */

static enum status tune(struct tune_result *r, const char *path, const struct text_list *sets, double budget, struct error *err)
{
    struct config c;
    struct peaks peaks;
    struct progress bar;
    enum status st = config_load(&c, path, sets->item, sets->n, err);
    if (st == OK)
        st = known_peaks(&c, &peaks, err);
    if (st != OK)
        return st;
    install_stop_handler();
    progress_start(&bar, 0, 1000);
    st = tune_run(r, &c, &(struct tune_options){.budget_s = budget, .peaks = &peaks, .stop = &stop_requested,
                                                .progress = on_progress, .context = &bar}, err);
    progress_clear(&bar);
    return st;
}

int cmd_tune(int argc, char **argv)
{
    struct text_list sets = {0}, given = {0};
    const char *out = NULL;
    double budget = 300;
    bool json = false;
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "change a key of the config; may be given several times"},
        {"--out", "DIR", OPTION_TEXT, &out, "where tuned.yaml and the report go (default: runs/NAME-tuned)"},
        {"--budget", "SECONDS", OPTION_REAL, &budget, "time to try passes in (default 300); 0: predictions only"},
        {"--json", NULL, OPTION_FLAG, &json, "print the report as one JSON document"},
        {0},
    };
    const struct usage usage = {
        .command = "tune", .arguments = "CONFIG", .options = options, .min_positional = 1, .max_positional = 1,
        .summary = "Profiles a step, applies the optimization pass that is expected to win most, proves that the model\n"
                   "still learns the same and is faster, keeps or drops it, and goes on until nothing is left to win.",
        .examples = "  hone tune tinyllama-ex3\n"
                    "  hone tune my.yaml --set train.batch_size=16 --budget 60 --out runs/fast\n"
                    "  hone train runs/fast/tuned.yaml\n",
    };
    switch (parse_options(&usage, argc, argv, &given)) {
    case PARSED_HELP: return OK;
    case PARSED_BAD: return BAD_INPUT;
    case PARSED_GO: break;
    }
    struct error err;
    struct tune_result *r = calloc(1, sizeof *r);
    char folder[CONFIG_PATH_MAX], fallback[256];
    struct config named;
    enum status st = r ? OK : error_no_memory(&err, "the result", sizeof *r);
    if (st == OK && !(budget >= 0 && budget < 1e7))
        st = error_set(&err, BAD_INPUT, "--budget is %g; expected seconds, 0 or more", budget);
    if (st == OK)
        st = config_load(&named, given.item[0], sets.item, sets.n, &err);
    if (st == OK) {
        snprintf(fallback, sizeof fallback, "runs/%s-tuned", named.name);
        st = report_folder_name(folder, out ? out : fallback, &err);
    }
    if (st == OK)
        st = report_folder_check(folder, &err);
    if (st == OK)
        st = tune(r, given.item[0], &sets, budget, &err);
    if (st == OK)
        st = report_folder_publish(folder, write_files, r, &err);
    if (st == OK && json) {
        char *text = json_lines(tune_json(r));
        fputs(text ? text : "", stdout);
        free(text);
    } else if (st == OK)
        print_result(r, folder);
    free(r);
    return st == OK ? OK : report_error(&err);
}
