/* Runs below a folder, and runs that are named. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "runs/runs.h"

enum { DEEPEST = 8, FOLDERS_MOST = 200000 };

struct walk {
    struct runs *out;
    int room, folders;
};

void runs_release(struct runs *r)
{
    for (int i = 0; i < r->n; i++) {
        if (r->run[i].curves)
            run_curves_release(r->run[i].curves);
        free(r->run[i].curves);
        free(r->run[i].config);
    }
    free(r->run);
    *r = (struct runs){0};
}

/* What a run keeps in its folder is no place for others. */
static bool is_inside(const char *name)
{
    return name[0] == '.' || !strcmp(name, "checkpoints") || !strcmp(name, "tensorboard");
}

static struct run *add(struct walk *w)
{
    if (w->out->n == w->room) {
        w->room = w->room ? 2 * w->room : 16;
        w->out->run = xrealloc(w->out->run, (size_t)w->room * sizeof *w->out->run);
    }
    struct run *r = &w->out->run[w->out->n++];
    memset(r, 0, sizeof *r);
    return r;
}

static void add_found(struct walk *w, const char *path, const char *name)
{
    if (w->out->n == RUNS_MOST) {
        w->out->more = true;
        return;
    }
    struct run *r = add(w);
    snprintf(r->folder, sizeof r->folder, "%s", path);
    snprintf(r->name, sizeof r->name, "%s", name);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* `name` is the part of the path that is below the folder that was asked for. A folder that cannot be read has no runs. */
static void look(struct walk *w, char path[CONFIG_PATH_MAX], size_t name, int depth)
{
    struct stat s;
    const size_t length = strlen(path);
    if (run_is_folder(path))
        add_found(w, path, depth ? path + name : last_part(path));
    DIR *dir = depth < DEEPEST && w->folders++ < FOLDERS_MOST ? opendir(path) : NULL;
    w->out->more |= w->folders > FOLDERS_MOST;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (is_inside(e->d_name) || fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(s.st_mode) ||
            length + strlen(e->d_name) + 64 > CONFIG_PATH_MAX)
            continue;
        snprintf(path + length, CONFIG_PATH_MAX - length, "/%s", e->d_name);
        look(w, path, name, depth + 1);
        path[length] = '\0';
    }
    if (dir)
        closedir(dir);
}

static int by_name(const void *a, const void *b) { return strcmp(((const struct run *)a)->name, ((const struct run *)b)->name); }

/* Without slashes at its end. */
static enum status take_folder(char to[CONFIG_PATH_MAX], const char *folder, struct error *err)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (n < 1 || n > CONFIG_PATH_MAX - 64)
        return error_set(err, BAD_INPUT, "the path of a folder has %zu bytes; expected 1 to %d", n, CONFIG_PATH_MAX - 64);
    memcpy(to, folder, n);
    to[n] = '\0';
    return OK;
}

/* A folder that went meanwhile is left out. */
static void read_all(struct runs *r)
{
    struct error gone;
    int kept = 0;
    for (int i = 0; i < r->n; i++)
        if (run_read(&r->run[i], &gone) == OK)
            r->run[kept++] = r->run[i];
    r->n = kept;
}

enum status runs_find(struct runs *out, const char *folder, struct error *err)
{
    char path[CONFIG_PATH_MAX];
    struct walk w = {.out = out};
    struct stat s;
    *out = (struct runs){0};
    const enum status st = take_folder(path, folder, err);
    if (st != OK)
        return st;
    if (stat(path, &s))
        return errno == ENOENT ? error_set(err, BAD_INPUT, "'%s' does not exist; runs are made by hone train, in runs/ unless --out says otherwise", path)
                               : error_errno(err, "cannot look at '%s'", path);
    if (!S_ISDIR(s.st_mode))
        return error_set(err, BAD_INPUT, "'%s' is a file; expected a folder of runs", path);
    look(&w, path, strlen(path) + 1, 0);
    if (out->n)
        qsort(out->run, (size_t)out->n, sizeof *out->run, by_name);
    read_all(out);
    return OK;
}

/* The last parts of their paths, where these tell them apart. */
static void shorten(struct runs *r)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(last_part(r->run[i].folder), last_part(r->run[k].folder)))
                return;
    for (int i = 0; i < r->n; i++)
        snprintf(r->run[i].name, sizeof r->run[i].name, "%s", last_part(r->run[i].folder));
}

/* A folder that is no run stands for those below it, by name. One that has none is refused when it is read. */
static void add_named(struct walk *w, char path[CONFIG_PATH_MAX])
{
    const int before = w->out->n;
    if (!run_is_folder(path))
        look(w, path, 0, 0);
    const int found = w->out->n - before;
    if (found)
        qsort(w->out->run + before, (size_t)found, sizeof *w->out->run, by_name);
    else
        add_found(w, path, path);
}

enum status runs_open(struct runs *out, const char *const *folders, int n, struct error *err)
{
    struct walk w = {.out = out};
    enum status st = OK;
    *out = (struct runs){0};
    for (int i = 0; i < n && st == OK; i++) {
        char path[CONFIG_PATH_MAX];
        st = take_folder(path, folders[i], err);
        if (st == OK)
            add_named(&w, path);
    }
    for (int i = 0; i < out->n && st == OK; i++)
        st = run_read(&out->run[i], err);
    shorten(out);
    return st;
}
