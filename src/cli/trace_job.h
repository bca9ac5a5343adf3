/* The traces of a job and what they say, on a terminal: what `hone analyze` and `hone watch` share. */
#ifndef HONE_CLI_TRACE_JOB_H
#define HONE_CLI_TRACE_JOB_H

#include "cli/cli.h"
#include "lib/traces.h"

enum { FAIL_NEVER = SEVERITY_CRITICAL + 1 };

/* trace_job_make with progress on a terminal. Where traces cannot be diagnosed, what was odd about them is said. */
enum status trace_job_show(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options, struct error *err);
void trace_job_print_warnings(const struct trace_job *j);

/* --fail-on: NULL is FAIL_NEVER. */
enum status parse_fail_on(const char *text, int *fail_at, struct error *err);
/* Is a finding that severe? Says which are. */
bool findings_fail(const struct diagnosis *d, const char *fail_on, int fail_at);

#endif
