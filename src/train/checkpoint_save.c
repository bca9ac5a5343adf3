/* Saves a checkpoint so that a kill, a crash or a full disk at any moment leaves a whole one; see checkpoint.h. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/fs.h"
#include "train/checkpoint.h"
#include "train/checkpoint_int.h"

/* Room for the name of a file in the folder: every path below is made once the longest fits. */
enum { NAME_ROOM = CHECKPOINT_NAME_MAX + 32 };

struct saving {
    char folder[CONFIG_PATH_MAX];       /* OUT/checkpoints */
    char temporary[CONFIG_PATH_MAX];
    char final[CONFIG_PATH_MAX];
    bool made;                          /* the folder was not there */
};

/* Bits, not arithmetic: all ones in the exponent is an infinity or a NaN. Returns the first index, or -1. */
static int64_t first_not_finite(const struct tensor *t)
{
    const size_t bytes = tensor_bytes(t);
    if (t->type == TENSOR_F32) {
        const uint32_t *bits = t->data;
        for (size_t i = 0; i < bytes / 4; i++)
            if ((bits[i] & 0x7f800000u) == 0x7f800000u)
                return (int64_t)i;
    } else if (t->type == TENSOR_BF16) {
        const uint16_t *bits = t->data;
        for (size_t i = 0; i < bytes / 2; i++)
            if ((bits[i] & 0x7f80u) == 0x7f80u)
                return (int64_t)i;
    }
    return -1;
}

static enum status check_finite(const char *what, const struct tensor *tensors, int n, struct error *err)
{
    for (int i = 0; i < n; i++) {
        const int64_t at = first_not_finite(&tensors[i]);
        if (at >= 0)
            return error_set(err, BAD_INPUT,
                             "no checkpoint written: tensor '%s' of the %s is NaN or infinite at element %" PRId64,
                             tensors[i].name, what, at);
    }
    return OK;
}

static enum status make_paths(struct saving *s, const char *out, int64_t step, struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    enum status st = checkpoint_join(s->folder, sizeof s->folder, out, CHECKPOINT_FOLDER, err);
    if (st == OK && strlen(s->folder) + NAME_ROOM >= CONFIG_PATH_MAX)
        st = error_set(err, BAD_INPUT, "the path '%.200s…' is too long for a checkpoint's files", out);
    checkpoint_temporary_name(name, step, getpid());
    if (st == OK)
        st = checkpoint_join(s->temporary, sizeof s->temporary, s->folder, name, err);
    checkpoint_step_name(name, step);
    return st == OK ? checkpoint_join(s->final, sizeof s->final, s->folder, name, err) : st;
}

static enum status write_tensors(const struct saving *s, struct checkpoint_manifest *m, enum checkpoint_file file,
                                 const struct tensor *tensors, int n, struct error *err)
{
    static const char *const metadata[] = {"format", "pt", "writer", "hone", NULL};     /* Python tools expect "pt" */
    char path[CONFIG_PATH_MAX];
    struct stat info;
    enum status st = checkpoint_join(path, sizeof path, s->temporary, checkpoint_file_names[file], err);
    if (st == OK)
        st = safetensors_write(path, tensors, n, metadata, &m->files[file].xxh3, err);
    if (st == OK && stat(path, &info) < 0)
        st = error_errno(err, "cannot look at '%s'", path);
    if (st == OK)
        m->files[file].bytes = (uint64_t)info.st_size;
    return st;
}

static enum status write_manifest(const struct saving *s, const struct checkpoint_manifest *m, json_t *extra,
                                  struct error *err)
{
    char path[CONFIG_PATH_MAX], *text = NULL;
    enum status st = checkpoint_join(path, sizeof path, s->temporary, CHECKPOINT_MANIFEST, err);
    if (st == OK)
        st = checkpoint_manifest_print(&text, m, extra, err);
    if (st == OK)
        st = fs_write_synced(path, text, strlen(text), err);
    free(text);
    return st;
}

static enum status make_temporary(struct saving *s, struct error *err)
{
    s->made = !fs_exists(s->folder);
    enum status st = fs_make_dirs(s->folder, err);
    if (st == OK)
        st = fs_remove_tree(s->temporary, err);
    if (st == OK && mkdir(s->temporary, 0777) < 0)
        st = error_errno(err, "cannot make the folder '%s'", s->temporary);
    return st;
}

enum status checkpoint_replace_aside(const char *temporary, const char *final, const char *aside, struct error *err)
{
    enum status st = fs_remove_tree(aside, err);
    if (st != OK)
        return st;
    if (rename(final, aside) < 0)
        return error_errno(err, "cannot move '%s' aside", final);
    if (rename(temporary, final) == 0)
        return OK;
    st = error_errno(err, "cannot rename '%s' to '%s'", temporary, final);
    if (rename(aside, final) < 0)
        return error_set(err, CANNOT, "cannot put '%s' back in its place; it is whole, and named '%s'", final, aside);
    return st;
}

/* Gives the temporary folder its name. One of that name is exchanged with it in a single step and gets the temporary
 * name, under which it is swept. File systems that cannot exchange (NFS, FAT) take two renames instead. */
static enum status publish(const struct saving *s, int64_t step, struct error *err)
{
    if (rename(s->temporary, s->final) == 0)
        return OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return error_errno(err, "cannot rename '%s' to '%s'", s->temporary, s->final);
    if (renameat2(AT_FDCWD, s->temporary, AT_FDCWD, s->final, RENAME_EXCHANGE) == 0)
        return OK;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return error_errno(err, "cannot replace '%s'", s->final);
    char aside[CONFIG_PATH_MAX], name[CHECKPOINT_NAME_MAX];
    checkpoint_temporary_name(name, step, 0);           /* no process has the id 0 */
    const enum status st = checkpoint_join(aside, sizeof aside, s->folder, name, err);
    return st == OK ? checkpoint_replace_aside(s->temporary, s->final, aside, err) : st;
}

/* A folder half removed must not look like a checkpoint: it loses its name first. */
static void remove_checkpoint(const struct saving *s, int64_t step)
{
    char name[CHECKPOINT_NAME_MAX], from[CONFIG_PATH_MAX], to[CONFIG_PATH_MAX];
    checkpoint_step_name(name, step);
    if (checkpoint_join(from, sizeof from, s->folder, name, NULL) != OK)
        return;
    checkpoint_temporary_name(name, step, getpid());
    if (checkpoint_join(to, sizeof to, s->folder, name, NULL) == OK && fs_remove_tree(to, NULL) == OK &&
        rename(from, to) == 0)
        fs_remove_tree(to, NULL);
}

/* A temporary folder is stale when its process is gone, or is this one, which has no save under way but this. */
static void sweep_temporary(const struct saving *s, const char *name)
{
    char path[CONFIG_PATH_MAX];
    int64_t pid = 0;
    if (!checkpoint_temporary_of(name, &pid))
        return;
    const bool alive = pid > 0 && pid <= INT32_MAX && pid != getpid() && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
    if (!alive && checkpoint_join(path, sizeof path, s->folder, name, NULL) == OK)
        fs_remove_tree(path, NULL);
}

static int compare_newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Sweeps temporary folders and gathers the steps there are, the newest first. */
static int scan(const struct saving *s, int64_t **steps)
{
    int n = 0, room = 0;
    DIR *dir = opendir(s->folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const int64_t step = checkpoint_step_of(e->d_name);
        if (step < 0) {
            sweep_temporary(s, e->d_name);
            continue;
        }
        if (n == room)
            *steps = xrealloc(*steps, (size_t)(room = 2 * room + 16) * sizeof **steps);
        (*steps)[n++] = step;
    }
    if (dir)
        closedir(dir);
    if (n)
        qsort(*steps, (size_t)n, sizeof **steps, compare_newest_first);
    return n;
}

/* The checkpoint is durable by now, so what cannot be removed is no failure: the next save tries again. The one just
 * saved stays even when others have more steps (a run that was set back). */
static void tidy(const struct saving *s, int64_t saved, int keep)
{
    int64_t *steps = NULL;
    const int n = scan(s, &steps);
    for (int i = keep; keep > 0 && i < n; i++)
        if (steps[i] != saved)
            remove_checkpoint(s, steps[i]);
    free(steps);
}

void checkpoint_sweep(const char *out)
{
    struct saving s;
    int64_t *steps = NULL;
    if (checkpoint_join(s.folder, sizeof s.folder, out, CHECKPOINT_FOLDER, NULL) == OK)
        scan(&s, &steps);
    free(steps);
}

static enum status write_files(struct saving *s, struct checkpoint_manifest *m, const struct tensor *weights,
                               int n_weights, const struct tensor *state, int n_state, json_t *extra, struct error *err)
{
    enum status st = make_temporary(s, err);
    if (st == OK)
        st = write_tensors(s, m, CHECKPOINT_WEIGHTS, weights, n_weights, err);
    if (st == OK)
        st = write_tensors(s, m, CHECKPOINT_STATE, state, n_state, err);
    if (st == OK)
        st = write_manifest(s, m, extra, err);
    if (st == OK)
        st = fs_sync_dir(s->temporary, err);
    if (st != OK)
        return st;
    const struct checkpoint_content content = {m, {weights, state}, {n_weights, n_state}, extra};
    struct error why;
    if (checkpoint_read_back(s->temporary, &content, &why) == OK)
        return OK;
    return error_set(err, CANNOT, "no checkpoint written: it cannot be read back: %.900s", why.text);
}

enum status checkpoint_save(char path[CONFIG_PATH_MAX], const char *out, int64_t step, const struct tensor *weights,
                            int n_weights, const struct tensor *state, int n_state, json_t *extra, int keep,
                            struct error *err)
{
    struct saving s;
    struct checkpoint_manifest m = {.step = step};
    assert(step >= 0);
    enum status st = check_finite("weights", weights, n_weights, err);
    if (st == OK)
        st = check_finite("state", state, n_state, err);
    if (st == OK)
        st = make_paths(&s, out, step, err);
    if (st != OK)
        return st;

    st = write_files(&s, &m, weights, n_weights, state, n_state, extra, err);
    if (st == OK)
        st = publish(&s, step, err);
    if (st != OK) {
        fs_remove_tree(s.temporary, NULL);
        if (s.made)
            rmdir(s.folder);
        return st;
    }
    st = fs_sync_dir(s.folder, err);
    if (st != OK)
        return st;          /* not known to be durable: nothing older is removed */
    tidy(&s, step, keep);
    memcpy(path, s.final, CONFIG_PATH_MAX);
    return OK;
}
