/* What is left of a run in a folder, for who would go on with it or begin it anew: is it of the same config, and is it a run's at all? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/json_memory.h"
#include "train/train_int.h"

enum { FILE_MOST = 1 << 20 };

/* Keys, or beginnings of keys, that say how a run works and not what comes out of it. */
static const char *const FREE[] = {"device", "threads", "checkpoint.", "log.", "data.workers", "data.prefetch", "verify."};

static bool is_free(const struct config_difference *d)
{
    if (!strcmp(d->key, "model.vocab") && !strcmp(d->b, "0"))       /* the run has found it in the data */
        return true;
    for (size_t i = 0; i < sizeof FREE / sizeof *FREE; i++)
        if (!strncmp(d->key, FREE[i], strlen(FREE[i])))
            return true;
    return false;
}

/* The config that the run printed, perhaps another version of hone; *text (NULL: not wanted) is then the caller's. */
static enum status read_config(struct config *was, const char *out, char **text, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *is;
    size_t size;
    snprintf(path, sizeof path, "%s/config.yaml", out);
    enum status st = fs_read(path, &is, &size, FILE_MOST, err);
    if (st != OK)
        return st;
    st = config_parse_saved(was, path, is, size, NULL, 0, err);
    if (st == OK && text)
        *text = is;
    else
        free(is);
    return st;
}

enum status left_check_same(const char *out, const struct config *c, struct error *err)
{
    struct config *was = xcalloc(1, sizeof *was);
    struct config_difference d;
    enum status st = read_config(was, out, NULL, err);
    for (int at = 0; st == OK && config_differ(&d, was, c, &at);)
        if (!is_free(&d))
            st = error_set(err, BAD_INPUT, "'%s' holds a run with %s %.150s, and it is %.150s now; give another --out", out, d.key, d.a,
                           d.b);
    free(was);
    return st;
}

/* ---- of a run that has saved nothing ---- */

static enum status holds_any(const char *out, bool *any, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    enum status st = OK;
    *any = false;
    for (const char *const *name = train_files; *name && st == OK && !*any; name++) {
        snprintf(path, sizeof path, "%s/%s", out, *name);
        st = fs_there(path, any, err);
    }
    return st;
}

static bool has_run_file(const char *out)
{
    char path[CONFIG_PATH_MAX + 32];
    struct error ignored;
    json_t *j = NULL;
    snprintf(path, sizeof path, "%s/run.json", out);
    if (json_memory_read_object(&j, path, FILE_MOST, "", &ignored) != OK)
        return false;
    const char *format = json_string_value(json_object_get(j, "format"));
    const bool is = format && !strcmp(format, "hone-run");
    json_decref(j);
    return is;
}

/* A run has left its config as it prints it, or, of another version of hone, its run.json beside one that can be read. Nothing else is a run's. */
static bool is_a_run(const char *out)
{
    struct config *was = xcalloc(1, sizeof *was);
    struct error ignored;
    char *is = NULL, *should = NULL;
    const bool readable = read_config(was, out, &is, &ignored) == OK;
    if (readable)
        should = config_text(was);
    const bool printed = should && !strcmp(is, should);
    free(is);
    free(should);
    free(was);
    return printed || (readable && has_run_file(out));
}

enum status left_check(const char *out, const struct config *c, struct error *err)
{
    bool any;
    const enum status st = holds_any(out, &any, err);
    if (st != OK || !any)
        return st;
    return is_a_run(out) ? left_check_same(out, c, err) : error_set(err, BAD_INPUT, "'%s' holds files that are not of a run; give another --out", out);
}

/* The config comes first, so that what is left on the way is still known as a run's. */
enum status left_clear(const char *out, const struct config *c, struct error *err)
{
    bool saved, any;
    enum status st = checkpoint_there(out, &saved, err);
    if (st == OK && saved)
        st = error_set(err, BAD_INPUT, "'%s' holds a run that was not there before; start again to go on with it", out);
    if (st == OK)
        st = holds_any(out, &any, err);
    if (st != OK || !any)
        return st;
    st = left_check(out, c, err);
    if (st == OK)
        st = folder_write_config(out, c, err);
    for (const char *const *name = train_files + 1; *name && st == OK; name++) {
        char path[CONFIG_PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/%s", out, *name);
        if (unlink(path) < 0 && errno != ENOENT)
            st = error_errno(err, "cannot remove '%s'", path);
    }
    return st;
}
