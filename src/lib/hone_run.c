/* Runs of libhone that are in memory: a trial, step by step. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "lib/hone_int.h"
#include "program/program.h"
#include "train/trial.h"

struct hone_run {
    struct trial *trial;
    int64_t steps;
    double loss;
    struct config_train said;
};

hone_status hone_run_open(hone_run **out, const hone_config *config)
{
    struct error err;
    if (out)
        *out = NULL;
    if (!out || !config)
        return hone_missing(out ? "the config" : "where the run goes");
    if (config_stages(&config->c) > 1)
        return hone_end(error_set(&err, BAD_INPUT, "data.domains are learned in stages, which are of a run in a folder; use hone_train"), &err);
    hone_run *run = xcalloc(1, sizeof *run);
    const locale_t theirs = hone_compute_begin();
    const enum status st = trial_open(&run->trial, &config->c, NULL, NULL, &err);
    hone_compute_end(theirs);
    run->loss = NAN;
    run->said = config->c.train;
    if (st == OK)
        *out = run;
    else
        free(run);
    return hone_end(st, &err);
}

static enum status write_program(const void *what, FILE *to, struct error *err)
{
    const hone_run *run = what;
    (void)err;
    program_print(trial_program(run->trial), to);
    return OK;
}

hone_status hone_run_program(const hone_run *run, char **text)
{
    return run ? hone_text(text, write_program, run) : hone_missing("the run");
}

/* The update of such a step is left out. Where loss is scaled, a norm that is not finite is how its scale is found. */
static enum status check_finite(const hone_run *run, const struct trial_step *made, struct error *err)
{
    const bool scaled = trial_program(run->trial)->loss_scale != NO_VALUE && isfinite(made->loss);
    if ((isfinite(made->loss) && isfinite(made->norm)) || scaled || run->said.on_nan != ON_NAN_STOP)
        return OK;
    return error_set(err, BAD_INPUT, "step %lld: loss is %g and the gradient norm %g; the weights are kept as they were before it. Try a lower train.lr (now %g), a longer train.warmup, "
                     "train.clip: 1.0, or train.on_nan: skip", (long long)run->steps, made->loss, made->norm, run->said.lr);
}

/* *go_on false: on_step wants no more. */
static enum status train_step(hone_run *run, hone_step_fn *on_step, void *context, bool *go_on, struct error *err)
{
    struct trial_step made;
    const enum status st = trial_step(run->trial, &made, err);
    if (st != OK)
        return st;
    run->loss = made.loss;
    run->steps++;
    const locale_t ours = hone_call_out();
    *go_on = !on_step || !on_step(context, &(hone_step){run->steps, made.loss, made.norm, made.us});
    hone_leave(ours);
    return check_finite(run, &made, err);
}

hone_status hone_run_train(hone_run *run, int64_t steps, hone_step_fn *on_step, void *context)
{
    struct error err;
    enum status st = OK;
    bool go_on = true;
    if (!run)
        return hone_missing("the run");
    if (steps < 0)
        return hone_end(error_set(&err, BAD_INPUT, "steps is %lld; it must be at least 0", (long long)steps), &err);
    const locale_t theirs = hone_compute_begin();
    for (int64_t i = 0; i < steps && st == OK && go_on; i++)
        st = train_step(run, on_step, context, &go_on, &err);
    hone_compute_end(theirs);
    return hone_end(st, &err);
}

int64_t hone_run_steps(const hone_run *run) { return run ? run->steps : 0; }

double hone_run_loss(const hone_run *run) { return run ? run->loss : NAN; }

double hone_run_bytes(const hone_run *run) { return run ? trial_planned_bytes(run->trial) : NAN; }

hone_status hone_run_evaluate(hone_run *run, double *loss)
{
    struct error err;
    double mean;
    bool has_data = false;
    if (!run || !loss)
        return hone_missing(run ? "where the loss goes" : "the run");
    const locale_t theirs = hone_compute_begin();
    enum status st = trial_validate(run->trial, NULL, &has_data, &mean, &err);
    hone_compute_end(theirs);
    if (st == OK && !has_data)
        st = error_set(&err, ANSWER_NO, "there is no validation data; try a data.val_fraction above 0, or data.val_path");
    if (st == OK)
        *loss = mean;
    return hone_end(st, &err);
}

hone_status hone_run_restart(hone_run *run)
{
    struct error err;
    if (!run)
        return hone_missing("the run");
    const locale_t theirs = hone_compute_begin();
    const enum status st = trial_restart(run->trial, &err);
    hone_compute_end(theirs);
    run->steps = 0;
    run->loss = NAN;
    return hone_end(st, &err);
}

void hone_run_free(hone_run *run)
{
    if (!run)
        return;
    const locale_t theirs = hone_compute_begin();
    trial_free(run->trial);
    hone_compute_end(theirs);
    free(run);
}
