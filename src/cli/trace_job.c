/* Reads the traces of a job and diagnoses them; says what was odd, and what is too severe. */
#include <string.h>

#include "cli/trace_job.h"
#include "core/suggest.h"

/* ---- the work ---- */

static void print_warnings(char *const *warnings, int n)
{
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%shone: warning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), shown(warnings[i]));
}

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

enum status trace_job_make(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options, struct error *err)
{
    struct diagnosis *d = &j->diagnosis;
    enum status st = trace_set_read(&j->set, paths, n, err);
    if (st != OK)
        return st;
    if (stream_is_terminal(stderr))
        fputs("\ranalyzing", stderr);
    st = diagnose(d, j->set.traces, j->set.n, options, err);
    if (stream_is_terminal(stderr))
        fputs("\r\033[K", stderr);
    if (st != OK) {
        for (int i = 0; i < j->set.n; i++)
            print_warnings(j->set.traces[i]->origin.warnings, j->set.traces[i]->origin.n_warnings);
        print_warnings(j->set.warnings, j->set.n_warnings);
        return st;
    }
    j->diagnosed = true;
    add_warnings(d, &j->set);
    if (n == 1 && j->set.n > 1)
        d->name = paths[0];                     /* of the folder, not of its first file */
    return OK;
}

void trace_job_print_warnings(const struct trace_job *j) { print_warnings(j->diagnosis.warnings, j->diagnosis.n_warnings); }

void trace_job_release(struct trace_job *j)
{
    if (j->diagnosed)
        diagnosis_release(&j->diagnosis);
    trace_set_release(&j->set);
}

/* ---- --fail-on ---- */

enum status parse_fail_on(const char *text, int *fail_at, struct error *err)
{
    const char *names[SEVERITY_CRITICAL + 1];
    *fail_at = FAIL_NEVER;
    if (!text)
        return OK;
    for (int i = SEVERITY_LOW; i <= SEVERITY_CRITICAL; i++) {
        names[i] = severity_name((enum severity)i);
        if (!strcmp(text, names[i]))
            *fail_at = i;
    }
    if (*fail_at != FAIL_NEVER)
        return OK;
    const char *near = suggest_nearest(text, names, SEVERITY_CRITICAL + 1);
    return error_set(err, BAD_INPUT, "--fail-on is '%s'; %s%s%sit takes critical, high, medium or low", text,
                     near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
}

bool findings_fail(const struct diagnosis *d, const char *fail_on, int fail_at)
{
    int n = 0, said = 0;
    for (int i = 0; i < d->n_findings; i++)
        n += (int)d->findings[i].severity >= fail_at;
    if (!n)
        return false;
    fprintf(stderr, "hone: %d finding%s at or above %s:", n, n == 1 ? "" : "s", fail_on);
    for (int i = 0; i < d->n_findings; i++)
        if ((int)d->findings[i].severity >= fail_at)
            fprintf(stderr, "%s %s", said++ ? "," : "", d->findings[i].rule);
    fputc('\n', stderr);
    return true;
}
