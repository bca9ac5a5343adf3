/* Makes room for what a watched program records, and finds the hook; see watch_folder.h. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/watch_folder.h"
#include "core/fs.h"
#include "core/process.h"

#ifndef HONE_HOOK_DIR
#define HONE_HOOK_DIR "src/watch/hook"
#endif

#define MARK ".hone-watch"      /* in a folder that a watch made */

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

/* rankN and processes: what else lies there somebody put there. */
static bool is_ours(const char *name)
{
    return !strncmp(name, "rank", 4) ? name[4] && !name[4 + strspn(name + 4, "0123456789")] : !strcmp(name, "processes");
}

/* Its lock stays, and is held. */
static enum status empty(const char *folder, struct error *err)
{
    char path[PATH_MAX + 300];
    enum status st = OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return error_errno(err, "cannot read the folder '%s'", folder);
    for (struct dirent *e; st == OK && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (is_ours(e->d_name))
            st = fs_remove_tree(path, err);
    }
    closedir(dir);
    return st;
}

static enum status make(struct watch_folder *f, bool there, struct error *err)
{
    char mark[PATH_MAX + 16];
    enum status st = there ? OK : fs_make_dirs(f->recording, err);
    snprintf(mark, sizeof mark, "%s/" MARK, f->recording);
    if (st == OK)
        st = fs_lock(&f->lock, f->recording, err);
    if (st == OK && there)
        st = empty(f->recording, err);
    return st == OK && !there ? fs_write_synced(mark, "", 0, err) : st;
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

void watch_folder_close(struct watch_folder *f)
{
    if (f->lock >= 0)
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
