/* The cost model: what a changed program would take, from what the present one was measured to take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "passes/passes.h"
#include "prove/moves.h"

static const char *op_label(const struct program *p, const struct op *op)
{
    return op->n_out > 0 ? p->values[op->out[0]].name : op_info(op->kind)->name;
}

/* The op of the same kind that makes the value of the same name and was not taken yet, or -1. */
static int find(const struct program *p, const char *label, enum op_kind kind, const bool *taken)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind && !taken[i] && !strcmp(op_label(p, &p->ops[i]), label))
            return i;
    return -1;
}

/* What ops are weighed with. Arithmetic and traffic stand one after the other: unlike in the roofline, where the longer hides the
 * shorter, what a fusion saves in traffic shows also where arithmetic is the longer. All traffic goes at the bandwidth of the level
 * that holds the whole step, so that one op over many tensors weighs as much as many ops over one. On a GPU no kernel is shorter than
 * one that does nothing: small ones win less by fewer bits than large ones do. */
struct scale {
    const struct program *p;
    const struct peaks *peaks;
    double gb_per_s;
};

static struct scale scale_of(const struct program *p, const struct peaks *peaks)
{
    return (struct scale){p, peaks, peaks_bandwidth(peaks, pass_planned_bytes(p))};
}

static bool goes_with_the_op_before(const struct program *p, int i) { return program_call(p, i).first < i; }

static double cost_us(const struct scale *s, const struct op *op)
{
    const double traffic_us = s->gb_per_s > 0 ? op_bytes(s->p, op) / s->gb_per_s / 1e3 : 0;
    const double start_us = goes_with_the_op_before(s->p, (int)(op - s->p->ops)) ? 0 : s->peaks->gpu.replayed_us;
    return (op_roof(s->p, op, s->peaks).arithmetic_us + traffic_us + start_us) * op_runs_per_step(s->p, op);
}

/* Does op a write a value that op b has? */
static bool writes_for(const struct op *a, const struct op *b)
{
    for (int i = 0; i < a->n_out; i++) {
        for (int k = 0; k < b->n_in; k++)
            if (a->out[i] == b->in[k])
                return true;
        for (int k = 0; k < b->n_out; k++)
            if (a->out[i] == b->out[k])
                return true;
    }
    return false;
}

/* How often threads meet in a step: before every op, or, with the pass fewer-meetings, before those that share values with the ops since
 * they last met, and between phases, which may be runs of their own; never within a call. (Values that share memory make them meet more often;
 * that is not known before the program is bound.) One thread meets nobody: what lies between its ops is their number. */
static double meetings(const struct program *p, int threads)
{
    double n = 0;
    int first = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const bool goes_with = goes_with_the_op_before(p, i);
        bool meets = !goes_with && (!p->fewer_meetings || threads < 2 || p->ops[i].phase != p->ops[first].phase);
        for (int k = first; k < i && !meets && !goes_with; k++)
            meets = writes_for(&p->ops[k], &p->ops[i]) || writes_for(&p->ops[i], &p->ops[k]);
        first = meets ? i : first;
        n += meets ? op_runs_per_step(p, &p->ops[i]) : 0;
    }
    return n;
}

/* What the gaps between kernels cost of now's, where a host starts them: in a graph the gap is a kernel's that does nothing. */
static double gaps(const struct program *now, const struct program *then, const struct peaks *peaks)
{
    const double replayed = peaks->gpu.replayed_us, launched = peaks->gpu.launched_us;
    if (now->captured == then->captured || !(replayed > 0) || !(launched > 0))
        return 1;
    return then->captured ? replayed / launched : launched / replayed;
}

/* What stays, what is new, and what goes. */
struct change {
    bool *stays;                            /* (ops of now) */
    double kept_us, new_cost, new_floor_us;
};

/* By how much an op that stays and takes `us` now takes longer. The roofline of one in pieces of another size knows the cache that holds such a piece; what it reads
 * was written just before, so the size of the whole step does not count. Larger pieces are as near their roofline as these are. Smaller ones are not: what the op takes above it
 * (starts, edges of tiles, delay) does not get less by more of them, and no more is won than the roofline falls by. */
static double growth(const struct scale *old, const struct op *was, const struct scale *new, const struct op *is, double us)
{
    const double runs = op_runs_per_step(old->p, was), runs_then = op_runs_per_step(new->p, is);
    const bool resized = runs != runs_then;
    const double before = resized ? op_floor_us(old->p, was, old->peaks, NULL) * runs : cost_us(old, was);
    const double then = resized ? op_floor_us(new->p, is, new->peaks, NULL) * runs_then : cost_us(new, is);
    if (runs_then > runs && then < before && us > before)
        return (us - (before - then)) / us;
    return before > 0 ? then / before : 1;
}

static void match(struct change *c, const struct profile *measured, const struct program *now, const struct program *then, bool *changed)
{
    const struct scale old = scale_of(now, &measured->peaks), new = scale_of(then, &measured->peaks);
    for (int i = 0; i < then->n_ops; i++) {
        const struct op *op = &then->ops[i];
        const int at = find(now, op_label(then, op), op->kind, c->stays);
        if (at < 0) {
            c->new_cost += cost_us(&new, op);
            c->new_floor_us += op_floor_us(then, op, &measured->peaks, NULL) * op_runs_per_step(then, op);
            continue;
        }
        const double us = measured->ops[at].self_us + measured->ops[at].imbalance_us, grows = growth(&old, &now->ops[at], &new, op, us);
        c->stays[at] = true;
        const double floor_us = op_floor_us(then, op, &measured->peaks, NULL) * op_runs_per_step(then, op);
        c->kept_us += fmax(us * grows, fmin(us, floor_us));         /* whatever the model says, not below its roofline */
        if (changed)
            changed[at] = grows != 1 || op->timed != now->ops[at].timed;
    }
}

struct prediction predict_step(const struct profile *measured, const struct program *now, const struct program *then, bool *changed)
{
    const struct scale old = scale_of(now, &measured->peaks);
    struct change c = {.stays = xcalloc((size_t)now->n_ops + 1, sizeof *c.stays)};
    double gone_us = 0, gone_cost = 0, work_us = 0;
    match(&c, measured, now, then, changed);
    for (int i = 0; i < now->n_ops; i++) {
        const double us = measured->ops[i].self_us + measured->ops[i].imbalance_us;
        work_us += us;
        gone_us += c.stays[i] ? 0 : us;
        gone_cost += c.stays[i] ? 0 : cost_us(&old, &now->ops[i]);
        if (changed)
            changed[i] |= !c.stays[i];
    }
    free(c.stays);
    const double new_us = c.new_cost * (gone_cost > 0 ? gone_us / gone_cost : 1);
    const double rest_us = fmax(measured->step_us - work_us, 0) * gaps(now, then, &measured->peaks), meetings_now = meetings(now, measured->threads);
    const double around_us = c.kept_us + (meetings_now > 0 ? rest_us * meetings(then, measured->threads) / meetings_now : rest_us);
    return (struct prediction){.us = around_us + new_us, .best_us = around_us + fmin(new_us, c.new_floor_us)};
}

double predict_step_us(const struct profile *measured, const struct program *now, const struct program *then)
{
    return predict_step(measured, now, then, NULL).us;
}
