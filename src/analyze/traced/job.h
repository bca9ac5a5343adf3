/* The ranks of one job, judged together. */
#ifndef HONE_ANALYZE_TRACED_JOB_H
#define HONE_ANALYZE_TRACED_JOB_H

#include "analyze/traced/collectives.h"
#include "analyze/traced/judge.h"

/* In a collective all wait for the last to arrive. So a rank's step is its own work, and what it waits for others: what a rank waits
 * less than another, it works more. */
struct job {
    struct diagnosis **ranks;               /* (n) each judged alone */
    struct rank_comm *comm;                 /* (n) */
    double *waits_ns;                       /* (n_steps, n) in collectives that nothing hides; steps that all ranks have */
    int n, n_steps;
    double step_ns;                         /* as recorded: the longest rank's */
    int straggler;                          /* index of the rank; -1: none is found */
    const struct finding *first;            /* (n_first) of the first rank alone, before its diagnosis becomes the job's */
    int n_first;
};

/* How findings and tables call each rank. */
void job_names(struct diagnosis **ranks, struct rank_comm *comm, int n);       /* rank_names.c */

void job_init(struct job *j, struct diagnosis **ranks, struct rank_comm *comm, int n);
void job_release(struct job *j);

/* The speed-up of the whole job when each rank saves a part of its step (n). */
double job_speedup(const struct job *j, const double *saved);

/* Of what a rank waits in collectives, the part that all ranks do: the collectives' own time. */
double job_least_wait(const struct job *j, int rank);

/* Findings and the roadmap of the first rank's diagnosis become those of the job. */
void job_findings(struct job *j);
void job_plan(struct job *j, const struct plan_phase *first, int n_first);     /* plan.c; first: the roadmap of the first rank alone */
bool job_straggler(struct job *j, struct finding *f);   /* ranks.c; sets j->straggler */

#endif
