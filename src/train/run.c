/* A model with its data on a device: building the programs, running a step, evaluating. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"
#include "passes/passes.h"
#include "train/train_int.h"

enum status train_open_backend(struct backend **out, const struct config *c, struct error *err)
{
    if (c->device == DEVICE_CUDA)
        return error_set(err, CANNOT, "device is cuda, and this build of hone has no CUDA backend; try device: cpu");
    return cpu_backend_new(out, (int)c->threads, c->backend.kernels == KERNELS_REFERENCE, err);
}

static struct optimizer_settings settings_of(const struct config *c, int64_t total_steps)
{
    const struct config_train *t = &c->train;
    return (struct optimizer_settings){
        .lr = (float)t->lr, .min_lr = (float)t->min_lr, .weight_decay = (float)t->weight_decay,
        .beta1 = (float)t->beta1, .beta2 = (float)t->beta2, .eps = (float)t->eps, .schedule = (int)t->schedule,
        .warmup = t->warmup < total_steps ? t->warmup : total_steps, .total_steps = total_steps,
        .decay_all = t->decay == DECAY_ALL, .max_norm = (float)t->clip, .accumulate = (int)t->accumulate};
}

enum status step_program(struct program **out, const struct config *c, int64_t total_steps, struct error *err)
{
    const struct model_options options = {.batch = c->train.batch_size, .loss = true, .dropout = true,
                                          .seed = (uint64_t)c->train.seed};
    const struct optimizer_settings settings = settings_of(c, total_steps);
    struct program *p = NULL;
    enum status st = model_build(&p, &c->model, options, err);
    if (st == OK)
        st = pass_training_step(p, &settings, err);
    if (st == OK)
        *out = p;
    else
        program_free(p);
    return st;
}

/* Hands the program to a new executor, or frees it. */
static enum status open_exec(struct exec **out, struct program *p, struct backend *b, struct exec *shared,
                             struct error *err)
{
    const enum status st = exec_new(out, p, b, shared, err);
    if (st != OK)
        program_free(p);
    return st;
}

static enum status open_train(struct model_run *r, struct error *err)
{
    struct program *p;
    enum status st = step_program(&p, &r->config, r->total_steps, err);
    if (st == OK)
        st = open_exec(&r->train, p, r->backend, NULL, err);
    return st;
}

static enum status open_eval(struct model_run *r, struct error *err)
{
    struct program *p;
    if (!r->config.eval.every.n || !r->config.eval.batches || !dataset_samples(r->dataset, SPLIT_VAL))
        return OK;
    enum status st = model_build(&p, &r->config.model,
                                 (struct model_options){.batch = r->config.eval.batch_size, .loss = true}, err);
    if (st == OK)
        st = open_exec(&r->eval, p, r->backend, r->train, err);
    return st;
}

static int64_t steps_per_epoch(const struct dataset *d, const struct config_train *t)
{
    const int64_t per_step = t->batch_size * t->accumulate;
    return (dataset_samples(d, SPLIT_TRAIN) + per_step - 1) / per_step;
}

/* The step counter on the device has 32 bits. */
static enum status count_steps(struct model_run *r, struct error *err)
{
    const struct config_train *t = &r->config.train;
    r->steps_per_epoch = steps_per_epoch(r->dataset, t);
    r->total_steps = t->steps;
    if (t->epochs && (__builtin_mul_overflow(t->epochs, r->steps_per_epoch, &r->total_steps) || r->total_steps > INT32_MAX))
        return error_set(err, BAD_INPUT, "train.epochs is %lld, and one epoch has %lld steps; at most %d steps can be counted",
                         (long long)t->epochs, (long long)r->steps_per_epoch, INT32_MAX);
    return OK;
}

enum status model_run_open(struct model_run *r, const struct config *c, struct dataset *dataset, struct error *err)
{
    *r = (struct model_run){.config = *c, .dataset = dataset};
    if (!r->config.model.vocab)
        r->config.model.vocab = dataset_vocab(dataset);
    enum status st = count_steps(r, err);
    if (st == OK)
        st = train_open_backend(&r->backend, c, err);
    if (st == OK)
        st = open_train(r, err);
    if (st == OK)
        st = open_eval(r, err);
    if (st == OK)
        st = exec_init_parameters(r->train, (uint64_t)c->train.seed, err);
    return st;
}

void model_run_close(struct model_run *r)
{
    exec_free(r->eval);
    exec_free(r->train);
    if (r->backend)
        r->backend->free(r->backend);
    dataset_free(r->dataset);
}

static void upload(struct exec *e, const struct batch *b)
{
    const struct program *p = exec_program(e);
    exec_write(e, p->tokens, b->tokens);
    exec_write(e, p->targets, b->targets);
    if (p->segments != NO_VALUE)
        exec_write(e, p->segments, b->segments);
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

enum status model_run_step(struct model_run *r, struct loader *loader, const volatile sig_atomic_t *stop, bool *whole,
                           struct error *err)
{
    const int64_t n = r->config.train.accumulate;
    *whole = false;
    recorder_begin_step(r->recorder);
    for (int64_t i = 0; i < n; i++) {
        const bool stopped = i > 0 && stop && *stop;
        const struct batch *b = stopped ? NULL : loader_next(loader, err);
        if (!b) {
            undo_batches(r->train, (int32_t)i);
            return stopped ? OK : err->status;
        }
        const enum phase last = i + 1 == n ? PHASE_OPTIMIZE : PHASE_BACKWARD;
        recorder_loaded(r->recorder, b);
        upload(r->train, b);
        recorder_uploaded(r->recorder);
        exec_run(r->train, PHASE_DATA, last);
        recorder_ran(r->recorder, PHASE_DATA, last);
    }
    recorder_end_step(r->recorder);
    *whole = true;
    return OK;
}

float model_run_host(struct model_run *r, const char *name)
{
    return exec_scalar(r->train, program_find(exec_program(r->train), name));
}

enum status model_run_evaluate(struct model_run *r, const volatile sig_atomic_t *stop, double *loss, struct error *err)
{
    const int64_t size = r->config.eval.batch_size, samples = dataset_samples(r->dataset, SPLIT_VAL);
    int64_t batches = (samples + size - 1) / size;
    if (batches > r->config.eval.batches)
        batches = r->config.eval.batches;
    const struct program *p = exec_program(r->eval);
    struct loader *l;
    enum status st = loader_new(&l, r->dataset, SPLIT_VAL, size, 0, 0, 1, err);
    if (st != OK)
        return st;
    double sum = 0, count = 0;
    for (int64_t i = 0; i < batches && st == OK && !(stop && *stop); i++) {
        const struct batch *b = loader_next(l, err);
        if (!b) {
            st = err->status;
            break;
        }
        upload(r->eval, b);
        exec_run(r->eval, PHASE_DATA, PHASE_FORWARD);
        const double n = exec_scalar(r->eval, p->count);
        sum += exec_scalar(r->eval, p->loss) * n;
        count += n;
    }
    loader_free(l);
    *loss = sum / (count > 0 ? count : 1);
    return st;
}

enum status train_print_program(const struct config *c, FILE *to, struct error *err)
{
    struct config known = *c;
    struct dataset *d = NULL;
    struct program *p = NULL;
    int64_t steps = c->train.steps;
    enum status st = OK;
    if (!c->model.vocab || c->train.epochs)
        st = dataset_open(&d, c, err);
    if (st == OK && !c->model.vocab)
        known.model.vocab = dataset_vocab(d);
    if (st == OK && c->train.epochs)
        steps = c->train.epochs * steps_per_epoch(d, &c->train);
    if (st == OK)
        st = step_program(&p, &known, steps, err);
    if (st == OK) {
        struct memory_plan plan;
        program_print(p, to);
        pass_memory_plan(p, &plan);
        fprintf(to, "workspace: %.3f MB planned, %.3f MB without the plan\n", (double)plan.workspace_bytes / 1e6,
                (double)plan.naive_bytes / 1e6);
        memory_plan_release(&plan);
    }
    program_free(p);
    dataset_free(d);
    return st;
}
