/* A run under test; see trial.h. */
#include "train/trial.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/setup.h"
#include "model/model.h"
#include "program/rewrite.h"
#include "train/train_int.h"

struct trial {
    struct model_run run;
    struct loader *loader;
    int *writers;                   /* of the training program's values; NULL: nobody asked yet */
};

/* ---- opening ---- */

static enum status open_loader(struct trial *t, struct error *err)
{
    const struct config *c = &t->run.config;
    loader_free(t->loader);
    t->loader = NULL;
    return model_run_loader(&t->loader, &t->run, 0, (int)c->data.workers, (int)c->data.prefetch, err);
}

enum status trial_open(struct trial **out, const struct config *c, trial_change_fn *change, void *context, struct error *err)
{
    struct trial *t = xcalloc(1, sizeof *t);
    struct config known = *c;
    struct dataset *d;
    if (!known.eval.every.n)
        known.eval.every.n = 1;         /* validation is asked for here, not by the loop */
    enum status st = dataset_open(&d, c, err);
    if (st == OK)
        st = model_run_open_changed(&t->run, &known, d, change, context, err);
    if (st == OK)
        st = model_run_load_init(&t->run, err);
    if (st == OK)
        st = open_loader(t, err);
    if (st == OK)
        *out = t;
    else
        trial_free(t);
    return st;
}

void trial_free(struct trial *t)
{
    if (!t)
        return;
    loader_free(t->loader);
    model_run_close(&t->run);
    free(t->writers);
    free(t);
}

enum status trial_restart(struct trial *t, struct error *err)
{
    enum status st = exec_init_parameters(t->run.train, (uint64_t)t->run.config.train.seed, err);
    setup_done();
    if (st == OK)
        st = model_run_load_init(&t->run, err);
    return st == OK ? open_loader(t, err) : st;
}

/* ---- facts ---- */

const struct program *trial_program(const struct trial *t) { return exec_program(t->run.train); }

int64_t trial_tokens_per_step(const struct trial *t)
{
    const struct config *c = &t->run.config;
    return c->train.batch_size * c->train.accumulate * c->model.seq;
}

double trial_planned_bytes(const struct trial *t)
{
    const struct exec_memory m = exec_memory(t->run.train);
    return exec_memory_bytes(&m);
}

int64_t trial_steps_between(const struct trial *t, struct interval every)
{
    return interval_steps(every, t->run.steps_per_epoch);
}

double trial_model_flops(const struct trial *t)
{
    const struct config *c = &t->run.config;
    return model_step_flops(trial_program(t), &c->model, c->train.batch_size * c->train.accumulate);
}

double trial_ops_per_step(const struct trial *t) { return program_runs_per_step(trial_program(t)); }

double trial_kernels_per_step(struct trial *t)
{
    const double n = exec_kernels_per_step(t->run.train);
    return n >= 0 ? n : NAN;
}

const char *trial_gpu_address(const struct trial *t) { return t->run.backend->address; }

double trial_choice_gain_us(const struct trial *t) { return exec_choice_gain_us(t->run.train); }

/* ---- gradients ---- */

enum status trial_backward(struct trial *t, struct error *err) { return model_run_backward(&t->run, t->loader, err); }

/* acc / total: what the optimize phase would make of an accumulator. */
static void read_mean(struct exec *e, const struct op *divide, float *out)
{
    const int64_t n = shape_count(exec_program(e)->values[divide->out[0]].shape);
    const float total = exec_scalar(e, divide->in[1]);
    exec_read(e, divide->in[0], out);
    for (int64_t i = 0; i < n; i++)
        out[i] /= total;
}

static void take_scale_off(struct exec *e, float *gradient, int64_t n)
{
    const float scale = exec_scalar(e, exec_program(e)->loss_scale);
    for (int64_t i = 0; i < n; i++)
        gradient[i] /= scale;
}

enum status trial_gradient(struct trial *t, value_id parameter, float *out, struct error *err)
{
    struct exec *e = t->run.train;
    const struct program *p = trial_program(t);
    const value_id grad = p->values[parameter].grad;
    if (!t->writers)
        t->writers = program_writers(p);
    const int writer = grad == NO_VALUE ? -1 : t->writers[grad];
    if (writer < 0 || p->values[grad].dtype != F32)
        return error_set(err, CANNOT, "the program has no f32 gradient of '%s'", p->values[parameter].name);
    if (p->ops[writer].phase <= PHASE_BACKWARD)
        exec_read(e, grad, out);
    else if (p->ops[writer].kind == OP_DIVIDE)
        read_mean(e, &p->ops[writer], out);
    else
        return error_set(err, CANNOT, "the gradient of '%s' is made by op %s, after backward, and cannot be read before the update",
                         p->values[parameter].name, op_info(p->ops[writer].kind)->name);
    if (p->loss_scale != NO_VALUE)
        take_scale_off(e, out, shape_count(p->values[parameter].shape));
    return exec_status(e, err);
}

/* ---- steps ---- */

enum status trial_step(struct trial *t, struct trial_step *out, struct error *err)
{
    bool whole;
    const int64_t start = clock_ns();
    enum status st = model_run_step(&t->run, t->loader, NULL, &whole, err);
    exec_finish(t->run.train);
    struct trial_step made = {.us = (double)(clock_ns() - start) / 1e3};
    if (st == OK) {
        made.loss = model_run_host(&t->run, "host.loss");
        made.norm = model_run_host(&t->run, "host.norm");
        st = exec_status(t->run.train, err);            /* reading can fail, too */
    }
    *out = st == OK ? made : (struct trial_step){.loss = NAN, .norm = NAN, .us = NAN};
    return st;
}

enum status trial_validate(struct trial *t, bool *has_data, double *loss, struct error *err)
{
    double losses[DOMAINS_MAX] = {NAN};
    *has_data = t->run.eval;
    const enum status st = *has_data ? model_run_evaluate(&t->run, NULL, losses, err) : OK;
    *loss = losses[0];                  /* trials do not go beyond the first stage */
    return st;
}

uint64_t trial_fingerprint(struct trial *t)
{
    const struct program *p = trial_program(t);
    uint64_t hash = 0;
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].kind != VALUE_PARAMETER)
            continue;
        const size_t bytes = value_bytes(&p->values[i]);
        void *host = xcalloc(1, bytes);
        exec_read(t->run.train, i, host);
        hash = XXH3_64bits_withSeed(host, bytes, hash);
        free(host);
    }
    return hash;
}
