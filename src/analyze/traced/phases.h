/* What an iteration is made of: data, forward, backward, optimizer, evaluation, other, communication. Which of them each call of the
 * host is of (phases.c), where the host is at each moment (phases_line.c), how long each takes (phases_time.c). Of the judged steps. */
#ifndef HONE_ANALYZE_TRACED_PHASES_H
#define HONE_ANALYZE_TRACED_PHASES_H

#include "analyze/traced/study.h"

/* In the order in which `hone profile` has them. */
enum step_phase {
    STEP_DATA, STEP_FORWARD, STEP_BACKWARD, STEP_OPTIMIZER, STEP_EVALUATION, STEP_OTHER, STEP_COMMUNICATION, STEP_PHASES,
    STEP_NONE = STEP_PHASES                     /* of no thread that makes the step, or only around what is of a phase */
};

struct phase_stretch { int64_t from_ns; enum step_phase phase; };

struct phases {
    const struct study *s;
    uint8_t *of;                            /* (n_host) enum step_phase */
    bool any_backward, any_model;
    struct phase_stretch *line;             /* (n_line) where the host is: each until the next one begins; the last is STEP_OTHER */
    int32_t n_line;
};

/* Of a range that the user named after a phase: "## forward ##"; STEP_NONE: it is none. */
enum step_phase phases_named(const struct study *s, int32_t host);
struct phases phases_of(const struct study *s);
void phases_release(struct phases *p);
void phases_line(struct phases *p);         /* fills the line */
int32_t phases_at(const struct phases *p, int64_t at_ns);       /* which stretch of the line a moment is in; -1: before them */

/* Calls `each` for every evaluation, of the outermost ops top[first] to top[end - 1]; rule_evaluation.c. */
void study_evaluations(const struct study *s, void (*each)(void *context, int32_t first, int32_t end), void *context);

#endif
