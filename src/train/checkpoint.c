/* Finds, verifies and loads checkpoints; see checkpoint.h. Saving is in checkpoint_save.c. */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "core/fs.h"
#include "train/checkpoint_int.h"

enum { MANIFEST_MAX_BYTES = 64 << 20 };

void checkpoint_step_name(char to[CHECKPOINT_NAME_MAX], int64_t step)
{
    snprintf(to, CHECKPOINT_NAME_MAX, "step-%08" PRId64, step);
}

void checkpoint_temporary_name(char to[CHECKPOINT_NAME_MAX], int64_t step, int64_t pid)
{
    snprintf(to, CHECKPOINT_NAME_MAX, ".tmp-step-%08" PRId64 "-%" PRId64, step, pid);
}

/* Names are read leniently and then spelled again: only what comes out the same is one of ours. */
int64_t checkpoint_step_of(const char *name)
{
    char again[CHECKPOINT_NAME_MAX];
    const char *digits = strchr(name, '-');
    const int64_t step = digits ? strtoll(digits + 1, NULL, 10) : -1;
    checkpoint_step_name(again, step);
    return step >= 0 && strcmp(name, again) == 0 ? step : -1;
}

bool checkpoint_temporary_of(const char *name, int64_t *pid)
{
    static const char prefix[] = ".tmp-step-";
    char again[CHECKPOINT_NAME_MAX], *end;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    const int64_t step = strtoll(name + sizeof prefix - 1, &end, 10);
    *pid = *end ? strtoll(end + 1, NULL, 10) : -1;
    checkpoint_temporary_name(again, step, *pid);
    return step >= 0 && *pid >= 0 && strcmp(name, again) == 0;
}

enum status checkpoint_join(char *to, size_t size, const char *folder, const char *name, struct error *err)
{
    const int n = snprintf(to, size, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= size)
        return error_set(err, BAD_INPUT, "the path '%.200s…/%s' is longer than %zu bytes", folder, name, size - 1);
    return OK;
}

/* What cannot be looked at is an error: it must not pass for what is not there. */
static enum status look(const char *folder, const char *name, mode_t *mode, struct error *err)
{
    char path[CONFIG_PATH_MAX];
    struct stat s = {0};
    enum status st = checkpoint_join(path, sizeof path, folder, name, err);
    if (st == OK && stat(path, &s) < 0 && errno != ENOENT && errno != ENOTDIR)
        st = error_errno(err, "cannot look at '%s'", path);
    *mode = s.st_mode;                          /* 0: there is none */
    return st;
}

/* The most steps of a checkpoint there; -1: there is none. */
static enum status newest_step(int64_t *out, const char *folder, struct error *err)
{
    int64_t newest = -1;
    mode_t mode;
    DIR *dir = opendir(folder);
    if (!dir)
        return error_errno(err, errno == ENOENT ? "no checkpoint: there is no folder '%s'" : "cannot read the folder '%s'", folder);
    enum status st = OK;
    for (struct dirent *e; st == OK && (errno = 0, e = readdir(dir));) {
        const int64_t step = checkpoint_step_of(e->d_name);
        if (step > newest && (st = look(folder, e->d_name, &mode, err)) == OK && S_ISDIR(mode))
            newest = step;
    }
    if (st == OK && errno)
        st = error_errno(err, "cannot read the folder '%s'", folder);
    closedir(dir);
    *out = newest;
    return st;
}

/* The newest is the one of the most steps. */
static enum status newest_in(char path[CONFIG_PATH_MAX], const char *folder, struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    int64_t newest;
    const enum status st = newest_step(&newest, folder, err);
    if (st != OK)
        return st;
    if (newest < 0)
        return error_set(err, BAD_INPUT, "no checkpoint in '%s': expected folders such as step-00000500", folder);
    checkpoint_step_name(name, newest);
    return checkpoint_join(path, CONFIG_PATH_MAX, folder, name, err);
}

enum status checkpoint_newest(char path[CONFIG_PATH_MAX], const char *out, struct error *err)
{
    char folder[CONFIG_PATH_MAX];
    const enum status st = checkpoint_join(folder, sizeof folder, out, CHECKPOINT_FOLDER, err);
    return st == OK ? newest_in(path, folder, err) : st;
}

enum status checkpoint_there(const char *out, bool *there, struct error *err)
{
    char folder[CONFIG_PATH_MAX];
    int64_t newest = -1;
    enum status st = checkpoint_join(folder, sizeof folder, out, CHECKPOINT_FOLDER, err);
    if (st == OK)
        st = fs_there(folder, there, err);
    if (st == OK && *there)
        st = newest_step(&newest, folder, err);
    *there = newest >= 0;
    return st;
}

/* A damaged checkpoint is still one: what it lacks is reported by name, and nothing else is taken in its place. */
static enum status is_checkpoint(const char *path, bool *is, struct error *err)
{
    const char *slash = strrchr(path, '/');
    mode_t manifest = 0, weights = 0;
    enum status st = look(path, CHECKPOINT_MANIFEST, &manifest, err);
    if (st == OK)
        st = look(path, checkpoint_file_names[CHECKPOINT_WEIGHTS], &weights, err);
    *is = manifest || weights || checkpoint_step_of(slash ? slash + 1 : path) >= 0;
    return st;
}

/* From what the user named (a checkpoint, OUT or OUT/checkpoints) to the checkpoint's folder. */
static enum status resolve(char path[CONFIG_PATH_MAX], const char *given, struct error *err)
{
    struct stat s;
    mode_t below;
    bool is;
    char folder[CONFIG_PATH_MAX];
    size_t length = strlen(given);
    if (length >= sizeof folder)
        return error_set(err, BAD_INPUT, "the path '%.200s…' is longer than %zu bytes", given, sizeof folder - 1);
    while (length > 1 && given[length - 1] == '/')
        length--;
    snprintf(folder, sizeof folder, "%.*s", (int)length, given);
    if (stat(folder, &s) < 0)
        return error_errno(err, "no checkpoint at '%s'", folder);
    if (!S_ISDIR(s.st_mode))
        return error_set(err, BAD_INPUT, "'%s' is a file; expected a checkpoint's folder or a run's folder", folder);
    enum status st = is_checkpoint(folder, &is, err);
    if (st == OK && is)
        memcpy(path, folder, sizeof folder);
    if (st != OK || is)
        return st;
    st = look(folder, CHECKPOINT_FOLDER, &below, err);
    if (st != OK)
        return st;
    return S_ISDIR(below) ? checkpoint_newest(path, folder, err) : newest_in(path, folder, err);
}

bool checkpoint_is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

bool checkpoint_is_ours(const char *path)
{
    char folder[CONFIG_PATH_MAX];
    struct checkpoint_manifest m = {0};
    struct error unused;
    if (resolve(folder, path, &unused) != OK || checkpoint_manifest_read(&m, folder, &unused) != OK)
        return false;
    json_decref(m.json);
    return true;
}

enum status checkpoint_manifest_read(struct checkpoint_manifest *m, const char *folder, struct error *err)
{
    char path[CONFIG_PATH_MAX], *text;
    size_t size;
    enum status st = checkpoint_join(path, sizeof path, folder, CHECKPOINT_MANIFEST, err);
    if (st == OK)
        st = fs_read(path, &text, &size, MANIFEST_MAX_BYTES, err);
    if (st != OK)
        return st;
    st = checkpoint_manifest_parse(m, path, text, size, err);
    free(text);
    return st;
}

json_t *checkpoint_beside(const char *file)
{
    const char *slash = strrchr(file, '/');
    const int n = slash ? (int)(slash - file) : 0;
    char folder[CONFIG_PATH_MAX];
    struct checkpoint_manifest m = {0};
    struct error unused;
    if (snprintf(folder, sizeof folder, "%.*s", n, file) >= (int)sizeof folder)
        return NULL;
    return checkpoint_manifest_read(&m, n > 0 ? folder : slash ? "/" : ".", &unused) == OK ? m.json : NULL;
}

static enum status check_bytes(const char *path, const char *bytes, uint64_t size, uint64_t want_size,
                               uint64_t want_hash, struct error *err)
{
    if (size != want_size)
        return error_set(err, BAD_INPUT, "'%s' is %s: it is %" PRIu64 " bytes, the manifest says %" PRIu64, path,
                         size < want_size ? "truncated" : "too long", size, want_size);
    const uint64_t hash = XXH3_64bits(bytes, size);
    if (hash != want_hash)
        return error_set(err, BAD_INPUT, "'%s' is damaged: its checksum is %016" PRIx64 ", the manifest says %016"
                         PRIx64, path, hash, want_hash);
    return OK;
}

/* Size and checksum come before the layout: "damaged" says more than the first wrong number a damage leads to. */
static enum status read_tensors(struct safetensors *to, const char *folder, const struct checkpoint_manifest *m,
                                enum checkpoint_file file, struct error *err)
{
    char path[CONFIG_PATH_MAX], *bytes;
    size_t size;
    enum status st = checkpoint_join(path, sizeof path, folder, checkpoint_file_names[file], err);
    if (st == OK)
        st = fs_read(path, &bytes, &size, 0, err);
    if (st != OK)
        return st;
    st = check_bytes(path, bytes, size, m->files[file].bytes, m->files[file].xxh3, err);
    if (st == OK)
        st = safetensors_parse(to, path, bytes, size, err);
    if (st == OK)
        to->bytes = bytes;
    else
        free(bytes);
    return st;
}

/* A folder that still has a checkpoint's name must have the right one; others were renamed by their user. */
static enum status check_step(const struct checkpoint *c, struct error *err)
{
    const char *slash = strrchr(c->path, '/');
    const int64_t named = checkpoint_step_of(slash ? slash + 1 : c->path);
    if (named < 0 || named == c->step)
        return OK;
    return error_set(err, BAD_INPUT, "'%s': the manifest is of step %" PRId64 ", and the folder's name says %" PRId64, c->path,
                     c->step, named);
}

enum status checkpoint_load(struct checkpoint *out, const char *path, struct error *err)
{
    struct checkpoint c = {0};
    struct checkpoint_manifest m = {0};
    enum status st = resolve(c.path, path, err);
    if (st == OK)
        st = checkpoint_manifest_read(&m, c.path, err);
    c.step = m.step;
    c.manifest = m.json;
    if (st == OK)
        st = check_step(&c, err);
    if (st == OK)
        st = read_tensors(&c.weights, c.path, &m, CHECKPOINT_WEIGHTS, err);
    if (st == OK)
        st = read_tensors(&c.state, c.path, &m, CHECKPOINT_STATE, err);
    if (st == OK)
        *out = c;
    else
        checkpoint_release(&c);
    return st;
}

void checkpoint_release(struct checkpoint *c)
{
    safetensors_release(&c->weights);
    safetensors_release(&c->state);
    json_decref(c->manifest);
    *c = (struct checkpoint){0};
}
