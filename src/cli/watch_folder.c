/* Makes room for what a watched program records, and finds the hook; see watch_folder.h. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/watch_folder.h"
#include "core/fs.h"
#include "core/owned.h"
#include "core/process.h"

#ifndef HONE_HOOK_DIR
#define HONE_HOOK_DIR "src/watch/hook"
#endif

#define MARK ".hone-watch"      /* in a folder that a watch made */
#define BEFORE ".before"        /* in it: what the watch before recorded, while this one runs */
#define MOVING ".moving"        /* the same on its way there or back: it belongs in the folder */
static const char *const settings[] = {"hone_settings.py", "patch.md"};         /* hone_hook/trial/settings.py */

/* ---- the recording ---- */

static enum status check_ours(const char *folder, bool *there, struct error *err)
{
    char mark[PATH_MAX + 16];
    bool marked;
    enum status st = fs_there(folder, there, err);
    snprintf(mark, sizeof mark, "%s/" MARK, folder);
    if (st != OK || !*there)
        return st;
    st = fs_there(mark, &marked, err);
    return st != OK || marked ? st : error_set(err, BAD_INPUT, "'%s' is there, and no watch that is known here made it; move it away, or give another "
                                               "--out", folder);
}

/* Behind digits, at least one; NULL: there are none. */
static const char *behind_digits(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n ? text + n : NULL;
}

static const char *behind_rank(const char *name) { return !strncmp(name, "rank", 4) ? behind_digits(name + 4) : NULL; }

static bool is_rank(const char *name)
{
    const char *behind = behind_rank(name);
    return behind && !*behind;
}

/* One that hone_hook/seat.py was about to remove: rank0.left-4711. */
static bool is_left(const char *name)
{
    const char *behind = behind_rank(name), *end = behind && !strncmp(behind, ".left-", 6) ? behind_digits(behind + 6) : NULL;
    return end && !*end;
}

static bool is_settings(const char *name) { return !strcmp(name, settings[0]) || !strcmp(name, settings[1]); }

/* What else lies there somebody put there. */
static bool is_ours(const char *name) { return is_rank(name) || is_left(name) || !strcmp(name, "processes") || is_settings(name); }

/* Calls with the path of each that is ours; stops where it fails. */
static enum status each_of_ours(const char *folder, enum status (*call)(const char *path, const char *name, const char *to, struct error *err), const char *to,
                                struct error *err)
{
    char path[PATH_MAX + 300];
    enum status st = OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return error_errno(err, "cannot read the folder '%s'", folder);
    for (struct dirent *e; st == OK && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (is_ours(e->d_name))
            st = call(path, e->d_name, to, err);
    }
    closedir(dir);
    return st;
}

/* Settings are of a trial, and that of a rank: where none took a step the program has written them itself. */
static enum status remove_one(const char *path, const char *name, const char *to, struct error *err)
{
    (void)to;
    return is_settings(name) ? OK : fs_remove_tree(path, err);
}

/* What stands there already is the program's own. */
static enum status move_one(const char *path, const char *name, const char *to, struct error *err)
{
    char there[PATH_MAX + 300];
    bool taken;
    snprintf(there, sizeof there, "%s/%s", to, name);
    const enum status st = fs_there(there, &taken, err);
    if (st == OK && taken)
        return error_set(err, BAD_INPUT, "'%s' of an earlier watch belongs where a program put a file of its own, '%s'; move one of them away", path, there);
    if (st != OK)
        return st;
    return rename(path, there) == 0 ? OK : error_errno(err, "cannot move '%s' to '%s'", path, there);
}

static bool has_rank(const char *folder)
{
    bool found = false;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        found = is_rank(e->d_name);
    if (dir)
        closedir(dir);
    return found;
}

static enum status bring_back(const char *recording, struct error *err)
{
    char moving[PATH_MAX + 16];
    bool there;
    snprintf(moving, sizeof moving, "%s/" MOVING, recording);
    enum status st = fs_there(moving, &there, err);
    if (st != OK || !there)
        return st;
    st = each_of_ours(moving, move_one, recording, err);
    return st == OK ? fs_remove_tree(moving, err) : st;
}

/* What was there before comes back where no rank took a step, as of a command that was mistyped; else it goes. */
static enum status settle(const char *recording, struct error *err)
{
    char before[PATH_MAX + 16], moving[PATH_MAX + 16];
    bool there;
    snprintf(before, sizeof before, "%s/" BEFORE, recording);
    snprintf(moving, sizeof moving, "%s/" MOVING, recording);
    enum status st = bring_back(recording, err);        /* of a watch that was killed on the way */
    if (st == OK)
        st = fs_there(before, &there, err);
    if (st != OK || !there)
        return st;
    if (has_rank(recording))
        return fs_remove_tree(before, err);
    st = each_of_ours(recording, remove_one, NULL, err);
    if (st == OK && rename(before, moving))
        st = error_errno(err, "cannot move '%s' to '%s'", before, moving);
    return st == OK ? bring_back(recording, err) : st;
}

/* What is not as it was written stays: who it may be of, and what to do. */
static enum status refuse_settings(const struct owned *o, const char *recording, const char *name, enum owned_state state, struct error *err)
{
    if (state == OWNED_CHANGED)
        return error_set(err, BAD_INPUT, "'%s/%s' was changed since hone watch wrote it, and a new trial would replace it; move it away, or give another --out",
                         recording, name);
    if (state == OWNED_OTHER)
        return error_set(err, BAD_INPUT, "'%s/%s' is of a report of hone %s; give another --out", recording, name, owned_by(o, name));
    return error_set(err, BAD_INPUT, "'%s/%s' is there, and hone watch has no note that it wrote it: it is somebody's own, or of a watch that was killed, and a new "
                     "trial would replace it; move it away, or give another --out", recording, name);
}

/* The settings that won in a trial are for people, who may have changed them. */
static enum status check_settings(const char *recording, struct error *err)
{
    struct owned o;
    enum owned_state state = OWNED_MISSING;
    enum status st = owned_read(&o, recording, err);
    if (st != OK)
        return st;
    for (size_t i = 0; st == OK && i < sizeof settings / sizeof *settings; i++) {
        st = owned_look(&o, recording, "watch", settings[i], &state, err);
        if (st == OK && state != OWNED_MISSING && state != OWNED_INTACT)
            st = refuse_settings(&o, recording, settings[i], state, err);
    }
    owned_release(&o);
    return st;
}

static enum status set_aside(const char *recording, struct error *err)
{
    char before[PATH_MAX + 16], moving[PATH_MAX + 16];
    struct error unsaid;
    enum status st = settle(recording, err);    /* of a watch that was killed */
    snprintf(before, sizeof before, "%s/" BEFORE, recording);
    snprintf(moving, sizeof moving, "%s/" MOVING, recording);
    if (st == OK)
        st = check_settings(recording, err);
    if (st == OK)
        st = fs_make_dirs(moving, err);
    if (st == OK)
        st = each_of_ours(recording, move_one, moving, err);
    if (st == OK && rename(moving, before))
        st = error_errno(err, "cannot move '%s' to '%s'", moving, before);
    if (st != OK)
        bring_back(recording, &unsaid);
    return st;
}

static enum status write_mark(const char *recording, struct error *err)
{
    char mark[PATH_MAX + 16];
    snprintf(mark, sizeof mark, "%s/" MARK, recording);
    return fs_write_synced(mark, "", 0, err);
}

/* The last folder of the path that is there; empty: it cannot be told. */
static void find_above(char above[PATH_MAX], const char *path)
{
    char text[PATH_MAX], *at = text;
    bool there = false;
    snprintf(text, sizeof text, "%s", path);
    while (fs_there(at, &there, NULL) == OK && !there)
        at = dirname(at);
    if (!there || !realpath(at, above))
        *above = '\0';
}

static enum status make(struct watch_folder *f, bool there, struct error *err)
{
    if (!there)
        find_above(f->above, f->recording);
    enum status st = there ? OK : fs_make_dirs(f->recording, err);
    if (st == OK)
        st = fs_lock(&f->lock, f->recording, err);
    if (st == OK && there)
        st = set_aside(f->recording, err);
    return st == OK && !there ? write_mark(f->recording, err) : st;
}

enum status watch_folder_own(const struct watch_folder *f, struct error *err)
{
    char path[PATH_MAX + 32];
    struct owned o = {0};
    bool there;
    enum status st = OK;
    if (!has_rank(f->recording))
        return OK;                              /* what was there before stays listed */
    for (size_t i = 0; st == OK && i < sizeof settings / sizeof *settings; i++) {
        struct owned_file one = {.report = "watch"};
        snprintf(path, sizeof path, "%s/%s", f->recording, settings[i]);
        snprintf(one.name, sizeof one.name, "%s", settings[i]);
        st = fs_there(path, &there, err);
        if (st == OK && there)
            st = fs_hash(path, &one.bytes, &one.xxh3, err);
        if (st == OK && there)
            owned_add(&o, &one);
    }
    if (st == OK)
        st = owned_write(&o, f->recording, err);
    owned_release(&o);
    return st;
}

enum status watch_folder_open(struct watch_folder *f, const char *out, struct error *err)
{
    char path[PATH_MAX];
    bool there;
    *f = (struct watch_folder){.lock = -1};
    if (snprintf(f->recording, sizeof f->recording, "%s/recording", out) >= (int)sizeof f->recording)
        return error_set(err, BAD_INPUT, "the path '%.200s…' is too long", out);
    enum status st = check_ours(f->recording, &there, err);
    if (st == OK)
        st = make(f, there, err);
    if (st == OK && !realpath(f->recording, path))
        st = error_errno(err, "cannot look at '%s'", f->recording);
    if (st == OK)
        memcpy(f->recording, path, sizeof path);
    else
        watch_folder_close(f);
    return st;
}

static void unlink_in(const char *folder, const char *name)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* Only what is ours: the program may have put a file there, and then the folder stays one of a watch. The lock is let go of before
 * the folder goes, as a file that is open keeps it on NFS; without the mark nobody takes it meanwhile. */
static void remove_made(const struct watch_folder *f)
{
    char path[PATH_MAX], *at = path;
    each_of_ours(f->recording, remove_one, NULL, NULL);
    unlink_in(f->recording, MARK);
    close(f->lock);
    unlink_in(f->recording, ".lock");
    snprintf(path, sizeof path, "%s", f->recording);
    if (rmdir(at) != 0) {
        write_mark(f->recording, NULL);
        return;
    }
    while (strcmp(at = dirname(at), f->above) && rmdir(at) == 0)
        ;
}

void watch_folder_close(struct watch_folder *f)
{
    if (f->lock < 0)
        return;
    settle(f->recording, NULL);
    if (*f->above && !has_rank(f->recording))
        remove_made(f);
    else
        close(f->lock);
    f->lock = -1;
}

/* ---- the hook ---- */

static bool has_hook(const char *folder)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/sitecustomize.py", folder);
    return access(path, R_OK) == 0;
}

/* share/hone/hook beside the bin/ that the running program stands in. */
static void installed_folder(char folder[PATH_MAX])
{
    char root[PATH_MAX];
    if (!process_root(root) || snprintf(folder, PATH_MAX, "%s/share/hone/hook", root) >= PATH_MAX)
        folder[0] = '\0';
}

enum status watch_find_hook(char folder[PATH_MAX], struct error *err)
{
    char installed[PATH_MAX];
    installed_folder(installed);
    snprintf(folder, PATH_MAX, "%s", has_hook(installed) ? installed : HONE_HOOK_DIR);
    if (!has_hook(folder))
        return error_set(err, CANNOT, "the hook is missing: no sitecustomize.py in '%s' or '%s'; install hone again", installed, HONE_HOOK_DIR);
    if (strchr(folder, ':'))
        return error_set(err, CANNOT, "the hook is in '%s', and a folder with ':' cannot be on PYTHONPATH; install hone elsewhere", folder);
    return OK;
}
