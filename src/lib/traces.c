/* Reads the traces that paths name, one after the other, and has them diagnosed together. */
#include "lib/traces.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
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
    const struct trace_watch *watch;
    int64_t before, total;      /* bytes of the files that are done, and of all; total -1: what comes through a pipe has no end that could be seen */
    int at, n;
};

static int64_t file_bytes(const char *path)
{
    struct stat info;
    return strcmp(path, "-") && stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

static struct reading reading_start(const struct trace_set *s, const struct trace_watch *watch)
{
    struct reading r = {.watch = watch, .n = s->n_paths};
    for (int i = 0; i < s->n_paths; i++) {
        const int64_t bytes = file_bytes(s->paths[i].path);
        r.total = r.total < 0 || bytes < 0 ? -1 : r.total + bytes;
    }
    return r;
}

static void on_progress(void *context, int64_t done, int64_t total)
{
    const struct reading *r = context;
    (void)total;                /* of this file */
    r->watch->on_bytes(r->watch->context, r->at, r->n, r->before + done, r->total);
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

/* ---- reading ---- */

/* Nothing to judge is as good as no trace. On failure t is freed. */
static enum status check_found(struct trace *t, struct error *err)
{
    const enum status st = diagnose_check(t, err);
    if (st != OK)
        trace_free(t);
    return st;
}

/* Takes the next trace. A file that was found in a folder may be something else. */
static enum status read_one(struct trace_set *s, const struct trace_path *p, struct reading *r, struct error *err)
{
    import_progress *tell = r->watch && r->watch->on_bytes ? on_progress : NULL;
    const bool found = p->searched && s->n_paths > 1;
    enum status st = import_read(&s->traces[s->n], p->path, tell, r, err);
    if (st == OK && found)
        st = check_found(s->traces[s->n], err);
    if (st == OK)
        s->n++;
    else if (st == BAD_INPUT && found)
        warn(s, "passed over: %s", err->text);
    else
        return st;
    return OK;
}

static enum status read_all(struct trace_set *s, const struct trace_watch *watch, struct error *err)
{
    struct reading r = reading_start(s, watch);
    enum status st = OK;
    s->traces = xcalloc((size_t)s->n_paths, sizeof(struct trace *));
    for (; st == OK && r.at < r.n; r.at++) {
        const int64_t bytes = file_bytes(s->paths[r.at].path);
        st = read_one(s, &s->paths[r.at], &r, err);
        r.before += bytes > 0 ? bytes : 0;
    }
    return st == OK && !s->n ? err->status : st;        /* *err says what the last one lacks */
}

enum status trace_set_read(struct trace_set *s, const char *const *paths, int n, const struct trace_watch *watch, struct error *err)
{
    enum status st = OK;
    *s = (struct trace_set){0};
    for (int i = 0; i < n && st == OK; i++)
        st = expand(s, paths[i], err);
    if (st == OK)
        st = read_all(s, watch, err);
    if (st != OK) {
        trace_set_release(s);
        return st;
    }
    import_number_ranks(s->traces, s->n);
    return OK;
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

/* ---- what they say ---- */

/* What was odd about the files together is said with what was odd about each. */
static void add_warnings(struct diagnosis *d, const struct trace_set *set)
{
    char **list = arena_alloc(&d->arena, (size_t)(d->n_warnings + set->n_warnings + 1) * sizeof *list);
    for (int i = 0; i < d->n_warnings; i++)
        list[i] = d->warnings[i];
    for (int i = 0; i < set->n_warnings; i++)
        list[d->n_warnings++] = set->warnings[i];
    d->warnings = list;
}

static void tell_diagnose(const struct trace_watch *watch, bool done)
{
    if (watch && watch->on_diagnose)
        watch->on_diagnose(watch->context, done);
}

enum status trace_job_make(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options,
                           const struct trace_watch *watch, struct error *err)
{
    struct diagnosis *d = &j->diagnosis;
    enum status st = trace_set_read(&j->set, paths, n, watch, err);
    if (st != OK)
        return st;
    tell_diagnose(watch, false);
    st = diagnose(d, j->set.traces, j->set.n, options, err);
    tell_diagnose(watch, true);
    if (st != OK)
        return st;
    j->diagnosed = true;
    add_warnings(d, &j->set);
    if (n == 1 && d->n_ranks > 1)
        d->name = arena_copy(&d->arena, paths[0], strlen(paths[0]) + 1);    /* of the folder, not of its first file; the caller's may go */
    return OK;
}

void trace_job_release(struct trace_job *j)
{
    if (j->diagnosed)
        diagnosis_release(&j->diagnosis);
    trace_set_release(&j->set);
}
