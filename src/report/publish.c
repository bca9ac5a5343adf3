/* Writes a report into its folder, file by file; see folder.h for what holds at any moment. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "report/folder_int.h"

struct publishing {
    const char *folder, *report;
    enum report_kind kind;
    char fresh[REPORT_FOLDER_MAX + 64]; /* where the files are made */
    struct owned before, files;         /* what is listed, and what was made now */
    int lock;
};

/* ---- what killed processes left ---- */

static void fresh_name(char to[64], long pid) { snprintf(to, 64, ".hone-new-%ld", pid); }

/* A name is read leniently and then spelled again: only what comes out the same is one of ours. */
static bool is_stale(const char *name)
{
    char again[64];
    const char *digits = strrchr(name, '-');
    const long pid = digits ? strtol(digits + 1, NULL, 10) : 0;
    fresh_name(again, pid);
    if (pid < 1 || pid > INT_MAX || strcmp(name, again))
        return false;
    return pid == getpid() || (kill((pid_t)pid, 0) < 0 && errno == ESRCH);
}

static void sweep(const char *folder)
{
    char path[PATH_MAX];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_stale(e->d_name) && snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path)
            fs_remove_tree(path, NULL);
    if (dir)
        closedir(dir);
}

/* ---- the files that were made ---- */

static enum status add_made(struct publishing *p, const char *name, struct error *err)
{
    struct owned_file f = {0};
    char path[PATH_MAX];
    snprintf(f.report, sizeof f.report, "%s", p->report);
    if (!owned_name_is_good(name) || snprintf(path, sizeof path, "%s/%s", p->fresh, name) >= (int)sizeof path)
        return error_set(err, CANNOT, "a report cannot have a file of the name '%s'", name);
    memcpy(f.name, name, strlen(name) + 1);
    const enum status st = fs_hash(path, &f.bytes, &f.xxh3, err);
    if (st == OK)
        owned_add(&p->files, &f);
    return st;
}

/* Files of the folder, and of folders in it. */
static enum status list_made(struct publishing *p, const char *within, struct error *err)
{
    char path[PATH_MAX], name[OWNED_NAME_MAX + 8];
    struct stat s;
    enum status st = OK;
    snprintf(path, sizeof path, "%s/%s", p->fresh, within);
    DIR *dir = opendir(path);
    if (!dir)
        return error_errno(err, "cannot read the folder '%s'", path);
    for (struct dirent *e; st == OK && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s%s%s", within, *within ? "/" : "", e->d_name);
        const bool folder = fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode);
        st = folder && !*within ? list_made(p, name, err) : add_made(p, name, err);
    }
    closedir(dir);
    return st;
}

/* What people and programs open comes last: when it is new, all of it is. */
static int rank(const char *name) { return !strcmp(name, "report.json") ? 2 : !strcmp(name, "report.html"); }

static int compare_files(const void *a, const void *b)
{
    const struct owned_file *x = a, *y = b;
    const int by_rank = rank(x->name) - rank(y->name);
    return by_rank ? by_rank : strcmp(x->name, y->name);
}

static enum status make(struct publishing *p, report_folder_write *write, const void *what, struct error *err)
{
    if (mkdir(p->fresh, 0777) < 0)
        return error_errno(err, "cannot make the folder '%s'", p->fresh);
    enum status st = write(what, p->fresh, err);
    if (st == OK)
        st = list_made(p, "", err);
    if (st == OK && p->files.n)
        qsort(p->files.files, (size_t)p->files.n, sizeof *p->files.files, compare_files);
    return st;
}

/* ---- into their places ---- */

static enum status check_all(const struct publishing *p, struct error *err)
{
    enum status st = OK;
    for (int i = 0; st == OK && i < p->files.n; i++)
        st = report_folder_check_file(&p->before, p->folder, p->kind, p->files.files[i].name, err);
    return st;
}

/* All others' files, this report's new ones and, while both may be there, its old ones. */
static enum status write_list(const struct publishing *p, bool old_too, struct error *err)
{
    struct owned o = {0};
    owned_add_all(&o, &p->before, p->report, false);
    if (old_too)
        owned_add_all(&o, &p->before, p->report, true);
    owned_add_all(&o, &p->files, p->report, true);
    const enum status st = owned_write(&o, p->folder, err);
    owned_release(&o);
    return st;
}

/* All before the first file is moved: what fails then leaves the old report. */
static enum status make_folders(const struct publishing *p, struct error *err)
{
    char path[PATH_MAX];
    for (int i = 0; i < p->files.n; i++) {
        const char *name = p->files.files[i].name, *slash = strchr(name, '/');
        if (!slash)
            continue;
        snprintf(path, sizeof path, "%s/%.*s", p->folder, (int)(slash - name), name);
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return error_errno(err, "cannot make the folder '%s'", path);
    }
    return OK;
}

static enum status move(const struct publishing *p, const char *name, struct error *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    snprintf(from, sizeof from, "%s/%s", p->fresh, name);
    snprintf(to, sizeof to, "%s/%s", p->folder, name);
    return rename(from, to) == 0 ? OK : error_errno(err, "cannot write '%s'", to);
}

/* A file that the report before had and this one has not goes only where it is as it was written. False: it should, and is
 * still there. */
static bool remove_old(const struct publishing *p, const char *name)
{
    char path[PATH_MAX];
    enum owned_state state;
    const char *slash = strchr(name, '/');
    if (owned_look(&p->before, p->folder, p->report, name, &state, NULL) != OK)
        return false;
    if (state != OWNED_INTACT)
        return true;
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    if (unlink(path) < 0 && errno != ENOENT)
        return false;
    if (slash) {
        snprintf(path, sizeof path, "%s/%.*s", p->folder, (int)(slash - name), name);
        rmdir(path);                            /* where nothing is left in it */
    }
    return true;
}

/* What cannot be removed stays listed, and is tried again by the next report. */
static void remove_all_old(struct publishing *p)
{
    for (int i = 0; i < p->before.n; i++) {
        const struct owned_file *f = &p->before.files[i];
        if (!strcmp(f->report, p->report) && !owned_by(&p->files, f->name) && !remove_old(p, f->name))
            owned_add(&p->files, f);
    }
}

/* The list names old and new files before the first is moved, so that after a kill both are known as the report's own. */
static enum status place(struct publishing *p, struct error *err)
{
    enum status st = make_folders(p, err);
    if (st == OK)
        st = write_list(p, true, err);
    for (int i = 0; st == OK && i < p->files.n; i++)
        st = move(p, p->files.files[i].name, err);
    if (st != OK)
        return st;
    remove_all_old(p);
    st = write_list(p, false, err);
    return st == OK ? fs_sync_dir(p->folder, err) : st;
}

static enum status publish_locked(struct publishing *p, report_folder_write *write, const void *what, struct error *err)
{
    sweep(p->folder);
    enum status st = owned_read(&p->before, p->folder, err);
    if (st == OK)
        st = make(p, write, what, err);
    if (st == OK)
        st = check_all(p, err);
    if (st == OK)
        st = place(p, err);
    fs_remove_tree(p->fresh, NULL);
    owned_release(&p->before);
    owned_release(&p->files);
    return st;
}

/* A folder that was made for a report that then failed goes again; rmdir takes only an empty one. */
static void unmake(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.lock", folder);
    unlink(path);
    rmdir(folder);
}

enum status report_folder_publish(const char *folder, enum report_kind kind, report_folder_write *write, const void *what,
                                  struct error *err)
{
    struct publishing p = {.folder = folder, .kind = kind, .report = report_kind_name(kind)};
    char name[64];
    bool there;
    enum status st = fs_there(folder, &there, err);
    fresh_name(name, getpid());
    if (st == OK && snprintf(p.fresh, sizeof p.fresh, "%s/%s", folder, name) >= (int)sizeof p.fresh)
        st = error_set(err, BAD_INPUT, "the path '%.200s…' is too long", folder);
    if (st == OK)
        st = fs_make_dirs(folder, err);
    if (st == OK)
        st = fs_lock(&p.lock, folder, err);
    if (st != OK)
        return st;
    st = publish_locked(&p, write, what, err);
    if (st != OK && !there)
        unmake(folder);
    close(p.lock);
    return st;
}
