/* The collectives of a rank, on a device or on threads of the host, and those of all ranks beside each other. */
#ifndef HONE_ANALYZE_TRACED_COLLECTIVES_H
#define HONE_ANALYZE_TRACED_COLLECTIVES_H

#include "analyze/diagnosis.h"
#include "analyze/traced/view.h"

struct collective {
    const char *name;                       /* "all_reduce"; not owned */
    int64_t bytes;                          /* that this rank puts in; -1: unknown */
    int64_t start_ns, end_ns;
    int64_t alone_ns;                       /* from here on no earlier one is under way; end_ns or later: never */
    int64_t exposed_ns;                     /* of that, in which nothing else runs beside it */
    int32_t step;                           /* of the view; -1 */
    int32_t group;                          /* ranks that take part; 0: unknown */
    bool on_host;
};

struct comm_step {
    int64_t number, start_ns;
    double exposed_ns;
};

struct rank_comm {
    int rank;                               /* -1: unknown */
    const char *name;                       /* see trace_rank; job_names sets it */
    struct collective *at;                  /* (n) by step and start */
    int n;
    struct comm_step *steps;                /* (n_steps) */
    int n_steps;
};

void collectives_find(struct rank_comm *out, const struct view *v);
void collectives_release(struct rank_comm *c);
/* Per step, all of them together: times in us. */
double collectives_us(const struct rank_comm *c);
double collectives_exposed_us(const struct rank_comm *c);

/* Fills the table of the diagnosis: equal ones of all ranks are matched by their order in a step. */
void collectives_table(struct diagnosis *d, const struct rank_comm *ranks, int n);

#endif
