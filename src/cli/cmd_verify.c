/* hone verify: may the second config, or report, take the place of the first? */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "prove/prove.h"
#include "train/train.h"

/* Threads of two configs that leave them open, in words: as many as `hone train` would take. */
struct threads_of { char a[THREADS_WORDS], b[THREADS_WORDS]; };

static void on_progress(void *context, const char *what, double part)
{
    progress_show(context, lround(part * 1000), what);
}

/* ---- showing ---- */

/* The width for printf, which counts bytes, where `columns` are meant. */
static int width(const char *text, int columns)
{
    for (const char *c = text; *c; c++)
        columns += ((unsigned char)*c & 0xC0) == 0x80;
    return columns;
}

static void print_gate(const struct gate *g)
{
    const char *colour = !g->pass ? "red" : g->judged ? "green" : "dim";
    printf("%-12s %s%-10s%s %-18s %-18s %-*s %s\n", g->name, style(stdout, colour), gate_outcome(g), style(stdout, "off"), g->a_text,
           g->b_text, width(g->value_text, 28), g->value_text, g->limit_text);
    printf("             %s%s%s\n", style(stdout, "dim"), shown(g->words), style(stdout, "off"));
}

static void print_side(char which, const char *name, const char *threads)
{
    printf("%c: %s%s%s\n", which, shown(name), *threads ? ", threads " : "", threads);
}

static void print_verdict(const struct verdict *v, const struct threads_of *threads)
{
    int failed = 0, open = 0;
    print_side('a', v->a, threads->a);
    print_side('b', v->b, threads->b);
    printf("\n%s%-12s %-10s %-18s %-18s %-28s %s%s\n", style(stdout, "bold"), "gate", "", "a", "b", "measured", "limit", style(stdout, "off"));
    for (int i = 0; i < v->n; i++) {
        print_gate(&v->gates[i]);
        failed += !v->gates[i].pass && v->gates[i].judged;
        open += !v->gates[i].pass && !v->gates[i].judged;
    }
    if (v->pass)
        printf("\n%severy gate holds:%s b may take the place of a\n", style(stdout, "green"), style(stdout, "off"));
    else if (failed)
        printf("\n%s%d of %d gates failed:%s b may not take the place of a\n", style(stdout, "red"), failed, v->n,
               style(stdout, "off"));
    else
        printf("\n%sno verdict from %d of %d gates:%s b may not take the place of a before they have one\n",
               style(stdout, "red"), open, v->n, style(stdout, "off"));
}

static char *markdown_text(const struct verdict *v)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    verdict_markdown(v, f);
    fclose(f);
    return text;
}

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const struct verdict *v = what;
    char *markdown = markdown_text(v), *json = json_lines(verdict_json(v));
    enum status st = report_folder_add(folder, "verify.md", markdown, err);
    if (st == OK)
        st = report_folder_add(folder, "verify.json", json, err);
    free(markdown);
    free(json);
    return st;
}

static enum status show(const struct verdict *v, const struct threads_of *threads, const char *out, bool json, struct error *err)
{
    enum status st = out ? report_folder_publish(out, REPORT_VERIFY, write_files, v, err) : OK;
    if (st == OK && json)
        st = print_document(verdict_json(v), 12, err);
    else if (st == OK) {
        print_verdict(v, threads);
        if (*v->warning)
            fprintf(stderr, "%swarning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), shown(v->warning));
        if (out)
            printf("written: %s/verify.md and verify.json\n", shown(out));
    }
    return st;
}

/* ---- what is given ---- */

/* The report.json that an argument names: a file that ends so, or a folder with one. */
static bool names_report(const char *argument, char path[CONFIG_PATH_MAX])
{
    const size_t length = strlen(argument);
    struct stat info;
    if (length > 5 && !strcmp(argument + length - 5, ".json"))
        return snprintf(path, CONFIG_PATH_MAX, "%s", argument) < CONFIG_PATH_MAX;
    if (stat(argument, &info) || !S_ISDIR(info.st_mode))
        return false;
    return snprintf(path, CONFIG_PATH_MAX, "%s/report.json", argument) < CONFIG_PATH_MAX && fs_exists(path);
}

/* What was measured is in the reports, and one limit counts; another that is given would gate nothing. */
static enum status verify_two_reports(struct verdict *v, const char *a, const char *b, const struct text_list *sets, bool measures,
                                      struct error *err)
{
    static const char smallest[] = "model: {arch: gpt}\n", counts[] = "verify.regression=";
    struct config limits;
    if (measures)
        return error_set(err, BAD_INPUT, "--steps and --seconds are of two configs; with two reports nothing is measured");
    for (int i = 0; i < sets->n; i++)
        if (strncmp(sets->item[i], counts, sizeof counts - 1))
            return error_set(err, BAD_INPUT, "--set %s: with two reports only verify.regression can be set: by how much the second may be slower or larger", sets->item[i]);
    const enum status st = config_parse(&limits, "the defaults", smallest, sizeof smallest - 1, sets->item, sets->n, err);
    return st == OK ? verify_reports(v, a, b, limits.verify.regression, err) : st;
}

static enum status verify_two_configs(struct verdict *v, const char *a, const char *b, const struct text_list *sets,
                                      int64_t steps, double seconds, struct threads_of *threads, struct error *err)
{
    struct config config_a, config_b;
    struct progress bar;
    enum status st = config_load(&config_a, a, sets->item, sets->n, err);
    if (st == OK)
        st = config_load(&config_b, b, sets->item, sets->n, err);
    if (st != OK)
        return st;
    install_stop_handler();
    progress_start(&bar, 0, 1000);
    show_choosing(&bar);
    train_settle_threads(&config_a, threads->a);
    train_settle_threads(&config_b, threads->b);
    st = verify_configs(v, &config_a, &config_b,
                        &(struct verify_options){.steps = steps, .seconds = seconds, .stop = &stop_requested,
                                                 .progress = on_progress, .context = &bar}, err);
    show_choosing(NULL);
    progress_clear(&bar);
    return st != OK && err->stopped ? error_add(err, "; there is no verdict") : st;
}

static enum status judge(struct verdict *v, const struct text_list *given, const struct text_list *sets, int64_t steps,
                         double seconds, struct threads_of *threads, struct error *err)
{
    const char *a = given->item[0], *b = given->item[1];
    char report_a[CONFIG_PATH_MAX], report_b[CONFIG_PATH_MAX];
    const bool is_a = names_report(a, report_a), is_b = names_report(b, report_b);
    if (is_a != is_b)
        return error_set(err, BAD_INPUT, "'%.300s' is a report and '%.300s' is not; give two configs or two reports", is_a ? a : b,
                         is_a ? b : a);
    return is_a ? verify_two_reports(v, report_a, report_b, sets, steps > 0 || seconds > 0, err)
                : verify_two_configs(v, a, b, sets, steps, seconds, threads, err);
}

/* Before anything is measured, so that a wrong name is said at once. */
static enum status check_folder(char folder[CONFIG_PATH_MAX], const char *out, struct error *err)
{
    const enum status st = report_folder_name(folder, out, err);
    return st == OK ? report_folder_check(folder, REPORT_VERIFY, err) : st;
}

int cmd_verify(int argc, char **argv)
{
    struct text_list sets = {0}, given = {0};
    const char *out = NULL;
    int64_t steps = INT64_MIN;              /* not given */
    double seconds = -HUGE_VAL;
    bool json = false;
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "override a key of both configs; may be repeated"},
        {"--steps", "N", OPTION_INT, &steps, "steps of the loss curves (default: verify.steps)"},
        {"--seconds", "X", OPTION_REAL, &seconds, "time to measure the speed of each (default: verify.seconds); up to 4 times that where it does not decide"},
        {"--out", "DIR", OPTION_TEXT, &out, "also write verify.md and verify.json there"},
        {"--json", NULL, OPTION_FLAG, &json, "print the verdict as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "verify", "A B", "Trains the same model as both configs say, from the same seed, and asks whether B may take the place of A:\n"
        "first gradients and losses agree, validation is not worse, two runs of B are equal bit for bit, memory is not\n"
        "more, and B is faster by verify.min_gain. Limits are the keys verify.* of A. With two report.json files of\n"
        "`hone profile`: is the second slower or larger than the first by more than verify.regression? No verdict where\n"
        "the steps of both do not tell, or other work took the cores.\n"
        "Speed of configs is measured in turns, both opened anew 4 to 8 times, and more often where it is measured longer, as\n"
        "where they lie in memory and on which cores they run decides, too; its interval holds that. Where other work takes the\n"
        "cores for most turns, or turns fall into two groups, nobody knows what B wins, and there is no verdict.\n"
        "Exit code 0 only if every gate holds, 1 if one fails or gives no verdict, 130 if it is stopped.", options,
        "  hone verify base.yaml tuned.yaml\n  hone verify base.yaml tuned.yaml --set verify.min_gain=0 --json\n"
        "  hone verify profiles/before/report.json profiles/after/report.json --set verify.regression=0.1\n", 2, 2};
    const enum parsed parsed = parse_options(&usage, argc, argv, &given);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct verdict v = {0};
    struct threads_of threads = {0};
    struct error err = {0};
    char folder[CONFIG_PATH_MAX];
    if (ranks_check_alone("verify", &err) != OK)
        return ranks_refuse(&err);
    if (steps != INT64_MIN && (steps < 1 || steps > 1000000))
        error_set(&err, BAD_INPUT, "--steps is %lld; it must be 1 to 1000000", (long long)steps);
    else if (seconds != -HUGE_VAL && !(seconds > 0 && seconds <= 3600))
        error_set(&err, BAD_INPUT, "--seconds is %g; it must be above 0 and at most 3600", seconds);
    else if (!out || check_folder(folder, out, &err) == OK)
        judge(&v, &given, &sets, steps == INT64_MIN ? 0 : steps, fmax(seconds, 0), &threads, &err);
    if (err.status == OK)
        show(&v, &threads, out ? folder : NULL, json, &err);
    return err.status != OK ? report_error(&err) : v.pass ? OK : ANSWER_NO;
}
