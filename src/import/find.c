/* The traces of a folder. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "import/import_int.h"

static bool ends_with(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcmp(name + n - m, ending);
}

static bool is_trace(const char *name)
{
    return name[0] != '.' && (ends_with(name, ".json") || ends_with(name, ".json.gz"));
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void add(char ***paths, int *n, const char *path)
{
    *paths = xrealloc(*paths, (size_t)(*n + 1) * sizeof **paths);
    (*paths)[(*n)++] = xstrdup(path);
}

static char *join(const char *folder, const char *name)
{
    const size_t n = strlen(folder), room = n + strlen(name) + 2;
    char *path = xcalloc(room, 1);
    snprintf(path, room, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

static void add_file(char ***paths, int *n, const char *folder, const char *name)
{
    char *path = join(folder, name);
    struct stat s;
    if (stat(path, &s) == 0 && S_ISREG(s.st_mode))        /* a pipe might wait for ever */
        add(paths, n, path);
    free(path);
}

static enum status find_in(char ***paths, int *n, const char *folder, struct error *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return error_errno(err, "cannot read the folder '%s'", folder);
    for (struct dirent *e; (e = readdir(dir));)
        if (is_trace(e->d_name))
            add_file(paths, n, folder, e->d_name);
    closedir(dir);
    if (*n == 0)
        return error_set(err, BAD_INPUT, "the folder '%s' has no trace; expected files that end with .json or .json.gz",
                         folder);
    qsort(*paths, (size_t)*n, sizeof **paths, by_text);
    return OK;
}

enum status import_find(char ***paths, int *n, const char *path, struct error *err)
{
    struct stat s;
    char **found = NULL;
    int count = 0;
    const bool standard_input = !strcmp(path, "-");
    if (!standard_input && stat(path, &s) != 0)
        return error_errno(err, "cannot find '%s'", path);
    if (standard_input || !S_ISDIR(s.st_mode)) {
        add(&found, &count, path);
    } else {
        const enum status st = find_in(&found, &count, path, err);
        if (st != OK)
            return st;
    }
    *paths = found;
    *n = count;
    return OK;
}
