/* Puts reports into folders that may hold anything else; see folder.h. */
#include "report/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/owned.h"
#include "report/folder_int.h"

/* The names that are known before a report is made. */
static const struct kind {
    const char *name;
    const char *files[8];
} kinds[] = {
    [REPORT_PROFILE] = {"profile", {"report.html", "report.md", "report.json", "flops_profile.json",
                                    "computational_intensity.json", "roofline_data.json", "trace.json"}},
    [REPORT_TRACE] = {"analyze", {"report.html", "report.md", "report.json"}},
    [REPORT_TUNE] = {"tune", {"report.html", "report.md", "report.json", "base.yaml", "tuned.yaml"}},
    [REPORT_VERIFY] = {"verify", {"verify.md", "verify.json"}},
    [REPORT_FORGET] = {"forget", {"report.html", "report.md", "report.json"}},
    [REPORT_SIMULATE] = {"simulate", {"report.html", "report.md", "report.json"}},
    [REPORT_WATCH] = {"watch", {"report.html", "report.md", "report.json"}},
    [REPORT_COMPARE] = {"compare", {"report.html", "report.md", "report.json"}},
};

const char *report_kind_name(enum report_kind kind) { return kinds[kind].name; }

enum status report_folder_name(char folder[REPORT_FOLDER_MAX], const char *out, struct error *err)
{
    enum { ROOM = 64 };                         /* for what is appended */
    const size_t n = strlen(out);
    if (n < 1 || n > REPORT_FOLDER_MAX - ROOM)
        return error_set(err, BAD_INPUT, "--out has %zu bytes; expected 1 to %d", n, REPORT_FOLDER_MAX - ROOM);
    memcpy(folder, out, n + 1);
    for (size_t i = n; i > 1 && folder[i - 1] == '/'; i--)
        folder[i - 1] = '\0';
    return OK;
}

/* ---- may it be written? ---- */

/* The nearest folder above that is there must take new ones. */
static enum status check_parent(const char *folder, struct error *err)
{
    char parent[REPORT_FOLDER_MAX];
    struct stat s;
    snprintf(parent, sizeof parent, "%s", folder);
    for (char *slash; (slash = strrchr(parent, '/')) && slash != parent;) {
        *slash = '\0';
        if (stat(parent, &s) == 0)
            return access(parent, W_OK | X_OK) == 0 ? OK : error_errno(err, "cannot make the folder '%s'", folder);
    }
    return access(*folder == '/' ? "/" : ".", W_OK | X_OK) == 0 ? OK : error_errno(err, "cannot make the folder '%s'", folder);
}

static enum status check_folder(const char *folder, bool *there, struct error *err)
{
    struct stat s;
    *there = stat(folder, &s) == 0;
    if (*there && !S_ISDIR(s.st_mode))
        return error_set(err, BAD_INPUT, "'%s' is a file, and a report is a folder; give another --out", folder);
    if (*there)
        return access(folder, W_OK | X_OK) == 0 ? OK : error_errno(err, "cannot write into '%s'", folder);
    if (errno != ENOENT)
        return error_errno(err, "cannot look at '%s'", folder);
    if (lstat(folder, &s) == 0)
        return error_set(err, BAD_INPUT, "'%s' is a link to a folder that is not there; give another --out", folder);
    return check_parent(folder, err);
}

/* Nobody is writing there now. A lock that is not there is not held, and is not made. */
static enum status check_lock(const char *folder, struct error *err)
{
    char path[PATH_MAX];
    bool there;
    int lock;
    snprintf(path, sizeof path, "%s/.lock", folder);
    enum status st = fs_there(path, &there, err);
    if (st != OK || !there)
        return st;
    st = fs_lock(&lock, folder, err);
    if (st == OK)
        close(lock);
    return st;
}

enum status report_folder_check_file(const struct owned *o, const char *folder, enum report_kind kind, const char *name,
                                     struct error *err)
{
    enum owned_state state;
    const enum status st = owned_look(o, folder, kinds[kind].name, name, &state, err);
    if (st != OK || state == OWNED_MISSING || state == OWNED_INTACT)
        return st;
    if (state == OWNED_CHANGED)
        return error_set(err, BAD_INPUT, "'%s/%s' was changed since hone %s wrote it; move it away, or give another --out", folder,
                         name, kinds[kind].name);
    if (state == OWNED_OTHER)
        return error_set(err, BAD_INPUT, "'%s/%s' is of a report of hone %s; give another --out", folder, name, owned_by(o, name));
    return error_set(err, BAD_INPUT, "'%s/%s' is there, and no report that is known here wrote it; move it away, or give another "
                     "--out", folder, name);
}

enum status report_folder_check(const char *folder, enum report_kind kind, struct error *err)
{
    struct owned o;
    bool there;
    enum status st = check_folder(folder, &there, err);
    if (st != OK || !there)
        return st;
    st = check_lock(folder, err);
    if (st == OK)
        st = owned_read(&o, folder, err);
    if (st != OK)
        return st;
    for (const char *const *name = kinds[kind].files; st == OK && *name; name++)
        st = report_folder_check_file(&o, folder, kind, *name, err);
    owned_release(&o);
    return st;
}

enum status report_folder_add(const char *folder, const char *name, const char *text, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return text ? fs_write_synced(path, text, strlen(text), err) : error_set(err, CANNOT, "out of memory for '%s'", path);
}
