/* Finds the file of a configuration: a path as it is, or the name of one that is shipped. When there is none, says
 * where it was looked for and which names are near. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config_int.h"
#include "core/fs.h"
#include "core/process.h"

#ifndef HONE_CONFIG_DIR
#define HONE_CONFIG_DIR "configs"
#endif

enum { FOLDERS = 3, NAMES_MAX = 64, NAME_SIZE = 64, NEAR_MAX = 4, LISTED_MAX = 20 };

struct folders {
    char path[FOLDERS][CONFIG_PATH_MAX];
    int n;
};

struct names {
    char name[NAMES_MAX][NAME_SIZE];
    int n;
};

static void add_folder(struct folders *f, const char *path)
{
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->path[i], path))
            return;
    if (strlen(path) < sizeof f->path[0])
        strcpy(f->path[f->n++], path);
}

/* share/hone/configs beside the bin/ that the running program stands in. */
static void add_installed_folder(struct folders *f)
{
    char root[PATH_MAX], path[PATH_MAX + 32];
    if (!process_root(root))
        return;
    snprintf(path, sizeof path, "%s/share/hone/configs", root);
    add_folder(f, path);
}

static void list_folders(struct folders *f)
{
    f->n = 0;
    add_folder(f, "configs");
    add_folder(f, HONE_CONFIG_DIR);
    add_installed_folder(f);
}

/* The length of the name without ".yaml" or ".yml". */
static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")) ? (size_t)(dot - name) : strlen(name);
}

static void add_name(struct names *names, const char *file)
{
    const size_t length = stem_length(file);
    if (file[0] == '.' || !file[length] || length >= NAME_SIZE || names->n == NAMES_MAX)
        return;
    snprintf(names->name[names->n], NAME_SIZE, "%.*s", (int)length, file);
    for (int i = 0; i < names->n; i++)
        if (!strcmp(names->name[i], names->name[names->n]))
            return;
    names->n++;
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static void list_names(struct names *names, const struct folders *folders)
{
    names->n = 0;
    for (int i = 0; i < folders->n; i++) {
        DIR *dir = opendir(folders->path[i]);
        for (struct dirent *e; dir && (e = readdir(dir));)
            add_name(names, e->d_name);
        if (dir)
            closedir(dir);
    }
    qsort(names->name, (size_t)names->n, sizeof names->name[0], compare_names);
}

void config_tell_names(config_name_fn *tell, void *context)
{
    struct folders folders;
    struct names names;
    list_folders(&folders);
    list_names(&names, &folders);
    for (int i = 0; i < names.n; i++)
        tell(names.name[i], context);
}

static bool is_near(const char *asked, const char *name)
{
    return (strlen(asked) > 2 && strstr(name, asked)) || suggest_is_near(asked, suggest_distance(asked, name));
}

/* "did you mean 'a' or 'b'?", or else all there are. */
static void suggest(const char *asked, const struct folders *folders, char *out, size_t size)
{
    struct names names;
    const char *near[NEAR_MAX], *all[LISTED_MAX];
    int n_near = 0, n_all = 0;
    list_names(&names, folders);
    for (int i = 0; i < names.n; i++) {
        if (n_near < NEAR_MAX && is_near(asked, names.name[i]))
            near[n_near++] = names.name[i];
        if (n_all < LISTED_MAX)
            all[n_all++] = names.name[i];
    }
    const char *lead = n_near ? "; did you mean '" : n_all ? "; shipped configs are " : "";
    const size_t used = (size_t)snprintf(out, size, "%s", lead);
    if (n_near)
        config_join(out + used, size - used - 3, near, n_near, "', '", "' or '");
    else
        config_join(out + used, size - used, all, n_all, ", ", " and ");
    if (n_near)
        strcat(out, "'?");
}

static enum status refuse_name(const char *asked, const struct folders *folders, struct error *err)
{
    char places[600], near[320], shown[CONFIG_SHOWN_MAX];
    const char *items[FOLDERS];
    for (int i = 0; i < folders->n; i++)
        items[i] = folders->path[i];
    config_join(places, sizeof places, items, folders->n, "', '", "' and '");
    suggest(asked, folders, near, sizeof near);
    return error_set(err, BAD_INPUT, "there is no config '%s': looked for '%s.yaml' in '%s'%s",
                     config_shown(shown, asked), shown, places, near);
}

static enum status refuse_path(const char *asked, struct error *err)
{
    struct folders folders;
    char near[320], stem[CONFIG_PATH_MAX], cwd[CONFIG_PATH_MAX];
    const char *slash = strrchr(asked, '/'), *base = slash ? slash + 1 : asked;
    snprintf(stem, sizeof stem, "%.*s", (int)stem_length(base), base);
    list_folders(&folders);
    suggest(stem, &folders, near, sizeof near);
    if (asked[0] == '/' || !getcwd(cwd, sizeof cwd))
        return error_set(err, BAD_INPUT, "there is no file '%.400s'%s", asked, near);
    return error_set(err, BAD_INPUT, "there is no file '%.300s' in '%.300s'%s", asked, cwd, near);
}

/* A name has no folder and no suffix; a file of that very name in the working folder comes after all shipped ones. */
static enum status find_name(const char *asked, char path[CONFIG_PATH_MAX], struct error *err)
{
    struct folders folders;
    list_folders(&folders);
    for (int i = 0; i < folders.n; i++) {
        const int n = snprintf(path, CONFIG_PATH_MAX, "%s/%s.yaml", folders.path[i], asked);
        if (n < CONFIG_PATH_MAX && fs_exists(path))
            return OK;
    }
    if (!fs_exists(asked))
        return refuse_name(asked, &folders, err);
    strcpy(path, asked);
    return OK;
}

enum status config_find_file(const char *asked, char path[CONFIG_PATH_MAX], struct error *err)
{
    if (!*asked)
        return error_set(err, BAD_INPUT, "a config is wanted: a file, or a name like quickstart");
    if (strlen(asked) >= CONFIG_PATH_MAX)
        return error_set(err, BAD_INPUT, "the path of the config has %zu bytes; at most %d fit", strlen(asked),
                         CONFIG_PATH_MAX - 1);
    if (!strchr(asked, '/') && !asked[stem_length(asked)])
        return find_name(asked, path, err);
    if (!fs_exists(asked))
        return refuse_path(asked, err);
    strcpy(path, asked);
    return OK;
}
