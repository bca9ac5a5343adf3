/* The cost model: what a rewritten program would take, from what the present one was measured to take. */
#include <math.h>
#include <string.h>

#include "prove/tune.h"

/* The measured op with the same name and kind. */
static const struct profile_op *find(const struct profile *p, const char *kind, const char *name)
{
    for (int i = 0; i < p->n_ops; i++)
        if (!strcmp(p->ops[i].name, name) && !strcmp(p->ops[i].kind, kind))
            return &p->ops[i];
    return NULL;
}

static const char *op_label(const struct program *p, const struct op *op)
{
    return op->n_out > 0 ? p->values[op->out[0]].name : op_info(op->kind)->name;
}

static bool has(const struct program *p, const char *kind, const char *name)
{
    for (int i = 0; i < p->n_ops; i++)
        if (!strcmp(op_label(p, &p->ops[i]), name) && !strcmp(op_info(p->ops[i].kind)->name, kind))
            return true;
    return false;
}

double predict_step_us(const struct profile *measured, const struct program *then)
{
    double kept_us = 0, gone_us = 0, gone_floor_us = 0, new_floor_us = 0;
    for (int i = 0; i < measured->n_ops; i++) {
        const struct profile_op *op = &measured->ops[i];
        const double us = op->self_us + op->imbalance_us;
        if (has(then, op->kind, op->name))
            kept_us += us;
        else {
            gone_us += us;
            gone_floor_us += op->floor_us;
        }
    }
    for (int i = 0; i < then->n_ops; i++) {
        const struct op *op = &then->ops[i];
        if (!find(measured, op_info(op->kind)->name, op_label(then, op)))
            new_floor_us += op_floor_us(then, op, &measured->peaks, NULL) * op_runs_per_step(then, op);
    }
    const double new_us = gone_us * (gone_floor_us > 0 ? fmin(new_floor_us / gone_floor_us, 1) : 1);
    /* what is not work of ops goes with their number: dispatch */
    const double rest = fmax(measured->step_us - kept_us - gone_us, 0), per_op = measured->n_ops ? rest / measured->n_ops : 0;
    return kept_us + new_us + per_op * then->n_ops;
}
