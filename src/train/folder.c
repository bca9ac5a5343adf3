/* The folder of a run: who may write into it, and the config that it keeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/owned.h"
#include "train/train_int.h"

enum { NAME_ROOM = 128 };       /* for the longest name below the folder, a file of a checkpoint */

const char *const train_files[] = {"config.yaml", "metrics.jsonl", "nodes.jsonl", "forgetting.json", "samples.jsonl", "run.json", NULL};

static enum status holds(const char *out, const char *name, bool *there, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", out, name);
    return fs_there(path, there, err);
}

/* What a run has written, and what it would write over. */
struct used {
    bool checkpoint, metrics, config;
};

static enum status look(const char *out, struct used *u, struct error *err)
{
    enum status st = checkpoint_there(out, &u->checkpoint, err);
    if (st == OK)
        st = holds(out, "metrics.jsonl", &u->metrics, err);
    return st == OK ? holds(out, "config.yaml", &u->config, err) : st;
}

static enum status refuse_used(const struct train_options *o, struct error *err)
{
    const char *out = o->out;
    struct used u;
    const enum status st = look(out, &u, err);
    if (st != OK)
        return st;
    if (o->import && (u.checkpoint || u.metrics))
        return error_set(err, BAD_INPUT, "'%s' already holds a run; give an --out that is empty or not there yet", out);
    if (u.checkpoint)
        return error_set(err, BAD_INPUT, "'%s' already holds a run; continue it with --resume, or give another --out", out);
    if (u.metrics)
        return error_set(err, BAD_INPUT, "'%s' already holds a run that has saved nothing yet; give another --out", out);
    for (const char *const *name = train_files; *name; name++) {
        bool there;
        if (holds(out, *name, &there, err) != OK)
            return err->status;
        if (there)
            return error_set(err, BAD_INPUT, "'%s' already holds a %s, and a run writes its own there; give another --out", out, *name);
    }
    return OK;
}

/* Before anything else is said of a folder: what is missing there may be on its way. */
static enum status refuse_alive(const struct train_options *o, struct error *err)
{
    if (!fs_is_locked(o->out))
        return OK;
    if (o->anew)
        return error_set(err, BAD_INPUT, "another hone is writing into '%s'; wait for its end, and start again", o->out);
    return o->resume ? error_set(err, BAD_INPUT, "the run in '%s' is alive: another hone is writing there; wait for its end, or stop it, which saves a checkpoint, and "
                                 "resume it then", o->out)
                     : error_set(err, BAD_INPUT, "another hone is writing into '%s'; give another --out", o->out);
}

enum status folder_check(const struct train_options *o, struct error *err)
{
    const char *out = o->out;
    const size_t length = strlen(out);
    struct used u;
    bool there;
    if (length == 0 || length > CONFIG_PATH_MAX - NAME_ROOM)
        return error_set(err, BAD_INPUT, "--out has %zu bytes; expected 1 to %d", length, CONFIG_PATH_MAX - NAME_ROOM);
    if (refuse_alive(o, err) != OK)
        return err->status;
    if (!o->resume)
        return o->anew ? OK : refuse_used(o, err);
    enum status st = fs_there(out, &there, err);
    if (st == OK && !there)
        return error_set(err, BAD_INPUT, "'%s' does not exist, so there is nothing to resume; start without --resume", out);
    if (st == OK)
        st = look(out, &u, err);
    if (st == OK && !u.checkpoint)
        return error_set(err, BAD_INPUT, "'%s' holds no checkpoint, so there is nothing to resume; start without --resume%s", out,
                         u.metrics || u.config ? ", with another --out" : "");
    return st;
}

enum status folder_check_trace(const char *out, struct error *err)
{
    struct owned o;
    enum owned_state state;
    enum status st = owned_read(&o, out, err);
    if (st != OK)
        return st;
    st = owned_look(&o, out, TRACE_OWNER, "trace.json", &state, err);
    if (st == OK && state == OWNED_OTHER)
        st = error_set(err, BAD_INPUT, "'%s/trace.json' is of a report of hone %s, and --profile would write its own there; give "
                       "another --out", out, owned_by(&o, "trace.json"));
    else if (st == OK && state != OWNED_MISSING && state != OWNED_INTACT)
        st = error_set(err, BAD_INPUT, "'%s/trace.json' is there, and no recording that is known here wrote it; move it away, or give "
                       "another --out", out);
    owned_release(&o);
    return st;
}

/* Another may have come and gone since the folder was checked. */
enum status folder_lock(int *lock, const struct train_options *o, const struct config *c, struct error *err)
{
    enum status st = fs_make_dirs(o->out, err);
    if (st == OK)
        st = fs_lock(lock, o->out, err);
    if (st != OK || o->resume)
        return st;
    return o->anew ? left_clear(o->out, c, err) : refuse_used(o, err);
}

enum status folder_write_config(const char *out, const struct config *c, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *text = config_text(c);
    if (!text)
        return error_no_memory(err, "the text of the config", 4096);
    snprintf(path, sizeof path, "%s/config.yaml", out);
    const enum status st = fs_replace(path, text, strlen(text), err);
    free(text);
    return st;
}
