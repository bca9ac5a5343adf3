/* Writes the report's files into a folder. */
#include <errno.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/fs.h"
#include "report/report_int.h"

static const struct {
    const char *name;
    enum status (*write)(const struct profile *p, FILE *to, struct error *err);
} files[] = {
    {"report.html", report_write_html},
    {"report.md", report_write_markdown},
    {"report.json", report_write_json},
    {"flops_profile.json", report_write_flops},
    {"computational_intensity.json", report_write_intensity},
    {"roofline_data.json", report_write_roofline},
};

/* Made in memory first, so that what reaches the disk is whole or an error. */
static enum status write_file(const struct profile *p, const char *path, size_t which, struct error *err)
{
    char *data = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&data, &size);
    if (!to)
        return error_errno(err, "cannot prepare '%s'", path);
    enum status st = files[which].write(p, to, err);
    const bool failed = ferror(to) != 0;
    if ((fclose(to) != 0 || failed || !data) && st == OK)
        st = error_set(err, CANNOT, "out of memory for '%s'", path);
    if (st == OK)
        st = fs_write_synced(path, data, size, err);
    free(data);
    return st;
}

enum status report_write(const struct profile *p, const char *folder, struct error *err)
{
    struct arena paths = {0};
    enum status st = OK;
    for (size_t i = 0; st == OK && i < sizeof files / sizeof *files; i++)
        st = write_file(p, arena_printf(&paths, "%s/%s", folder, files[i].name), i, err);
    arena_release(&paths);
    return st == OK ? fs_sync_dir(folder, err) : st;
}
