/* What traces that were given together have to do with each other. */
#ifndef HONE_ANALYZE_TRACED_TOGETHER_H
#define HONE_ANALYZE_TRACED_TOGETHER_H

#include "analyze/traced/collectives.h"

/* Marks those of the traces, each judged alone, that are ranks of one job; at least one is. Returns a sentence that names the others
 * and says why (in the arena of one that is marked), or NULL where there are none. */
char *job_members(struct diagnosis **each, const struct rank_comm *comm, int n, bool *in);

/* Of traces that are marked and of one rank, or of one process that says none, keeps those marked that were recorded at one time; names the others, or two that say they are one rank at one time (in the
 * arena of one that is marked). NULL: each rank has one. */
char *job_cycle(struct diagnosis **each, int n, bool *in);          /* cycles.c */

/* Whether both are of one process, one after the other: PyTorch's handler writes HOST_PID.TIME.pt.trace.json. */
bool is_one_process(const struct trace_origin *a, const struct trace_origin *b);    /* cycles.c */

/* A sentence that names the ranks of the job that are not there (in the arena of the first), or NULL: all are, or the job's size is not known. */
char *job_missing(struct diagnosis **each, int n);

#endif
