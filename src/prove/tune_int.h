/* The state of tune, shared by its files. */
#ifndef HONE_PROVE_TUNE_INT_H
#define HONE_PROVE_TUNE_INT_H

#include "core/clock.h"
#include "prove/tune.h"

struct situation;

struct tuner {
    struct tune_result *r;
    const struct tune_options *o;
    struct config now;                      /* what has been kept */
    struct situation *situation;            /* of `now`, measured; NULL: not yet */
    double planned_bytes, base_bytes;       /* of `now`, and of the base: what a stage saved, a later one may take again */
    uint64_t tried;                         /* bit i: move i */
    double start_s;
};

static inline double tuner_spent_s(const struct tuner *t) { return clock_s() - t->start_s; }
bool tuner_stopped(const struct tuner *t);
void tuner_tell(const struct tuner *t, const char *what);

/* ---- tune_points.c ---- */

/* Before and after, each alone. */
enum status tune_measure_ends(struct tuner *t, struct error *err);
/* 8 x 128 and 16 x 256 are timed; memory is planned over lengths of the sequence, and where a size cannot be run: it needs more
 * memory than there is, or longer data. */
void tune_measure_sizes(struct tuner *t);
/* A stage that only changes how often evaluation runs: steps and evaluations are timed in turns, and put together as both
 * configs say. */
enum status tune_measure_evaluation(struct tune_stage *s, const struct config *a, const struct config *b, struct error *err);

#endif
