/* Reads a checkpoint back before it gets its name; see checkpoint_int.h. What a load would refuse is found while the
 * checkpoint before it is still there. */
#include <string.h>

#include "core/fs.h"
#include "core/safetensors.h"
#include "train/checkpoint.h"
#include "train/checkpoint_int.h"

static enum status differs(const char *path, struct error *err)
{
    return error_set(err, CANNOT, "'%s' is not as it was written", path);
}

static enum status check_file(const char *folder, const struct checkpoint_content *c, enum checkpoint_file file,
                              struct error *err)
{
    char path[CONFIG_PATH_MAX];
    uint64_t bytes, xxh3;
    enum status st = checkpoint_join(path, sizeof path, folder, checkpoint_file_names[file], err);
    if (st == OK)
        st = fs_hash(path, &bytes, &xxh3, err);
    if (st == OK && (bytes != c->manifest->files[file].bytes || xxh3 != c->manifest->files[file].xxh3))
        st = differs(path, err);
    return st == OK ? safetensors_check(path, c->tensors[file], c->n[file], err) : st;
}

/* The caller's fields, but for those whose names are the manifest's own. */
static bool has_extra(json_t *manifest, json_t *extra)
{
    static const char *const own[] = {"format", "version", "step", "files", "xxh3"};
    const char *key;
    json_t *value;
    json_object_foreach(extra, key, value) {
        bool is_own = false;
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            is_own |= !strcmp(key, own[i]);
        if (!is_own && !json_equal(json_object_get(manifest, key), value))
            return false;
    }
    return true;
}

static bool is_same(const struct checkpoint_manifest *a, const struct checkpoint_manifest *b)
{
    return a->step == b->step && !memcmp(a->files, b->files, sizeof a->files);
}

enum status checkpoint_read_back(const char *folder, const struct checkpoint_content *c, struct error *err)
{
    struct checkpoint_manifest m = {0};
    enum status st = checkpoint_manifest_read(&m, folder, err);
    if (st == OK && (!is_same(&m, c->manifest) || !has_extra(m.json, c->extra)))
        st = differs(folder, err);
    json_decref(m.json);
    for (int i = 0; i < CHECKPOINT_FILES && st == OK; i++)
        st = check_file(folder, c, (enum checkpoint_file)i, err);
    return st;
}
