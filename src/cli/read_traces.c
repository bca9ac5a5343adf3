/* Reads the traces that paths name, one after the other, with a progress bar over the bytes of all of them. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/read_traces.h"
#include "core/clock.h"
#include "import/import.h"

/* ---- what to read ---- */

static void add_path(struct trace_set *s, char *path, bool searched)
{
    s->paths = xrealloc(s->paths, (size_t)(s->n_paths + 1) * sizeof *s->paths);
    s->paths[s->n_paths++] = (struct trace_path){path, searched};
}

/* A folder's files were found and not named: one that is no trace is passed over. */
static enum status expand(struct trace_set *s, const char *path, struct error *err)
{
    char **found;
    int n;
    if (!strcmp(path, "-")) {
        add_path(s, xstrdup(path), false);
        return OK;
    }
    const enum status st = import_find(&found, &n, path, err);
    if (st != OK)
        return st;
    struct stat info;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    for (int i = 0; i < n; i++)
        add_path(s, found[i], folder);
    free(found);
    return OK;
}

/* ---- progress ---- */

struct reading {
    struct progress bar;
    int64_t before;             /* bytes of the files that are done */
    int at, n;
    bool sized;                 /* the size of everything is known */
};

static int64_t file_bytes(const char *path)
{
    struct stat info;
    return strcmp(path, "-") && stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

static void start_bar(struct reading *r, const struct trace_set *s)
{
    int64_t total = 0;
    *r = (struct reading){.n = s->n_paths, .sized = true};
    for (int i = 0; i < s->n_paths; i++) {
        const int64_t bytes = file_bytes(s->paths[i].path);
        r->sized &= bytes >= 0;
        total += bytes > 0 ? bytes : 0;
    }
    progress_start(&r->bar, 0, total);
}

/* What comes through a pipe has no end that could be seen: only what has come is shown. */
static void show_bytes(struct progress *bar, int64_t done)
{
    char bytes[32];
    const double now = clock_s();
    if (!bar->on || now - bar->last_drawn < 0.1)
        return;
    bar->last_drawn = now;
    bar->drawn = true;
    human_bytes((double)done, bytes);
    fprintf(stderr, "\r\033[K%s read", bytes);
    fflush(stderr);
}

static void on_progress(void *context, int64_t done, int64_t total)
{
    struct reading *r = context;
    char text[64];
    (void)total;                /* of this file; the bar shows all of them */
    snprintf(text, sizeof text, "reading %d of %d", r->at + 1, r->n);
    if (r->sized)
        progress_show(&r->bar, r->before + done, r->n > 1 ? text : "reading");
    else
        show_bytes(&r->bar, r->before + done);
}

/* ---- warnings ---- */

static void __attribute__((format(printf, 2, 3))) warn(struct trace_set *s, const char *format, ...)
{
    char text[2400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->warnings = xrealloc(s->warnings, (size_t)(s->n_warnings + 1) * sizeof *s->warnings);
    s->warnings[s->n_warnings++] = xstrdup(text);
}

static bool same_rank(const struct trace_origin *a, const struct trace_origin *b) { return a->rank >= 0 && a->rank == b->rank; }

static bool other_size(const struct trace_origin *a, const struct trace_origin *b)
{
    return a->world_size > 0 && b->world_size > 0 && a->world_size != b->world_size;
}

/* The first two traces that are at odds. */
static bool find_pair(const struct trace_set *s, bool (*odd)(const struct trace_origin *a, const struct trace_origin *b),
                      const struct trace_origin **a, const struct trace_origin **b)
{
    for (int i = 1; i < s->n; i++)
        for (int k = 0; k < i; k++) {
            *a = &s->traces[k]->origin;
            *b = &s->traces[i]->origin;
            if (odd(*a, *b))
                return true;
        }
    return false;
}

/* Ranks that cannot be of one job. One sentence of each kind is enough. */
static void check_job(struct trace_set *s)
{
    const struct trace_origin *a, *b;
    if (find_pair(s, same_rank, &a, &b))
        warn(s, "'%s' and '%s' both say that they are rank %d; give each rank of a job once", a->path, b->path, b->rank);
    if (find_pair(s, other_size, &a, &b))
        warn(s, "'%s' is of a job of %d ranks and '%s' of one of %d; give traces of one job", a->path, a->world_size, b->path,
             b->world_size);
}

/* ---- reading ---- */

/* Takes the next trace. A file that was found in a folder may be something else. */
static enum status read_one(struct trace_set *s, const struct trace_path *p, struct reading *r, struct error *err)
{
    const enum status st = import_read(&s->traces[s->n], p->path, on_progress, r, err);
    if (st == OK)
        s->n++;
    else if (st == BAD_INPUT && p->searched && s->n_paths > 1)
        warn(s, "passed over: %s", err->text);
    else
        return st;
    return OK;
}

static enum status read_all(struct trace_set *s, struct error *err)
{
    struct reading r;
    enum status st = OK;
    s->traces = xcalloc((size_t)s->n_paths, sizeof(struct trace *));
    start_bar(&r, s);
    for (; st == OK && r.at < r.n; r.at++) {
        const int64_t bytes = file_bytes(s->paths[r.at].path);
        st = read_one(s, &s->paths[r.at], &r, err);
        r.before += bytes > 0 ? bytes : 0;
    }
    progress_clear(&r.bar);
    return st == OK && !s->n ? err->status : st;        /* *err says what the last one lacks */
}

enum status trace_set_read(struct trace_set *s, const char *const *paths, int n, struct error *err)
{
    enum status st = OK;
    *s = (struct trace_set){0};
    for (int i = 0; i < n && st == OK; i++)
        st = expand(s, paths[i], err);
    if (st == OK)
        st = read_all(s, err);
    if (st == OK)
        check_job(s);
    else
        trace_set_release(s);
    return st;
}

void trace_set_release(struct trace_set *s)
{
    for (int i = 0; i < s->n; i++)
        trace_free(s->traces[i]);
    for (int i = 0; i < s->n_paths; i++)
        free(s->paths[i].path);
    for (int i = 0; i < s->n_warnings; i++)
        free(s->warnings[i]);
    free(s->traces);
    free(s->paths);
    free(s->warnings);
    *s = (struct trace_set){0};
}
