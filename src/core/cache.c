/* The folder of remembered files; see cache.h. */
#include "core/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/json_memory.h"

enum { FILE_BYTES_MOST = 1 << 20, NAME_MOST = 64 };

/* hone's folder below the user's cache folder; a path that is not absolute does not count, as in the XDG rules. */
static bool cache_folder(char folder[PATH_MAX])
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = PATH_MAX;
    if (xdg && xdg[0] == '/')
        n = snprintf(folder, PATH_MAX, "%s/hone", xdg);
    else if (home && home[0] == '/')
        n = snprintf(folder, PATH_MAX, "%s/.cache/hone", home);
    return n < PATH_MAX - NAME_MOST;                    /* room for the names of the files in it */
}

bool cache_read(const char *name, char **text, size_t *size)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (!cache_folder(folder))
        return false;
    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - NAME_MOST, folder, name);
    return fs_read(path, text, size, FILE_BYTES_MOST, NULL) == OK;
}

/* Readers see the old file or the new one. Writers hold the lock (cache_lock), so one name serves all, and what a killed one left is
 * written over by the next. */
enum status cache_replace(const char *name, const char *text, struct error *err)
{
    char folder[PATH_MAX], path[PATH_MAX], temporary[PATH_MAX];
    if (!cache_folder(folder))
        return error_set(err, BAD_INPUT, "there is no folder to remember measurements in; set HOME or XDG_CACHE_HOME to an "
                                         "absolute path");
    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - NAME_MOST, folder, name);
    snprintf(temporary, sizeof temporary, "%.*s/.%s.new", PATH_MAX - NAME_MOST, folder, name);
    enum status st = fs_make_dirs(folder, err);
    if (st == OK)
        st = fs_write_synced(temporary, text, strlen(text), err);
    if (st != OK || rename(temporary, path) == 0)
        return st;
    st = error_errno(err, "cannot replace '%s'", path);
    unlink(temporary);
    return st;
}

/* The folder itself is locked, so that no file is left behind for it. */
int cache_lock(void)
{
    char folder[PATH_MAX];
    if (!cache_folder(folder) || fs_make_dirs(folder, NULL) != OK)
        return -1;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fd;
}

json_t *cache_parse(const char *text, size_t size, int version)
{
    json_error_t why;
    bool no_memory;
    json_t *root = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory);
    const json_t *is = json_object_get(root, "version");
    if (json_is_integer(is) && json_integer_value(is) == version)
        return root;
    json_decref(root);
    return NULL;
}
