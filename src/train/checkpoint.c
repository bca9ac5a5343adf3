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

static bool is_dir(const char *folder, const char *name)
{
    char path[CONFIG_PATH_MAX];
    struct stat s;
    return checkpoint_join(path, sizeof path, folder, name, NULL) == OK && stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The newest is the one of the most steps. */
static enum status newest_in(char path[CONFIG_PATH_MAX], const char *folder, struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    int64_t newest = -1;
    DIR *dir = opendir(folder);
    if (!dir)
        return error_errno(err, "no checkpoint: cannot read the folder '%s'", folder);
    for (struct dirent *e; (e = readdir(dir));) {
        const int64_t step = checkpoint_step_of(e->d_name);
        if (step > newest && is_dir(folder, e->d_name))
            newest = step;
    }
    closedir(dir);
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

static bool holds(const char *folder, const char *name)
{
    char path[CONFIG_PATH_MAX];
    return checkpoint_join(path, sizeof path, folder, name, NULL) == OK && fs_exists(path);
}

/* A damaged checkpoint is still one: what it lacks is reported by name, and nothing else is taken in its place. */
static bool is_checkpoint(const char *path)
{
    const char *slash = strrchr(path, '/');
    return holds(path, CHECKPOINT_MANIFEST) || holds(path, checkpoint_file_names[CHECKPOINT_WEIGHTS]) ||
           checkpoint_step_of(slash ? slash + 1 : path) >= 0;
}

/* From what the user named (a checkpoint, OUT or OUT/checkpoints) to the checkpoint's folder. */
static enum status resolve(char path[CONFIG_PATH_MAX], const char *given, struct error *err)
{
    struct stat s;
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
    if (is_checkpoint(folder)) {
        memcpy(path, folder, sizeof folder);
        return OK;
    }
    return is_dir(folder, CHECKPOINT_FOLDER) ? checkpoint_newest(path, folder, err) : newest_in(path, folder, err);
}

static enum status read_manifest(struct checkpoint_manifest *m, const char *folder, struct error *err)
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

enum status checkpoint_load(struct checkpoint *out, const char *path, struct error *err)
{
    struct checkpoint c = {0};
    struct checkpoint_manifest m = {0};
    enum status st = resolve(c.path, path, err);
    if (st == OK)
        st = read_manifest(&m, c.path, err);
    c.step = m.step;
    c.manifest = m.json;
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
