/* hone forget: configs over a sequence of domains, with several seeds each; what each learned against what it forgot. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "prove/forget.h"
#include "report/report.h"

struct compared {
    struct forget f;
    struct config *configs;                 /* (n) */
    int n;
    json_t *document;                       /* report.json */
};

static void on_progress(void *context, const struct forget_progress *p)
{
    char text[128];
    int n = snprintf(text, sizeof text, "run %d/%d %.60s seed %lld", p->run, p->runs, shown(p->name), (long long)p->seed);
    if (p->steps && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, " step %lld/%lld", (long long)p->step, (long long)p->steps);
    progress_show(context, lround(p->part * 10000), text);
}

/* ---- files ---- */

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const struct compared *c = what;
    char *texts[] = {document_written(report_forget_write_html, c->document), document_written(report_forget_write_markdown, c->document),
                     json_lines(json_incref(c->document))};
    static const char *const names[] = {"report.html", "report.md", "report.json"};
    enum status st = OK;
    for (int i = 0; i < 3; i++) {
        if (st == OK)
            st = report_folder_add(folder, names[i], texts[i], err);
        free(texts[i]);
    }
    return st;
}

/* ---- the runs ---- */

static enum status load(struct compared *c, const struct text_list *paths, const struct text_list *sets, struct error *err)
{
    enum status st = OK;
    c->configs = calloc((size_t)paths->n, sizeof *c->configs);
    if (!c->configs)
        return error_no_memory(err, "the configs", (size_t)paths->n * sizeof *c->configs);
    for (c->n = 0; c->n < paths->n && st == OK; c->n++)
        st = config_load(&c->configs[c->n], paths->item[c->n], sets->item, sets->n, err);
    return st;
}

/* Nobody else makes runs there meanwhile. */
static enum status lock_runs(int *lock, const char *folder, struct error *err)
{
    char path[REPORT_FOLDER_MAX + 16];
    snprintf(path, sizeof path, "%s/runs", folder);
    const enum status st = fs_make_dirs(path, err);
    return st == OK ? fs_lock(lock, path, err) : st;
}

static enum status make_runs(struct compared *c, const char *folder, struct error *err)
{
    struct progress bar;
    int lock;
    enum status st = lock_runs(&lock, folder, err);
    if (st != OK)
        return st;
    install_stop_handler();
    progress_start(&bar, 0, 10000);
    show_choosing(&bar);
    st = forget_train(&c->f, c->configs, &(struct forget_options){.stop = &stop_requested, .on_progress = on_progress, .context = &bar}, err);
    show_choosing(NULL);
    progress_clear(&bar);
    if (st == OK)
        st = forget_collect(&c->f, err);
    close(lock);
    return st;
}

static bool any_done(const struct forget *f)
{
    for (int i = 0; i < f->n_configs; i++)
        if (forget_first_done(&f->configs[i]))
            return true;
    return false;
}

static void print_result(const struct compared *c, const char *folder, bool published)
{
    if (published) {
        printf("report: %s/report.html   (also report.md, report.json)\n", shown(folder));
        report_forget_print_terminal(c->document, stdout, stream_has_color(stdout));
    } else
        puts(json_string_value(json_object_get(c->document, "headline")));
    for (int i = 0; i < c->f.n_warnings && !c->f.interrupted; i++)
        fprintf(stderr, "%swarning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), shown(c->f.warnings[i]));
    if (c->f.interrupted)
        printf("\nthe same command goes on from here; runs are kept in %s/runs\n", shown(folder));
}

/* *code: the exit code, where it is OK. */
static enum status compare(struct compared *c, const char *folder, bool json, int *code, struct error *err)
{
    enum status st = make_runs(c, folder, err);
    if (st == OK && !(c->document = forget_json(&c->f)))
        st = error_no_memory(err, "the report", 1 << 16);
    const bool publish = st == OK && any_done(&c->f);
    *code = c->f.interrupted && !publish ? STOPPED_CODE : OK;
    if (publish)
        st = report_folder_publish(folder, REPORT_FORGET, write_files, c, err);
    if (st == OK && json)
        st = print_document(json_incref(c->document), 12, err);
    else if (st == OK)
        print_result(c, folder, publish);
    return st;
}

static void compared_free(struct compared *c)
{
    if (!c)
        return;
    json_decref(c->document);
    forget_release(&c->f);
    free(c->configs);
    free(c);
}

int cmd_forget(int argc, char **argv)
{
    struct text_list sets = {0}, given = {0};
    const char *out = NULL;
    int64_t seeds = 3;
    bool json = false;
    const struct option_def options[] = {
        {"--seeds", "N", OPTION_INT, &seeds, "runs of each config, with seeds 1 to N (default 3)"},
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "change a key of all configs; may be given several times"},
        {"--out", "DIR", OPTION_TEXT, &out, "where the runs and the report go (default: runs/forget)"},
        {"--json", NULL, OPTION_FLAG, &json, "print the report as one JSON document"},
        {0},
    };
    const struct usage usage = {
        .command = "forget", .arguments = "CONFIG...", .options = options, .min_positional = 1, .max_positional = FORGET_CONFIGS,
        .summary = "Trains each config over data.domains, one domain after the other, with several seeds, and compares what was\n"
                   "learned with what was forgotten: losses after each stage against the known entropy, what the nodes of a tree\n"
                   "(arch k1) did, and a verdict: does choosing nodes by gradient beat choosing as many at random, and all, at\n"
                   "equal learning? Runs are kept in DIR/runs/NAME-seedS: what is done is not repeated, and after Ctrl-C the same\n"
                   "command goes on.",
        .examples = "  hone forget forget-tree5 forget-random5 forget-tree13 forget-baseline4 forget-baseline13\n"
                    "  hone forget my.yaml other.yaml --seeds 5 --out runs/mine\n"
                    "  hone forget forget-tree5 forget-random5 --set train.steps=100 --set k1.k=3 --out runs/k3\n",
    };
    switch (parse_options(&usage, argc, argv, &given)) {
    case PARSED_HELP: return OK;
    case PARSED_BAD: return BAD_INPUT;
    case PARSED_GO: break;
    }
    struct error err;
    char folder[REPORT_FOLDER_MAX];
    int code = OK;
    if (ranks_check_alone("forget", &err) != OK)
        return ranks_refuse(&err);
    struct compared *c = calloc(1, sizeof *c);
    enum status st = c ? OK : error_no_memory(&err, "the result", sizeof *c);
    if (st == OK)
        st = load(c, &given, &sets, &err);
    if (st == OK)
        st = report_folder_name(folder, out ? out : "runs/forget", &err);
    if (st == OK)
        st = forget_plan(&c->f, c->configs, c->n, folder, seeds, &err);
    if (st == OK)
        st = report_folder_check(folder, REPORT_FORGET, &err);
    if (st == OK)
        st = compare(c, folder, json, &code, &err);
    compared_free(c);
    return st == OK ? code : report_error(&err);
}
