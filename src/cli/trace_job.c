/* Shows how the traces of a job are read and diagnosed; says what was odd, and what is too severe. */
#include <string.h>

#include "cli/trace_job.h"
#include "core/suggest.h"

/* ---- progress ---- */

/* What comes through a pipe has no end: only what has come is shown. */
static void on_bytes(void *context, int at, int n, int64_t done, int64_t total)
{
    struct progress *bar = context;
    char text[64], bytes[32];
    if (!bar->on)
        progress_start(bar, 0, total < 0 ? 0 : total);
    if (total < 0) {
        human_bytes((double)done, bytes);
        snprintf(text, sizeof text, "%s read", bytes);
        progress_line(bar, text);
        return;
    }
    snprintf(text, sizeof text, "reading %d of %d", at + 1, n);
    progress_show(bar, done, n > 1 ? text : "reading");
}

static void on_diagnose(void *context, bool done)
{
    progress_clear(context);
    if (stream_is_terminal(stderr))
        fputs(done ? "\r\033[K" : "\ranalyzing", stderr);
}

/* ---- warnings ---- */

static void print_warnings(char *const *warnings, int n)
{
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%shone: warning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), shown(warnings[i]));
}

void trace_job_print_warnings(const struct trace_job *j) { print_warnings(j->diagnosis.warnings, j->diagnosis.n_warnings); }

enum status trace_job_show(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options, struct error *err)
{
    struct progress bar = {0};
    const struct trace_watch watch = {&bar, on_bytes, on_diagnose};
    const enum status st = trace_job_make(j, paths, n, options, &watch, err);
    progress_clear(&bar);
    for (int i = 0; st != OK && i < j->set.n; i++)
        print_warnings(j->set.traces[i]->origin.warnings, j->set.traces[i]->origin.n_warnings);
    if (st != OK)
        print_warnings(j->set.warnings, j->set.n_warnings);
    return st;
}

/* ---- --fail-on ---- */

bool findings_fail(const struct diagnosis *d, const struct picked *fail_on)
{
    int n = 0, said = 0;
    for (int i = 0; i < d->n_findings; i++)
        n += fail_on->text && (int)d->findings[i].severity >= fail_on->at;
    if (!n)
        return false;
    fprintf(stderr, "hone: %d finding%s at or above %s:", n, n == 1 ? "" : "s", fail_on->text);
    for (int i = 0; i < d->n_findings; i++)
        if ((int)d->findings[i].severity >= fail_on->at)
            fprintf(stderr, "%s %s", said++ ? "," : "", d->findings[i].rule);
    fputc('\n', stderr);
    return true;
}
