/* How often a run evaluates. The loop of a run does so at every multiple of eval.every, at the end of every stage and at its own end, each step once: who says
 * what evaluation costs, or proposes another interval, counts here. */
#ifndef HONE_CORE_EVALUATIONS_H
#define HONE_CORE_EVALUATIONS_H

#include <stdint.h>

struct evaluations {
    int64_t steps;                      /* of the run; 0: not known */
    int64_t every;                      /* steps; 0: only at ends */
    int64_t stage;                      /* steps of a stage; 0: there is one, the run */
};

/* Per training step. Of a run whose length is not known that of a long one. */
double evaluations_per_step(struct evaluations e);
/* The same run with another interval. */
struct evaluations evaluations_at(struct evaluations e, int64_t every);
/* The shortest interval with no more evaluations per step than this beside those at ends of stages, and never one beyond the run. */
int64_t evaluations_interval(struct evaluations e, double per_step);
/* What is left of them with another interval, as a part: 1 where it changes nothing. */
double evaluations_left(struct evaluations e, int64_t every);

#endif
