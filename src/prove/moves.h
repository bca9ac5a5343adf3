/* What tune can do: switch a pass on or off (every pass of pass_table), or change a setting (one table, one file each). A move looks
 * at the config as it stands, measured, and proposes the config after it with the speed-up that is expected. Passes that the config
 * switches by their own key stay as they are. */
#ifndef HONE_PROVE_MOVES_H
#define HONE_PROVE_MOVES_H

#include "prove/situation.h"
#include "prove/tune.h"

struct proposal {
    struct config next;
    int places;                             /* 0: there is nothing to do */
    double predicted;                       /* speed-up, by the cost model and the measured peaks */
    char change[TUNE_CHANGE];               /* "train.batch_size: 16, train.accumulate: 2" */
};
typedef enum status propose_fn(struct proposal *out, const struct situation *now, int pass, struct error *err);

enum move_gain { GAIN_IN_STEP, GAIN_AROUND_STEP };      /* around: evaluation; the step stays the same program */

struct move {
    char name[TUNE_NAME];
    const char *answers, *what;             /* answers NULL: no finding asks for it */
    enum pass_effort effort;
    enum move_gain gain;
    bool trade;                             /* something is given for the speed: memory, precision, how often one looks */
    bool grows;                             /* it may take more memory, as long as the machine has it */
    int pass;                               /* index in pass_table; -1: a setting */
    bool off;                               /* the pass is switched off, in case it is slower here */
    propose_fn *propose;
};
/* Move i of all; false: there are no more. */
bool move_get(int i, struct move *out);
int move_phase(const struct move *m);

propose_fn propose_pass, propose_without, propose_batch, propose_bucket, propose_loader, propose_evaluation;

/* The config with more passes on. */
struct config config_with_passes(const struct config *c, pass_set set);

/* What a step of `then` is expected to take when `now`, the measured program of the same model, took what the profile says. An op
 * that both have keeps its time, in the ratio of its rooflines where its size changed; new ones take the time of those that went, in
 * the ratio of their rooflines; what is not work of ops goes with their number. */
double predict_step_us(const struct profile *measured, const struct program *now, const struct program *then);
/* The same, and what it would be with the new ops at their roofline. changed[i], where it is given (as many as `now` has ops; false), is
 * set for the ops of `now` that go, or do something else. */
struct prediction {
    double us, best_us;
};
struct prediction predict_step(const struct profile *measured, const struct program *now, const struct program *then, bool *changed);

/* What a pass that is off would do to the measured program: the one prediction that tune decides by and profile reports. */
struct pass_prediction {
    struct config next;                     /* with the pass on */
    int places;                             /* 0: it is on, or finds nothing to do */
    double speedup, speedup_high;           /* expected; and with the new ops at their roofline */
    double saved_bytes;                     /* of planned memory */
    bool *ops;                              /* (ops of the program): those that go, or do something else; NULL: no places */
};
enum status predict_pass(struct pass_prediction *out, const struct situation *now, int pass, struct error *err);
void pass_prediction_release(struct pass_prediction *p);

#endif
