/* Writes the report's files into a folder. */
#include <errno.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/fs.h"
#include "report/report_int.h"

/* Which of them a report has: a profile all, a trace those with a writer for it. */
static const struct file {
    const char *name;
    enum status (*of_profile)(const struct profile *p, FILE *to, struct error *err);
    enum status (*of_trace)(const struct diagnosis *d, FILE *to, struct error *err);
} files[] = {
    {"report.html", report_write_html, report_trace_write_html},
    {"report.md", report_write_markdown, report_trace_write_markdown},
    {"report.json", report_write_json, report_trace_write_json},
    {"flops_profile.json", report_write_flops, NULL},
    {"computational_intensity.json", report_write_intensity, NULL},
    {"roofline_data.json", report_write_roofline, NULL},
};

struct subject {                        /* one of the two */
    const struct profile *profile;
    const struct diagnosis *diagnosis;
};

/* Made in memory first, so that what reaches the disk is whole or an error. */
static enum status write_file(const struct subject *s, const char *path, const struct file *file, struct error *err)
{
    char *data = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&data, &size);
    if (!to)
        return error_errno(err, "cannot prepare '%s'", path);
    enum status st = s->profile ? file->of_profile(s->profile, to, err) : file->of_trace(s->diagnosis, to, err);
    const bool failed = ferror(to) != 0;
    if ((fclose(to) != 0 || failed || !data) && st == OK)
        st = error_set(err, CANNOT, "out of memory for '%s'", path);
    if (st == OK)
        st = fs_write_synced(path, data, size, err);
    free(data);
    return st;
}

static enum status write_files(const struct subject *s, const char *folder, struct error *err)
{
    struct arena paths = {0};
    enum status st = OK;
    for (size_t i = 0; st == OK && i < sizeof files / sizeof *files; i++)
        if (s->profile || files[i].of_trace)
            st = write_file(s, arena_printf(&paths, "%s/%s", folder, files[i].name), &files[i], err);
    arena_release(&paths);
    return st == OK ? fs_sync_dir(folder, err) : st;
}

enum status report_write(const struct profile *p, const char *folder, struct error *err)
{
    return write_files(&(struct subject){.profile = p}, folder, err);
}

enum status report_trace_write(const struct diagnosis *d, const char *folder, struct error *err)
{
    return write_files(&(struct subject){.diagnosis = d}, folder, err);
}
