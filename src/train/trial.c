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
#include "train/follow_int.h"
#include "train/train_int.h"

struct trial {
    struct model_run run;
    struct loader *loader;
    int *writers;                   /* of the values of the program that ran last; NULL: nobody asked yet */
    const struct exec *written;     /* whose these are */
    int rested;                     /* batches that its loader ended at its last rest; 0 after a step */
    int number;                     /* that those who follow know it by; -1: nobody does */
};

/* Numbers of trials that are open, where others follow. */
static uint64_t numbers;

static int take_number(void)
{
    int i = 0;
    while (numbers >> i & 1)
        i++;
    numbers |= (uint64_t)1 << i;
    return i;
}

static enum status tell(const struct trial *t, enum order_kind kind, struct error *err)
{
    return t->number < 0 ? OK : follow_tell(ranks_of(&t->run.config), kind, t->number, 0, NULL, err);
}

/* ---- opening ---- */

static enum status open_loader(struct trial *t, struct error *err)
{
    const struct config *c = &t->run.config;
    return model_run_loader(&t->loader, &t->run, 0, (int)c->data.workers, (int)c->data.prefetch, err);
}

/* Rank 0 goes first, as ranks_open_run has it; where one fails, all do. */
static enum status open_in_turn(struct trial *t, const struct config *c, struct dist *ranks, struct dataset *d, trial_change_fn *change, void *context,
                                struct error *err)
{
    const bool leads = dist_rank(ranks) == 0;
    enum status st = leads ? model_run_open_changed(&t->run, c, d, change, context, err) : OK;
    st = ranks_agree(ranks, st, err);
    if (st == OK && !leads)
        st = model_run_open_changed(&t->run, c, d, change, context, err);
    return ranks_agree(ranks, st, err);
}

enum status trial_open_here(struct trial **out, const struct config *c, bool together, trial_change_fn *change, void *context, struct error *err)
{
    struct dist *ranks = together ? ranks_of(c) : NULL;
    struct trial *t = xcalloc(1, sizeof *t);
    t->number = -1;
    struct config known = *c;
    struct dataset *d;
    if (!known.eval.every.n)
        known.eval.every.n = 1;         /* validation is asked for here, not by the loop */
    enum status st = dataset_open(&d, c, err);
    if (st == OK)
        t->run.dataset = d;
    st = ranks_agree(ranks, st, err);
    if (st == OK)
        st = open_in_turn(t, &known, ranks, d, change, context, err);
    if (st == OK)
        st = model_run_load_init(&t->run, err);
    if (st == OK)
        st = open_loader(t, err);
    st = ranks_agree(ranks, st, err);
    if (st == OK)
        *out = t;
    else
        trial_free(t);
    return st;
}

enum status trial_open(struct trial **out, const struct config *c, trial_change_fn *change, void *context, struct error *err)
{
    const int number = follow_leads(c) ? take_number() : -1;
    enum status st = number < 0 ? OK : follow_tell(ranks_of(c), ORDER_OPEN, number, 0, c, err);
    if (st == OK)
        st = trial_open_here(out, c, number >= 0, change, context, err);
    if (st == OK)
        (*out)->number = number;
    else if (number >= 0)
        numbers &= ~((uint64_t)1 << number);
    return st;
}

void trial_free(struct trial *t)
{
    struct error none;
    if (!t)
        return;
    tell(t, ORDER_FREE, &none);
    if (t->number >= 0)
        numbers &= ~((uint64_t)1 << t->number);
    loader_free(t->loader);
    model_run_close(&t->run);
    free(t->writers);
    free(t);
}

enum status trial_restart(struct trial *t, struct error *err)
{
    if (tell(t, ORDER_RESTART, err) != OK)
        return err->status;
    loader_free(t->loader);
    t->loader = NULL;               /* until all is as at the start */
    t->rested = 0;
    enum status st = exec_init_parameters(t->run.train, (uint64_t)t->run.config.train.seed, err);
    setup_done();
    if (st == OK)
        st = model_run_load_init(&t->run, err);
    return st == OK ? open_loader(t, err) : st;
}

/* Before others are told: where one does not begin a step, none does. */
static enum status check_started(const struct trial *t, struct error *err)
{
    return t->loader ? OK : error_set(err, CANNOT, "the run is not at its start, as its last restart failed; restart it again");
}

enum status trial_rest(struct trial *t, struct error *err)
{
    if (check_started(t, err) != OK || tell(t, ORDER_REST, err) != OK)
        return err->status;
    t->rested = loader_rest(t->loader);
    return OK;
}

int64_t trial_batches_ahead(const struct trial *t) { return t->loader ? loader_ahead(t->loader) : 0; }

int trial_batches_rested(const struct trial *t) { return t->rested; }

double trial_wait_us(const struct trial *t) { return t->loader ? (double)loader_wait_ns(t->loader) / 1e3 : 0; }

int trial_workers(const struct trial *t) { return (int)t->run.config.data.workers; }

/* ---- facts ---- */

const struct program *trial_program(const struct trial *t) { return exec_program(t->run.train); }

double trial_tokens_per_step(const struct trial *t)
{
    const struct config *c = &t->run.config;
    const int64_t samples = c->train.batch_size * c->train.accumulate;
    return (double)(samples * c->model.seq) * (1 - dataset_padding(t->run.dataset, samples, 0, 1));
}

double trial_planned_bytes(const struct trial *t)
{
    const struct exec_memory m = exec_memory(t->run.train);
    return exec_memory_bytes(&m);
}

struct evaluations trial_evaluations(const struct trial *t, struct interval every)
{
    return model_run_evaluations(&t->run, every);
}

double trial_model_flops(const struct trial *t)
{
    const struct config *c = &t->run.config;
    if (t->run.train_lengths.n)
        return NAN;
    return model_step_flops(trial_program(t), &c->model, c->train.batch_size * c->train.accumulate / division_of(c).ranks);
}

int64_t trial_cycle(const struct trial *t) { return cycle_steps(&t->run.config); }

double trial_ops_per_step(const struct trial *t) { return program_runs_per_step(trial_program(t)); }

double trial_kernels_per_step(struct trial *t)
{
    const double n = exec_kernels_per_step(t->run.train);
    return n >= 0 ? n : NAN;
}

int trial_lanes(const struct trial *t)
{
    return t->run.backend->address || division_of(&t->run.config).ranks > 1 ? 0 : exec_lanes(t->run.train);
}

const char *trial_gpu_address(const struct trial *t) { return t->run.backend->address; }

double trial_choice_gain_us(const struct trial *t) { return exec_choice_gain_us(t->run.train); }

/* ---- gradients ---- */

enum status trial_backward(struct trial *t, struct error *err)
{
    return check_started(t, err) == OK && tell(t, ORDER_BACKWARD, err) == OK ? model_run_backward(&t->run, t->loader, err) : err->status;
}

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
    struct exec *e = t->run.last;
    const struct program *p = exec_program(e);
    parameter = program_find(p, trial_program(t)->values[parameter].name);
    const value_id grad = p->values[parameter].grad;
    if (!t->writers || t->written != e) {
        free(t->writers);
        t->writers = program_writers(p);
        t->written = e;
    }
    const int writer = grad == NO_VALUE ? -1 : t->writers[grad];
    if (p->n_buckets)
        return error_set(err, CANNOT, "dist.shard is optimizer, and ranks have slices of gradients, which are not compared; try --set dist.shard=none");
    if (writer < 0 || p->values[grad].dtype != F32)
        return error_set(err, CANNOT, "the program has no f32 gradient of '%s'", p->values[parameter].name);
    if (p->ops[writer].phase <= PHASE_BACKWARD || p->ops[writer].kind == OP_REDUCE_WAIT)
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
    *out = (struct trial_step){.loss = NAN, .norm = NAN, .us = NAN};
    if (check_started(t, err) != OK || tell(t, ORDER_STEP, err) != OK)
        return err->status;
    t->rested = 0;
    const int64_t start = clock_ns();
    enum status st = model_run_step(&t->run, t->loader, NULL, &whole, err);
    exec_finish(t->run.last);
    struct trial_step made = {.us = (double)(clock_ns() - start) / 1e3};
    if (st == OK) {
        made.loss = model_run_host(&t->run, "host.loss");
        made.norm = model_run_host(&t->run, "host.norm");
        st = exec_status(t->run.train, err);            /* reading can fail, too */
    }
    *out = st == OK ? made : (struct trial_step){.loss = NAN, .norm = NAN, .us = NAN};
    return st;
}

enum status trial_validate(struct trial *t, const volatile sig_atomic_t *stop, bool *has_data, double *loss, struct error *err)
{
    double losses[DOMAINS_MAX] = {NAN};
    *has_data = t->run.eval;
    *loss = NAN;
    if (check_started(t, err) != OK || tell(t, ORDER_VALIDATE, err) != OK)
        return err->status;
    const enum status st = *has_data ? model_run_evaluate(&t->run, stop, losses, err) : OK;
    if (st == OK && stop && *stop)
        return error_stopped(err, "stopped before the validation loss was known");
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
