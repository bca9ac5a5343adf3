/* What the folder of a run tells: run.json, config.yaml, the last lines of metrics.jsonl, and whether somebody holds its lock. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "core/clean.h"
#include "core/fs.h"
#include "core/json_memory.h"
#include "runs/runs.h"

enum { FILE_MOST = 1 << 20 };

static const char *const state_names[] = {"running", "finished", "stopped", "failed", "nan", "crashed"};

const char *run_state_name(enum run_state state) { return state_names[state]; }

static bool is_file(const char *folder, const char *name, time_t *changed)
{
    char path[CONFIG_PATH_MAX + 32];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (stat(path, &s) || !S_ISREG(s.st_mode))
        return false;
    if (changed)
        *changed = s.st_mtime;
    return true;
}

bool run_is_folder(const char *folder) { return is_file(folder, "metrics.jsonl", NULL) || is_file(folder, "run.json", NULL); }

__attribute__((format(printf, 2, 3))) static void warn(struct run *r, const char *format, ...)
{
    va_list args;
    if (*r->warning)
        return;
    va_start(args, format);
    vsnprintf(r->warning, sizeof r->warning, format, args);
    va_end(args);
}

/* ---- run.json ---- */

static double number(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

static int64_t whole(const json_t *j, const char *key, int64_t most)
{
    const json_int_t n = json_integer_value(json_object_get(j, key));
    return n < 0 || n > most ? 0 : (int64_t)n;
}

static time_t time_of(const json_t *j, const char *key)
{
    struct tm t = {0};
    const char *text = json_string_value(json_object_get(j, key)), *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &t) : NULL;
    return end && !*end ? timegm(&t) : 0;
}

/* -1: none that is known. */
static int state_of(const json_t *j)
{
    const char *name = json_string_value(json_object_get(j, "state"));
    for (int i = 0; name && i <= RUN_NAN; i++)
        if (!strcmp(name, state_names[i]))
            return i;
    return -1;
}

static void take_text(char *to, size_t size, const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    if (text)
        text_clean_to(to, size, text);
}

static void take_file(struct run *r, const json_t *j)
{
    r->step = whole(j, "step", INT32_MAX);
    r->steps = whole(j, "steps", INT32_MAX);
    r->threads = (int)whole(j, "threads", 1 << 20);
    r->ranks = (int)whole(j, "ranks", 1 << 20);
    r->parameters = whole(j, "parameters", INT64_MAX);
    r->loss = number(j, "loss");
    r->val_loss = number(j, "val_loss");
    r->planned_bytes = number(j, "planned_bytes");
    r->peak_bytes = number(j, "peak_bytes");
    take_text(r->device, sizeof r->device, j, "device");
    take_text(r->device, sizeof r->device, j, "device_name");
    take_text(r->reason, sizeof r->reason, j, "reason");
    r->when = time_of(j, "ended");
    r->ended = r->when != 0;
    if (!r->ended)
        r->when = time_of(j, "started");
    if (!(number(j, "steps_per_s") > 0))
        return;                         /* it has made no step */
    r->steps_per_s = number(j, "steps_per_s");
    r->tokens_per_s = number(j, "tokens_per_s");
}

/* The state that run.json names; -1: it names none, or there is no such file. */
static int read_file(struct run *r)
{
    char path[CONFIG_PATH_MAX + 32];
    struct error why;
    json_t *j = NULL;
    if (!is_file(r->folder, "run.json", NULL))
        return -1;
    snprintf(path, sizeof path, "%s/run.json", r->folder);
    if (json_memory_read_object(&j, path, FILE_MOST, "", &why) != OK) {
        warn(r, "run.json cannot be read: %.300s", why.text);
        return -1;
    }
    const int state = state_of(j);
    if (state < 0)
        warn(r, "run.json names no state that is known");
    take_file(r, j);
    json_decref(j);
    return state;
}

/* ---- the state ---- */

static int64_t steps_of(const struct config *c)
{
    return c && !c->train.epochs ? c->train.steps * config_stages(c) : 0;
}

/* A run writes how it ended before it lets its lock go: who sees neither has seen one that was killed, or one that ended between the two
 * looks. */
static int read_state(struct run *r)
{
    const int named = read_file(r);
    if (named >= 0 && named != RUN_RUNNING)
        return named;
    if (fs_is_locked(r->folder))
        return RUN_RUNNING;
    const int again = named < 0 ? -1 : read_file(r);
    return again == RUN_RUNNING ? RUN_CRASHED : again;
}

/* A folder without a run.json: as far as it went. */
static enum run_state guess_state(const struct run *r)
{
    const int64_t steps = steps_of(r->config);
    return steps && r->step >= steps ? RUN_FINISHED : RUN_STOPPED;
}

/* ---- config.yaml, metrics.jsonl ---- */

static void read_config(struct run *r)
{
    char path[CONFIG_PATH_MAX + 32], *text;
    struct error why;
    size_t size;
    snprintf(path, sizeof path, "%s/config.yaml", r->folder);
    if (fs_read(path, &text, &size, FILE_MOST, &why) != OK) {
        warn(r, "%.400s", why.text);
        return;
    }
    r->config = xcalloc(1, sizeof *r->config);
    if (config_parse_saved(r->config, path, text, size, NULL, 0, &why) != OK) {
        warn(r, "%.400s", why.text);
        free(r->config);
        r->config = NULL;
    }
    free(text);
}

static void take_last(struct run *r, const struct metrics_line *log, const struct metrics_line *eval)
{
    if (log->kind == METRICS_LOG) {
        r->loss = log->loss;
        if (log->step > r->step)
            r->step = log->step;
    }
    if (log->kind == METRICS_LOG && !isfinite(r->steps_per_s)) {
        r->steps_per_s = log->steps_per_s;
        r->tokens_per_s = log->tokens_per_s;
    }
    if (eval->kind == METRICS_EVAL) {
        r->val_loss = eval->loss;
        if (eval->step > r->step)
            r->step = eval->step;
    }
}

static void read_metrics(struct run *r)
{
    char path[CONFIG_PATH_MAX + 32];
    struct metrics_line log, eval;
    struct error why;
    time_t changed;
    if (!is_file(r->folder, "metrics.jsonl", &changed))
        return;
    snprintf(path, sizeof path, "%s/metrics.jsonl", r->folder);
    if (metrics_last(path, &log, &eval, &why) == OK)
        take_last(r, &log, &eval);
    else
        warn(r, "%.400s", why.text);
    if (!r->ended && changed > r->when)         /* a copy of the folder has a time of its own */
        r->when = changed;
}

static enum status no_run(const char *folder, struct error *err)
{
    bool there;
    if (fs_there(folder, &there, err) != OK)
        return err->status;
    return error_set(err, BAD_INPUT, there ? "'%s' holds no run: it has no metrics.jsonl" : "'%s' does not exist", folder);
}

enum status run_read(struct run *r, struct error *err)
{
    r->loss = r->val_loss = r->steps_per_s = r->tokens_per_s = r->planned_bytes = r->peak_bytes = NAN;
    if (!run_is_folder(r->folder))
        return no_run(r->folder, err);
    const int state = read_state(r);
    read_config(r);
    read_metrics(r);
    r->state = state < 0 ? guess_state(r) : (enum run_state)state;
    if (r->state == RUN_NAN)
        r->loss = NAN;
    if (!r->steps)
        r->steps = steps_of(r->config);
    return OK;
}

void run_check_lines(struct run *r)
{
    char path[CONFIG_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/metrics.jsonl", r->folder);
    const int64_t bad = *r->warning ? 0 : metrics_bad_at_end(path);
    if (bad)
        warn(r, "%lld line%s at the end of metrics.jsonl could not be read, and %s left out", (long long)bad, bad == 1 ? "" : "s", bad == 1 ? "is" : "are");
}
