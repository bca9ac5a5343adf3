/* From a study to findings and a plan. */
#ifndef HONE_ANALYZE_TRACED_JUDGE_H
#define HONE_ANALYZE_TRACED_JUDGE_H

#include "analyze/traced/bounds.h"
#include "analyze/traced/study.h"

/* The profiler's cost: the estimate and the ends of what it may be. */
struct costs { struct replay_cost usual, low, high; };

void judge_findings(struct study *s, const struct costs *costs);        /* findings of the diagnosis, ranked */
void judge_plan(struct study *s, const struct costs *costs);            /* phases */
double judge_noise(const struct study *s);                              /* by how much two runs of the same step differ */
void judge_words(struct study *s);                                      /* headline and answers */
void judge_waits(struct diagnosis *d);                                  /* of a job, what of the headline's wait is for other ranks */
void judge_answers(struct diagnosis *d);                                /* of these: what to do first, what gain is realistic */
void judge_confidence(struct diagnosis *d);                             /* of every finding; last */
enum { MOST_FINDINGS = 64 };
void finding_insert(struct diagnosis *d, struct finding f);             /* where it belongs; rank.c */
bool finding_blocks_graphs(const struct finding *f);                    /* its fault must go before a step can be one graph */

/* Replays the edit (NULL: none) at one cost: the step before and after, within bounds. */
struct gain judge_gain(struct study *s, struct replay_cost cost, const struct edit *e);
struct interval judge_interval(struct study *s, const struct costs *costs, const struct edit *e, double doubt);

#endif
