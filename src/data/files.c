/* Lists of text files, and reading them; see files.h. */
#include "data/files.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "core/gunzip.h"
#include "core/map.h"

enum { DEPTH_MAX = 32, FILES_MAX = 1 << 20, INPUT_BYTES = 256 << 10 };

/* ---- lists ---- */

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static enum status add(struct file_list *l, const char *path, struct error *err)
{
    if (l->n == FILES_MAX)
        return error_set(err, BAD_INPUT, "more than %d files of text", FILES_MAX);
    l->paths = xrealloc(l->paths, (size_t)(l->n + 1) * sizeof *l->paths);
    l->paths[l->n++] = xstrdup(path);
    return OK;
}

static enum status walk(struct file_list *l, const char *folder, int depth, struct error *err)
{
    DIR *dir = opendir(folder);
    enum status st = OK;
    if (!dir)
        return error_errno(err, "cannot read the folder '%s'", folder);
    if (depth > DEPTH_MAX)
        st = error_set(err, BAD_INPUT, "'%s' is more than %d folders deep", folder, DEPTH_MAX);
    for (struct dirent *e; st == OK && (e = readdir(dir));) {
        struct stat s;
        char *path = NULL;
        if (*e->d_name == '.')
            continue;
        if (asprintf(&path, "%s/%s", folder, e->d_name) < 0)
            st = error_no_memory(err, "a list of files", 0);
        else if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
            st = walk(l, path, depth + 1, err);
        else
            st = add(l, path, err);
        free(path);
    }
    closedir(dir);
    return st;
}

static enum status match(struct file_list *l, const char *pattern, const char *key, struct error *err)
{
    glob_t found = {.gl_pathc = 0};
    const int failed = glob(pattern, 0, NULL, &found);
    enum status st = failed == GLOB_NOSPACE ? error_no_memory(err, "a list of files", 0)
                   : failed                 ? error_set(err, BAD_INPUT, "no file matches '%s' (%s)", pattern, key)
                                            : OK;
    for (size_t i = 0; st == OK && i < found.gl_pathc; i++)
        st = add(l, found.gl_pathv[i], err);
    globfree(&found);
    return st;
}

enum status file_list_init(struct file_list *l, const char *path, const char *key, struct error *err)
{
    struct stat s;
    *l = (struct file_list){0};
    const bool there = stat(path, &s) == 0;
    enum status st = there && S_ISDIR(s.st_mode)      ? walk(l, path, 0, err)
                   : !there && strpbrk(path, "*?[")   ? match(l, path, key, err)
                                                      : add(l, path, err);
    if (st == OK && !l->n)
        st = error_set(err, BAD_INPUT, "the folder '%s' (%s) holds no files", path, key);
    if (st != OK)
        file_list_release(l);
    else
        qsort(l->paths, (size_t)l->n, sizeof *l->paths, compare_paths);
    return st;
}

void file_list_release(struct file_list *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->paths[i]);
    free(l->paths);
    *l = (struct file_list){0};
}

/* ---- bytes ---- */

struct text_input {
    struct map map;
    size_t at;                  /* in the file */
    struct gunzip *gunzip;      /* NULL: plain */
    char *block;                /* (INPUT_BYTES) of gzip, of which [used, have) is not inflated yet */
    size_t used, have;
};

enum status text_input_open(struct text_input **out, const char *path, struct error *err)
{
    unsigned char head[2] = {0};
    struct text_input *in = xcalloc(1, sizeof *in);
    enum status st = map_init(&in->map, path, err);
    if (st == OK && in->map.size >= sizeof head)
        st = map_read(&in->map, 0, head, sizeof head, err);
    if (st == OK && head[0] == 0x1f && head[1] == 0x8b) {
        in->gunzip = xneed(gunzip_new());
        in->block = xcalloc(1, INPUT_BYTES);
    }
    if (st == OK)
        *out = in;
    else
        text_input_free(in);
    return st;
}

static enum status take(struct text_input *in, void *to, size_t room, size_t *n, struct error *err)
{
    *n = in->map.size - in->at < room ? in->map.size - in->at : room;
    const enum status st = *n ? map_read(&in->map, in->at, to, *n, err) : OK;
    in->at += *n;
    return st;
}

static enum status inflate(struct text_input *in, char *to, size_t room, size_t *n, struct error *err)
{
    for (*n = 0; *n < room;) {
        size_t taken;
        if (in->used == in->have) {
            in->used = 0;
            const enum status st = take(in, in->block, INPUT_BYTES, &in->have, err);
            if (st != OK)
                return st;
        }
        const size_t most = room - *n < UINT32_MAX / 2 ? room - *n : UINT32_MAX / 2;
        const size_t made = gunzip_write(in->gunzip, in->block + in->used, in->have - in->used, &taken, to + *n, most);
        in->used += taken;
        *n += made;
        if (gunzip_damage(in->gunzip))
            return error_set(err, BAD_INPUT, "cannot inflate '%s': %s", in->map.path, gunzip_damage(in->gunzip));
        if (!made && in->used == in->have && in->at == in->map.size) {
            if (!gunzip_whole(in->gunzip))
                return error_set(err, BAD_INPUT, "cannot inflate '%s': the end is missing", in->map.path);
            return OK;
        }
    }
    return OK;
}

enum status text_input_read(struct text_input *in, char *to, size_t room, size_t *n, struct error *err)
{
    return in->gunzip ? inflate(in, to, room, n, err) : take(in, to, room, n, err);
}

size_t text_input_size(const struct text_input *in) { return in->map.size; }
size_t text_input_at(const struct text_input *in) { return in->at; }
bool text_input_is_gzip(const struct text_input *in) { return in->gunzip != NULL; }

void text_input_free(struct text_input *in)
{
    if (!in)
        return;
    map_release(&in->map);
    gunzip_free(in->gunzip);
    free(in->block);
    free(in);
}
