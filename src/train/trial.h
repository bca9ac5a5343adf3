/* A run under test: a model on its own data, from the seed on, whose gradients, steps, weights and memory can be looked at one
 * by one. Nothing is written to disk. */
#ifndef HONE_TRAIN_TRIAL_H
#define HONE_TRAIN_TRIAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "core/error.h"
#include "program/program.h"

struct trial;

/* Changes the training program after all passes of the config, before it is bound to memory: a pass on probation. */
typedef void trial_change_fn(struct program *p, void *context);

/* Opens the dataset, the programs and the loader of a config; `change` may be NULL. */
enum status trial_open(struct trial **out, const struct config *c, trial_change_fn *change, void *context, struct error *err);
void trial_free(struct trial *t);                       /* NULL is fine */

const struct program *trial_program(const struct trial *t);
double trial_tokens_per_step(const struct trial *t);    /* of samples: as many however rows are made of them */
double trial_planned_bytes(const struct trial *t);      /* parameters, state, inputs, workspace and scratch of training */
struct evaluations trial_evaluations(const struct trial *t, struct interval every);       /* of its whole run, with this for eval.every */
double trial_model_flops(const struct trial *t);         /* of one step by the usual count; NAN: steps differ in length */
int64_t trial_cycle(const struct trial *t);             /* steps that take as long as the next so many */
double trial_ops_per_step(const struct trial *t);       /* every micro-batch counted */
double trial_kernels_per_step(struct trial *t);         /* see exec_kernels_per_step; NAN: not known */
int trial_lanes(const struct trial *t);                 /* see exec_lanes; 0: cores do not decide how long a step takes, or not those of this process alone */
const char *trial_gpu_address(const struct trial *t);   /* for gpu_watch_begin; NULL: it runs on none */
double trial_choice_gain_us(const struct trial *t);     /* see exec_choice_gain_us */

/* Back to the seed: weights as at the start, states zero, the first batch next. Where it fails, nothing can be run until another one does not. */
enum status trial_restart(struct trial *t, struct error *err);

/* Forward and backward over the batches of one step, without an update. Then the gradient that the optimizer would use can be
 * read, parameter by parameter, as f32; then trial_restart. */
enum status trial_backward(struct trial *t, struct error *err);
enum status trial_gradient(struct trial *t, value_id parameter, float *out, struct error *err);

/* All are always set: NAN where the step failed. */
struct trial_step {
    double loss, norm;              /* norm: of the gradient, before clipping */
    double us;                      /* of the step alone, without reading these */
};
enum status trial_step(struct trial *t, struct trial_step *out, struct error *err);

/* Until the next step its loader rests: whoever measures another trial meanwhile would have it make its batches in the time of that one's steps.
 * Waits for the batches that are under way. */
enum status trial_rest(struct trial *t, struct error *err);
int trial_batches_rested(const struct trial *t);        /* those it waited for, in time that no step has: the next steps find them ready; 0 after a step */
int64_t trial_batches_ahead(const struct trial *t);      /* that are ready to be read */
double trial_wait_us(const struct trial *t);            /* what its steps have waited for batches since it was opened or restarted */
int trial_workers(const struct trial *t);               /* that make its batches; 0: its steps do */

/* The mean loss of config.eval.batches batches of the validation data, also where eval.every is 0. *has_data false: there is
 * none. `stop` may be NULL; where it is set before the end there is no loss, but an error. */
enum status trial_validate(struct trial *t, const volatile sig_atomic_t *stop, bool *has_data, double *loss, struct error *err);

/* A hash of the bits of all parameters. */
uint64_t trial_fingerprint(struct trial *t);

#endif
