/* hone watch: starts a PyTorch program as it is, with a hook in it that measures some steps and records some, and says what bounds them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/watch_child.h"
#include "cli/watch_folder.h"
#include "cli/watch_job.h"
#include "cli/watch_stop.h"
#include "cli/watch_switches.h"
#include "core/json_memory.h"
#include "report/report.h"

/* Steps that the hook records, with one before each of the two recordings that wakes the profiler up; src/watch/hook. */
enum { RECORDED_STEPS = 4 + 3 + 2, MOST_STEPS = 1000000, COMMAND_MOST = 400 };

struct request {
    const char *out, *step_call, *switches;
    int64_t steps, warmup;
    bool stop, json, tries;
    struct picked fail_on;      /* enum severity */
    char folder[REPORT_FOLDER_MAX];
    char **command;             /* NULL at its end */
    char name[COMMAND_MOST];    /* the same as text */
};

/* ---- the request ---- */

static enum status check_count(const char *option, int64_t n, int64_t least, struct error *err)
{
    if (n >= least && n <= MOST_STEPS)
        return OK;
    return error_set(err, BAD_INPUT, "%s is %lld; it must be %lld to %d", option, (long long)n, (long long)least, MOST_STEPS);
}

static enum status check_step_call(const char *call, struct error *err)
{
    const char *colon = call ? strchr(call, ':') : NULL;
    if (!call || (colon && colon != call && colon[1] && !strchr(colon + 1, ':')))
        return OK;
    return error_set(err, BAD_INPUT, "--step-call is '%s'; it takes MODULE:FUNCTION, such as trainer:train_step, or __main__:train_step for one of the "
                     "script itself", call);
}

static enum status check_request(struct request *r, struct error *err)
{
    enum status st = check_count("--steps", r->steps, 3, err);
    if (st == OK)
        st = check_count("--warmup", r->warmup, 1, err);
    if (st == OK)
        st = check_step_call(r->step_call, err);
    if (st == OK && r->switches)
        st = watch_check_switches(r->switches, err);
    if (st == OK)
        st = report_folder_name(r->folder, r->out, err);
    return st == OK ? report_folder_check(r->folder, REPORT_WATCH, err) : st;
}

static void name_command(struct request *r)
{
    size_t n = 0;
    for (char **word = r->command; *word && n < sizeof r->name - 1; word++) {
        const int added = snprintf(r->name + n, sizeof r->name - n, "%s%s", n ? " " : "", *word);
        n = added > 0 && (size_t)added < sizeof r->name - n ? n + (size_t)added : sizeof r->name - 1;
    }
}

/* The third step is the first that is known to be one; src/watch/hook/hone_hook/cycle.py. */
static int64_t steps_needed(const struct request *r) { return (r->warmup > 3 ? r->warmup : 3) + r->steps + RECORDED_STEPS; }

/* ---- the hook's environment ---- */

enum { SETTINGS = 4 };
struct settings {
    struct child_setting list[SETTINGS];
    char path[2 * PATH_MAX];
    char *options;
};

static json_t *text_or_null(const char *text) { return text ? json_string(text) : json_null(); }

/* What the program would have without us: the hook puts it back. */
static json_t *environment_before(void)
{
    static const char *const names[] = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "KINETO_LOG_LEVEL"};
    json_t *before = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        json_object_set_new(before, names[i], text_or_null(getenv(names[i])));
    return before;
}

static json_t *split_at_commas(const char *text)
{
    json_t *list = json_array();
    for (const char *word = text; *word;) {
        const size_t n = strcspn(word, ",");
        if (n)
            json_array_append_new(list, json_stringn(word, n));
        word += n + (word[n] == ',');
    }
    return list;
}

static json_t *trial_options(const struct request *r)
{
    if (!r->tries && !r->switches)
        return json_null();
    json_t *options = json_object();
    if (r->switches)
        json_object_set_new(options, "switches", split_at_commas(r->switches));
    return options;
}

static char *hook_options(const struct request *r, const char *recording)
{
    json_t *j = json_pack("{s:s,s:I,s:I,s:b,s:o,s:o,s:o}", "out", recording, "warmup", (json_int_t)r->warmup, "steps", (json_int_t)r->steps, "stop",
                          r->stop, "step_call", text_or_null(r->step_call), "environment", environment_before(), "try", trial_options(r));
    char *text = j ? json_memory_dump(j, JSON_COMPACT) : NULL;
    json_decref(j);
    return text;
}

static enum status settings_make(struct settings *s, const struct request *r, const char *recording, struct error *err)
{
    char hook[PATH_MAX];
    const char *path = getenv("PYTHONPATH"), *log = getenv("KINETO_LOG_LEVEL"), *bytecode = getenv("PYTHONDONTWRITEBYTECODE");
    const enum status st = watch_find_hook(hook, err);
    if (st != OK)
        return st;
    if (snprintf(s->path, sizeof s->path, "%s%s%s", hook, path && *path ? ":" : "", path ? path : "") >= (int)sizeof s->path)
        return error_set(err, BAD_INPUT, "PYTHONPATH is too long for the hook's folder to stand before it");
    s->options = hook_options(r, recording);
    if (!s->options)
        return error_set(err, BAD_INPUT, "--out, --step-call and PYTHONPATH must be UTF-8");
    const struct child_setting list[SETTINGS] = {
        {"PYTHONPATH", s->path}, {"PYTHONDONTWRITEBYTECODE", bytecode && *bytecode ? bytecode : "hone"}, {"HONE_WATCH", s->options},
        {"KINETO_LOG_LEVEL", log ? log : "99"}};        /* the hook knows our values: hone_hook/environment.py */
    memcpy(s->list, list, sizeof list);
    return OK;
}

/* ---- while it runs ---- */

/* A disk that was full may have room when the program has ended: then it is published once more. */
static void report_early(struct watch_job *j, const struct request *r, const char *recording)
{
    struct error err;
    enum status st = j->failed = watch_job_make(j, recording, r->name, &err);
    if (st == OK)
        st = watch_job_publish(j, r->folder, &err);
    if (st == OK)
        fprintf(stderr, "hone: report: %s/report.html\n", shown(r->folder));
    else
        report_error(&err);
}

/* The report is made as soon as all ranks have measured: a training may run for days. */
static bool try_early(struct watch_job *j, const struct request *r, const char *recording)
{
    struct arena a = {0};
    struct watched w;
    struct error err;
    const bool ready = watched_read(&w, &a, recording, &err) == OK && watched_all_finished(&w);
    watched_release(&w);
    arena_release(&a);
    if (ready)
        report_early(j, r, recording);
    return ready;
}

/* With --stop it ends at once, most of the time: the report is made then, with its last word. */
static bool is_time(const struct request *r, const struct watch_stop *stop)
{
    enum { SOON = 10 };
    return !r->stop || stop->told > SOON;
}

/* With --stop how it ended is its answer to that: it may have caught the exception that ended it. What a signal ended was not ended by us. */
static void take_answer(struct child *c, const struct watch_stop *stop)
{
    if (!stop->by_us && stop->told && c->code && !c->signal)
        fprintf(stderr, "hone: the program was told to end, and did so with exit code %d\n", c->code);
    if (stop->by_us || (stop->told && !c->signal))
        c->code = c->signal = 0;
}

static void stay_beside(struct child *c, struct watch_job *j, const struct request *r, const char *recording)
{
    struct watch_stop stop = {0};
    bool tried = false;
    while (child_runs(c) || watch_stop_waits(&stop)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        tried = tried || (is_time(r, &stop) && try_early(j, r, recording));
        if (r->stop)
            watch_stop_look(&stop, recording, c->pid);
    }
    if (r->stop) {
        watch_stop_read(&stop, recording);      /* it may have been told since */
        take_answer(c, &stop);
    }
    watch_stop_release(&stop);
}

/* ---- when it has ended ---- */

static void say_how_it_ended(const struct child *c)
{
    if (c->signal)
        fprintf(stderr, "hone: the program was ended by signal %d (%s)\n", c->signal, strsignal(c->signal));
    else if (c->code)
        fprintf(stderr, "hone: the program ended with exit code %d\n", c->code);
}

static enum status make_late(struct watch_job *j, const struct request *r, const char *recording, struct error *err)
{
    struct arena a = {0};
    struct watched w = {0};
    enum status st = watched_read(&w, &a, recording, err);
    bool recorded = false;
    for (int i = 0; i < w.n; i++)
        recorded |= w.ranks[i].shapes.steps > 0;
    watched_release(&w);
    arena_release(&a);
    if (st == OK && !recorded)
        return watch_job_nothing(recording, r->name, steps_needed(r), r->step_call, err);
    return st == OK ? watch_job_make(j, recording, r->name, err) : st;
}

static enum status finish(struct watch_job *j, const struct request *r, const char *recording, struct error *err)
{
    const enum status st = j->made ? OK : make_late(j, r, recording, err);
    if (st != OK || j->published)
        return st;
    install_stop_handler();                     /* no half-written folder is left behind */
    return watch_job_publish(j, r->folder, err);
}

static enum status print(const struct watch_job *j, const struct request *r, struct error *err)
{
    const struct diagnosis *d = &j->shapes.diagnosis;
    if (r->json) {
        fprintf(stderr, "report: %s/report.html   (also report.md, report.json)\n", shown(r->folder));
        return report_trace_write_json(d, stdout, err);
    }
    report_trace_print_terminal(d, stdout, stream_has_color(stdout));
    printf("\nreport: %s/report.html   (also report.md, report.json; traces in %s/recording)\n", shown(r->folder), shown(r->folder));
    return OK;
}

static int judge(struct watch_job *j, const struct request *r, const char *recording)
{
    struct error err;
    if (j->failed != OK)
        return j->failed;
    enum status st = finish(j, r, recording, &err);
    if (st == OK)
        st = print(j, r, &err);
    return st != OK ? report_error(&err) : findings_fail(&j->shapes.diagnosis, &r->fail_on) ? ANSWER_NO : OK;
}

/* A program that failed by itself says with its own code that it did. */
static int conclude(const struct child *c, struct watch_job *j, const struct request *r, const char *recording)
{
    say_how_it_ended(c);
    const int code = judge(j, r, recording);
    return c->code ? c->code : code;
}

/* ---- the command ---- */

static int watch(struct request *r)
{
    struct watch_folder folder = {.lock = -1};
    struct watch_job job = {0};
    struct settings settings = {0};
    struct child child = {0};
    struct error err;
    enum status st = check_request(r, &err);
    if (st == OK)
        st = watch_folder_open(&folder, r->folder, &err);
    if (st == OK)
        st = settings_make(&settings, r, folder.recording, &err);
    if (st == OK)
        st = child_start(&child, r->command, settings.list, SETTINGS, r->json, &err);
    if (st == OK) {
        stay_beside(&child, &job, r, folder.recording);
        if (watch_folder_own(&folder, &err) != OK)
            report_error(&err);                 /* the next watch will ask whose they are */
    }
    const int code = st == OK ? conclude(&child, &job, r, folder.recording) : report_error(&err);
    watch_job_release(&job);
    watch_folder_close(&folder);
    free(settings.options);
    child_die_alike(&child);
    return code;
}

/* Options of our own come before "--", or before the first word that is none. */
static int first_of_command(const struct option_def *options, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++)
        for (const struct option_def *o = options; o->name; o++)
            i += !strcmp(argv[i], o->name) && o->argument && i + 1 < argc;
    return i;
}

int cmd_watch(int argc, char **argv)
{
    struct request r = {.fail_on = {.words = severity_names}, .out = "hone-watch", .steps = 20, .warmup = 10};
    struct text_list none = {0};
    const struct option_def options[] = {
        {"--steps", "N", OPTION_INT, &r.steps, "time so many steps undisturbed (20)"},
        {"--warmup", "N", OPTION_INT, &r.warmup, "leave so many steps alone before (10)"},
        {"--out", "DIR", OPTION_TEXT, &r.out, "the folder of the report and the traces (hone-watch)"},
        {"--stop", NULL, OPTION_FLAG, &r.stop, "end the program when everything is measured"},
        {"--try", NULL, OPTION_FLAG, &r.tries, "try switches that need no change of the program in it, in turns, and put it back as it was"},
        {"--switches", "A,B", OPTION_TEXT, &r.switches, "of --try, only these"},
        {"--step-call", "M:F", OPTION_TEXT, &r.step_call, "a step is a call of function F of module M; without: of an optimizer's step"},
        {"--fail-on", "SEVERITY", OPTION_WORD, &r.fail_on, "exit 1 on a finding this severe"},
        {"--json", NULL, OPTION_FLAG, &r.json, "print the diagnosis as one JSON document; what the program prints goes to stderr"},
        {0},
    };
    const struct usage usage = {
        "watch", "[--] COMMAND...",
        "Starts a PyTorch program as it is, unchanged, and says what bounds its training steps and what would make them\n"
        "faster by how much: as `hone analyze`, with the true time of a step. It leaves the program alone until it is warm,\n"
        "times some steps, records some with torch.profiler, and lets it run on. Under torchrun every rank is recorded.\n"
        "Signals, standard input and output and the exit code are the program's.", options,
        "  hone watch -- python train.py --batch-size 32\n"
        "  hone watch --try -- python train.py                             measured gains, and the lines that win them\n"
        "  hone watch --stop --out report -- torchrun --nproc-per-node 4 train.py\n"
        "  hone watch --step-call __main__:train_step -- python train.py\n"
        "  hone watch --stop --json --fail-on high -- python train.py      a gate for CI\n", 0, 0};
    const int first = first_of_command(options, argc, argv);
    const enum parsed parsed = parse_options(&usage, first, argv, &none);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    r.command = argv + first + (first < argc && !strcmp(argv[first], "--"));
    if (!*r.command) {
        fputs("hone watch: a command is missing: hone watch -- python train.py; `hone watch --help` shows examples\n", stderr);
        return BAD_INPUT;
    }
    name_command(&r);
    return watch(&r);
}
