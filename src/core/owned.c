/* The list of files that reports wrote into a folder; see owned.h. */
#include "core/owned.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/json_memory.h"

enum { VERSION = 1, LIST_MAX_BYTES = 1 << 20, HEX_BYTES = 17 };
static const char format_name[] = "hone-report";

bool owned_name_is_good(const char *name)
{
    int parts = 1;
    bool first = true;                  /* of its part */
    for (const char *c = name; *c; c++) {
        const bool slash = *c == '/';
        if ((first && (slash || *c == '.')) || *c <= ' ' || *c > '~')
            return false;
        parts += slash;
        first = slash;
    }
    return !first && parts <= 2 && strlen(name) < OWNED_NAME_MAX;
}

void owned_release(struct owned *o)
{
    free(o->files);
    *o = (struct owned){0};
}

void owned_add(struct owned *o, const struct owned_file *file)
{
    o->files = xrealloc(o->files, (size_t)(o->n + 1) * sizeof *o->files);
    o->files[o->n++] = *file;
}

void owned_add_all(struct owned *o, const struct owned *more, const char *report, bool same)
{
    for (int i = 0; i < more->n; i++)
        if (!strcmp(more->files[i].report, report) == same)
            owned_add(o, &more->files[i]);
}

const char *owned_by(const struct owned *o, const char *name)
{
    for (int i = 0; i < o->n; i++)
        if (!strcmp(o->files[i].name, name))
            return o->files[i].report;
    return NULL;
}

/* ---- the list as a file ---- */

static bool parse_file(struct owned_file *f, const json_t *j)
{
    const char *report = json_string_value(json_object_get(j, "report")), *name = json_string_value(json_object_get(j, "name")),
               *hex = json_string_value(json_object_get(j, "xxh3"));
    const json_t *bytes = json_object_get(j, "bytes");
    char *end;
    if (!report || !name || !hex || strlen(report) >= sizeof f->report || !owned_name_is_good(name) ||
        !json_is_integer(bytes) || json_integer_value(bytes) < 0 || strlen(hex) != HEX_BYTES - 1)
        return false;
    *f = (struct owned_file){.bytes = (uint64_t)json_integer_value(bytes), .xxh3 = strtoull(hex, &end, 16)};
    snprintf(f->report, sizeof f->report, "%s", report);
    snprintf(f->name, sizeof f->name, "%s", name);
    return *end == '\0';
}

static bool parse_list(struct owned *o, const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *files = json_object_get(root, "files");
    if (!format || strcmp(format, format_name) || json_integer_value(json_object_get(root, "version")) != VERSION ||
        !json_is_array(files))
        return false;
    for (size_t i = 0; i < json_array_size(files); i++) {
        struct owned_file f;
        if (!parse_file(&f, json_array_get(files, i)))
            return false;
        owned_add(o, &f);
    }
    return true;
}

enum status owned_parse(struct owned *o, const char *path, const char *text, size_t size, struct error *err)
{
    *o = (struct owned){0};
    json_error_t why;
    bool no_memory;
    json_t *root = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory);
    if (no_memory)
        return error_set(err, CANNOT, "out of memory while '%s' was read", path);
    const bool good = root && parse_list(o, root);
    json_decref(root);
    if (!good)
        owned_release(o);
    return good ? OK : error_set(err, BAD_INPUT, "'%s' is damaged, so it is not known which files here are a report's; give "
                                 "another --out", path);
}

static enum status list_path(char path[PATH_MAX], const char *folder, struct error *err)
{
    const int n = snprintf(path, PATH_MAX, "%s/" OWNED_LIST, folder);
    return n > 0 && n < PATH_MAX ? OK : error_set(err, BAD_INPUT, "the path '%.200s…' is too long", folder);
}

enum status owned_read(struct owned *out, const char *folder, struct error *err)
{
    char path[PATH_MAX], *text;
    size_t size;
    bool there = false;
    *out = (struct owned){0};
    enum status st = list_path(path, folder, err);
    if (st == OK)
        st = fs_there(path, &there, err);
    if (st != OK || !there)
        return st;
    st = fs_read(path, &text, &size, LIST_MAX_BYTES, err);
    if (st != OK)
        return st;
    st = owned_parse(out, path, text, size, err);
    free(text);
    return st;
}

static char *print(const struct owned *o)
{
    json_t *files = json_array(), *root;
    bool good = files != NULL;
    for (int i = 0; good && i < o->n; i++) {
        const struct owned_file *f = &o->files[i];
        char hex[HEX_BYTES];
        snprintf(hex, sizeof hex, "%016" PRIx64, f->xxh3);
        good = json_array_append_new(files, json_pack("{s:s, s:s, s:I, s:s}", "report", f->report, "name", f->name, "bytes",
                                                      (json_int_t)f->bytes, "xxh3", hex)) == 0;
    }
    if (!good) {
        json_decref(files);
        return NULL;
    }
    root = json_pack("{s:s, s:i, s:o}", "format", format_name, "version", VERSION, "files", files);
    char *text = root ? json_memory_dump(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

enum status owned_write(const struct owned *o, const char *folder, struct error *err)
{
    char path[PATH_MAX];
    enum status st = list_path(path, folder, err);
    char *text = st == OK ? print(o) : NULL;
    if (st == OK)
        st = text ? fs_replace(path, text, strlen(text), err) : error_set(err, CANNOT, "out of memory for '%s'", path);
    free(text);
    return st;
}

/* ---- looking ---- */

static bool is_listed(const struct owned *o, const char *report, const char *name)
{
    for (int i = 0; i < o->n; i++)
        if (!strcmp(o->files[i].name, name) && !strcmp(o->files[i].report, report))
            return true;
    return false;
}

static bool is_as_written(const struct owned *o, const char *report, const char *name, uint64_t bytes, uint64_t xxh3)
{
    for (int i = 0; i < o->n; i++) {
        const struct owned_file *f = &o->files[i];
        if (!strcmp(f->name, name) && !strcmp(f->report, report) && f->bytes == bytes && f->xxh3 == xxh3)
            return true;
    }
    return false;
}

/* A link in the place of a file, or of the folder around it, was not put there by a report. */
static enum status kind_of(const char *folder, const char *name, char path[PATH_MAX], mode_t *mode, struct error *err)
{
    struct stat s;
    const char *slash = strchr(name, '/');
    *mode = 0;
    if (snprintf(path, PATH_MAX, "%s/%.*s", folder, slash ? (int)(slash - name) : 0, name) >= PATH_MAX)
        return error_set(err, BAD_INPUT, "the path '%.200s…' is too long", folder);
    if (slash && lstat(path, &s) == 0 && !S_ISDIR(s.st_mode)) {
        *mode = s.st_mode;
        return OK;
    }
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        return error_set(err, BAD_INPUT, "the path '%.200s…' is too long", folder);
    if (lstat(path, &s) == 0)
        *mode = s.st_mode;
    else if (errno != ENOENT)
        return error_errno(err, "cannot look at '%s'", path);
    return OK;
}

enum status owned_look(const struct owned *o, const char *folder, const char *report, const char *name,
                       enum owned_state *state, struct error *err)
{
    char path[PATH_MAX];
    mode_t mode;
    uint64_t bytes, xxh3;
    enum status st = kind_of(folder, name, path, &mode, err);
    if (st != OK)
        return st;
    *state = OWNED_MISSING;
    if (!mode)
        return OK;
    *state = is_listed(o, report, name) ? OWNED_CHANGED : owned_by(o, name) ? OWNED_OTHER : OWNED_FOREIGN;
    if (*state != OWNED_CHANGED || !S_ISREG(mode))
        return OK;
    st = fs_hash(path, &bytes, &xxh3, err);
    if (st == OK && is_as_written(o, report, name, bytes, xxh3))
        *state = OWNED_INTACT;
    return st;
}
