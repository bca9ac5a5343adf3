/* Loads a configuration: defaults, then the file, then the overrides, then the checks. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_int.h"
#include "core/fs.h"
#include "core/json_memory.h"

enum { MANIFEST_MOST = 1 << 28 };

static void fill_defaults(struct config_reader *r)
{
    const struct config_place nowhere = {0};
    for (int i = 0; i < config_key_count(); i++) {
        if (!config_key(i).initial)
            continue;
        const enum status st = config_value_read(r, i, nowhere, config_key(i).initial, false);
        assert(st == OK);
        (void)st;
    }
}

void config_name_of(char name[CONFIG_NAME_MAX], const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    snprintf(name, CONFIG_NAME_MAX, "%.*s", CONFIG_NAME_MAX - 1, base);
    char *dot = strrchr(name, '.');
    if (dot && dot > name && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")))
        memset(dot, 0, strlen(dot));
}

static enum status parse(struct config *out, const char *file, const char *text, size_t length, const char *const *sets,
                         int n_sets, bool saved, struct error *err)
{
    struct config c;
    struct config_reader r = {.c = &c, .file = file, .saved = saved, .err = err};
    memset(&c, 0, sizeof c); /* the unused bytes too, so that equal configs are equal byte by byte */
    if (length > CONFIG_TEXT_MAX)
        return config_refuse(&r, (struct config_place){0},
                             "it has %zu bytes, and a config has at most %d; is it the right file?", length,
                             CONFIG_TEXT_MAX);
    snprintf(c.file, sizeof c.file, "%s", file);
    config_name_of(c.name, c.file);
    fill_defaults(&r);
    enum status st = config_read_yaml(&r, text, length);
    for (int i = 0; st == OK && i < n_sets; i++)
        st = config_read_set(&r, sets[i], i + 1);
    if (st == OK)
        st = config_check(&r);
    if (st == OK)
        memcpy(out, &c, sizeof c);
    return st;
}

enum status config_parse(struct config *out, const char *file, const char *text, size_t length, const char *const *sets,
                         int n_sets, struct error *err)
{
    return parse(out, file, text, length, sets, n_sets, false, err);
}

enum status config_parse_saved(struct config *out, const char *file, const char *text, size_t length, const char *const *sets,
                               int n_sets, struct error *err)
{
    return parse(out, file, text, length, sets, n_sets, true, err);
}

/* Refuses what is no file, and what is too large before it is read. */
static enum status check_file(const char *path, struct error *err)
{
    struct stat info;
    struct config_reader r = {.file = path, .err = err};
    if (stat(path, &info))
        return error_errno(err, "cannot read the config '%.400s'", path);
    if (S_ISDIR(info.st_mode))
        return config_refuse(&r, (struct config_place){0}, "this is a folder; name a YAML file in it");
    if (!S_ISREG(info.st_mode))
        return config_refuse(&r, (struct config_place){0}, "this is not a regular file; a config is a YAML file");
    if (info.st_size > CONFIG_TEXT_MAX)
        return config_refuse(&r, (struct config_place){0},
                             "it has %lld bytes, and a config has at most %d; is it the right file?",
                             (long long)info.st_size, CONFIG_TEXT_MAX);
    return OK;
}

/* Folders of runs and reports are called so. */
static enum status check_name(const struct config *c, struct error *err)
{
    if (c->name[strspn(c->name, ".")])
        return OK;
    return error_set(err, BAD_INPUT, "'%.400s': the name '%s' is of dots alone, and would be that of a folder; give the file another one", c->file, c->name);
}

enum status config_load(struct config *out, const char *path, const char *const *sets, int n_sets, struct error *err)
{
    char file[CONFIG_PATH_MAX], *text = NULL;
    size_t length = 0;
    enum status st = config_find_file(path, file, err);
    if (st == OK)
        st = check_file(file, err);
    if (st == OK)
        st = fs_read(file, &text, &length, CONFIG_TEXT_MAX, err);
    if (st == OK)
        st = config_parse(out, file, text, length, sets, n_sets, err);
    free(text);
    return st == OK ? check_name(out, err) : st;
}

static void value_text(const struct config *c, int key, char out[CONFIG_SHOWN_MAX])
{
    FILE *to = fmemopen(out, CONFIG_SHOWN_MAX, "w");
    *out = '\0';
    if (to)
        config_value_print(c, key, to);
    if (to)
        fclose(to);
    out[CONFIG_SHOWN_MAX - 1] = '\0';
}

/* The text that a config was read from; of a checkpoint, whose folder is c->file, the one that its manifest holds. For free(). */
static char *text_again(const struct config *c, size_t *length, bool *saved)
{
    char path[CONFIG_PATH_MAX + 32], *text = NULL;
    struct error err;
    json_t *manifest = NULL;
    *saved = fs_read(c->file, &text, length, CONFIG_TEXT_MAX, &err) != OK;
    if (!*saved)
        return text;
    snprintf(path, sizeof path, "%s/manifest.json", c->file);
    if (json_memory_read_object(&manifest, path, MANIFEST_MOST, "", &err) == OK) {
        const char *held = json_string_value(json_object_get(manifest, "config"));
        text = held ? strdup(held) : NULL;
        *length = text ? strlen(text) : 0;
    }
    json_decref(manifest);
    return text;
}

/* A value that is not the file's came from the command line. */
const char *config_where(const struct config *c, const char *key, char out[CONFIG_WHERE_MAX])
{
    struct config again = {.file = ""};
    struct error err;
    struct config_reader r = {.c = &again, .file = c->file, .saved = true, .err = &err};
    char is[CONFIG_SHOWN_MAX], was[CONFIG_SHOWN_MAX];
    size_t length = 0;
    bool saved;
    const int i = config_key_find(key), most = CONFIG_WHERE_MAX / 2;
    fill_defaults(&r);
    char *text = text_again(c, &length, &saved);
    const bool read = text && config_read_yaml(&r, text, length) == OK;
    free(text);
    value_text(c, i, is);
    value_text(&again, i, was);
    if (read && strcmp(is, was))
        snprintf(out, CONFIG_WHERE_MAX, "--set %s=%s", key, is);
    else if (read && r.places[i].line && !saved)
        snprintf(out, CONFIG_WHERE_MAX, "'%.*s' line %d", most, c->file, r.places[i].line);
    else
        snprintf(out, CONFIG_WHERE_MAX, "'%.*s'", most, c->file);
    return out;
}

enum status config_blame_path(const struct config *c, const char *key, const char *path, struct error *err)
{
    char where[CONFIG_WHERE_MAX], folder[PATH_MAX];
    const struct error why = *err;
    const bool in_file = *config_where(c, key, where) == '\'';           /* --set shows the key itself */
    if (why.status != BAD_INPUT || why.stopped)
        return why.status;
    error_set(err, why.status, "%.300s: %s%s%.600s", where, in_file ? key : "", in_file ? ": " : "", why.text);
    err->code = why.code;
    if (*path != '/' && access(path, F_OK) < 0 && getcwd(folder, sizeof folder))
        error_add(err, "; relative paths start from '%.300s'", folder);
    return why.status;
}
