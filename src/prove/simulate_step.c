/* A step of one rank of many; see simulate.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "passes/passes.h"
#include "prove/simulate.h"
#include "train/train.h"

struct walk {
    const struct sim_source *s;
    const struct sim_net *net;
    const struct program *p;
    int ranks;
    bool beside;                            /* who communicates has a core, or is the GPU's own */
    double scale;                           /* from ops as measured to the whole step: what lies between them goes with them */
    bool *taken;                            /* (ops of the source) */
    int unmeasured;                         /* ops of the program that the source does not have */
    double *us;                             /* (ops of the program): one run */
    double now_us, queue_us;                /* of the rank, and when the queue of sums is empty */
    double *there_us;                       /* (values): when a bucket has its sum */
    struct sim_step *out;
};

/* The measured time of an op; below 0: one rank alone does not have it. Ops come in the same order: the search goes on behind the last. */
static double measured_us(struct walk *w, const char *name, const char *kind, int *from)
{
    const struct sim_source *s = w->s;
    for (int k = 0; k < s->n_ops; k++) {
        const int i = (*from + k) % s->n_ops;
        if (w->taken[i] || strcmp(s->ops[i].name, name) || strcmp(s->ops[i].kind, kind))
            continue;
        w->taken[i] = true;
        *from = i + 1;
        return s->ops[i].us;
    }
    return -1;
}

/* Ops that ranks add move numbers: they go at the speed of memory. */
static void time_ops(struct walk *w)
{
    int from = 0;
    for (int i = 0; i < w->p->n_ops; i++) {
        const struct op *op = &w->p->ops[i];
        const double runs = op_runs_per_step(w->p, op);
        const double us = measured_us(w, w->p->values[op->out[0]].name, op_info(op->kind)->name, &from);
        w->us[i] = us >= 0 ? (runs > 0 ? us * w->scale / runs : 0) : w->s->gb_per_s > 0 ? op_bytes(w->p, op) / w->s->gb_per_s / 1e3 : 0;
        w->out->packing_us += us >= 0 ? 0 : w->us[i] * runs;
        w->unmeasured += us < 0 && runs > 0;
    }
}

/* What travels: a bucket, or the parameters that ranks have slices of. */
static double bytes_of(const struct program *p, const struct op *op)
{
    double bytes = 0;
    for (int i = 0; i < op->n_out; i++)
        bytes += (double)value_bytes(&p->values[op->out[i]]);
    return bytes;
}

/* Where every rank gets the sum of its slice alone, and where slices are brought to all, it is half of what a sum is. */
static void start_sum(struct walk *w, const struct op *op)
{
    const double bytes = bytes_of(w->p, op), us = sim_sum_us(w->net, w->ranks, bytes) / (op->attrs.n_cuts ? 2 : 1);
    w->queue_us = fmax(w->queue_us, w->now_us) + us;
    w->there_us[op->out[0]] = w->queue_us;
    w->out->sums_us += us;
    w->out->bytes += bytes;
    w->out->buckets++;
    if (!w->beside) {                       /* it takes the rank's own core */
        w->now_us += us;
        w->out->exposed_us += us;
    }
}

static void wait_for_sum(struct walk *w, const struct op *op)
{
    const double late = w->beside ? fmax(w->there_us[op->in[0]] - w->now_us, 0) : 0;
    w->now_us += late;
    w->out->exposed_us += late;
}

/* The micro-batches before the last communicate nothing. What one step leaves on the queue, the next one waits for: of two steps the second
 * counts. */
static void walk_through(struct walk *w)
{
    const struct program *p = w->p;
    const double begun_us = w->now_us;
    w->out->sums_us = w->out->exposed_us = w->out->bytes = 0;
    w->out->buckets = 0;
    const int early = p->micro_batches > 1 ? p->micro_batches - 1 : 0;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].phase > PHASE_SETUP && p->ops[i].phase <= PHASE_BACKWARD && !p->ops[i].last)
            w->now_us += early * w->us[i];
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->phase == PHASE_SETUP)
            continue;
        if (op->kind == OP_REDUCE_WAIT || op->kind == OP_GATHER_WAIT)
            wait_for_sum(w, op);
        w->now_us += w->us[i];
        if (op->kind == OP_REDUCE_START || op->kind == OP_GATHER_START)
            start_sum(w, op);
    }
    w->out->step_us = w->now_us - begun_us;
}

static double work_us(const struct sim_source *s)
{
    double us = 0;
    for (int i = 0; i < s->n_ops; i++)
        us += s->ops[i].us;
    return us;
}

static void walk_begin(struct walk *w)
{
    const double us = work_us(w->s);
    w->scale = us > 0 ? sim_step_us(w->s->steps_us, w->s->n_steps, 0.5) / us : 1;
    w->taken = xcalloc((size_t)w->s->n_ops + 1, sizeof *w->taken);
    w->us = xcalloc((size_t)w->p->n_ops + 1, sizeof *w->us);
    w->there_us = xcalloc((size_t)w->p->n_values + 1, sizeof *w->there_us);
    time_ops(w);
}

static void walk_end(struct walk *w)
{
    free(w->taken);
    free(w->us);
    free(w->there_us);
}

bool sim_has_core(const struct sim_source *s, const struct sim_net *net, int ranks)
{
    const int here = ranks < net->per_machine ? ranks : net->per_machine;
    return s->gpu || s->cores <= 0 || s->cores >= (int64_t)here * (s->threads + 1);
}

enum status sim_one_step(struct sim_step *out, const struct sim_source *s, const struct sim_net *net, int ranks, int64_t bucket_mb,
                         struct error *err)
{
    struct config c = s->config;
    struct program *p;
    *out = (struct sim_step){0};
    c.dist.bucket_mb = bucket_mb;
    const enum status st = train_rank_program(&p, &c, ranks, err);
    if (st != OK)
        return st;
    struct walk w = {.s = s, .net = net, .p = p, .ranks = ranks, .out = out, .beside = sim_has_core(s, net, ranks)};
    walk_begin(&w);
    walk_through(&w);
    walk_through(&w);
    out->memory_bytes = pass_planned_bytes(p);
    walk_end(&w);
    program_free(p);
    return OK;
}

/* Passes may differ a little with the machine. */
static const double STRANGE_MOST = 0.05;

enum status sim_check_ops(const struct sim_source *s, const char *path, struct error *err)
{
    struct sim_step unused = {0};
    struct program *p;
    const enum status st = train_rank_program(&p, &s->config, 1, err);
    if (st != OK)
        return st;
    struct walk w = {.s = s, .p = p, .ranks = 1, .out = &unused};
    walk_begin(&w);
    double strange_us = 0;
    int runs = 0;
    for (int i = 0; i < s->n_ops; i++)
        strange_us += w.taken[i] ? 0 : s->ops[i].us;
    for (int i = 0; i < p->n_ops; i++)
        runs += op_runs_per_step(p, &p->ops[i]) > 0;
    const bool alike = strange_us <= STRANGE_MOST * work_us(s) && w.unmeasured <= STRANGE_MOST * runs;
    const int unmeasured = w.unmeasured;
    walk_end(&w);
    program_free(p);
    return alike ? OK : error_set(err, BAD_INPUT, "'%s': its ops are not those of its config: %.0f %% of their time is in ops that this hone does not make of it, and %d of the %d "
                                  "that it makes are not there; profile it again", path, work_us(s) > 0 ? 100 * strange_us / work_us(s) : 0, unmeasured, runs);
}
