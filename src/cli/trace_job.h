/* The traces of a job and what they say, on a terminal: what `hone analyze` and `hone watch` share. */
#ifndef HONE_CLI_TRACE_JOB_H
#define HONE_CLI_TRACE_JOB_H

#include "cli/cli.h"
#include "lib/traces.h"

/* trace_job_make with progress on a terminal. Where traces cannot be diagnosed, what was odd about them is said. */
enum status trace_job_show(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options, struct error *err);
void trace_job_print_warnings(const struct trace_job *j);

/* Is a finding as severe as --fail-on says? Says which are. */
bool findings_fail(const struct diagnosis *d, const struct picked *fail_on);

#endif
