/* A model with its data on a device: opening it, running a step, evaluating. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/setup.h"
#include "passes/passes.h"
#include "train/train_int.h"

/* Hands the program to a new executor, or frees it. */
static enum status open_exec(struct exec **out, struct program *p, struct backend *b, struct exec *shared,
                             struct error *err)
{
    const enum status st = exec_new(out, p, b, shared, err);
    if (st != OK)
        program_free(p);
    return st;
}

static enum status open_train(struct model_run *r, program_change_fn *change, void *context, struct error *err)
{
    struct program *p;
    enum status st = step_program_for(&p, &r->config, r->total_steps, &(struct step_for){.backend = r->backend}, r->places, err);
    if (st == OK && change)
        change(p, context);
    if (st == OK && open_exec(&r->train, p, r->backend, NULL, err) != OK)
        st = step_refuse(&r->config, r->total_steps, err);
    return st;
}

static enum status open_eval(struct model_run *r, struct error *err)
{
    struct program *p;
    if ((!r->config.eval.every.n && !r->stage_steps) || !r->config.eval.batches || !dataset_samples(r->dataset, SPLIT_VAL))
        return OK;
    enum status st = evaluation_program(&p, &r->config, err);
    if (st == OK && open_exec(&r->eval, p, r->backend, r->train, err) != OK)
        st = evaluation_refuse(&r->config, err);
    return st == OK ? evaluation_lengths(&r->eval_lengths, &r->config, r->dataset, r->backend, r->eval, err) : st;
}

/* The step counter on the device has 32 bits. */
enum status train_count_steps(struct step_counts *out, const struct config_train *t, int64_t samples, struct error *err)
{
    const int64_t per_step = t->batch_size * t->accumulate;
    out->per_epoch = (samples + per_step - 1) / per_step;
    out->total = t->steps;
    if (t->epochs && (__builtin_mul_overflow(t->epochs, out->per_epoch, &out->total) || out->total > INT32_MAX))
        return error_set(err, BAD_INPUT, "train.epochs is %lld, and one epoch has %lld steps; at most %d steps can be counted",
                         (long long)t->epochs, (long long)out->per_epoch, INT32_MAX);
    return OK;
}

int64_t interval_steps(struct interval every, int64_t steps_per_epoch)
{
    int64_t steps = every.n;
    if (every.epochs && __builtin_mul_overflow(every.n, steps_per_epoch, &steps))
        return INT64_MAX;               /* later than any run ends */
    return steps;
}

int64_t train_checkpoints(struct interval every, int64_t steps_per_epoch, int64_t steps)
{
    const int64_t apart = interval_steps(every, steps_per_epoch);
    return apart ? steps / apart + (steps % apart > 0) : 1;
}

struct evaluations model_run_evaluations(const struct model_run *r, struct interval every)
{
    return (struct evaluations){.steps = r->total_steps, .every = interval_steps(every, r->steps_per_epoch), .stage = r->stage_steps};
}

static enum status count_steps(struct model_run *r, struct error *err)
{
    struct step_counts n;
    const enum status st = train_count_steps(&n, &r->config.train, dataset_samples(r->dataset, SPLIT_TRAIN), err);
    if (st == OK) {
        r->steps_per_epoch = n.per_epoch;
        r->total_steps = n.total * config_stages(&r->config);
        r->stage_steps = r->config.data.domains.n ? n.total : 0;
    }
    return st;
}

int model_run_stage(const struct model_run *r, int64_t step)
{
    const int64_t last = dataset_domains(r->dataset) - 1, stage = r->stage_steps && step > 0 ? (step - 1) / r->stage_steps : 0;
    return (int)(stage < last ? stage : last);
}

int64_t model_run_epoch(const struct model_run *r, int64_t step)
{
    const int stage = model_run_stage(r, step);
    const int64_t per_step = r->config.train.batch_size * r->config.train.accumulate;
    const int64_t samples = dataset_samples(dataset_domain(r->dataset, stage), SPLIT_TRAIN);
    return (step - 1 - stage * r->stage_steps) / ((samples + per_step - 1) / per_step) + 1;
}

/* Tests make one rank slower: "1:20" is rank 1, by 20 ms a step. */
static int64_t test_delay_ns(const struct config *c)
{
    const char *text = getenv("HONE_TEST_DELAY");
    int rank;
    double ms;
    const bool mine = text && c->dist.comm && sscanf(text, "%d:%lf", &rank, &ms) == 2 && rank == c->dist.comm->rank && ms > 0 && ms < 1e5;
    return mine ? (int64_t)(ms * 1e6) : 0;
}

/* Tests change a bit of a weight of one rank: "1:20" is rank 1, before its step 20. */
static int64_t test_flip_step(const struct config *c)
{
    const char *text = getenv("HONE_TEST_FLIP");
    int rank;
    long long step;
    return text && c->dist.comm && sscanf(text, "%d:%lld", &rank, &step) == 2 && rank == c->dist.comm->rank ? step : 0;
}

enum status model_run_open(struct model_run *r, const struct config *c, struct dataset *dataset, struct error *err)
{
    return model_run_open_changed(r, c, dataset, NULL, NULL, err);
}

enum status model_run_open_changed(struct model_run *r, const struct config *c, struct dataset *dataset,
                                   program_change_fn *change, void *context, struct error *err)
{
    *r = (struct model_run){.config = *c, .dataset = dataset, .delay_ns = test_delay_ns(c), .flip_step = test_flip_step(c)};
    if (!r->config.model.vocab)
        r->config.model.vocab = dataset_vocab(dataset);
    enum status st = count_steps(r, err);
    if (st == OK)
        st = division_check(c, err);
    if (st == OK && c->data.pack == PACK_ON)
        r->config.model.rows = dataset_rows(dataset, division_of(c).batch);
    if (st == OK)
        st = train_open_backend(&r->backend, c, err);
    if (st == OK)
        r->backend->comm = c->dist.comm;
    if (st == OK)
        st = open_train(r, change, context, err);
    if (st == OK)
        st = model_run_open_lengths(r, err);
    if (st == OK)
        st = open_eval(r, err);
    if (st == OK)
        st = exec_init_parameters(r->train, (uint64_t)c->train.seed, err);
    setup_done();
    return st;
}

void model_run_close(struct model_run *r)
{
    moments_release(&r->moments);
    safetensors_release(&r->dealt);
    exec_settle(r->train);
    dist_forget_op(ranks_of(&r->config));
    lengths_close(&r->eval_lengths);
    exec_free(r->eval);
    exec_free(r->overflow);
    lengths_close(&r->train_lengths);
    exec_free(r->train);
    if (r->backend)
        r->backend->free(r->backend);
    dataset_free(r->dataset);
    json_decref(r->said);
}

/* Forward and backward change two things that outlive them: accumulators, and the tick that dropout counts by. */
static void undo_batches(struct exec *e, int32_t batches)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->phase >= PHASE_OPTIMIZE)
            continue;
        if (op->kind == OP_ACCUMULATE) {
            void *zeros = xcalloc(1, value_bytes(&p->values[op->in[0]]));
            exec_write(e, op->in[0], zeros);
            free(zeros);
        } else if (op->kind == OP_ADVANCE) {
            int32_t tick;
            exec_read(e, op->in[0], &tick);
            tick -= batches;
            exec_write(e, op->in[0], &tick);
        }
    }
}

enum status model_run_loader(struct loader **out, const struct model_run *r, int64_t first, int workers, int prefetch, struct error *err)
{
    const struct division v = division_of(&r->config);
    return loader_new_divided(out, r->dataset, SPLIT_TRAIN, v.batch, division_batches(&r->config), first * v.micro_batches, workers, prefetch,
                              err);
}

/* Dropout counts micro-batches, and within them samples. Where there are shards, every one has a number of its own, whichever rank it is on; where
 * each rank has a part of the batch, and no more is said, they count as one rank would (attrs.first of the ops). Between two steps the tick is the number of whole batches, as if nothing was divided. */
static void set_tick(struct model_run *r, const struct division *v, int64_t step, int64_t micro)
{
    const value_id tick = program_find(exec_program(r->train), "tick");
    const int64_t a = r->config.train.accumulate;
    if (v->shards == 1 || tick == NO_VALUE)
        return;
    const int64_t part = (step * a + micro % a) * v->shards + v->first + micro / a;
    const uint32_t value = (uint32_t)(micro < 0 ? step * a : v->by_sample ? step * a + micro : part);
    exec_write(r->train, tick, &value);
}

static int64_t step_of(struct model_run *r)
{
    uint32_t step;
    exec_read(r->train, exec_program(r->train)->step, &step);
    return step;
}

/* Whether this rank wants to stop goes with the sums of the step, so that all ranks know it after the same one. */
static void tell_stop(struct model_run *r, const volatile sig_atomic_t *stop)
{
    const value_id v = program_find(exec_program(r->last), RANKS_STOP);
    const float wanted = stop && *stop;
    if (v != NO_VALUE)
        exec_write(r->last, v, &wanted);
}

static void hear_stop(struct model_run *r)
{
    const value_id v = program_find(exec_program(r->train), HOST_STOP);
    r->stopping |= v != NO_VALUE && exec_scalar(r->train, v) > 0;
}

static void run_micro_batch(struct model_run *r, bool last)
{
    if (last)
        exec_run(r->last, PHASE_DATA, PHASE_OPTIMIZE);
    else
        exec_run_early(r->last);
    recorder_ran(r->recorder, PHASE_DATA, last ? PHASE_OPTIMIZE : PHASE_BACKWARD);
}

static void flip_bit(struct model_run *r)
{
    const struct program *p = exec_program(r->train);
    int v = 0;
    while (p->values[v].kind != VALUE_PARAMETER)
        v++;
    unsigned char *host = xcalloc(1, value_bytes(&p->values[v]));
    exec_read(r->train, v, host);
    host[2] ^= 1;                           /* in the middle of its mantissa: the lowest would be rounded away by later steps */
    exec_write(r->train, v, host);
    free(host);
}

enum status model_run_step(struct model_run *r, struct loader *loader, const volatile sig_atomic_t *stop, bool *whole,
                           struct error *err)
{
    const struct division v = division_of(&r->config);
    const int64_t n = v.micro_batches, step = v.shards > 1 ? step_of(r) : 0;
    *whole = false;
    recorder_begin_step(r->recorder);
    if (r->delay_ns)
        nanosleep(&(struct timespec){r->delay_ns / 1000000000, r->delay_ns % 1000000000}, NULL);
    if (r->flip_step && step + 1 == r->flip_step)
        flip_bit(r);
    for (int64_t i = 0; i < n; i++) {
        const bool stopped = i > 0 && stop && *stop && v.ranks == 1;
        const struct batch *b = stopped ? NULL : loader_next(loader, err);
        if (b)
            recorder_loaded(r->recorder, b);
        const int64_t start = clock_ns();
        if (!b || model_run_take(r, b, err) != OK) {
            undo_batches(r->train, (int32_t)i);
            set_tick(r, &v, step, -1);
            return stopped ? OK : err->status;
        }
        r->upload_ns += clock_ns() - start;
        recorder_runs(r->recorder, r->last);
        set_tick(r, &v, step, i);
        if (i + 1 == n)
            tell_stop(r, stop);
        recorder_uploaded(r->recorder);
        run_micro_batch(r, i + 1 == n);
    }
    recorder_end_step(r->recorder);
    set_tick(r, &v, step + 1, -1);
    *whole = true;
    hear_stop(r);
    if (v.ranks > 1 && r->config.dist.comm->status(r->config.dist.comm, err) != OK)
        return err->status;
    return exec_status(r->last, err);
}

enum status model_run_backward(struct model_run *r, struct loader *loader, struct error *err)
{
    const struct division v = division_of(&r->config);
    for (int64_t i = 0; i < v.micro_batches; i++) {
        const struct batch *b = loader_next(loader, err);
        if (!b)
            return err->status;
        if (model_run_take(r, b, err) != OK)
            return err->status;
        if (v.ranks > 1 && i + 1 < v.micro_batches)
            exec_run_early(r->last);
        else
            exec_run(r->last, PHASE_DATA, v.ranks > 1 ? PHASE_COMMUNICATE : PHASE_BACKWARD);       /* sums that were started are waited for */
    }
    return exec_status(r->last, err);
}

int model_run_kept(const struct model_run *r)
{
    return program_find(exec_program(r->train), METRICS_RING) == NO_VALUE ? 1 : METRICS_KEPT;
}

static float host_value(struct model_run *r, const char *name)
{
    return exec_scalar(r->train, program_find(exec_program(r->train), name));
}

void model_run_metrics(struct model_run *r, struct step_metrics *out, int n)
{
    const struct program *p = exec_program(r->train);
    const value_id ring = program_find(p, METRICS_RING);
    float kept[METRICS_KEPT][METRICS];
    uint32_t step;
    if (ring == NO_VALUE) {
        *out = (struct step_metrics){host_value(r, "host.loss"), host_value(r, "host.norm"), host_value(r, "host.lr")};
        return;
    }
    exec_read(r->train, ring, kept);
    exec_read(r->train, p->step, &step);
    for (int i = 0; i < n; i++) {
        const float *row = kept[(step - (uint32_t)(n - 1 - i)) % METRICS_KEPT];
        out[i] = (struct step_metrics){row[METRIC_LOSS], row[METRIC_NORM], row[METRIC_LR]};
    }
}

float model_run_host(struct model_run *r, const char *name)
{
    struct step_metrics last;
    model_run_metrics(r, &last, 1);
    return !strcmp(name, "host.loss") ? last.loss : !strcmp(name, "host.norm") ? last.norm : last.lr;
}
