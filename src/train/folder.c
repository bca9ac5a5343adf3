/* The folder of a run: who may write into it, and the config that it keeps. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/fs.h"
#include "train/train_int.h"

enum { NAME_ROOM = 128 };       /* for the longest name below the folder, a file of a checkpoint */

static bool holds(const char *out, const char *name)
{
    char path[CONFIG_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", out, name);
    return fs_exists(path);
}

static enum status refuse_used(const char *out, struct error *err)
{
    if (holds(out, "checkpoints"))
        return error_set(err, BAD_INPUT, "'%s' already holds a run; continue it with --resume, or give another --out", out);
    if (holds(out, "metrics.jsonl"))
        return error_set(err, BAD_INPUT, "'%s' already holds a run that has saved nothing yet; remove the folder, or give "
                         "another --out", out);
    return OK;
}

enum status folder_check(const char *out, bool resume, struct error *err)
{
    const size_t length = strlen(out);
    if (length == 0 || length > CONFIG_PATH_MAX - NAME_ROOM)
        return error_set(err, BAD_INPUT, "--out has %zu bytes; expected 1 to %d", length, CONFIG_PATH_MAX - NAME_ROOM);
    if (!resume)
        return refuse_used(out, err);
    if (!fs_exists(out))
        return error_set(err, BAD_INPUT, "'%s' does not exist, so there is nothing to resume; start without --resume", out);
    if (!holds(out, "checkpoints"))
        return error_set(err, BAD_INPUT, "'%s' holds no checkpoint, so there is nothing to resume; %s", out,
                         holds(out, "metrics.jsonl") ? "remove the folder and start without --resume"
                                                     : "start without --resume");
    return OK;
}

enum status folder_lock(int *lock, const char *out, bool resume, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    const enum status st = fs_make_dirs(out, err);
    if (st != OK)
        return st;
    snprintf(path, sizeof path, "%s/.lock", out);
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0)
        return error_errno(err, "cannot write into '%s'", out);
    if (flock(*lock, LOCK_EX | LOCK_NB))
        return error_set(err, BAD_INPUT, "another hone is writing into '%s'; give another --out", out);
    return resume ? OK : refuse_used(out, err);     /* another may have come and gone since the folder was checked */
}

static enum status replace(const char *path, const char *text, size_t size, struct error *err)
{
    char temporary[CONFIG_PATH_MAX + 64];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    enum status st = fs_write_synced(temporary, text, size, err);
    if (st == OK && rename(temporary, path)) {
        st = error_errno(err, "cannot replace '%s'", path);
        unlink(temporary);
    }
    return st;
}

enum status folder_write_config(const char *out, const struct config *c, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *text = config_text(c);
    if (!text)
        return error_no_memory(err, "the text of the config", 4096);
    snprintf(path, sizeof path, "%s/config.yaml", out);
    const enum status st = replace(path, text, strlen(text), err);
    free(text);
    return st;
}
