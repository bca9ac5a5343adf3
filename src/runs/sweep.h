/* A config with some keys varied: a run for every combination of their values, made in turn. What is finished is kept, so that a sweep
 * that was stopped goes on where it was. */
#ifndef HONE_RUNS_SWEEP_H
#define HONE_RUNS_SWEEP_H

#include <signal.h>

#include "runs/runs.h"

enum { SWEEP_AXES = 8, SWEEP_VALUES = 256, SWEEP_MOST = 1000, SWEEP_NAME = 200 };

struct sweep_axis {
    char *key;
    char *value[SWEEP_VALUES];
    int n;
};

struct sweep_run {
    char name[SWEEP_NAME];              /* "lr=0.001,dim=64", the name of its folder */
    char folder[CONFIG_PATH_MAX];
    struct config *config;
    bool kept;                          /* it was done before; so is one whose numbers were not finite, which comes to the same again */
    bool nan;                           /* it is one of these */
};

struct sweep {
    struct sweep_axis axis[SWEEP_AXES];
    int n_axes;
    struct sweep_run *run;              /* the last axis changes first */
    int n;
    int failed;                         /* that ended with an error, and of those that are kept those whose numbers were not finite */
    int failed_here;                    /* of these, because the machine could not */
    bool interrupted;
};

/* Every combination is checked, with its folder, before anything is trained. `vary`: "train.lr=1e-3,1e-2". `sets` hold for all. */
enum status runs_sweep_plan(struct sweep *s, const char *config, const char *const *sets, int n_sets, const char *const *vary, int n_vary, const char *out,
                       struct error *err);

/* Any function may be NULL. */
struct sweep_observer {
    void *context;
    const volatile sig_atomic_t *stop;
    void (*on_step)(void *context, int run, int64_t step, int64_t steps);
    void (*on_end)(void *context, int run, const struct error *failed);         /* NULL: it is finished, or was kept */
};
/* A run that fails is told and counted, and the next one is made. */
void runs_sweep_train(struct sweep *s, const struct sweep_observer *o);
void runs_sweep_release(struct sweep *s);

/* Those that have begun. */
enum status runs_sweep_read(const struct sweep *s, struct runs *out, struct error *err);

#endif
