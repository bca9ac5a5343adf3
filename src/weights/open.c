/* Opens what people bring: a safetensors file, or a folder with config.json and one file, or several that an index lists. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/json_memory.h"
#include "core/setup.h"
#include "weights/weights_int.h"

enum { JSON_MAX_BYTES = 256 << 20, SHARDS_MAX = 4096 };

#define WEIGHTS_FILE  "model.safetensors"
#define WEIGHTS_INDEX "model.safetensors.index.json"

static enum status join(char out[CONFIG_PATH_MAX], const char *folder, const char *name, struct error *err)
{
    const int n = snprintf(out, CONFIG_PATH_MAX, "%s/%s", folder, name);
    if (n < 0 || n >= CONFIG_PATH_MAX)
        return error_set(err, BAD_INPUT, "the path '%.200s.../%.100s' is longer than %d bytes", folder, name, CONFIG_PATH_MAX - 1);
    return OK;
}

static bool has(const char *folder, const char *name)
{
    char path[CONFIG_PATH_MAX];
    struct stat s;
    return join(path, folder, name, NULL) == OK && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

bool weights_is_folder(const char *path)
{
    return has(path, "config.json") || has(path, WEIGHTS_FILE) || has(path, WEIGHTS_INDEX) || has(path, "params.json");
}

/* ---- pickles ---- */

static enum status refuse_pickle(const char *path, struct error *err)
{
    const size_t length = strcspn(path, "'\"\\");
    const char *name = path[length] ? "FILE" : path;
    return error_set(err, BAD_INPUT, "'%.150s' is a pickle, which may run any program when it is opened; save it as safetensors: python3 -c \"import torch; from "
                     "safetensors.torch import save_file; c = torch.load('%.150s', map_location='cpu', weights_only=True); c = c.get('model', c); "
                     "save_file({k: v.clone().contiguous() for k, v in c.items()}, '%.150s.safetensors')\"", path, name, name);
}

/* A zip, as torch.save writes it since 1.6, or a bare pickle of protocol 2 to 5. Safetensors begin with the length of their head, in eight bytes that may
 * look like that, and a brace. Opening a pipe must not wait. */
static bool is_pickle(const char *path)
{
    unsigned char head[9] = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : 0;
    if (fd >= 0)
        close(fd);
    const bool safe = n == sizeof head && !memcmp(head + 4, "\0\0\0\0{", 5);
    return n >= 4 && !safe && (!memcmp(head, "PK\3\4", 4) || (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5));
}

/* ---- files ---- */

static enum status add_file(struct weights *w, const char *path, struct error *err)
{
    struct safetensors s;
    if (is_pickle(path))
        return refuse_pickle(path, err);
    enum status st = setup_check("weights", err);
    if (st == OK)
        st = safetensors_read(&s, path, err);
    if (st != OK)
        return st;
    w->files = xrealloc(w->files, (size_t)(w->n_files + 1) * sizeof *w->files);
    w->files[w->n_files++] = s;
    return OK;
}

/* A file beside the index, and no way out of its folder. */
static enum status check_shard_name(const char *index, const char *tensor, const json_t *file, struct error *err)
{
    const char *name = json_string_value(file);
    if (name && *name && *name != '.' && !strchr(name, '/') && strlen(name) < 256)
        return OK;
    return error_set(err, BAD_INPUT, "'%s': the file of tensor '%.200s' is '%.100s'; expected the name of a file beside the index", index, tensor,
                     name ? name : "no text");
}

static enum status add_shards(struct weights *w, const char *index, const json_t *map, json_t *opened, struct error *err)
{
    const char *tensor;
    const json_t *file;
    enum status st = OK;
    json_object_foreach((json_t *)map, tensor, file) {
        char path[CONFIG_PATH_MAX];
        st = check_shard_name(index, tensor, file, err);
        const char *name = json_string_value(file);
        if (st == OK && !json_object_get(opened, name)) {
            if (w->n_files == SHARDS_MAX)
                return error_set(err, BAD_INPUT, "'%s' lists more than %d files", index, SHARDS_MAX);
            st = join(path, w->folder, name, err);
            if (st == OK)
                st = add_file(w, path, err);
            if (st == OK && json_object_set_new(opened, name, json_integer(w->n_files - 1)))
                st = error_set(err, CANNOT, "out of memory for the files of '%s'", index);
        }
        if (st == OK && !safetensors_find(&w->files[json_integer_value(json_object_get(opened, name))], tensor))
            st = error_set(err, BAD_INPUT, "'%s' says that tensor '%.200s' is in '%.200s', and it is not", index, tensor, name);
        if (st != OK)
            return st;
    }
    return OK;
}

static enum status open_index(struct weights *w, const char *path, struct error *err)
{
    json_t *j = NULL, *opened = json_object();
    enum status st = json_memory_read_object(&j, path, JSON_MAX_BYTES, "", err);
    const json_t *map = json_object_get(j, "weight_map");
    if (st == OK && (!json_is_object(map) || !json_object_size(map)))
        st = error_set(err, BAD_INPUT, "'%s' has no weight_map, which says where each tensor is", path);
    if (st == OK && !opened)
        st = error_set(err, CANNOT, "out of memory for the files of '%s'", path);
    if (st == OK)
        st = add_shards(w, path, map, opened, err);
    json_decref(j);
    json_decref(opened);
    return st;
}

static enum status open_config(struct weights *w, struct error *err)
{
    static const char *const names[] = {"config.json", "params.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[CONFIG_PATH_MAX];
        if (!has(w->folder, names[i]))
            continue;
        const enum status st = join(path, w->folder, names[i], err);
        return st == OK ? json_memory_read_object(&w->config, path, JSON_MAX_BYTES, "", err) : st;
    }
    return OK;
}

static enum status refuse_folder(const struct weights *w, struct error *err)
{
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth", "ckpt.pt"};
    char path[CONFIG_PATH_MAX];
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++)
        if (has(w->folder, pickles[i]) && join(path, w->folder, pickles[i], err) == OK)
            return refuse_pickle(path, err);
    return error_set(err, BAD_INPUT, "'%s' holds neither %s nor %s; name the safetensors file", w->folder, WEIGHTS_FILE, WEIGHTS_INDEX);
}

static enum status open_folder(struct weights *w, struct error *err)
{
    static const char *const names[] = {WEIGHTS_FILE, "consolidated.safetensors"};
    char path[CONFIG_PATH_MAX];
    enum status st = open_config(w, err);
    if (st != OK)
        return st;
    if (has(w->folder, WEIGHTS_INDEX))
        return join(path, w->folder, WEIGHTS_INDEX, err) == OK ? open_index(w, path, err) : err->status;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(w->folder, names[i]))
            return join(path, w->folder, names[i], err) == OK ? add_file(w, path, err) : err->status;
    return refuse_folder(w, err);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* config.json counts where it lies beside the file. */
static enum status open_file(struct weights *w, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    snprintf(w->folder, sizeof w->folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (slash == path)
        snprintf(w->folder, sizeof w->folder, "/");
    const enum status st = is_pickle(path) ? refuse_pickle(path, err) : open_config(w, err);
    if (st != OK)
        return st;
    return ends_with(path, ".index.json") ? open_index(w, path, err) : add_file(w, path, err);
}

static enum status open_path(struct weights *w, const char *path, struct error *err)
{
    struct stat s;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof w->where)
        return error_set(err, BAD_INPUT, "the path '%.200s' has %zu bytes; expected 1 to %zu", path, length, sizeof w->where - 1);
    while (length > 1 && path[length - 1] == '/')
        length--;
    snprintf(w->where, sizeof w->where, "%.*s", (int)length, path);
    if (stat(w->where, &s) < 0)
        return error_errno(err, "cannot open '%s'", w->where);
    if (!S_ISDIR(s.st_mode))
        return open_file(w, w->where, err);
    memcpy(w->folder, w->where, sizeof w->folder);
    return open_folder(w, err);
}

enum status weights_open(struct weights **out, const char *path, struct error *err)
{
    struct weights *w = xcalloc(1, sizeof *w);
    enum status st = open_path(w, path, err);
    if (st == OK)
        st = weights_index(w, err);
    if (st == OK)
        st = weights_choose_family(w, err);
    setup_done();
    if (st == OK)
        *out = w;
    else
        weights_free(w);
    return st;
}

enum status weights_take(struct weights **out, struct safetensors *file, const char *where, struct error *err)
{
    struct weights *w = xcalloc(1, sizeof *w);
    w->files = xcalloc(1, sizeof *w->files);
    w->files[0] = *file;
    w->n_files = 1;
    snprintf(w->where, sizeof w->where, "%s", where);
    enum status st = weights_index(w, err);
    if (st == OK)
        st = weights_choose_family(w, err);
    if (st == OK) {
        *file = (struct safetensors){0};            /* taken over */
        *out = w;
        return OK;
    }
    w->n_files = 0;
    weights_free(w);
    return st;
}

void weights_free(struct weights *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->n_files; i++)
        safetensors_release(&w->files[i]);
    free(w->files);
    free(w->tensors);
    json_decref(w->config);
    free(w);
}

const char *weights_title(const struct weights *w) { return w->family->title; }
const char *weights_types(const struct weights *w) { return w->types; }
const char *weights_folder(const struct weights *w) { return w->folder[0] ? w->folder : NULL; }
int weights_files(const struct weights *w) { return w->n_files; }
bool weights_has_config(const struct weights *w) { return w->config != NULL; }
const json_t *weights_said(const struct weights *w) { return w->config; }
