/* OUT/run.json: what a run is, written when it begins, and how it ended. One that says nothing of an end, while nobody holds the lock of
 * the folder, was killed. src/runs reads it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "core/json_whole.h"
#include "core/process.h"
#include "train/loop_int.h"

static json_t *time_json(time_t at)
{
    char text[32];
    struct tm t;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &t));
    return json_string(text);
}

/* NULL: no memory. */
static json_t *begun(const struct loop *l, const char *state)
{
    const struct model_run *r = &l->run;
    const struct exec_memory memory = exec_memory(r->train);
    return json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:s, s:s?, s:i, s:i, s:I, s:o, s:o}", "format", "hone-run", "version", 1, "hone_version",
                     HONE_VERSION, "state", state, "step", (json_int_t)l->step, "steps", (json_int_t)r->total_steps, "device", r->backend->name,
                     "device_name", r->backend->device, "threads", r->backend->lanes, "ranks", dist_size(l->dist), "parameters",
                     (json_int_t)program_parameters(exec_program(r->train)), "planned_bytes", json_whole(exec_memory_bytes(&memory)),
                     "started", time_json(l->started));
}

static json_t *ended(const struct loop *l, const struct train_result *result, const char *reason)
{
    const double rate = l->seconds > 0 ? (double)(l->step - l->first_step) / l->seconds : 0;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "ended", time_json(time(NULL)), "loss", json_number(l->last_loss), "val_loss",
                     json_number(l->val_loss), "seconds", json_number(l->seconds), "steps_per_s", json_number(rate), "tokens_per_s",
                     json_number(result->tokens_per_s), "peak_bytes", json_whole(l->gpu.looks ? l->gpu.used_most_bytes : process_peak_bytes()),
                     "reason", reason ? json_text(reason) : json_null(), "skipped", (json_int_t)l->skipped);
}

/* Takes the document over. */
static enum status put(const struct loop *l, json_t *j, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *text = j ? json_memory_dump(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(j);
    snprintf(path, sizeof path, "%s/run.json", l->options->out);
    if (!text)
        return error_set(err, CANNOT, "out of memory for '%s'", path);
    const size_t length = strlen(text);
    text[length] = '\n';                            /* in the place of the end, which nobody needs */
    const enum status st = fs_replace(path, text, length + 1, err);
    free(text);
    return st;
}

/* A run that is done and known as such stays as it is, where it is resumed: it has nothing to do. One whose last step had no number is not
 * finished by that. */
static enum status look_at_end(const struct loop *l, bool *finished, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    struct error ignored;
    json_t *j = NULL;
    enum status st = OK;
    snprintf(path, sizeof path, "%s/run.json", l->options->out);
    if (l->step < l->run.total_steps || json_memory_read_object(&j, path, 1 << 16, "", &ignored) != OK)
        return OK;
    const char *state = json_string_value(json_object_get(j, "state")), *reason = json_string_value(json_object_get(j, "reason"));
    *finished = state && !strcmp(state, "finished");
    if (state && !strcmp(state, "nan"))
        st = error_set(err, BAD_INPUT, "'%s' has no steps left, and it did not end well: %.400s", l->options->out, reason ? reason : "a number was none");
    json_decref(j);
    return st;
}

enum status loop_begin_file(struct loop *l, struct error *err)
{
    bool finished = false;
    const enum status st = loop_leads(l) ? look_at_end(l, &finished, err) : OK;
    if (!loop_leads(l) || st != OK || finished)
        return st;
    process_reset_peak();
    l->started = time(NULL);
    return put(l, begun(l, "running"), err);
}

void loop_end_file(struct loop *l, enum status st, const struct train_result *result, const struct error *why)
{
    struct error err;
    const char *state = st != OK ? (l->alike && !l->apart ? "nan" : "failed") : result->interrupted ? "stopped" : "finished";
    if (!l->started)
        return;
    json_t *j = begun(l, state), *more = ended(l, result, st == OK ? NULL : why->text);
    if (!j || !more || json_object_update(j, more)) {
        json_decref(j);
        j = NULL;
    }
    json_decref(more);
    if (put(l, j, &err) != OK)
        loop_warn(l, err.text);
}
