/* The state of tune, shared by its files. */
#ifndef HONE_PROVE_TUNE_INT_H
#define HONE_PROVE_TUNE_INT_H

#include "core/clock.h"
#include "prove/moves.h"
#include "prove/tune.h"

struct tuner {
    struct tune_result *r;
    const struct tune_options *o;
    struct config now;                      /* what has been kept */
    struct situation *situation;            /* of `now`, measured; NULL: not yet */
    double planned_bytes, base_bytes;       /* of `now`, and of the base */
    double allowed_bytes;                   /* what a stage may take: what one saved, a later one may take again */
    double believed;                        /* a gain must be above it: what the base seems to win over itself, one way or the other, at least */
    uint64_t tried;                         /* bit i: move i */
    double around_s;                        /* what a proof took beside its turns, at most: opening, gradients, losses */
    double start_s;
};

static inline double tuner_spent_s(const struct tuner *t) { return clock_s() - t->start_s; }
bool tuner_stopped(const struct tuner *t);
void tuner_tell(const struct tuner *t, const char *what);
bool tuner_stages_have_s(const struct tuner *t, double seconds);   /* before the time for judging the whole begins */
void tuner_know_base(struct tuner *t, double planned_bytes);        /* what the base takes, once it is known */

/* b against a, by all gates: any gain counts, and b may take `memory` times what a does. */
struct proof {
    int64_t steps;                          /* of the loss curves */
    double memory;
    double share;                           /* of the time that a proof of a stage has for turns (tuner_turns_s) */
    bool patient;                           /* longer where the interval is wide, as far as the budget goes */
    trial_change_fn *change;                /* as in struct verify_options */
    void *change_context;
};
double tuner_turns_s(const struct tuner *t);            /* of each side: verify.seconds, or less where the budget is small */
double tuner_proof_s(const struct tuner *t, double share);         /* about how long a proof takes that is not measured longer */
enum status tuner_prove(struct tuner *t, struct verdict *v, const struct config *a, const struct config *b,
                        const struct proof *p, struct error *err);

enum { TUNE_STEPS = 5 };                    /* of the loss curves of a stage, or of another size */

/* ---- tune_larger.c ---- */

/* Looks for the sweet spot of the batch, and makes the base an update of so many samples in micro-batches of the given size: that larger ones compute the
 * same is then proved like any move. */
enum status tune_enlarge(struct tuner *t, struct error *err);
const char *tune_larger_refused(const struct tuner *t);     /* why it is not tried with these options; NULL: it is, where it is asked for */
/* At the end: where larger batches were not kept, the larger update is of no use, and goes. */
void tune_keep_or_shrink(struct tuner *t);

/* ---- tune_choose.c ---- */

/* What is tried next. */
struct choice {
    uint64_t moves;                         /* bit i: move i; 0: nothing is left that changes anything */
    struct tune_stage stage;
    struct config next;
    enum move_gain gain;
    bool grows;                             /* may take more memory */
};
/* The untried move that is expected to win most; at the first call, the roadmap, too. `in_time`: it can be tried. */
enum status tune_choose(struct tuner *t, struct choice *best, bool in_time, struct error *err);

/* ---- tune_whole.c ---- */

const char *tune_given_name(const struct config *c);     /* what to call the base in words */

/* Does the base give the same bits twice, and is it no faster than itself? */
enum status tune_check_base(struct tuner *t, struct error *err);
/* What a verdict says: to keep b, or why not. `believed`: what a gain must be above. */
double tune_gain(const struct gate *speed);     /* what a stage won: where turns fall into groups, no more than in any of them */
enum tune_outcome tune_decide(const struct verdict *v, double believed, char why[TUNE_WHY]);
/* Base against what was kept, by all gates; where that is no better, it is taken back. */
enum status tune_judge_whole(struct tuner *t, struct error *err);
/* The same against programs that people think of: without passes, with all of them; as many as there is time for. */
void tune_measure_references(struct tuner *t);

/* ---- tune_points.c ---- */

/* Is there time for this before the end? */
bool tuner_has_s(const struct tuner *t, double seconds);

struct tune_point tune_point_of(const struct verdict_side *s, const struct config *c);
/* 8 x 128 and 16 x 256 are judged by all gates; memory is planned over lengths of the sequence, and where a size cannot be run: it needs
 * more memory than there is, or longer data. */
void tune_measure_sizes(struct tuner *t);
/* How long the run is, and what of it is evaluation: at first that of the base. Where rows differ in length a point, which is a median, is of the
 * usual ones: the run is as long as its profile says. */
void tune_know_run(struct tune_result *r, const struct measured *m, const struct profile *p);
double tune_run_step_us(const struct tune_result *r, double point_us);     /* of the run, where a point has steps so long */
void tune_settle_evaluation(struct tune_result *r);        /* when all else is measured: gains of evaluation with the steps of the result */
/* A choice that only changes how often evaluation runs: steps and evaluations are timed in turns, as many as the stages have time for, and put
 * together as both configs say. */
enum status tune_measure_evaluation(struct tuner *t, struct choice *c, struct error *err);
double tune_evaluation_s(const struct tuner *t);        /* that this takes at least; 0: not known */

#endif
