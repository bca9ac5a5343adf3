/* hone sweep: a run for every combination of some values of some keys, one after the other, and their table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "report/report.h"
#include "runs/sweep.h"

struct view {
    const struct sweep *s;
    FILE *to;                       /* stderr with --json */
    struct progress bar;
};

static void on_step(void *context, int run, int64_t step, int64_t steps)
{
    struct view *v = context;
    char text[128];
    snprintf(text, sizeof text, "run %d/%d %.60s step %lld/%lld", run + 1, v->s->n, v->s->run[run].name, (long long)step, (long long)steps);
    progress_show(&v->bar, 1000 * run + (steps ? 1000 * step / steps : 0), text);
}

static void on_end(void *context, int run, const struct error *failed)
{
    struct view *v = context;
    const struct sweep_run *r = &v->s->run[run];
    struct run *made = calloc(1, sizeof *made);
    struct error ignored;
    progress_clear(&v->bar);
    fprintf(v->to, "[%d/%d] %s: ", run + 1, v->s->n, r->name);
    if (made)
        memcpy(made->folder, r->folder, sizeof made->folder);
    if (failed)
        fprintf(v->to, "%sfailed:%s %s", style(v->to, "red"), style(v->to, "off"), shown(failed->text));
    else if (made && run_read(made, &ignored) == OK)
        fprintf(v->to, "%s%s, %lld step%s, loss %.4f", r->kept ? "kept, " : "", run_state_name(made->state), (long long)made->step, made->step == 1 ? "" : "s",
                made->loss);
    if (!failed && made && isfinite(made->val_loss))
        fprintf(v->to, ", validation loss %.4f", made->val_loss);
    fputc('\n', v->to);
    fflush(v->to);
    free(made ? made->config : NULL);
    free(made);
}

static void train_all(struct sweep *s, bool json)
{
    struct view v = {.s = s, .to = json ? stderr : stdout};
    install_stop_handler();
    progress_start(&v.bar, 0, 1000 * (int64_t)s->n);
    show_choosing(&v.bar);
    runs_sweep_train(s, &(struct sweep_observer){.context = &v, .stop = &stop_requested, .on_step = on_step, .on_end = on_end});
    show_choosing(NULL);
    progress_clear(&v.bar);
}

/* As a shell takes it, where it is part of a command. */
static void put_word(const char *text, bool command)
{
    text = shown(text);
    const bool plain = !command || !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./+-=,_")];
    if (!plain)
        putchar('\'');
    for (; *text; text++)
        fputs(!plain && *text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, stdout);
    if (!plain)
        putchar('\'');
}

static enum status show(const struct sweep *s, const char *folder, bool json, struct error *err)
{
    struct runs r = {0};
    struct run_keys keys;
    enum status st = runs_sweep_read(s, &r, err);
    if (st != OK) {
        runs_release(&r);
        return st;
    }
    run_keys_init(&keys, &r);
    json_t *document = runs_json(&r, &keys, folder);
    if (!document || json_object_set_new(document, "interrupted", json_boolean(s->interrupted)))
        st = error_no_memory(err, "the table of runs", (size_t)r.n * 1024);
    else if (json)
        st = print_document(json_incref(document), 9, err);
    else if (r.n) {
        putchar('\n');
        report_runs_print_terminal(document, stdout, stream_has_color(stdout));
        printf(s->interrupted ? "\nthe same command goes on from here; runs are kept in " : "\nside by side: hone compare ");
        put_word(folder, !s->interrupted);
        putchar('\n');
    }
    json_decref(document);
    run_keys_release(&keys);
    runs_release(&r);
    return st;
}

/* Nobody else makes runs there meanwhile. */
static enum status make_runs(struct sweep *s, const char *folder, bool json, struct error *err)
{
    int lock;
    enum status st = fs_make_dirs(folder, err);
    if (st == OK)
        st = fs_lock(&lock, folder, err);
    if (st != OK)
        return st;
    train_all(s, json);
    st = show(s, folder, json, err);
    close(lock);
    return st;
}

static enum status sweep(const char *config, const struct text_list *sets, const struct text_list *vary, const char *folder, bool json, int *code, struct error *err)
{
    struct sweep s;
    if (!vary->n)
        return error_set(err, BAD_INPUT, "--vary is missing: which key, and with which values? e.g. --vary train.lr=1e-3,3e-3,1e-2");
    enum status st = runs_sweep_plan(&s, config, sets->item, sets->n, vary->item, vary->n, folder, err);
    if (st == OK)
        st = make_runs(&s, folder, json, err);
    *code = st == OK && s.interrupted ? STOPPED_CODE : st != OK || s.failed < s.n ? OK : s.failed_here < s.n ? ANSWER_NO : CANNOT;
    runs_sweep_release(&s);
    return st;
}

/* runs/NAME-sweep, by the name that the config's run would have. The config itself may be whole only with --set and --vary. */
static void default_folder(char folder[CONFIG_PATH_MAX], const char *config)
{
    char name[CONFIG_NAME_MAX];
    config_name_of(name, config);
    snprintf(folder, CONFIG_PATH_MAX, "runs/%s-sweep", name);
}

int cmd_sweep(int argc, char **argv)
{
    struct text_list sets = {0}, vary = {0}, given = {0};
    const char *out = NULL;
    bool json = false;
    int code = OK;
    const struct option_def options[] = {
        {"--vary", "KEY=A,B,C", OPTION_LIST, &vary, "values of a key; given again for another key: all combinations"},
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "change a key in all runs; may be repeated"},
        {"--out", "DIR", OPTION_TEXT, &out, "where the runs go, each in a folder of its own (default runs/NAME-sweep)"},
        {"--json", NULL, OPTION_FLAG, &json, "print the table as one JSON document"},
        {0},
    };
    const struct usage usage = {
        .command = "sweep", .arguments = "CONFIG", .options = options, .min_positional = 1, .max_positional = 1,
        .summary = "Trains CONFIG once for every combination of the values of --vary, one run after the other, and prints their table as\n"
                   "`hone runs` does. All combinations are checked before the first run. Runs are kept in DIR/lr=0.001,dim=64: what is finished is\n"
                   "not repeated, and after Ctrl-C, which saves, the same command goes on. A run that fails does not end the others.",
        .examples = "  hone sweep quickstart --vary train.lr=1e-3,3e-3,1e-2\n"
                    "  hone sweep my.yaml --vary model.dim=64,128 --vary train.seed=1,2,3 --set train.steps=500 --out runs/width\n",
    };
    switch (parse_options(&usage, argc, argv, &given)) {
    case PARSED_HELP: return OK;
    case PARSED_BAD: return BAD_INPUT;
    case PARSED_GO: break;
    }
    char folder[CONFIG_PATH_MAX];
    struct error err;
    enum status st = OK;
    if (out)
        st = report_folder_name(folder, out, &err);
    else
        default_folder(folder, given.item[0]);
    if (st == OK)
        st = sweep(given.item[0], &sets, &vary, folder, json, &code, &err);
    return st != OK ? report_error(&err) : code;
}
