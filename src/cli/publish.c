/* Folders of reports: whole or not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/fs.h"

enum status report_folder_name(char folder[CONFIG_PATH_MAX], const char *out, struct error *err)
{
    enum { ROOM = 64 };                         /* for what is appended */
    const int n = snprintf(folder, CONFIG_PATH_MAX, "%s", out);
    if (n < 1 || n > CONFIG_PATH_MAX - ROOM)
        return error_set(err, BAD_INPUT, "--out has %d bytes; expected 1 to %d", n, CONFIG_PATH_MAX - ROOM);
    for (int i = n; i > 1 && folder[i - 1] == '/'; i--)
        folder[i - 1] = '\0';
    return OK;
}

enum status report_folder_check(const char *folder, struct error *err)
{
    char path[CONFIG_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/report.json", folder);
    if (!fs_exists(folder) || fs_exists(path) || rmdir(folder) == 0)
        return OK;
    return error_set(err, BAD_INPUT, "'%s' exists and holds no report; give another --out", folder);
}

/* Everything goes into a folder beside the target, which then takes its name. */
enum status report_folder_publish(const char *folder, report_folder_write *write, const void *what, struct error *err)
{
    char fresh[CONFIG_PATH_MAX + 64], old[CONFIG_PATH_MAX + 64];
    snprintf(fresh, sizeof fresh, "%s.tmp-%d", folder, (int)getpid());
    snprintf(old, sizeof old, "%s.old-%d", folder, (int)getpid());
    enum status st = fs_make_dirs(fresh, err);
    if (st == OK)
        st = write(what, fresh, err);
    if (st == OK && fs_exists(folder) && rename(folder, old))
        st = error_errno(err, "cannot replace '%s'", folder);
    if (st == OK && rename(fresh, folder)) {
        st = error_errno(err, "cannot name '%s'", folder);
        rename(old, folder);                    /* the report that was there, if there was one */
    }
    struct error ignored;
    fs_remove_tree(st == OK ? old : fresh, &ignored);
    return st;
}

enum status report_folder_add(const char *folder, const char *name, const char *text, struct error *err)
{
    char path[CONFIG_PATH_MAX + 96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return text ? fs_write_synced(path, text, strlen(text), err) : error_no_memory(err, name, 1 << 16);
}

char *json_lines(json_t *document)
{
    char *text = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL, *whole = NULL;
    if (text && asprintf(&whole, "%s\n", text) < 0)
        whole = NULL;
    free(text);
    json_decref(document);
    return whole;
}
