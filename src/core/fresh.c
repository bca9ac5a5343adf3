/* A folder that is filled as a whole; see fresh.h. */
#include "core/fresh.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"

#define PART ".hone-new"
#define LOCK ".lock"

static bool is_mine(const char *name) { return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, LOCK) || !strcmp(name, PART); }

static enum status refuse_used(const char *folder, struct error *err)
{
    DIR *dir = opendir(folder);
    enum status st = OK;
    if (!dir)
        return error_errno(err, "cannot read the folder '%s'", folder);
    errno = 0;
    for (struct dirent *e; st == OK && (e = readdir(dir));)
        if (!is_mine(e->d_name))
            st = error_set(err, BAD_INPUT, "'%s' holds '%s' already; give an --out that is empty or not there yet", folder, e->d_name);
    if (st == OK && errno)
        st = error_errno(err, "cannot read the folder '%s'", folder);
    closedir(dir);
    return st;
}

/* With the lock: nobody writes there, and what is in .hone-new was left. */
static enum status make_part(struct fresh *f, struct error *err)
{
    enum status st = refuse_used(f->folder, err);
    if (st == OK)
        st = fs_remove_tree(f->part, err);
    if (st == OK && mkdir(f->part, 0777))
        st = error_errno(err, "cannot make the folder '%s'", f->part);
    return st;
}

enum status fresh_begin(struct fresh *f, const char *folder, struct error *err)
{
    const size_t most = FRESH_PATH_MAX - FRESH_NAME_ROOM;
    bool there = true;
    *f = (struct fresh){.lock = -1};
    if (!*folder || strlen(folder) > most)
        return error_set(err, BAD_INPUT, "--out has %zu bytes; expected 1 to %zu", strlen(folder), most);
    snprintf(f->folder, sizeof f->folder, "%s", folder);
    snprintf(f->part, sizeof f->part, "%s/" PART, folder);
    enum status st = fs_there(folder, &there, err);
    f->made = !there;
    if (st == OK)
        st = fs_make_dirs(folder, err);
    if (st == OK)
        st = refuse_used(folder, err);              /* before anything is written into it */
    if (st == OK)
        st = fs_lock(&f->lock, folder, err);
    if (st == OK)
        st = make_part(f, err);
    if (st != OK)
        fresh_end(f);
    return st;
}

/* ---- into their places ---- */

static int visible(const struct dirent *e) { return e->d_name[0] != '.'; }

static bool is_config(const char *name) { return !strncmp(name, "config.", 7); }

/* What says what the others are comes last: when it is there, all of it is. */
static int config_last(const struct dirent **a, const struct dirent **b)
{
    const int by_kind = is_config((*a)->d_name) - is_config((*b)->d_name);
    return by_kind ? by_kind : strcmp((*a)->d_name, (*b)->d_name);
}

static enum status move(const struct fresh *f, const char *name, struct error *err)
{
    char from[FRESH_PATH_MAX + 300], to[FRESH_PATH_MAX + 300];
    snprintf(from, sizeof from, "%s/%s", f->part, name);
    snprintf(to, sizeof to, "%s/%s", f->folder, name);
    return rename(from, to) ? error_errno(err, "cannot write '%s'", to) : OK;
}

static void take_back(const struct fresh *f, const char *name)
{
    char path[FRESH_PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    fs_remove_tree(path, NULL);
}

enum status fresh_publish(struct fresh *f, struct error *err)
{
    struct dirent **names;
    const int n = scandir(f->part, &names, visible, config_last);
    int moved = 0;
    enum status st = n < 0 ? error_errno(err, "cannot read the folder '%s'", f->part) : OK;
    for (; moved < n && st == OK; moved += st == OK)
        st = move(f, names[moved]->d_name, err);
    if (st == OK)
        st = fs_sync_dir(f->folder, err);
    for (int i = 0; i < moved && st != OK; i++)
        take_back(f, names[i]->d_name);
    f->made = f->made && st != OK;                  /* now it has to stay */
    for (int i = 0; i < n; i++)
        free(names[i]);
    if (n >= 0)
        free(names);
    return st;
}

void fresh_end(struct fresh *f)
{
    struct stat s;
    char lock[FRESH_PATH_MAX + 16];
    if (f->lock >= 0) {
        snprintf(lock, sizeof lock, "%s/" LOCK, f->folder);
        fs_remove_tree(f->part, NULL);
        if (fstat(f->lock, &s) == 0 && s.st_size == 0)
            unlink(lock);
        close(f->lock);
    }
    if (f->made)
        rmdir(f->folder);
    *f = (struct fresh){.lock = -1};
}
