/* A step by parts of the model: which ops belong to forward, to one block, to attention, and so on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/stats.h"
#include "passes/passes.h"
#include "train/train_int.h"

enum { STEPS = 25 };

static bool in_forward(const struct op *op) { return op->phase == PHASE_FORWARD; }
static bool in_loss(const struct program *p, const struct op *op)
{
    (void)p;
    return in_forward(op) && (op->kind == OP_LOG_SOFTMAX || op->kind == OP_NLL || op->kind == OP_LINEAR_LOSS);
}
static bool in_first_block(const struct op *op) { return in_forward(op) && op->layer == 0; }
static bool in_attention(const struct program *p, const struct op *op)
{
    return in_first_block(op) && strstr(p->values[op->out[0]].name, ".attn.");
}
static bool in_norm_or_add(const struct op *op)
{
    return op->kind == OP_LAYERNORM || op->kind == OP_RMSNORM || op->kind == OP_ADD || op->kind == OP_ADD_LAYERNORM ||
           op->kind == OP_ADD_RMSNORM;
}

static bool forward_only(const struct program *p, const struct op *op) { return in_forward(op) && !in_loss(p, op); }
static bool forward_and_loss(const struct program *p, const struct op *op) { (void)p; return in_forward(op); }
static bool one_block(const struct program *p, const struct op *op) { (void)p; return in_first_block(op); }
static bool feed_forward(const struct program *p, const struct op *op)
{
    return in_first_block(op) && !in_attention(p, op) && !in_norm_or_add(op);
}
/* What comes before the first block. */
static bool embedding(const struct program *p, const struct op *op)
{
    return in_forward(op) && op->layer == NO_LAYER && (op->kind == OP_EMBED || op->kind == OP_ADD || op->kind == OP_DROPOUT ||
                                                       op->kind == OP_ROPE_TABLE) && !in_loss(p, op);
}
static bool backward(const struct program *p, const struct op *op) { (void)p; return op->phase == PHASE_BACKWARD; }
static bool optimizer(const struct program *p, const struct op *op) { (void)p; return op->phase == PHASE_OPTIMIZE; }

/* What choosing nodes of a tree costs beyond the squares that clipping needs anyway. */
static bool selection(const struct program *p, const struct op *op)
{
    const bool ring = op->kind == OP_KEEP && !strcmp(p->values[op->in[0]].name, NODES_RING);
    const bool read = op->kind == OP_HOST_READ && !strncmp(p->values[op->out[0]].name, "host.score", 10);
    return op->kind == OP_HELD || op->kind == OP_GROUP_SCORES || op->kind == OP_TOP_K || ring || read;
}

static const struct component {
    const char *name;
    bool (*holds)(const struct program *p, const struct op *op);
} components[] = {
    {"forward", forward_only},      {"forward + loss", forward_and_loss}, {"one block", one_block},
    {"attention", in_attention},    {"feed-forward", feed_forward},       {"embedding", embedding},
    {"loss", in_loss},              {"backward", backward},               {"optimizer", optimizer},
    {"selection", selection},
};
enum { COMPONENTS = sizeof components / sizeof *components };
_Static_assert((int)COMPONENTS < (int)BENCH_COMPONENTS, "room for all components");

static enum status timed_step(struct model_run *r, struct loader *l, bool measured, double *ms, struct error *err)
{
    bool whole;
    exec_measure(r->train, measured);
    const double start = clock_s();
    const enum status st = model_run_step(r, l, NULL, &whole, err);
    exec_finish(r->train);
    *ms = (clock_s() - start) * 1e3;
    return st;
}

/* What each op took in measured step `step`; kept[op] is what it had taken before. */
static void keep_ops(const struct program *p, int step, int64_t *kept, double *us)
{
    for (int i = 0; i < p->n_ops; i++) {
        us[(int64_t)i * STEPS + step] = (double)(p->ops[i].profile.total_ns - kept[i]) / 1e3;
        kept[i] = p->ops[i].profile.total_ns;
    }
}

/* Of each op, from the measured steps to the step that is told, so that parts are parts of it: the middle of its readings, as one step that somebody else delayed
 * would be a part of some ops alone. What is faster than its floor was read better than by the
 * copies that bandwidth is measured by, or was in a nearer cache: then its time is its floor. */
static struct timed *scale_ops(const struct program *p, const struct peaks *peaks, double *readings, double recorded_ms, double ms_per_step)
{
    struct timed *times = xcalloc((size_t)p->n_ops + 1, sizeof *times);
    double work_us = 0;
    bool alike;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        stats_sort(readings + (int64_t)i * STEPS, STEPS);
        const double us = stats_percentile(readings + (int64_t)i * STEPS, STEPS, 0.5), floor_us = op_floor_us(p, op, peaks, NULL) * op_runs_per_step(p, op);
        times[i] = (struct timed){us, fmin(us, floor_us)};
        work_us += us;
    }
    const double factor = timed_factor(times, p->n_ops, fmax(recorded_ms * 1e3 - work_us, 0), ms_per_step * 1e3, &alike);
    for (int i = 0; i < p->n_ops; i++) {
        times[i].us = alike ? times[i].us * factor : timed_scaled(times[i], factor);
        times[i].floor_us = fmin(times[i].floor_us, times[i].us);
    }
    return times;
}

static void sum_up(const struct program *p, const struct component *part, const struct timed *times, struct bench_component *out)
{
    *out = (struct bench_component){.name = part->name};
    for (int i = 0; i < p->n_ops; i++) {
        if (!part->holds(p, &p->ops[i]))
            continue;
        out->us += times[i].us;
        out->floor_us += times[i].floor_us;
        out->ops++;
    }
}

/* What is no op's: threads that wait for each other, and the host. */
static struct bench_component rest_of(const struct program *p, const struct timed *times, double ms_per_step)
{
    double work_us = 0;
    for (int i = 0; i < p->n_ops; i++)
        work_us += times[i].us;
    return (struct bench_component){.name = "between ops", .us = fmax(ms_per_step * 1e3 - work_us, 0)};
}

enum status components_measure(struct model_run *r, struct loader *l, const struct peaks *peaks, const volatile sig_atomic_t *stop,
                               struct bench_component *out, int *n, struct bench_result *result, struct error *err)
{
    const struct program *p = exec_program(r->train);
    double plain[STEPS], measured[STEPS], *readings = xcalloc((size_t)p->n_ops * STEPS + 1, sizeof *readings);
    int64_t *kept = xcalloc((size_t)p->n_ops + 1, sizeof *kept);
    enum status st = OK;
    for (int i = 0; i < p->n_ops; i++)
        kept[i] = p->ops[i].profile.total_ns;
    for (int i = 0; i < STEPS && st == OK; i++) {
        st = stop && *stop ? error_stopped(err, "stopped before the parts of a step were timed") : timed_step(r, l, false, &plain[i], err);
        if (st == OK)
            st = timed_step(r, l, true, &measured[i], err);
        keep_ops(p, i, kept, readings);
    }
    exec_measure(r->train, false);
    free(kept);
    if (st != OK) {
        free(readings);
        return st;
    }
    stats_sort(plain, STEPS);
    stats_sort(measured, STEPS);
    result->unrecorded_ms = stats_percentile(plain, STEPS, 0.5);
    result->recorded_ms = stats_percentile(measured, STEPS, 0.5);
    *n = 0;
    struct timed *times = scale_ops(p, peaks, readings, result->recorded_ms, result->ms_per_step);
    free(readings);
    for (int i = 0; i < COMPONENTS; i++) {
        sum_up(p, &components[i], times, &out[*n]);
        *n += out[*n].ops > 0;
    }
    out[(*n)++] = rest_of(p, times, result->ms_per_step);
    free(times);
    return OK;
}
